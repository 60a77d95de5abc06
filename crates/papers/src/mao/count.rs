//! Counting flushes by the size of the tree, where keys are updated.

use super::course::{Course, Input, Plan, simulate_all};
use super::fit::{mean, most};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::SharedProgress;
use lsmith_lab::plot::Axis;
use lsmith_sim::KeyedWorkload;
use lsmith_workload::{NoInputs, Workload};

/// The policies that count flushes, without the end of their specs.
const POLICIES: [&str; 4] = ["minlatency(k=4", "minlatency(k=6", "binomial(k=3", "binomial(k=5"];

/// Logical bytes of memtables.
const MEMTABLES: [f64; 3] = [57e3, 1e5, 1.64e5];

/// Flushes between two looks at the costs.
const EVERY: u64 = 10;

/// By how much a quick measurement is smaller.
const SHRINK_QUICK: f64 = 20.0;

/// The most that a count by size may write, over plain counting.
const RATIO_MAX: f64 = 1.05;

/// The least gain, in the mean, where most writes are updates.
const RATIO_UPDATES: f64 = 0.95;

/// A workload of the figure.
struct Kind {
    name: &'static str,
    workload: KeyedWorkload,
    /// True if most writes go to keys that exist.
    is_updates: bool,
}

/// Costs of one policy under one workload.
struct Setting {
    kind: usize,
    policy: &'static str,
    memtable_bytes: u64,
    /// Write costs at the end.
    plain: f64,
    by_size: f64,
    /// The second over the first, averaged over the second half of the flushes.
    ratio_mean: f64,
}

impl Setting {
    fn ratio(&self) -> f64 {
        self.by_size / self.plain
    }

    fn label(&self, kinds: &[Kind]) -> String {
        let Setting { policy, memtable_bytes, .. } = self;
        format!("{policy}), {}, memtables of {memtable_bytes} B", kinds[self.kind].name)
    }
}

pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let shrink = match effort.is_quick {
        true => SHRINK_QUICK * effort.shrink as f64 / Effort::QUICK.shrink as f64,
        false => 1.0,
    };
    let scaled = |number: f64| (number / shrink).max(20.0) as u64;
    let kinds = kinds(scaled)?;
    let mut settings = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        settings.extend(measure_kind(index, kind, scaled, progress)?);
    }

    let axes = (
        Axis::log("write cost, flushes counted", "bytes written per byte flushed"),
        Axis::linear("write cost by size over it", ""),
    );
    let mut figure = Figure::empty(info.name, info.title, vec![Panel::only(axes.0, axes.1)]);
    for (index, kind) in kinds.iter().enumerate() {
        let own = settings.iter().filter(|setting| setting.kind == index);
        let mut points: Vec<(f64, f64)> =
            own.map(|setting| (setting.plain, setting.ratio())).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points.into_iter().for_each(|(x, y)| figure.point("", kind.name, x, y));
    }
    claims(&mut figure, &kinds, &settings);
    note(&mut figure, &kinds, &settings);
    Ok(figure)
}

fn kinds(scaled: impl Fn(f64) -> u64) -> anyhow::Result<Vec<Kind>> {
    let churn =
        |keys: f64| format!("churn(keys={}, value=100B, ops={})", scaled(keys), scaled(1e6));
    let specs = [
        ("load", format!("load(keys={}, value=100B)", scaled(8e5)), false),
        ("load, Zipf", format!("load(keys={}, value=100B, order=zipf)", scaled(1e6)), false),
        ("churn, 300k keys", churn(3e5), false),
        ("churn, 60k keys", churn(6e4), true),
        ("churn, 20k keys", churn(2e4), true),
        (
            "YCSB A, 50k keys",
            format!("ycsb(a, records={}, ops={})", scaled(5e4), scaled(1.2e6)),
            true,
        ),
        (
            "updates of the oldest",
            format!("update(keys={}, ops={}, share=0.9, dist=zipf)", scaled(1e5), scaled(8e5)),
            true,
        ),
    ];
    let kind = |(name, spec, is_updates): (&'static str, String, bool)| {
        let workload = Workload::from_spec(&spec.parse()?, &NoInputs)?;
        Ok(Kind { name, workload: KeyedWorkload::new(workload), is_updates })
    };
    specs.into_iter().map(kind).collect()
}

/// Simulates half of all pairs of policies and memtables: every pair whose places add up to an even
/// number.
fn measure_kind(
    index: usize,
    kind: &Kind,
    scaled: impl Fn(f64) -> u64,
    progress: &SharedProgress,
) -> anyhow::Result<Vec<Setting>> {
    let mut pairs = Vec::new();
    for (row, memtable) in MEMTABLES.into_iter().enumerate() {
        for (column, policy) in POLICIES.into_iter().enumerate() {
            if (row + column) % 2 == 0 {
                pairs.push((policy, scaled(memtable)));
            }
        }
    }
    let plans: Vec<Plan<'_>> = pairs
        .iter()
        .flat_map(|(policy, memtable_bytes)| {
            [")", ", count=size)"].map(|end| Plan {
                spec: format!("{policy}{end}"),
                input: Input::Keyed(&kind.workload, *memtable_bytes),
                every: EVERY,
            })
        })
        .collect();
    let courses = simulate_all(&plans, progress)?;
    let pairs = pairs.into_iter().zip(courses.chunks(2));
    let settings = pairs.map(|((policy, memtable_bytes), courses)| {
        let [plain, by_size] = [&courses[0], &courses[1]];
        Setting {
            kind: index,
            policy,
            memtable_bytes,
            plain: plain.write_cost(),
            by_size: by_size.write_cost(),
            ratio_mean: ratio_over_time(plain, by_size).unwrap_or(1.0),
        }
    });
    Ok(settings.collect())
}

/// Returns the write cost of `by_size` over the write cost of `plain`, averaged over the second
/// half of the flushes.
fn ratio_over_time(plain: &Course, by_size: &Course) -> Option<f64> {
    let [plain, by_size] = [plain.write_costs(), by_size.write_costs()];
    let half = plain.len() / 2;
    mean(plain.iter().zip(&by_size).skip(half).map(|(plain, by_size)| by_size.1 / plain.1))
}

fn claims(figure: &mut Figure, kinds: &[Kind], settings: &[Setting]) {
    let count = settings.len();
    figure.claim(most(settings.iter().map(|setting| setting.ratio_mean)).map(|ratio| {
        let claim = format!(
            "{count} settings, over time: most write cost by size over that by count, mean of the \
             second half of the flushes (never more than 5 % above)"
        );
        Claim::at_most(claim, ratio, RATIO_MAX)
    }));
    figure.claim(most(settings.iter().map(Setting::ratio)).map(|ratio| {
        let claim = format!(
            "{count} settings, at the end: most write cost by size over that by count (never more \
             than 5 % above)"
        );
        Claim::at_most(claim, ratio, RATIO_MAX)
    }));
    figure.explain(
        "settings, at the end",
        "the cost jumps whenever all runs become one. In the worst setting that happens just \
         before the end, and by plain counting it would soon after.",
    );
    for (index, kind) in kinds.iter().enumerate().filter(|(_, kind)| kind.is_updates) {
        let own = settings.iter().filter(|setting| setting.kind == index);
        figure.claim(mean(own.map(Setting::ratio)).map(|ratio| {
            let claim = format!(
                "{}: write cost by size over that by count, mean (less, as keys are updated)",
                kind.name
            );
            Claim::at_most(claim, ratio, RATIO_UPDATES)
        }));
    }
    // With no key written twice both count the same flushes, but for the end of a phase.
    let new = settings.iter().filter(|setting| setting.kind == 0);
    figure.claim(most(new.map(|setting| (setting.ratio() - 1.0).abs())).map(|apart| {
        let claim = "new keys only: the two differ by this share at most (nearly equal)";
        Claim::at_most(claim, apart, 0.05)
    }));
}

fn note(figure: &mut Figure, kinds: &[Kind], settings: &[Setting]) {
    figure.note(
        "The paper: with more updates or deletions the error between theoretical and actual cost \
         of binomial and minlatency grows; one way to solve this is to recompute the number of \
         flushes from the total size. `count=size` does that whenever all runs have become one. \
         Simulated key by key, with values of 100 B (1 kB for YCSB and the updates of the oldest) \
         and memtables of 57, 100 and 164 kB at full size.",
    );
    let ends = [
        settings.iter().max_by(|one, other| one.ratio().total_cmp(&other.ratio())),
        settings.iter().min_by(|one, other| one.ratio().total_cmp(&other.ratio())),
    ];
    if let [Some(worst), Some(best)] = ends {
        let shown = |setting: &Setting| {
            let Setting { plain, by_size, .. } = setting;
            format!("{}: {plain:.2} by count, {by_size:.2} by size", setting.label(kinds))
        };
        figure.note(format!("The worst: {}. The best: {}.", shown(worst), shown(best)));
    }
}
