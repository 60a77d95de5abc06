//! How long deletes stay under `lethe`, which promises a bound.

use lsmith_policy::Registry;
use lsmith_sim::{Event, KeyedWorkload, simulate_keyed};
use lsmith_tree::Tree;
use lsmith_workload::{NoInputs, Rng, Workload};

/// Returns the flushes since the oldest tombstone that may hide something was flushed, 0 if there
/// is none. Nothing lies under the oldest run.
fn oldest_age(tree: &Tree) -> u64 {
    let above = tree.disk_runs().rev().skip(1);
    let tables = above.flat_map(|run| run.slices()).map(|slice| slice.table());
    // A tombstone without a date is as old as the tree.
    let flushes = tables.filter(|table| table.size.tombstones > 0);
    let flushes = flushes.map(|table| table.oldest_tombstone);
    flushes.min().map_or(0, |flush| tree.flushes() - flush)
}

/// Returns the oldest age at rest after each flush.
fn ages(policy: &str, workload: &str, memtable_bytes: u64) -> Vec<u64> {
    let policy = Registry::builtin().build(policy).expect(policy);
    let workload =
        Workload::from_spec(&workload.parse().expect(workload), &NoInputs).expect(workload);
    let mut ages = Vec::new();
    let mut observe = |event: Event<'_>| {
        if let Event::Flushed { tree } = event {
            ages.push(oldest_age(tree));
        }
    };
    simulate_keyed(&policy, &KeyedWorkload::new(workload), memtable_bytes, &mut observe)
        .expect("legal plans");
    ages
}

#[test]
fn no_delete_is_older_than_it_may_be_after_any_flush() {
    let mut close = 0;
    let mut cases = 0;
    for seed in 0..30 {
        let mut rng = Rng::new(seed, 7);
        let mut count = |least: u64, most: u64| least + rng.below(most - least + 1);
        let within = [1, 2, 5, 20, 60][count(0, 4) as usize];
        let pick = ["tombstones", "min_overlap"][count(0, 1) as usize];
        let (ratio, l0, percent) = (count(2, 6), count(1, 5), count(1, 50));
        let policy = format!("lethe(delete_within={within}, ratio={ratio}, l0={l0}, pick={pick})");
        let keys = count(200, 4000);
        let share = percent as f64 / 100.0;
        let workload = match seed % 3 {
            0 => format!("churn(keys={keys}, ops=12000, deletes={share}, value=50B, seed={seed})"),
            1 => format!(
                "update(keys={keys}, ops=12000, share=0.5, deletes={share}, dist=zipf, value=50B, \
                 seed={seed})"
            ),
            _ => format!("queue(keys=12000, keep={keys}, purge=50, value=50B, seed={seed})"),
        };
        let ages = ages(&policy, &workload, count(2000, 9000));
        let most = ages.iter().max().copied().unwrap_or(0);
        assert!(ages.len() > 20 && most < within, "{policy}, {workload}: {most} of {within}");
        close += u64::from(most + 1 == within);
        cases += 1;
    }
    // The bound is not met by accident: trees come up to it.
    assert!(2 * close > cases, "{close} of {cases} reach their bound");
}

#[test]
fn without_a_bound_deletes_stay_for_long() {
    let workload = "churn(keys=3000, ops=12000, deletes=0.1, value=50B)";
    let most = |policy| ages(policy, workload, 3000).into_iter().max().unwrap_or(0);
    let free = most("lethe(delete_within=1000000, ratio=4)");
    assert!(free > 60, "{free} flushes");
    assert_eq!(most("lethe(delete_within=30, ratio=4)"), 29);
}
