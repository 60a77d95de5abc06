//! Fluid simulations of policies that append to trees, against keyed ones.

use crate::fluid::{policy, workload};
use lsmith_sim::{Event, Figures, FluidWorkload, KeyedWorkload, simulate_fluid, simulate_keyed};
use lsmith_tree::{Mode, Slice, check_tree};
use std::collections::BTreeMap;

/// A comparison: the workload, the bytes of a memtable, the policies.
type Case = (&'static str, u64, &'static [&'static str]);

const THRESHOLDS: [&str; 4] = ["jungle(c=1.5)", "jungle(c=2)", "jungle(c=3)", "jungle(c=10)"];
const SMALL_RATIO: [&str; 3] =
    ["jungle(c=2, ratio=4)", "jungle(c=3, ratio=4)", "jungle(c=10, ratio=4)"];

/// Checks that each cost of each case is within `tolerance` of that of the keyed simulation.
/// Reports all cases that are not.
fn agree(cases: &[Case], tolerance: f64) {
    let mut off = Vec::new();
    for (spec, memtable_bytes, policies) in cases {
        let input = KeyedWorkload::new(workload(spec));
        let expected = FluidWorkload::new(input.workload()).expect("a fluid workload");
        for name in *policies {
            let policy = policy(name);
            let fluid = simulate_fluid(&policy, &expected, *memtable_bytes, &mut |_| {});
            let keyed = simulate_keyed(&policy, &input, *memtable_bytes, &mut |_| {});
            let fluid = fluid.expect("legal plans");
            check_tree(&fluid.tree).expect("a legal tree");
            let costs = |figures: &Figures| {
                let Figures { write_cost_system, read_cost_mean, space_cost_mean, .. } = *figures;
                [write_cost_system, read_cost_mean, space_cost_mean]
            };
            let fluid = costs(&fluid.figures);
            let keyed = costs(&keyed.expect("legal plans").figures);
            let error = |at: usize| 100.0 * (fluid[at] / keyed[at] - 1.0);
            let errors = [0, 1, 2].map(error);
            let line = format!(
                "{name} under {spec}, memtables of {memtable_bytes}: keyed {keyed:.3?}, writes \
                 {:+.1} %, reads {:+.1} %, space {:+.1} %",
                errors[0], errors[1], errors[2]
            );
            println!("{line}");
            if errors.iter().any(|error| error.abs() > 100.0 * tolerance) {
                off.push(line);
            }
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}

#[test]
fn updates_are_within_three_percent() {
    agree(
        &[
            ("churn(keys=50k, ops=600k, value=100B, flushes=60)", 1_000_000, &THRESHOLDS),
            ("churn(keys=50k, ops=600k, value=100B, flushes=60)", 1_000_000, &SMALL_RATIO),
            ("churn(keys=60k, ops=700k, value=1000B, flushes=600)", 1_000_000, &THRESHOLDS),
            ("churn(keys=60k, ops=700k, value=1000B, flushes=600)", 1_000_000, &SMALL_RATIO),
        ],
        0.03,
    );
}

#[test]
fn loads_are_within_three_percent() {
    agree(
        &[
            ("load(keys=400k, value=100B)", 1_000_000, &THRESHOLDS),
            ("load(keys=400k, value=100B)", 300_000, &SMALL_RATIO),
            ("uniform(keys=300k, ops=0)", 1_000_000, &SMALL_RATIO),
            ("load(keys=400k, value=100B, order=sequential)", 1_000_000, &THRESHOLDS),
        ],
        0.03,
    );
}

#[test]
fn popular_keys_are_within_three_percent() {
    agree(
        &[
            ("ycsb(a, records=100k, ops=600k, value=100B)", 500_000, &THRESHOLDS),
            ("ycsb(a, records=100k, ops=600k, value=100B)", 500_000, &SMALL_RATIO),
            ("load(keys=800k, value=100B, order=zipf)", 500_000, &THRESHOLDS),
            ("ycsb(d, records=100k, ops=400k, value=100B)", 500_000, &SMALL_RATIO),
        ],
        0.03,
    );
}

#[test]
fn deletes_are_within_three_percent() {
    let churn = "churn(keys=100k, ops=800k, value=100B, deletes=0.3)";
    agree(
        &[
            (churn, 500_000, &THRESHOLDS),
            (churn, 500_000, &SMALL_RATIO),
            ("uniform(keys=100k, ops=400k)", 500_000, &THRESHOLDS),
            ("uniform(keys=100k, ops=400k)", 500_000, &SMALL_RATIO),
        ],
        0.03,
    );
}

/// What is written to the file of a tree is live or dead, whatever is merged.
#[test]
fn files_grow_by_what_is_written() {
    for spec in [
        "churn(keys=20k, ops=200k, value=100B, deletes=0.3)",
        "uniform(keys=20k, ops=100k)",
        "ycsb(a, records=20k, ops=200k, value=100B)",
    ] {
        let input = FluidWorkload::new(&workload(spec)).expect("a fluid workload");
        let mut files: BTreeMap<u64, u64> = BTreeMap::new();
        let mut appends = 0;
        let mut observe = |event: Event<'_>| {
            let Event::Merge { plan, edit, .. } = event else { return };
            let written: u64 = edit.counters.iter().map(|(_, count)| count.bytes_written).sum();
            let total = |slice: &Slice| slice.size().bytes + slice.dead_bytes();
            let mut grown = 0;
            for slice in edit.add.iter().flat_map(|addition| &addition.slices) {
                assert!(slice.is_tree(), "{slice:?}");
                let before = files.insert(slice.table().id.0, total(slice)).unwrap_or(0);
                grown += total(slice) - before;
            }
            if plan.mode == Mode::Merge {
                assert_eq!(grown, written, "{plan}");
                appends += u64::from(plan.appends_to().is_some());
            }
        };
        let policy = policy("jungle(c=3, ratio=3)");
        let found = simulate_fluid(&policy, &input, 100_000, &mut observe).expect("legal plans");
        assert!(appends > 100, "{appends}");
        assert!(found.tree.disk_runs().any(|run| run.dead_bytes() > 0));
    }
}
