//! Holds advice against every policy, simulated on all writes.

use crate::form::*;
use lsmith_lab::tune::{Limits, TrialCosts, Tuning, costs_of_all, judge};
use lsmith_lab::{FileInputs, NoProgress};
use lsmith_policy::Registry;
use lsmith_spec::{Spec, parse_bytes};
use lsmith_workload::Workload;

/// All kinds of workloads but traces, each of about 400,000 writes, so that samples of them are
/// simulated before all of them.
const WORKLOADS: [&str; 13] = [
    "ycsb(a, records=200k, ops=400k, value=100B)",
    "ycsb(b, records=350k, ops=1M, value=200B)",
    "ycsb(c, records=400k, ops=200k, value=100B)",
    "ycsb(d, records=300k, ops=2M, value=100B)",
    "ycsb(e, records=300k, ops=2M, value=200B)",
    "ycsb(f, records=100k, ops=600k, value=100B)",
    "update(keys=120k, ops=400k, value=200B)",
    "churn(keys=80k, ops=400k, value=100B)",
    "load(keys=400k, value=100B)",
    "load(keys=400k, value=100B, order=sequential)",
    "uniform(keys=100k, ops=300k, value=100B)",
    "normal(keys=100k, ops=300k, value=100B)",
    "tpc(keys=100k, ops=300k, value=100B)",
];
/// The sizes of memtables, in turn. Each workload is measured twice, and so with two of them.
const MEMTABLES: [&str; 3] = ["64KiB", "256KiB", "1MiB"];
const SETTINGS_QUICK: [(&str, &str); 3] = [
    ("ycsb(a, records=20k, ops=40k, value=100B)", "64KiB"),
    ("churn(keys=10k, ops=60k, value=100B)", "64KiB"),
    ("load(keys=60k, value=100B, order=sequential)", "64KiB"),
];

/// Limits on reads and on space.
const LIMITS: [(Option<f64>, Option<f64>); 3] =
    [(Some(4.0), None), (Some(8.0), Some(1.3)), (None, None)];

/// The most that an advised policy may be above the best, in percent.
const ABOVE_MAX: f64 = 5.0;

const ABOVE: &str = "above the best";

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let all = WORKLOADS.into_iter().cycle().zip(MEMTABLES.into_iter().cycle());
    let settings = task.pick(SETTINGS_QUICK.to_vec(), all.take(2 * WORKLOADS.len()).collect());
    let panel = Panel::only(
        Axis::linear("setting", "number"),
        Axis::linear("score of the advised policy above the best within the limits", "%"),
    );
    let mut figure = task.figure([panel]);
    let registry = Registry::builtin();
    let mut setting = 0;
    for (spec, memtable) in settings {
        let workload = &Workload::from_spec(&spec.parse()?, &FileInputs)?;
        let memtable_bytes = parse_bytes(memtable)?;
        let no_limits = Limits { memtable_bytes, ..Limits::default() };
        let unlimited =
            Tuning { registry: &registry, workload, limits: &no_limits, progress: task.progress };
        let mut advised = Vec::new();
        for (read_cost_max, space_cost_max) in LIMITS {
            let limits =
                Limits { read_cost_max, space_cost_max, memtable_bytes, ..Limits::default() };
            let found = Tuning { progress: &NoProgress, limits: &limits, ..unlimited }.run();
            advised.push((limits, found));
        }
        let policies = advised.iter().filter_map(|(_, found)| found.as_ref().ok());
        let policies: Vec<Spec> =
            policies.map(|found| found.best.policy.parse()).collect::<Result<_, _>>()?;
        let all = costs_of_all(&unlimited, memtable_bytes, &policies)?;
        for (limits, found) in &advised {
            setting += 1;
            let named = format!("{spec}, memtable {memtable}, {}", wording(limits));
            let (above, is_within) = match found {
                Ok(found) => {
                    let checked = judge(&found.best, limits, workload, &all)?;
                    (checked.above * 100.0, checked.is_within)
                }
                // It is right to refuse if there is nothing.
                Err(_) => (0.0, !is_possible(limits, &all)),
            };
            figure.point("", ABOVE, f64::from(setting), above);
            figure.at_most(format!("{named}: advised policy above the best, %"), above, ABOVE_MAX);
            let outside = f64::from(u8::from(!is_within));
            figure.at_most(format!("{named}: outside the limits"), outside, 0.0);
        }
    }
    figure.note(
        "Each policy of a fine grid is simulated key by key on all writes. The score is \
         write_cost_user where there is a limit, else what `tune` weighs for a balanced choice: \
         the work of the operations, and the bytes of files.",
    );
    Ok(figure)
}

fn is_possible(limits: &Limits, all: &[(Spec, TrialCosts)]) -> bool {
    all.iter().any(|(_, costs)| {
        limits.read_cost_max.is_none_or(|max| costs.read_cost_mean <= max)
            && limits.space_cost_max.is_none_or(|max| costs.space_cost_physical_mean <= max)
    })
}

fn wording(limits: &Limits) -> String {
    let read = limits.read_cost_max.map(|max| format!("reads at most {max}"));
    let space = limits.space_cost_max.map(|max| format!("space at most {max}"));
    let parts: Vec<String> = read.into_iter().chain(space).collect();
    if parts.is_empty() { "no limits".to_owned() } else { parts.join(", ") }
}
