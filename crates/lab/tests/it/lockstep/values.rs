//! Values in value files change no decision.
//!
//! An entry has the same logical bytes wherever its value lies, so policies and simulations need
//! not know. Cleaning rewrites tables, and leaves their sizes as they are.

use super::{BLOCK_POLICIES, Names, POLICIES, Registry, simulated, stored, stored_with};
use lsmith_lab::FileInputs;
use lsmith_sim::KeyedWorkload;
use lsmith_workload::Workload;

const MEMTABLE: u64 = 50 << 10;

/// What the reasons of plans say that clean value files.
const CLEANING: &str = "has values in a file of garbage";

/// Policies that choose by tables and their cuts, which a rewrite changes where a run shows parts
/// of a table. Policies that count in blocks choose by blocks, which it changes too.
const LOOK_AT_TABLES: [&str; 3] = [
    "sweep(k=7, young=0.2, least=3)",
    "leveled(ratio=3, pick=in_turn)",
    "rocksdb(l0=3, sizes=100KiB:500KiB, table=40KiB)",
];

#[test]
fn large_values_change_no_decision() {
    for workload in [
        "churn(keys=3k, ops=20k, value=100B, deletes=0.3)",
        "uniform(keys=6k, ops=14k, value=100B)",
    ] {
        let workload = Workload::from_spec(&workload.parse().unwrap(), &FileInputs).unwrap();
        let keyed = KeyedWorkload::new(workload);
        let names = Names::of(&keyed);
        let mut cleanings = 0;
        for spec in POLICIES.iter().chain(BLOCK_POLICIES) {
            let policy = Registry::builtin().build(spec).unwrap();
            let expected = simulated(&policy, &keyed, &names, MEMTABLE);
            for space in [1e9, 1.3] {
                if space < 1e9 && (BLOCK_POLICIES.contains(spec) || LOOK_AT_TABLES.contains(spec)) {
                    continue;
                }
                let options = |store: lsmith::Builder| store.large_values(100).value_space(space);
                let (steps, _) = stored_with(spec, keyed.workload(), MEMTABLE, options);
                let all = steps.len();
                let steps: Vec<_> =
                    steps.into_iter().filter(|(plan, _)| !plan.contains(CLEANING)).collect();
                cleanings += all - steps.len();
                assert!(space < 1e9 || steps.len() == all, "{spec}: cleaned within the bound");
                for (index, (expected, step)) in expected.iter().zip(&steps).enumerate() {
                    assert_eq!(step, expected, "{spec}, space {space}, step {index}");
                }
                assert_eq!(steps.len(), expected.len(), "{spec}, space {space}");
            }
        }
        assert!(cleanings > 500, "{cleanings} cleanings");
    }
}

#[test]
fn merges_of_large_values_write_less() {
    let workload = "uniform(keys=6k, ops=14k, value=1kB)".parse().unwrap();
    let workload = Workload::from_spec(&workload, &FileInputs).unwrap();
    for spec in ["leveled(ratio=3)", "tiered(ratio=3)"] {
        let (_, (logical, in_tables)) = stored(spec, &workload, 500 << 10);
        let options = |store: lsmith::Builder| store.large_values(500).value_space(2.0);
        let (_, (_, in_files)) = stored_with(spec, &workload, 500 << 10, options);
        let message = format!("{spec}: {in_tables} and {in_files} of {logical}");
        assert!(in_files * 10 < in_tables * 8, "{message}");
    }
}
