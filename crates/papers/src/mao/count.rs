//! Counting flushes by the size of the tree, where keys are updated.

use super::course::{Course, Courses, Input, Plan};
use crate::form::*;
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

/// Costs of one policy under one workload.
struct Setting {
    workload: &'static str,
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

    /// Returns the setting with its costs.
    fn shown(&self) -> String {
        let Setting { workload, policy, memtable_bytes, plain, by_size, .. } = self;
        format!(
            "{policy}), {workload}, memtables of {memtable_bytes} B: {plain:.2} by count, \
             {by_size:.2} by size"
        )
    }
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let quick = SHRINK_QUICK * task.effort.shrink as f64 / Effort::QUICK.shrink as f64;
    let shrink = task.pick(quick, 1.0);
    let scaled = |in_full: f64| (in_full / shrink).max(20.0) as u64;
    let workloads = workloads(scaled);
    let mut settings = Vec::new();
    for (name, spec, _) in &workloads {
        settings.extend(settings_of(name, spec, scaled, task)?);
    }
    let x = Axis::log("write cost, flushes counted", "bytes written per byte flushed");
    let mut figure = task.figure([Panel::only(x, Axis::linear("write cost by size over it", ""))]);
    for (name, ..) in &workloads {
        let mut points: Vec<(f64, f64)> =
            of(&settings, name).map(|setting| (setting.plain, setting.ratio())).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        figure.draw("", name, points);
    }
    let updates: Vec<&str> =
        workloads.iter().filter(|(.., is_updates)| *is_updates).map(|(name, ..)| *name).collect();
    claims(&mut figure, &settings, &updates);
    note(&mut figure, &settings);
    Ok(figure)
}

/// Returns the settings under one workload.
fn of<'a>(settings: &'a [Setting], workload: &'a str) -> impl Iterator<Item = &'a Setting> {
    settings.iter().filter(move |setting| setting.workload == workload)
}

/// Returns the workloads with their names. The last is true if most writes go to keys that exist.
fn workloads(scaled: impl Fn(f64) -> u64) -> [(&'static str, String, bool); 7] {
    let churn =
        |keys: f64| format!("churn(keys={}, value=100B, ops={})", scaled(keys), scaled(1e6));
    [
        (LOAD, format!("load(keys={}, value=100B)", scaled(8e5)), false),
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
    ]
}

/// The workload without updates.
const LOAD: &str = "load";

/// Simulates half of all pairs of policies and memtables: every pair whose places add up to an even
/// number.
fn settings_of(
    name: &'static str,
    spec: &str,
    scaled: impl Fn(f64) -> u64,
    task: &Task<'_>,
) -> anyhow::Result<Vec<Setting>> {
    let workload = KeyedWorkload::new(Workload::from_spec(&spec.parse()?, &NoInputs)?);
    let mut pairs = Vec::new();
    for (row, memtable) in MEMTABLES.into_iter().enumerate() {
        for (column, policy) in POLICIES.into_iter().enumerate() {
            if (row + column) % 2 == 0 {
                pairs.push((policy, scaled(memtable)));
            }
        }
    }
    let plans = pairs.iter().flat_map(|(policy, memtable_bytes)| {
        [")", ", count=size)"].map(|end| Plan {
            spec: format!("{policy}{end}"),
            input: Input::Keyed(&workload, *memtable_bytes),
            every: EVERY,
        })
    });
    let Courses(courses) = Courses::simulate(task, &plans.collect::<Vec<_>>())?;
    let settings =
        pairs.into_iter().zip(courses.chunks(2)).map(|((policy, memtable_bytes), own)| {
            let [plain, by_size] = [&own[0], &own[1]];
            Setting {
                workload: name,
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

fn claims(figure: &mut Figure, settings: &[Setting], updates: &[&str]) {
    let count = settings.len();
    let claim = format!(
        "{count} settings, over time: most write cost by size over that by count, mean of the \
         second half of the flushes (never more than 5 % above)"
    );
    figure.at_most(claim, most(settings.iter().map(|setting| setting.ratio_mean)), RATIO_MAX);
    let claim = format!(
        "{count} settings, at the end: most write cost by size over that by count (never more than \
         5 % above)"
    );
    figure.at_most(claim, most(settings.iter().map(Setting::ratio)), RATIO_MAX);
    figure.explain(
        "settings, at the end",
        "the cost jumps whenever all runs become one. In the worst setting that happens just \
         before the end, and by plain counting it would soon after.",
    );
    for name in updates {
        let claim = format!(
            "{name}: write cost by size over that by count, mean (less, as keys are updated)"
        );
        figure.at_most(claim, mean(of(settings, name).map(Setting::ratio)), RATIO_UPDATES);
    }
    // With no key written twice both count the same flushes, but for the end of a phase.
    let apart = farthest(of(settings, LOAD).map(|setting| setting.ratio() - 1.0));
    let claim = "new keys only: the two differ by this share at most (nearly equal)";
    figure.at_most(claim, apart, 0.05);
}

fn note(figure: &mut Figure, settings: &[Setting]) {
    figure.note(
        "The paper: with more updates or deletions the error between theoretical and actual cost \
         of binomial and minlatency grows; one way to solve this is to recompute the number of \
         flushes from the total size. `count=size` does that whenever all runs have become one. \
         Simulated key by key, with values of 100 B (1 kB for YCSB and the updates of the oldest) \
         and memtables of 57, 100 and 164 kB at full size.",
    );
    let by_ratio = |one: &&Setting, other: &&Setting| one.ratio().total_cmp(&other.ratio());
    let worst = settings.iter().max_by(by_ratio).map(Setting::shown);
    let best = settings.iter().min_by(by_ratio).map(Setting::shown);
    if let (Some(worst), Some(best)) = (worst, best) {
        figure.note(format!("The worst: {worst}. The best: {best}."));
    }
}
