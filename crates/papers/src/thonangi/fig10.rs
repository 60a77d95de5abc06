//! Figure 10: seven policies while an index grows.

use super::scale::{cost_axis, scale_note};
use super::steady::{Bench, Course, Keys, Steady};
use super::sweep::{KEEPING, PAIRS, SEVEN, Spot, Sweep, least, most};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use anyhow::Context;
use lsmith_lab::plot::Axis;
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all};
use lsmith_policy::{Explanation, Load, MergePolicy, Needs, Registry, Shape};
use lsmith_sim::BlockSim;
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use std::sync::Arc;

/// The sizes of the steady states that give the thresholds, in MB of data; and the scale.
const LEARNED_MB: [u64; 7] = [200, 400, 600, 800, 1200, 1700, 2000];
const LEARNED_SHRINK: u64 = 16;
/// The steady state that growth is compared with.
const COMPARED_MB: u64 = 1200;

/// Measures the figure of the paper.
pub(crate) fn measure_normal(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let (mut figure, steady) = measure(info, Keys::NORMAL, effort, progress)?;
    claims(&mut figure);
    for (keeps, plain) in PAIRS {
        figure.claim(excess(&figure, plain, keeps, 2000.0).map(|percent| {
            let claim = format!("2000 MB: {plain} costs much more than {keeps}: by, %");
            Claim::at_least(claim, percent, 5.0)
        }));
    }
    claims_of_steady(&mut figure, &steady);
    explain_windows(&mut figure);
    Ok(figure)
}

/// Measures the same under `uniform`, where keeping blocks gains much less, as the paper says.
pub(crate) fn measure_uniform(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let (mut figure, _) = measure(info, Keys::Uniform, effort, progress)?;
    claims(&mut figure);
    for (keeps, plain) in PAIRS {
        figure.claim(excess(&figure, plain, keeps, 2000.0).map(|percent| {
            let claim = format!("2000 MB: {plain} costs hardly more than {keeps}: by, %");
            Claim::at_most(claim, percent, 5.0)
        }));
    }
    explain_uniform(&mut figure);
    Ok(figure)
}

/// Measures both, without claims. Also returns the steady states that `mixed` has learned in.
fn measure(
    info: &FigureInfo,
    keys: Keys,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<(Figure, Sweep)> {
    let end_mb = 2000;
    // Growth takes no longer than its requests.
    let shrink = if effort.is_quick { effort.shrink * 2 } else { effort.shrink };
    let steady = steady_states(keys, effort, progress)?;
    let schedule = schedule(&steady)?;
    let step_mb = if effort.is_quick { 200 } else { 100 };
    let growth = |policy: &str| Growth {
        bench: Bench::standard(policy, keys, end_mb, shrink),
        step_mb,
        schedule: schedule.clone(),
    };
    let jobs: Vec<Growth> = SEVEN.into_iter().map(growth).collect();
    let found = measure_all(info.name, &jobs, progress)?;
    let x = Axis::linear("dataset indexed so far", "MB");
    let mut figure = Figure::empty(info.name, info.title, vec![Panel::only(x, cost_axis())]);
    for (policy, points) in SEVEN.into_iter().zip(found) {
        points.into_iter().for_each(|(x, y)| figure.point("", policy, x, y));
    }
    figure.note(scale_note([(end_mb, shrink)]));
    let stages: Vec<String> = schedule.iter().map(Stage::text).collect();
    figure.note(format!(
        "mixed runs with what it learns in steady states under the same keys, at 1/{} of the \
         paper's scale: {}.",
        learned_shrink(effort),
        stages.join("; ")
    ));
    Ok((figure, steady))
}

fn learned_shrink(effort: Effort) -> u64 {
    LEARNED_SHRINK.max(effort.shrink * 2)
}

/// The costs of each policy in steady states.
fn steady_states(keys: Keys, effort: Effort, progress: &SharedProgress) -> anyhow::Result<Sweep> {
    let spot = |policy: &str, size: u64| Spot {
        panel: "",
        curve: policy.to_owned(),
        x: size as f64,
        bench: Bench::standard(policy, keys, size, learned_shrink(effort)),
    };
    let sizes = LEARNED_MB.into_iter().filter(|size| !effort.is_quick || *size < 2000);
    let mut spots: Vec<Spot> = sizes.map(|size| spot("mixed", size)).collect();
    let others = SEVEN.into_iter().filter(|policy| *policy != "mixed");
    spots.extend(others.map(|policy| spot(policy, COMPARED_MB)));
    Sweep::measure("thresholds of steady states", spots, progress)
}

/// The thresholds of `mixed`, and the size of the data up to which they apply.
#[derive(Clone, Debug)]
struct Stage {
    end_mb: f64,
    params: Vec<(&'static str, String)>,
}

impl Stage {
    fn text(&self) -> String {
        let words = self.params.iter().map(|(name, value)| format!("{name} {value}"));
        let params: Vec<String> = words.collect();
        if self.end_mb.is_finite() {
            format!("up to {:.0} MB {}", self.end_mb, params.join(" "))
        } else {
            format!("beyond {}", params.join(" "))
        }
    }
}

/// Returns the thresholds learned at each size. They apply up to the middle between this size and
/// the next.
fn schedule(steady: &Sweep) -> anyhow::Result<Vec<Stage>> {
    let sizes: Vec<f64> =
        steady.xs("").into_iter().filter(|x| steady.at("", "mixed", *x).is_some()).collect();
    let stages = sizes.iter().enumerate().map(|(index, &size)| {
        let Steady { tau, beta, .. } = steady.at("", "mixed", size).context("measured")?;
        let next = sizes.get(index + 1);
        // Between three and four levels the border is the size at which the third level is full.
        let end_mb = match next {
            Some(next) if size < 1600.0 && *next > 1600.0 => 1622.0,
            Some(next) => (size + next) / 2.0,
            None => f64::INFINITY,
        };
        let tau = if tau.is_empty() { "0".to_owned() } else { tau.clone() };
        let beta = beta.context("mixed has learned")?.to_string();
        Ok(Stage { end_mb, params: vec![("tau", tau), ("beta", beta)] })
    });
    stages.collect()
}

/// A measurement of one policy while the index grows.
struct Growth {
    bench: Bench,
    step_mb: u64,
    /// The thresholds for `mixed`.
    schedule: Vec<Stage>,
}

impl Job for Growth {
    /// The result: megabytes so far, and blocks written per megabyte so far.
    type Output = Vec<(f64, f64)>;

    fn work(&self) -> u64 {
        self.bench.records()
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Vec<(f64, f64)>> {
        let workload = self.bench.workload(0.0, 0)?;
        let mut policy = self.bench.build_policy()?;
        if self.bench.policy == "mixed" {
            policy = Arc::new(Scheduled::new(&self.bench, &self.schedule)?);
        }
        let index = BlockSim::new(&policy, self.bench.sizes());
        let mut course = Course { index, ops: workload.ops(), ticker };
        let mut points = Vec::new();
        let steps = self.bench.dataset_mb / self.step_mb;
        for step in 1..=steps {
            let records = |step| self.bench.records() * step / steps;
            course.run(records(step) - records(step - 1))?;
            let cost = course.index.figures().write_cost_blocks;
            points.push(((step * self.step_mb) as f64, cost));
        }
        Ok(points)
    }
}

/// `mixed` with thresholds that depend on the size of the data.
#[derive(Debug)]
struct Scheduled {
    /// The policies, each with the bytes of data up to which it applies.
    stages: Vec<(f64, Arc<dyn MergePolicy>)>,
}

impl Scheduled {
    fn new(bench: &Bench, stages: &[Stage]) -> anyhow::Result<Scheduled> {
        let registry = Registry::builtin();
        let stages = stages.iter().map(|stage| {
            let mixed = Spec::bare("mixed").with("rate", bench.rate);
            let params = stage.params.iter();
            let spec = params.fold(mixed, |spec, (name, value)| spec.with(*name, value));
            let bytes = stage.end_mb * 1e6 / bench.shrink as f64;
            Ok((bytes, registry.build_spec(&spec)?))
        });
        Ok(Scheduled { stages: stages.collect::<anyhow::Result<_>>()? })
    }

    fn stage(&self, view: &TreeView) -> &Arc<dyn MergePolicy> {
        let bytes: u64 = view.tree.disk_runs().map(|run| run.bytes()).sum();
        let last = self.stages.len() - 1;
        let stage = self.stages.iter().position(|(end, _)| bytes as f64 <= *end);
        &self.stages[stage.unwrap_or(last)].1
    }
}

impl MergePolicy for Scheduled {
    fn spec(&self) -> Spec {
        Spec::bare("mixed")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.stage(view).next_merge(view)
    }

    fn seal_bytes(&self, view: &TreeView) -> u64 {
        self.stage(view).seal_bytes(view)
    }

    fn needs(&self) -> Needs {
        Needs::BLOCKS
    }

    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        self.stage(view).pressure(view, load)
    }

    fn shape(&self) -> Shape {
        self.stages[0].1.shape()
    }

    fn explain(&self, view: &TreeView) -> Explanation {
        self.stage(view).explain(view)
    }
}

/// Returns by how many percent one policy costs more than another at `x`.
fn excess(figure: &Figure, policy: &str, base: &str, x: f64) -> Option<f64> {
    Some((figure.y("", policy, x)? / figure.y("", base, x)? - 1.0) * 100.0)
}

fn claims(figure: &mut Figure) {
    // Below this size the index is hardly larger than its first two levels.
    let xs: Vec<f64> = figure.xs("").into_iter().filter(|x| *x >= 400.0).collect();
    let over = |policy: &str, others: &[&str]| {
        let pairs = others.iter().flat_map(|other| xs.iter().map(move |x| (*other, *x)));
        pairs.filter_map(|(other, x)| excess(figure, policy, other, x)).collect::<Vec<_>>()
    };
    let others: Vec<&str> = SEVEN.into_iter().filter(|policy| *policy != "mixed").collect();
    let mixed = most(over("mixed", &others));
    let full = least(over("full", &["rr", "choose_best", "mixed"]));
    let plain = least(over("full(reuse=false)", &["rr(reuse=false)", "choose_best(reuse=false)"]));
    figure.claim(mixed.map(|percent| {
        let claim = "mixed is the overall winner, from 400 MB on: at most over any other, %";
        Claim::at_most(claim, percent, 2.5)
    }));
    figure.claim(full.map(|percent| {
        let claim = "full performs worst of those with reuse, from 400 MB on: at least over any, %";
        Claim::at_least(claim, percent, 0.0)
    }));
    figure.claim(plain.map(|percent| {
        let claim = "full performs worst of those without, from 400 MB on: at least over any, %";
        Claim::at_least(claim, percent, 0.0)
    }));
}

/// Adds claims that compare growth with steady states.
fn claims_of_steady(figure: &mut Figure, steady: &Sweep) {
    let x = COMPARED_MB as f64;
    let ratios = KEEPING.iter().filter_map(|p| Some(figure.y("", p, x)? / steady.cost("", p, x)?));
    figure.claim(most(ratios).map(|ratio| {
        let claim = "1200 MB: costs are lower than in a steady state: largest ratio";
        Claim::at_most(claim, ratio, 1.0)
    }));
    for (keeps, plain) in PAIRS {
        let gains = excess(figure, plain, keeps, x).zip(steady.excess("", plain, keeps, x));
        figure.claim(gains.map(|(growing, steady)| {
            let claim = format!(
                "1200 MB: {keeps} gains more on {plain} than in a steady state: by, percentage \
                 points"
            );
            Claim::at_least(claim, growing - steady, 0.0)
        }));
    }
}

/// Explains what differs where keys are uniform.
fn explain_uniform(figure: &mut Figure) {
    let xs: Vec<f64> = figure.xs("").into_iter().filter(|x| *x >= 400.0).collect();
    let gains: Vec<f64> =
        xs.iter().filter_map(|x| excess(figure, "full(reuse=false)", "full", *x)).collect();
    if let (Some(low), Some(high)) = (least(gains.iter().copied()), most(gains)) {
        let why = format!(
            "costs so far of full rise in steps, with each merge of level 2, and kept blocks shift \
             these steps: from 400 MB on full(reuse=false) is between {low:.0} and {high:.0} % \
             above full, depending on where one looks"
        );
        figure.explain("full(reuse=false) costs hardly more", why);
    }
    let over = |x: &f64| Some((excess(figure, "mixed", "rr", *x)?, *x));
    let worst = xs.iter().filter_map(over).max_by(|(a, _), (b, _)| a.total_cmp(b));
    if let Some((percent, x)) = worst {
        let why = format!(
            "mixed is {percent:.1} % above rr at {x} MB. Its thresholds are those of steady \
             states, as the paper has it, and near the sizes at which they change others would \
             fit growth"
        );
        figure.explain("mixed is the overall winner", why);
    }
}

/// Explains why `mixed` and reuse gain less than in the paper.
fn explain_windows(figure: &mut Figure) {
    let at = |policy| figure.y("", policy, 600.0);
    let (Some(mixed), Some(best)) = (at("mixed"), at("choose_best")) else { return };
    let why = format!(
        "as long as beta is true, mixed differs from choose_best only by its full merges into the \
         bottom level: {mixed:.0} and {best:.0} blocks per MB at 600 MB. They pay in a steady \
         state, where deletes of any key are spread over all levels. Where keys are only inserted, \
         all are in clusters, the best windows overlap little below, and full merges rewrite what \
         those spare; thresholds of a steady state do not fit. For the same reason reuse gains \
         choose_best little: hardly a block below its windows has no newer key within it."
    );
    for part in ["mixed is the overall winner", "costs much more than", "gains more on"] {
        figure.explain(part, why.clone());
    }
}
