//! The best few choices in simulated time.

use super::candidate::Candidate;
use super::limits::{Limits, OnMachine};
use super::objective::Aim;
use super::search::Search;
use super::sizes::scaled;
use crate::jobs::{Job, Ticker, measure_all};
use crate::run::Options;
use crate::time::{SimulatedTime, simulate_time};
use anyhow::Result;
use lsmith_policy::MergePolicy;
use lsmith_sim::KeyedWorkload;
use lsmith_spec::Spec;
use serde::Serialize;
use std::sync::Arc;

/// The choices that are simulated in time. Each takes about as long as a simulation of all writes.
const FINALISTS: usize = 12;

/// A choice in simulated time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimedChoice {
    /// The spec of the policy.
    pub policy: String,
    /// True if its costs are within the limits.
    pub is_within: bool,
    /// What a free run is expected to take.
    pub time: SimulatedTime,
}

struct Run<'a> {
    policy: &'a Arc<dyn MergePolicy>,
    workload: &'a KeyedWorkload,
    on: OnMachine,
    memtable_bytes: u64,
}

impl Job for Run<'_> {
    type Output = SimulatedTime;

    fn work(&self) -> u64 {
        1
    }

    fn measure(&self, ticker: &Ticker<'_>) -> Result<SimulatedTime> {
        let OnMachine { machine, threads } = self.on;
        let memtable_bytes = self.memtable_bytes;
        let options = Options { memtable_bytes, threads, ..Options::default() };
        let time = simulate_time(self.policy, self.workload, &machine, &options)?;
        ticker.tick(1);
        // The course is for pages.
        Ok(SimulatedTime { course: Vec::new(), ..time })
    }
}

/// Simulates the best choices within the limits in time, and the choices in `more`. Returns the
/// index of each with its time, the most operations per second first. There are none without a
/// machine.
pub(super) fn all(
    search: &Search<'_>,
    limits: &Limits,
    more: &[Spec],
) -> Result<Vec<(usize, TimedChoice)>> {
    let Some(on) = limits.on_machine else { return Ok(Vec::new()) };
    let mut indexes = search.finalists(FINALISTS);
    let named = |spec: &Spec| -> Option<usize> {
        let full = search.registry.build_spec(spec).ok()?.spec();
        search.candidates.iter().position(|candidate| candidate.policy.spec() == full)
    };
    for index in more.iter().filter_map(named) {
        if !indexes.contains(&index) {
            indexes.push(index);
        }
    }
    let workload = KeyedWorkload::new(search.workload.clone());
    let policy = |&index: &usize| {
        scaled(search.registry, &search.candidates[index].policy, 1.0 / search.shrink)
    };
    let policies: Vec<_> = indexes.iter().map(policy).collect();
    let run =
        |policy| Run { policy, workload: &workload, on, memtable_bytes: search.memtable_bytes };
    let runs: Vec<Run<'_>> = policies.iter().map(run).collect();
    let times = measure_all("in time", &runs, search.progress)?;
    let named = indexes.into_iter().zip(times).map(|(index, time)| {
        let policy = search.candidates[index].spec.to_string();
        (index, TimedChoice { policy, is_within: search.is_within(index), time })
    });
    let mut found: Vec<(usize, TimedChoice)> = named.collect();
    let speed = |timed: &TimedChoice| timed.time.ops_per_second;
    found.sort_by(|(_, one), (_, other)| speed(other).total_cmp(&speed(one)));
    Ok(found)
}

/// Returns the best choice: the fastest of `timed` within the limits if that is the aim, else the
/// first of `found`.
pub(super) fn best<'a>(
    search: &'a Search<'_>,
    limits: &Limits,
    timed: &[(usize, TimedChoice)],
    found: &[usize],
) -> Option<&'a Candidate> {
    let fastest = timed.iter().find(|(_, timed)| timed.is_within).map(|(index, _)| index);
    let index = if limits.aim == Some(Aim::Fastest) { fastest } else { found.first() };
    Some(&search.candidates[*index?])
}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::super::survey::Survey;
    use super::*;
    use crate::progress::NoProgress;
    use lsmith_policy::Registry;
    use lsmith_sim::{Machine, Rate};
    use lsmith_workload::{NoInputs, Workload};

    /// A largest merge has as many memtables in time as in the workload that is asked about.
    #[test]
    fn sizes_of_a_policy_shrink_with_the_workload() {
        let spec = "churn(keys=20k, ops=100k, value=100B)".parse().unwrap();
        let workload = Workload::from_spec(&spec, &NoInputs).unwrap();
        let each = |nanos| Rate { each: nanos, part: 0.0 };
        let (write, merge) = (each(1000.0), each(500.0));
        let machine = Machine { cores: 1.0, slowdown: 1.0, write, merge, ..Machine::default() };
        let on = OnMachine { machine, threads: 1 };
        let limits = Limits { memtable_bytes: 1 << 20, on_machine: Some(on), ..Limits::default() };
        let (shrink, memtable_bytes) = (4.0, limits.memtable_bytes / 4);
        let survey = Survey::of(&workload, memtable_bytes).unwrap();
        let registry = &Registry::builtin();
        let build = |largest: &str| registry.build(&format!("minlatency(k=4, {largest})")).unwrap();
        let policy = build("largest=6MiB");
        let spec = policy.spec();
        let candidate =
            Candidate { spec: spec.clone(), policy, step: 0, costs: None, is_double: false };
        let search = Search {
            registry,
            workload: &workload,
            survey: &survey,
            memory: &Memory::of(&limits, &survey, shrink).unwrap(),
            memtable_bytes,
            shrink,
            objective: limits.objective(&workload).unwrap(),
            asked: vec![],
            files: None,
            progress: &NoProgress,
            candidates: vec![candidate],
        };
        let found = all(&search, &limits, &[spec]).unwrap();
        let alone = |largest: &str| {
            let keyed = KeyedWorkload::new(workload.clone());
            let options = Options { memtable_bytes, threads: 1, ..Options::default() };
            simulate_time(&build(largest), &keyed, &machine, &options).unwrap().ops_per_second
        };
        assert_eq!(found[0].1.time.ops_per_second, alone("largest=1536KiB"));
        assert_ne!(alone("largest=1536KiB"), alone("largest=6MiB"), "the sizes differ in effect");
    }
}
