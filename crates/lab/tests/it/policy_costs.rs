//! Policies write no more than they should, by keyed simulation.

use lsmith_policy::Registry;
use lsmith_sim::{KeyedWorkload, simulate_keyed};
use lsmith_workload::{NoInputs, Workload};

fn keyed(workload: &str) -> KeyedWorkload {
    let workload = Workload::from_spec(&workload.parse().unwrap(), &NoInputs);
    KeyedWorkload::new(workload.unwrap())
}

/// Returns `write_cost_system`.
fn write_cost(policy: &str, workload: &KeyedWorkload, memtable_bytes: u64) -> f64 {
    let policy = Registry::builtin().build(policy).unwrap();
    let simulated = simulate_keyed(&policy, workload, memtable_bytes, &mut |_| {}).unwrap();
    simulated.figures.write_cost_system
}

/// Width was measured in bytes of the oldest run. When a new bottom level opened, ranges without a
/// table of it were all of width 0 and went down again and again: four to ten times as much was
/// written as with any other pick.
#[test]
fn narrowest_is_near_other_picks_when_a_bottom_level_opens() {
    let settings = [
        ("leveled(ratio=4", "load(keys=100k, value=100B)", 16 << 10),
        ("leveled(ratio=10", "load(keys=50k, value=1kB)", 256 << 10),
        ("leveled(ratio=10", "churn(keys=50k, value=100B, ops=200k)", 50 << 10),
    ];
    for (policy, workload, memtable_bytes) in settings {
        let keyed = keyed(workload);
        let cost =
            |pick: &str| write_cost(&format!("{policy}, pick={pick})"), &keyed, memtable_bytes);
        let narrowest = cost("narrowest");
        let linear = cost("round_robin");
        assert!(narrowest <= 1.05 * linear, "{policy}) {workload}: {narrowest}, {linear}");
    }
}

/// With `count=size` the number of flushes followed from the total size after every flush. Where
/// that was a number at which all runs become one, each flush merged all runs, and the size stayed
/// as it was: seven times as much was written as by counting flushes.
#[test]
fn counting_by_size_never_costs_much() {
    // The real sizes take minutes, without asserting more.
    let scale = if std::env::var_os("LSMITH_FULL").is_some() { 1.0 } else { 0.05 };
    let scaled = |in_full: f64| (in_full * scale) as u64;
    let churn =
        |keys: f64| format!("churn(keys={}, value=100B, ops={})", scaled(keys), scaled(1e6));
    let loads = [
        format!("load(keys={}, value=100B)", scaled(8e5)),
        format!("load(keys={}, value=100B, order=zipf)", scaled(1e6)),
        churn(3e5),
    ];
    let updates = [
        churn(2e4),
        churn(6e4),
        format!("ycsb(a, records={}, ops={})", scaled(5e4), scaled(1.2e6)),
        format!("update(keys={}, ops={}, share=0.9, dist=zipf)", scaled(1e5), scaled(8e5)),
    ];
    let policies = ["minlatency(k=4", "minlatency(k=6", "binomial(k=3", "binomial(k=5"];
    let memtables = [57e3, 1e5, 1.64e5];
    // Of all settings, the half in which the numbers of policy and memtable add up to even.
    let ratios = |workload: &String| -> Vec<(f64, String)> {
        let keyed = keyed(workload);
        let settings = (0..memtables.len() * policies.len()).filter_map(|index| {
            let memtable = index / policies.len();
            let policy = index % policies.len();
            (memtable + policy).is_multiple_of(2).then(|| (memtables[memtable], policies[policy]))
        });
        let ratio = |(memtable, policy): (f64, &str)| {
            let cost = |rest| write_cost(&format!("{policy}{rest}"), &keyed, scaled(memtable));
            let ratio = cost(", count=size)") / cost(")");
            (ratio, format!("{policy}) {workload} {memtable}: {ratio:.3}"))
        };
        settings.map(ratio).collect()
    };
    for workload in loads.iter().chain(&updates) {
        let ratios = ratios(workload);
        for (ratio, setting) in &ratios {
            assert!(*ratio <= 1.05, "{setting}");
        }
        if updates.contains(workload) {
            let mean = ratios.iter().map(|(ratio, _)| ratio).sum::<f64>() / ratios.len() as f64;
            assert!(mean <= 0.95, "{workload}: {mean}");
        }
    }
}
