use super::super::trial::{Trial, TrialCosts};
use super::*;
use crate::jobs::{SharedProgress, measure_all};
use crate::progress::NoProgress;
use lsmith_policy::{MergePolicy, Registry};
use lsmith_workload::NoInputs;
use std::sync::Arc;

/// The memtables of a workload, so that many merges average out.
const FLUSHES: u64 = 100;

/// The factor between a workload and its sample.
const ONE_IN: u64 = 8;

fn workload(spec: &str) -> Workload {
    Workload::from_spec(&spec.parse().unwrap(), &NoInputs).unwrap()
}

fn costs(
    sample: &Sample,
    memtable_bytes: u64,
    policies: &[Arc<dyn MergePolicy>],
) -> Vec<TrialCosts> {
    let flushes_max = f64::INFINITY;
    let registry = &Registry::builtin();
    let trial = |policy| Trial {
        policy,
        sample,
        memtable_bytes,
        flushes_max,
        files: None,
        registry,
        shrink: 1.0,
    };
    let trials: Vec<Trial<'_>> = policies.iter().map(trial).collect();
    let progress: &SharedProgress = &NoProgress;
    let found = measure_all("", &trials, progress).unwrap();
    found.into_iter().map(|costs| costs.expect("a policy that merges")).collect()
}

/// Popular keys, keys in order, new keys that are soon written again, and phases.
#[test]
fn a_sample_costs_what_the_whole_workload_costs() {
    let specs = ["minlatency(k=5, largest=1MB)", "leveled(ratio=4, l0=1)", "tiered(ratio=4)"];
    let policies = specs.map(|spec| Registry::builtin().build(spec).unwrap());
    for spec in [
        "ycsb(a, records=100k, ops=200k, value=100B)",
        "ycsb(d, records=60k, ops=2M, value=100B)",
        "update(keys=60k, ops=200k, value=100B)",
        "churn(keys=50k, ops=200k, value=100B)",
        "load(keys=200k, value=100B, order=sequential)",
        "load(keys=200k, value=100B, order=zipf)",
    ] {
        let workload = workload(spec);
        let survey = Survey::of(&workload, u64::MAX).unwrap();
        let memtable_bytes = survey.bytes / FLUSHES;
        let whole = Sample::of(&workload, &survey, survey.writes).unwrap();
        assert!(whole.share == 1.0 && whole.writes.len() as u64 == survey.writes, "{spec}");
        let sample = Sample::of(&workload, &survey, survey.writes / ONE_IN).unwrap();
        assert!((sample.share * ONE_IN as f64 - 1.0).abs() < 0.05, "{spec}: {}", sample.share);
        let exact = costs(&whole, memtable_bytes, &policies);
        let estimated = costs(&sample, memtable_bytes, &policies);
        for ((policy, whole), sampled) in policies.iter().zip(exact).zip(estimated) {
            let off = |cost: fn(&TrialCosts) -> f64| (cost(&sampled) / cost(&whole) - 1.0).abs();
            let offs = [
                off(|costs| costs.write_cost_system),
                off(|costs| costs.read_cost_mean),
                off(|costs| costs.space_cost_mean),
            ];
            assert!(offs.iter().all(|off| *off < 0.05), "{spec} {}: {offs:?}", policy.spec());
        }
    }
}

/// The second half of the stream writes other keys than the first.
#[test]
fn a_sample_has_all_phases() {
    let workload = workload("ycsb(a, records=40k, ops=80k, value=100B)");
    let survey = Survey::of(&workload, u64::MAX).unwrap();
    let sample = Sample::of(&workload, &survey, 10_000).unwrap();
    let at = sample.writes.len() / 2;
    let keys = |writes: &[Write]| {
        let mut ranks: Vec<u32> = writes.iter().map(|write| write.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks.len() as f64 / writes.len() as f64
    };
    // The load phase writes each key once, and then popular keys are written again.
    let load = keys(&sample.writes[..at - at / 10]);
    let run = keys(&sample.writes[at + at / 10..]);
    assert!(load > 0.99 && run < 0.8, "{load} {run}");
}

/// The live bytes of a sample are its share of all live bytes.
#[test]
fn deletes_are_sampled_with_their_keys() {
    let workload = workload("uniform(keys=40k, ops=80k, value=100B)");
    let survey = Survey::of(&workload, u64::MAX).unwrap();
    let all = Sample::of(&workload, &survey, survey.writes).unwrap();
    let sample = Sample::of(&workload, &survey, survey.writes / ONE_IN).unwrap();
    let live = |sample: &Sample| sample.writes.last().unwrap().live_bytes as f64;
    let share = live(&sample) / live(&all);
    assert!((share / sample.share - 1.0).abs() < 0.05, "{share} {}", sample.share);
}
