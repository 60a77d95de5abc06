//! Compares fluid simulations with keyed ones: expected sizes with every key.

use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{Figures, FluidWorkload, KeyedWorkload, simulate_fluid, simulate_keyed};
use lsmith_tree::check_tree;
use lsmith_workload::{NoInputs, Workload};
use std::sync::Arc;

/// Draws all keys with equal chance. All workloads here end with a flush. Otherwise one flush more
/// or less could decide whether everything is merged.
const UNIFORM: &str = "churn(keys=50k, ops=600k, value=100B, flushes=40)";

/// The same with tombstones among them.
const DELETES: &str = "churn(keys=50k, ops=600k, value=100B, deletes=0.3, flushes=40)";

/// Draws from a Zipf distribution with exponent 0.99.
const ZIPF: &str = "load(keys=400k, value=100B, order=zipf, flushes=24)";

/// No key twice.
const NEW: &str = "load(keys=300k, value=100B, flushes=37)";

pub(crate) const MEMTABLE_BYTES: u64 = 1_000_000;

pub(crate) fn policy(spec: &str) -> Arc<dyn MergePolicy> {
    Registry::builtin().build(spec).expect("a spec from a test")
}

pub(crate) fn workload(spec: &str) -> Workload {
    let spec = spec.parse().expect("a spec from a test");
    Workload::from_spec(&spec, &NoInputs).expect("a workload without files")
}

fn fluid(policy: &Arc<dyn MergePolicy>, spec: &str) -> Figures {
    let workload = FluidWorkload::new(&workload(spec)).expect("a fluid workload");
    let found = simulate_fluid(policy, &workload, MEMTABLE_BYTES, &mut |_| {});
    found.expect("a policy of this project").figures
}

fn keyed(policy: &Arc<dyn MergePolicy>, workload: &KeyedWorkload) -> Figures {
    let found = simulate_keyed(policy, workload, MEMTABLE_BYTES, &mut |_| {});
    found.expect("a policy of this project").figures
}

/// Checks that every write cost of every policy is within `tolerance` of the keyed simulation.
pub(crate) fn agree(workload_spec: &str, policies: &[&str], tolerance: f64) {
    let input = KeyedWorkload::new(workload(workload_spec));
    for spec in policies {
        let policy = policy(spec);
        let fluid = fluid(&policy, workload_spec);
        let keyed = keyed(&policy, &input);
        for (name, fluid, keyed) in [
            ("eager", fluid.write_cost_eager, keyed.write_cost_eager),
            ("system", fluid.write_cost_system, keyed.write_cost_system),
            ("blocks", fluid.write_cost_blocks, keyed.write_cost_blocks),
        ] {
            let error = fluid / keyed - 1.0;
            let message = format!("{spec} under {workload_spec}: {name} {fluid}, not {keyed}");
            assert!(error.abs() <= tolerance, "{message}: {:+.1} %", 100.0 * error);
        }
    }
}

/// Policies of runs. None merges a memtable eagerly, because a single byte could decide that, and
/// there are few flushes.
pub(crate) const STACKS: [&str; 6] = [
    "none",
    "constant(k=6, eager=never)",
    "minlatency(k=4, eager=never)",
    "binomial(k=6, eager=never)",
    "exploring(eager=never)",
    "tiered(eager=never)",
];

#[test]
fn stacks_are_within_one_percent() {
    for workload in [UNIFORM, ZIPF] {
        agree(workload, &STACKS, 0.01);
    }
    // Blocks of entries of two sizes are not quite as full as blocks of entries of mean size.
    agree(DELETES, &STACKS, 0.015);
    // All flushes have about the same size. Which one is larger, which `exploring` looks at, is
    // chance.
    let blind: Vec<&str> =
        STACKS.into_iter().filter(|spec| !spec.starts_with("exploring")).collect();
    agree(NEW, &blind, 0.01);
}

#[test]
fn swept_and_whole_levels_are_within_three_percent() {
    let leveled = ["leveled(pick=round_robin)", "leveled(ratio=4, pick=round_robin)"];
    let whole =
        ["leveled(ratio=4, pick=whole_level)", "full(ratio=4)", "full(ratio=4, reuse=false)"];
    let swept = ["rr(ratio=4)", "rr(ratio=4, reuse=false)"];
    for workload in [UNIFORM, ZIPF, NEW] {
        agree(workload, &[&leveled[..], &whole, &swept].concat(), 0.03);
    }
    agree(DELETES, &[&leveled[..], &whole].concat(), 0.03);
    agree(DELETES, &swept, 0.05);
}

#[test]
fn picks_by_least_overlap_are_within_ten_percent() {
    let picks = ["min_overlap", "best_ratio", "narrowest", "oldest"];
    let leveled = picks.map(|pick| format!("leveled(ratio=4, pick={pick})"));
    let mut policies: Vec<&str> = leveled.iter().map(String::as_str).collect();
    policies.extend(["choose_best(ratio=4)", "test_mixed(ratio=4)", "mixed(ratio=4)"]);
    for workload in [UNIFORM, ZIPF] {
        agree(workload, &policies, 0.10);
    }
    // Hashes of numbers in a row lie more evenly than by chance, and whole levels merge or not by
    // a few blocks.
    policies.retain(|policy| !policy.starts_with("test_mixed"));
    agree(NEW, &policies, 0.10);
}

/// A merge neither loses nor makes entries, whatever windows were picked and which blocks were
/// kept. No key is written twice, so that all of them are live.
#[test]
fn merges_of_blocks_keep_all_entries() {
    for value in [100, 1000, 3000] {
        let input = FluidWorkload::new(&workload(&format!("load(keys=15k, value={value}B)")));
        let input = input.expect("a fluid workload");
        for spec in ["full(ratio=3)", "rr(ratio=3)", "choose_best(ratio=3)", "test_mixed(ratio=3)"]
        {
            let found = simulate_fluid(&policy(spec), &input, 300_000, &mut |_| {});
            let space = found.expect("a policy of this project").figures.space_cost_mean;
            assert!((space - 1.0).abs() < 0.005, "{spec}, {value} B: {space}");
        }
    }
}

/// What a fluid simulation says of its own error holds.
#[test]
fn errors_are_within_the_uncertainty_of_the_answer() {
    const PARTIAL: [&str; 5] = [
        "full(ratio=4)",
        "rr(ratio=4)",
        "choose_best(ratio=4)",
        "test_mixed(ratio=4)",
        "choose_best",
    ];
    const TREES: [&str; 3] = ["jungle", "jungle(ratio=6)", "jungle(c=2, ratio=4)"];
    const TRIANGULAR: [&str; 2] = ["triangular(score=ratio)", "triangular(score=bytes)"];
    for (spec, policies) in [
        ("uniform(keys=30k, ops=0, value=1000B)", &PARTIAL[..]),
        ("uniform(keys=15k, ops=0, value=1500B)", &PARTIAL),
        ("uniform(keys=10k, ops=0, value=3000B)", &PARTIAL),
        ("load(keys=300k, value=100B, flushes=37)", &["test_mixed(ratio=4)"]),
        ("load(keys=300k, value=100B)", &TRIANGULAR),
        ("load(keys=300k, value=101B)", &TRIANGULAR),
        ("churn(keys=80k, ops=400k, value=100B)", &TRIANGULAR),
        ("load(keys=25k, value=1000B)", &PARTIAL),
        (
            "normal(keys=50k, ops=100k, value=100B)",
            &["rr(ratio=4)", "choose_best(ratio=4)", "sweep"],
        ),
        ("uniform(keys=1k, ops=0, value=40kB)", &["leveled(ratio=4)"]),
        ("churn(keys=60k, ops=300k, value=3000B)", &TREES),
        ("churn(keys=60k, ops=300k, value=6000B)", &TREES),
        ("churn(keys=20k, ops=100k, value=20kB)", &TREES),
    ] {
        let input = KeyedWorkload::new(workload(spec));
        let expected = FluidWorkload::new(input.workload()).expect("a fluid workload");
        for name in policies {
            let policy = policy(name);
            let found = simulate_fluid(&policy, &expected, MEMTABLE_BYTES, &mut |_| {});
            let found = found.expect("a policy of this project");
            let uncertainty = expected.uncertainty(&policy, MEMTABLE_BYTES, &found);
            let uncertainty = uncertainty.expect("a policy of this project");
            assert!(uncertainty < 0.5, "{name} under {spec}: {uncertainty}");
            agree(spec, &[name], uncertainty);
        }
    }
}

/// Tables and windows of a few entries do as expected sizes do only by chance.
#[test]
fn entries_too_large_for_expected_sizes_are_refused() {
    let input = FluidWorkload::new(&workload("load(keys=1k, value=10MB)")).unwrap();
    for spec in ["leveled", "rr", "choose_best"] {
        let message = input.check_entries(&*policy(spec), 4 << 20).unwrap_err().to_string();
        assert!(message.contains("too large for expected sizes under"), "{message}");
        assert!(message.contains("expected memtables of at least"), "{message}");
    }
    // Whole runs do not mind. Each entry fills a memtable.
    let figures = fluid(&policy("none"), "load(keys=1k, value=10MB)");
    assert_eq!((figures.parts.flushes, figures.read_cost_mean), (1000, 500.5));
}

/// Blocks have four entries. Many blocks meet no key of the other input.
#[test]
fn blocks_that_are_kept_are_within_three_percent() {
    let workload = "churn(keys=30k, ops=120k, value=1000B, flushes=118)";
    agree(workload, &["full", "full(ratio=4)", "rr"], 0.03);
}

#[test]
fn every_policy_runs_and_leaves_a_legal_tree() {
    let input = FluidWorkload::new(&workload(ZIPF)).unwrap();
    let registry = Registry::builtin();
    for info in registry.infos() {
        let policy = policy(info.name);
        let found = simulate_fluid(&policy, &input, 300_000, &mut |_| {}).unwrap();
        check_tree(&found.tree).unwrap();
        assert!(found.figures.write_cost_system >= 1.0, "{}", info.name);
        let live = found.tree.disk_bytes() as f64;
        let again = simulate_fluid(&policy, &input, 300_000, &mut |_| {}).unwrap();
        assert_eq!(found.tree, again.tree, "{} is not the same twice", info.name);
        assert!(live > 0.0);
    }
}

#[test]
fn expectations_of_a_whole_merge_are_those_of_the_keys() {
    let policy = policy("constant(k=2)");
    let input = KeyedWorkload::new(workload(DELETES));
    let simulation = simulate_keyed(&policy, &input, MEMTABLE_BYTES, &mut |_| {}).unwrap();
    let expected = FluidWorkload::new(input.workload()).unwrap();
    let expected = simulate_fluid(&policy, &expected, MEMTABLE_BYTES, &mut |_| {}).unwrap();
    let sizes = simulation.run_bytes_oldest_first().into_iter();
    let pairs: Vec<_> = sizes.zip(expected.run_bytes_oldest_first()).collect();
    assert!(!pairs.is_empty());
    for (keyed, fluid) in pairs {
        let error = fluid as f64 / keyed as f64 - 1.0;
        assert!(error.abs() < 0.01, "{fluid} bytes, not {keyed}");
    }
}

#[test]
fn it_ends_where_a_keyed_one_does() {
    let policy = policy("none");
    for limit in ["", ", flushes=7", ", bytes=10MB"] {
        let workloads = [
            "load(keys=100k, value=100B",
            "load(keys=100k, value=100B, order=sequential",
            "churn(keys=20k, ops=100k, value=100B",
            "ycsb(a, records=50k, ops=100k, value=100B",
        ];
        for spec in workloads {
            let spec = format!("{spec}{limit})");
            let keyed = keyed(&policy, &KeyedWorkload::new(workload(&spec)));
            assert_eq!(fluid(&policy, &spec).parts.sealed, keyed.parts.sealed, "{spec}");
        }
    }
}
