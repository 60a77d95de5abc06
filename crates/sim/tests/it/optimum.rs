//! No policy is better than the optimum for the runs that it keeps.

use lsmith_model::optimum::{Hull, least_of_sizes, write_cost_least};
use lsmith_policy::Registry;
use lsmith_sim::{UNIT_BYTES, simulate_unit};
use lsmith_workload::Rng;

const SPECS: [&str; 18] = [
    "none",
    "bigtable(k=3)",
    "bigtable(k=7)",
    "constant(k=4)",
    "minlatency(k=2)",
    "minlatency(k=5)",
    "binomial(k=3)",
    "binomial(k=8)",
    "exploring",
    "exploring(k=4, min=2)",
    "tiered(ratio=2)",
    "tiered(ratio=6)",
    "leveled(ratio=4)",
    "leveled(ratio=10, l0=4)",
    // A flush covers all keys of level 1, however much smaller than a table it is.
    "leveled(ratio=2, table=32MiB)",
    "leveled(ratio=2, l0=1, table=128MiB)",
    "leveled(ratio=1.5, l0=1, table=64MiB)",
    "leveled(ratio=4, table=8MiB, pick=whole_level)",
];

#[test]
fn no_policy_beats_it_with_flushes_of_one_size() {
    for spec in SPECS {
        let policy = Registry::builtin().build(spec).unwrap();
        for flushes in [1, 2, 7, 64, 300, 1000] {
            let sizes = std::iter::repeat_n(UNIT_BYTES, flushes);
            let found = simulate_unit(&policy, sizes, UNIT_BYTES, &mut |_| {}).unwrap().figures;
            let least = write_cost_least(flushes as u64, found.runs_max);
            let cost = found.write_cost_system;
            assert!(least <= cost + 1e-9, "{spec}, {flushes} flushes: {cost} below {least}");
            let least = Hull::new(flushes as u64).write_cost(found.read_cost_mean);
            assert!(least <= cost + 1e-9, "{spec}, {flushes} flushes: {cost} below {least}");
        }
    }
}

#[test]
fn no_policy_beats_it_with_flushes_of_any_size() {
    let mut draws = Rng::new(4, 0);
    for spec in SPECS {
        let policy = Registry::builtin().build(spec).unwrap();
        for flushes in [3, 40, 200, 700] {
            let sizes: Vec<u64> = (0..flushes).map(|_| 1 + draws.below(UNIT_BYTES)).collect();
            let all = sizes.iter().copied();
            let found = simulate_unit(&policy, all, UNIT_BYTES, &mut |_| {}).unwrap().figures;
            let merged = least_of_sizes(&sizes, found.runs_max).merged;
            let least = 1.0 + merged / sizes.iter().sum::<u64>() as f64;
            let cost = found.write_cost_system;
            assert!(least <= cost + 1e-9, "{spec}, {flushes} flushes: {cost} below {least}");
        }
    }
}

#[test]
fn it_is_what_minlatency_costs_where_its_tree_is_full() {
    let policy = Registry::builtin().build("minlatency(k=4)").unwrap();
    let sizes = std::iter::repeat_n(UNIT_BYTES, 1000);
    let found = simulate_unit(&policy, sizes, UNIT_BYTES, &mut |_| {}).unwrap().figures;
    // C(14, 4) - 1 flushes.
    let least = write_cost_least(1000, 4);
    assert!((found.write_cost_system / least - 1.0).abs() < 1e-9, "{least}");
}
