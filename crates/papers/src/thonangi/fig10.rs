//! Figure 10: seven policies while an index grows.

use super::scale::{cost_axis, scale_note};
use super::steady::{Bench, Course, Keys, Steady};
use super::sweep::{KEEPING, PAIRS, SEVEN, Sweep, and_own, others, steady_states};
use crate::form::*;
use anyhow::Context;
use lsmith_policy::{Explanation, Load, MergePolicy, Needs, Registry, Shape};
use lsmith_sim::BlockSim;
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The sizes of the steady states that give the thresholds, in MB of data; and the scale.
const LEARNED_MB: [f64; 7] = [200.0, 400.0, 600.0, 800.0, 1200.0, 1700.0, 2000.0];
const LEARNED_SHRINK: u64 = 16;
/// The steady state that growth is compared with.
const COMPARED_MB: f64 = 1200.0;
/// The size of the data at the end.
const END_MB: u64 = 2000;
/// Sizes at which policies are compared. Below them the index is hardly larger than its first two
/// levels.
const GROWN: RangeInclusive<f64> = 400.0..=f64::INFINITY;

/// The figure of the paper.
pub(crate) fn measure_normal(task: &Task<'_>) -> anyhow::Result<Figure> {
    let (mut figure, steady) = measure(task, Keys::NORMAL)?;
    claims(&mut figure);
    for (keeps, plain) in PAIRS {
        let excess = figure.excess("", plain, keeps, 2000.0);
        let claim = format!("2000 MB: {plain} costs much more than {keeps}: by, %");
        figure.at_least(claim, excess, 5.0);
    }
    claims_of_steady(&mut figure, &steady.points(Steady::cost));
    explain_windows(&mut figure);
    Ok(figure)
}

/// The same under `uniform`, where keeping blocks gains much less, as the paper says.
pub(crate) fn measure_uniform(task: &Task<'_>) -> anyhow::Result<Figure> {
    let (mut figure, _) = measure(task, Keys::Uniform)?;
    claims(&mut figure);
    for (keeps, plain) in PAIRS {
        let excess = figure.excess("", plain, keeps, 2000.0);
        let claim = format!("2000 MB: {plain} costs hardly more than {keeps}: by, %");
        figure.at_most(claim, excess, 5.0);
    }
    explain_uniform(&mut figure);
    Ok(figure)
}

/// Measures both, without claims. Also returns the steady states that `mixed` has learned in.
fn measure(task: &Task<'_>, keys: Keys) -> anyhow::Result<(Figure, Sweep)> {
    // Growth takes no longer than its requests.
    let shrink = task.effort.shrink * task.pick(2, 1);
    let learned_shrink = LEARNED_SHRINK.max(task.effort.shrink * 2);
    let bench = |policy: &str, x| Bench::standard(policy, keys, x as u64, learned_shrink);
    let learned = &LEARNED_MB[..task.pick(LEARNED_MB.len() - 1, LEARNED_MB.len())];
    let mut all = spots("", ["mixed"], learned, bench);
    all.extend(spots("", others(), &[COMPARED_MB], bench));
    let steady = steady_states(task, "thresholds of steady states", all)?;
    let schedule = schedule(&steady, learned)?;
    let curves = and_own(&SEVEN, task);
    let bench = |policy: &String| Bench::standard(policy, keys, END_MB, shrink).with_own(task);
    let benches: Vec<Bench> = curves.iter().map(bench).collect();
    let step_mb = task.pick(200, 100);
    let found = task.each(task.name(), &benches, Bench::records, |bench, ticker| {
        grow(bench, step_mb, &schedule, ticker)
    })?;
    let x = Axis::linear("dataset indexed so far", "MB");
    let mut figure = task.figure([Panel::only(x, cost_axis())]);
    for (policy, points) in curves.iter().zip(found) {
        figure.draw("", policy, points);
    }
    figure.note(scale_note([(END_MB, shrink)]));
    let stages = joined("; ", schedule.iter().map(Stage::text));
    figure.note(format!(
        "mixed runs with what it learns in steady states under the same keys, at \
         1/{learned_shrink} of the paper's scale: {stages}."
    ));
    Ok((figure, steady))
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
        let params = joined(" ", words);
        match self.end_mb.is_finite() {
            true => format!("up to {:.0} MB {params}", self.end_mb),
            false => format!("beyond {params}"),
        }
    }
}

/// Returns the thresholds learned at each size. They apply up to the middle between this size and
/// the next.
fn schedule(steady: &Sweep, sizes: &[f64]) -> anyhow::Result<Vec<Stage>> {
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

/// Returns the blocks written per megabyte so far, over the megabytes, while the index grows.
/// `mixed` takes its thresholds from `schedule`.
fn grow(
    bench: &Bench,
    step_mb: u64,
    schedule: &[Stage],
    ticker: &Ticker<'_>,
) -> anyhow::Result<Vec<(f64, f64)>> {
    let workload = bench.workload(0.0, 0)?;
    let mut policy = bench.build_policy()?;
    if bench.policy == "mixed" {
        policy = Arc::new(Scheduled::new(bench, schedule)?);
    }
    let index = BlockSim::new(&policy, bench.sizes());
    let mut course = Course { index, ops: workload.ops(), ticker };
    let mut points = Vec::new();
    let steps = bench.dataset_mb / step_mb;
    for step in 1..=steps {
        let records = |step| bench.records() * step / steps;
        course.run(records(step) - records(step - 1))?;
        let cost = course.index.figures().write_cost_blocks;
        points.push(((step * step_mb) as f64, cost));
    }
    Ok(points)
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

fn claims(figure: &mut Figure) {
    let over = |policy: &'static str, others: &[&str]| {
        others
            .iter()
            .flat_map(|other| figure.excesses("", policy, other, GROWN))
            .collect::<Vec<_>>()
    };
    let mixed = most(over("mixed", &others().collect::<Vec<_>>()));
    let full = least(over("full", &["rr", "choose_best", "mixed"]));
    let plain = least(over("full(reuse=false)", &["rr(reuse=false)", "choose_best(reuse=false)"]));
    let claim = "mixed is the overall winner, from 400 MB on: at most over any other, %";
    figure.at_most(claim, mixed, 2.5);
    let claim = "full performs worst of those with reuse, from 400 MB on: at least over any, %";
    figure.at_least(claim, full, 0.0);
    let claim = "full performs worst of those without, from 400 MB on: at least over any, %";
    figure.at_least(claim, plain, 0.0);
}

/// Adds claims that compare growth with steady states.
fn claims_of_steady(figure: &mut Figure, steady: &Figure) {
    let x = COMPARED_MB;
    let ratios = KEEPING.iter().filter_map(|p| over(figure.y("", p, x), steady.y("", p, x)));
    let claim = "1200 MB: costs are lower than in a steady state: largest ratio";
    figure.at_most(claim, most(ratios), 1.0);
    for (keeps, plain) in PAIRS {
        let [growing, steady] = [&*figure, steady].map(|costs| costs.excess("", plain, keeps, x));
        let claim = format!(
            "1200 MB: {keeps} gains more on {plain} than in a steady state: by, percentage points"
        );
        figure.at_least(claim, less(growing, steady), 0.0);
    }
}

/// Explains what differs where keys are uniform.
fn explain_uniform(figure: &mut Figure) {
    let gains = figure.excesses("", "full(reuse=false)", "full", GROWN);
    if let (Some(low), Some(high)) = (least(gains.iter().copied()), most(gains)) {
        let why = format!(
            "costs so far of full rise in steps, with each merge of level 2, and kept blocks shift \
             these steps: from 400 MB on full(reuse=false) is between {low:.0} and {high:.0} % \
             above full, depending on where one looks"
        );
        figure.explain("full(reuse=false) costs hardly more", why);
    }
    let xs = figure.xs("").into_iter().filter(|x| GROWN.contains(x));
    let worst = xs
        .filter_map(|x| Some((figure.excess("", "mixed", "rr", x)?, x)))
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    if let Some((percent, x)) = worst {
        let why = format!(
            "mixed is {percent:.1} % above rr at {x} MB. Its thresholds are those of steady \
             states, as the paper has it, and near the sizes at which they change others would fit \
             growth"
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
