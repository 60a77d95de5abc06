//! No policy is better than the optimum for the runs that it keeps.

use lsmith_model::optimum::{Hull, Priced, least_of_sizes, write_cost_least};
use lsmith_policy::Registry;
use lsmith_sim::{Event, UNIT_BYTES, simulate_unit};
use lsmith_workload::Rng;

const SPECS: [&str; 21] = [
    "none",
    "auto(runs=2)",
    "auto(runs=6, eager=never)",
    "auto(runs=30, price=0.1)",
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

/// The policies that know a largest merge.
const BOUNDED: [&str; 8] = [
    "auto",
    "auto(runs=40, price=0.05)",
    "bigtable(k=4)",
    "binomial(k=4)",
    "constant(k=3)",
    "exploring",
    "minlatency(k=4)",
    "universal(trigger=5)",
];

#[test]
fn no_merge_is_larger_than_the_largest_and_none_beats_the_optimum_with_it() {
    let mut draws = Rng::new(9, 0);
    let of_one_size = vec![UNIT_BYTES; 300];
    let of_any_size: Vec<u64> = (0..300).map(|_| 1 + draws.below(UNIT_BYTES)).collect();
    for (spec, sizes) in
        BOUNDED.iter().flat_map(|spec| [(spec, &of_one_size), (spec, &of_any_size)])
    {
        let largest = 12 * UNIT_BYTES + UNIT_BYTES / 3;
        let bounded = match spec.strip_suffix(')') {
            Some(spec) => format!("{spec}, largest={largest})"),
            None => format!("{spec}(largest={largest})"),
        };
        let policy = Registry::builtin().build(&bounded).unwrap();
        let mut most = 0;
        let found = simulate_unit(&policy, sizes.iter().copied(), UNIT_BYTES, &mut |event| {
            if let Event::Merge { plan, edit, .. } = event
                && plan.inputs.len() > 1
            {
                let slices = edit.add.iter().flat_map(|added| &added.slices);
                most = most.max(slices.map(|slice| slice.size().bytes).sum::<u64>());
            }
        });
        let found = found.unwrap().figures;
        assert!(most <= largest && most > largest / 2, "{bounded}: {most} of {largest}");
        let least = Priced::new(sizes, Some(largest)).write_cost(found.read_cost_mean);
        let cost = found.write_cost_system;
        assert!(least <= cost + 1e-9, "{bounded}: {cost} below {least}");
        // Settled runs of half of the largest merge at least, and what is not settled.
        let total: u64 = sizes.iter().sum();
        let runs_max = 2 * total / largest + 42;
        assert!(found.runs_max <= runs_max, "{bounded}: {} runs of {runs_max}", found.runs_max);
    }
}
