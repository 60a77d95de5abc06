//! Fluid simulations of policies that append to append tables, against keyed ones.

use crate::fluid::{policy, workload};
use lsmith_sim::{Event, Figures, FluidWorkload, KeyedWorkload, simulate_fluid, simulate_keyed};
use lsmith_tree::{Mode, Slice, check_tree, node_bytes};
use std::collections::BTreeMap;

/// A comparison: the workload, the bytes of a memtable, the policies.
type Case<'a> = (&'a str, u64, &'a [&'a str]);

const THRESHOLDS: [&str; 4] = ["jungle(c=1.5)", "jungle(c=2)", "jungle(c=3)", "jungle(c=10)"];
const SMALL_RATIO: [&str; 3] =
    ["jungle(c=2, ratio=4)", "jungle(c=3, ratio=4)", "jungle(c=10, ratio=4)"];

/// Limits by level, and one for all append tables.
const LIMITS: [&str; 3] = ["jungle(c=10/5/2)", "jungle(space=1.5)", "jungle(space=2, ratio=4)"];

/// Tombstones among updates.
const DELETES: &str = "churn(keys=100k, ops=800k, value=100B, deletes=0.3)";

/// The errors that are allowed.
#[derive(Clone, Copy)]
struct Tolerance {
    writes: f64,
    reads: f64,
    space: f64,
}

const THREE_PERCENT: Tolerance = Tolerance { writes: 0.03, reads: 0.03, space: 0.03 };

/// Checks that each cost of each case is within `tolerance` of the keyed simulation. Reports all
/// cases that are not.
fn agree(cases: &[Case<'_>], tolerance: Tolerance) {
    let Tolerance { writes, reads, space } = tolerance;
    let tolerances = [writes, reads, space];
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
            let errors = [0, 1, 2].map(|at| fluid[at] / keyed[at] - 1.0);
            let is_off = |at: usize| errors[at].abs() > tolerances[at];
            if [0, 1, 2].into_iter().any(is_off) {
                let [writes, reads, space] = errors.map(|error| 100.0 * error);
                off.push(format!(
                    "{name} under {spec}, memtables of {memtable_bytes}: keyed {keyed:.3?}, \
                     writes {writes:+.1} %, reads {reads:+.1} %, space {space:+.1} %"
                ));
            }
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}

#[test]
fn updates_are_within_three_percent() {
    let few = "churn(keys=50k, ops=600k, value=100B, flushes=60)";
    let large = "churn(keys=60k, ops=700k, value=1000B, flushes=600)";
    agree(
        &[
            (few, 1_000_000, &THRESHOLDS),
            (few, 1_000_000, &SMALL_RATIO),
            // One limit for all of six append tables has a test of its own.
            (few, 1_000_000, &[LIMITS[0], LIMITS[2]]),
            (large, 1_000_000, &THRESHOLDS),
            (large, 1_000_000, &["jungle(c=2, ratio=4)", "jungle(c=3, ratio=4)"]),
            ("churn(keys=400k, ops=3M, value=100B)", 500_000, &["jungle", SMALL_RATIO[1]]),
        ],
        THREE_PERCENT,
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
        THREE_PERCENT,
    );
}

#[test]
fn popular_keys_are_within_three_percent() {
    agree(
        &[
            ("ycsb(a, records=100k, ops=600k, value=100B)", 500_000, &THRESHOLDS),
            ("ycsb(a, records=100k, ops=600k, value=100B)", 500_000, &SMALL_RATIO),
            ("ycsb(a, records=100k, ops=600k, value=100B)", 500_000, &LIMITS),
            ("load(keys=800k, value=100B, order=zipf)", 500_000, &THRESHOLDS),
            ("ycsb(d, records=100k, ops=400k, value=100B)", 500_000, &SMALL_RATIO),
        ],
        THREE_PERCENT,
    );
}

#[test]
fn deletes_are_within_three_percent() {
    let pairs = "uniform(keys=100k, ops=400k)";
    agree(
        &[
            (DELETES, 500_000, &["jungle(c=1.5)", "jungle(c=2)", "jungle(c=3)"]),
            (pairs, 500_000, &THRESHOLDS),
            (pairs, 500_000, &SMALL_RATIO),
        ],
        THREE_PERCENT,
    );
}

/// What was promised was 4 %.
#[test]
fn loads_of_few_flushes_are_within_their_uncertainty() {
    for (spec, memtable_bytes, name) in [
        ("uniform(keys=180k, ops=0)", 500_000, "jungle(ratio=4)"),
        ("load(keys=240k, value=102B)", 500_000, "jungle"),
        ("load(keys=500k, value=103B)", 700_000, "jungle(ratio=2.5)"),
    ] {
        let input = KeyedWorkload::new(workload(spec));
        let expected = FluidWorkload::new(input.workload()).expect("a fluid workload");
        let policy = policy(name);
        let found = simulate_fluid(&policy, &expected, memtable_bytes, &mut |_| {});
        let found = found.expect("legal plans");
        let allowed = expected.uncertainty(&policy, memtable_bytes, &found);
        let allowed = allowed.expect("legal plans");
        assert!(allowed < 0.15, "{spec}: {allowed}");
        let tolerance = Tolerance { writes: allowed, reads: 0.06, space: 0.04 };
        agree(&[(spec, memtable_bytes, std::slice::from_ref(&name))], tolerance);
    }
}

/// One limit for six append tables. Before nodes were counted, chance decided which of two courses
/// rewriting took, 7 % apart.
#[test]
fn one_limit_of_few_append_tables_is_within_two_percent() {
    let policy = policy("jungle(space=1.5)");
    let of_seed = |seed: u32| {
        let spec = format!("churn(keys=50k, ops=600k, value=100B, seed={seed})");
        let input = KeyedWorkload::new(workload(&spec));
        let expected = FluidWorkload::new(input.workload()).expect("a fluid workload");
        let keyed = simulate_keyed(&policy, &input, 1_000_000, &mut |_| {}).expect("legal plans");
        let fluid = simulate_fluid(&policy, &expected, 1_000_000, &mut |_| {});
        let fluid = fluid.expect("legal plans").figures.write_cost_system;
        (keyed.figures.write_cost_system, fluid / keyed.figures.write_cost_system - 1.0)
    };
    let found: Vec<(f64, f64)> = (1..=6).map(of_seed).collect();
    assert!(found.iter().all(|(_, error)| error.abs() < 0.02), "{found:?}");
}

/// A split forgets the dead bytes of an append table. If there are few append tables, one that is
/// split earlier or later shows in their space. So does a level that moves down when its size,
/// which hardly grows any more, happens to reach its limit.
#[test]
fn chance_shows_in_space_only() {
    let large = "churn(keys=60k, ops=700k, value=1000B, flushes=600)";
    agree(
        &[
            (DELETES, 500_000, &["jungle(c=10)", "jungle(c=2, ratio=4)", "jungle(c=3, ratio=4)"]),
            (large, 1_000_000, &["jungle(c=10, ratio=4)"]),
        ],
        Tolerance { space: 0.07, ..THREE_PERCENT },
    );
}

/// What is written to the file of an append table is live or dead, whatever is merged.
#[test]
fn files_grow_by_what_is_written() {
    for spec in [
        "churn(keys=20k, ops=200k, value=100B, deletes=0.3)",
        "uniform(keys=20k, ops=100k)",
        "ycsb(a, records=20k, ops=200k, value=100B)",
    ] {
        let input = FluidWorkload::new(&workload(spec)).expect("a fluid workload");
        let mut files: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut appends = 0;
        let mut observe = |event: Event<'_>| {
            let Event::Merge { plan, edit, .. } = event else { return };
            let written: u64 = edit.counters.iter().map(|(_, count)| count.bytes_written).sum();
            let total = |slice: &Slice| slice.size().bytes + slice.dead_bytes();
            let (mut grown, mut nodes) = (0, 0);
            for slice in edit.add.iter().flat_map(|addition| &addition.slices) {
                assert!(slice.is_append(), "{slice:?}");
                let now = (total(slice), slice.size().entries);
                let (before, entries) = files.insert(slice.table().id.0, now).unwrap_or_default();
                grown += now.0 - before;
                nodes += if before > 0 { node_bytes(entries) } else { 0 };
            }
            if plan.mode == Mode::Merge {
                assert!(grown >= written && grown <= written + nodes, "{plan}");
                appends += u64::from(plan.appends_to().is_some());
            }
        };
        let policy = policy("jungle(c=3, ratio=3)");
        let found = simulate_fluid(&policy, &input, 100_000, &mut observe).expect("legal plans");
        assert!(appends > 100, "{appends}");
        assert!(found.tree.disk_runs().any(|run| run.dead_bytes() > 0));
    }
}

/// What broke: an append table of large entries could have the bytes of two tables and, of expected
/// entries, less than two. It was split again and again.
#[test]
fn append_tables_of_single_expected_entries_come_to_rest() {
    let input = FluidWorkload::new(&workload("uniform(keys=300, ops=2k, value=400B)"));
    let input = input.expect("a fluid workload");
    for table in [100, 500, 2000] {
        let policy = policy(&format!("jungle(c=1.5, ratio=2, table={table}B)"));
        let found = simulate_fluid(&policy, &input, 16_000, &mut |_| {}).expect("plans end");
        check_tree(&found.tree).expect("a legal tree");
    }
}
