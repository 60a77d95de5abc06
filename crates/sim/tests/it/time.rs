//! Free runs in simulated time.

use lsmith_policy::Registry;
use lsmith_sim::{
    FreeOptions, FreeSimulation, KeyedWorkload, Machine, Rate, simulate_free, simulate_keyed,
};
use lsmith_workload::{NoInputs, Workload};

const MEMTABLE_BYTES: u64 = 32 << 10;

const CHURN: &str = "churn(keys=5k, ops=40k, value=50B)";

fn workload(spec: &str) -> KeyedWorkload {
    let spec = spec.parse().expect("the test knows its workloads");
    let workload = Workload::from_spec(&spec, &NoInputs).expect("the test knows its workloads");
    KeyedWorkload::new(workload)
}

/// Returns a machine on which a write takes a microsecond, and `merge` nanoseconds go by for each
/// entry of a merge.
fn machine(merge: f64) -> Machine {
    let of_entries = Rate { each: merge, part: 0.0 };
    Machine {
        cores: 4.0,
        write: Rate { each: 1000.0, part: 0.0 },
        flush: of_entries,
        merge: of_entries,
        append: of_entries,
        slowdown: 1.0,
        ..Machine::default()
    }
}

fn run(policy: &str, spec: &str, machine: Machine, threads: usize) -> FreeSimulation {
    let policy = Registry::builtin().build(policy).expect("the test knows its policies");
    let seconds_max = f64::INFINITY;
    let options = FreeOptions { machine, threads, memtable_bytes: MEMTABLE_BYTES, seconds_max };
    simulate_free(&policy, &workload(spec), &options, &mut |_| {}).expect("the policy is legal")
}

#[test]
fn merges_that_take_no_time_are_those_of_lockstep() {
    for policy in ["leveled(ratio=4)", "tiered(ratio=4)", "minlatency(k=4)", "leveldb", "jungle"] {
        // Two threads would begin two plans at the same moment.
        let free = run(policy, CHURN, machine(0.0), 1);
        let built = Registry::builtin().build(policy).unwrap();
        let locked = simulate_keyed(&built, &workload(CHURN), MEMTABLE_BYTES, &mut |_| {}).unwrap();
        let (free_figures, figures) = (free.simulation.figures, locked.figures);
        assert_eq!(free_figures.parts, figures.parts, "{policy}");
        assert_eq!(free.simulation.tree.to_string(), locked.tree.to_string(), "{policy}");
        assert_eq!(free.held_back_seconds, 0.0, "{policy}");
    }
}

#[test]
fn range_deletes_are_folded_with_memory() {
    let churn = "churn(keys=3k, ops=20k, value=50B, ranges=0.02)";
    for policy in ["rr(ratio=4)", "leveled(ratio=4)"] {
        let free = run(policy, churn, machine(0.0), 1);
        let built = Registry::builtin().build(policy).unwrap();
        let locked = simulate_keyed(&built, &workload(churn), MEMTABLE_BYTES, &mut |_| {}).unwrap();
        assert_eq!(free.simulation.figures.parts, locked.figures.parts, "{policy}");
        let held = |tree: &lsmith_tree::Tree| (tree.disk_bytes(), tree.memory().bytes());
        assert_eq!(held(&free.simulation.tree), held(&locked.tree), "{policy}");
    }
}

#[test]
fn client_alone_takes_the_time_of_its_operations() {
    let mut machine = machine(0.0);
    machine.get = Rate { each: 500.0, part: 0.0 };
    let free = run("none", "mix(get=0.5, put=0.5, keys=1k, ops=10k, value=50B)", machine, 2);
    assert_eq!(free.ops, 11_000);
    let nanos = free.seconds * 1e9;
    // About half of the 10,000 operations are writes, after the load of 1,000 keys.
    assert!((8.3e6..8.7e6).contains(&nanos), "{nanos}");
    assert!((free.cpu_seconds / free.seconds - 1.0).abs() < 1e-9);
}

#[test]
fn slower_merges_hold_writers_back_and_leave_more_runs() {
    let all = [0.0, 300.0, 3000.0, 30_000.0]
        .map(|merge| run("leveled(ratio=4)", CHURN, machine(merge), 2));
    for pair in all.windows(2) {
        assert!(pair[0].seconds <= pair[1].seconds);
        assert!(pair[0].held_back_seconds <= pair[1].held_back_seconds);
    }
    assert_eq!(all[0].held_back_seconds, 0.0);
    // An entry is merged several times at 30 microseconds: writers wait nearly all the time.
    let slowest = &all[3];
    assert!(slowest.held_back_seconds > 0.9 * slowest.seconds, "{slowest:?}");
    let runs = |free: &FreeSimulation| free.simulation.figures.read_cost_mean;
    assert!(runs(slowest) > runs(&all[0]), "{} {}", runs(slowest), runs(&all[0]));
    assert!(slowest.pause_longest < 0.1 * slowest.seconds);
}

#[test]
fn what_a_tree_owes_slows_writers() {
    // A stack of its own accord lets writers fill it up to twice its bound.
    for (policy, bound) in [("minlatency(k=4)", 4), ("bigtable(k=3)", 3), ("binomial(k=4)", 4)] {
        let figures = run(policy, CHURN, machine(5000.0), 2).simulation.figures;
        assert!(figures.runs_max <= bound + 2, "{policy}: {figures:?}");
        assert!(figures.read_cost_mean <= bound as f64, "{policy}: {figures:?}");
    }
}

#[test]
fn threads_share_cores() {
    let one_core = Machine { cores: 1.0, ..machine(1000.0) };
    let free = run("tiered(ratio=4)", CHURN, one_core, 2);
    let cpu = free.cpu_seconds;
    // Nothing runs at the same time, and nothing else takes time but what is held back.
    assert!(free.seconds >= cpu - 1e-9, "{free:?}");
    assert!(free.seconds <= cpu + free.held_back_seconds + 1e-9, "{free:?}");
    let many = run("tiered(ratio=4)", CHURN, machine(1000.0), 2);
    assert!(many.seconds < free.seconds);
    assert!((many.merge_cpu_seconds / free.merge_cpu_seconds - 1.0).abs() < 0.3);
    let slowed = Machine { slowdown: 2.0, cores: 2.0, ..machine(1000.0) };
    let slowed = run("tiered(ratio=4)", CHURN, slowed, 2);
    assert!(slowed.cpu_seconds > 1.2 * many.cpu_seconds, "{slowed:?}");
}

#[test]
fn syncs_take_time_but_no_cpu() {
    let waiting = Machine { sync: Rate { each: 2e6, part: 10.0 }, ..machine(0.0) };
    let free = run("leveled(ratio=4)", CHURN, waiting, 2);
    let fast = run("leveled(ratio=4)", CHURN, machine(0.0), 2);
    assert!(free.seconds > 1.5 * fast.seconds, "{} {}", free.seconds, fast.seconds);
    assert!((free.cpu_seconds / fast.cpu_seconds - 1.0).abs() < 1e-6);
}

#[test]
fn client_stops_when_its_time_is_over() {
    let policy = Registry::builtin().build("tiered").unwrap();
    let options = FreeOptions {
        machine: machine(100.0),
        threads: 2,
        memtable_bytes: MEMTABLE_BYTES,
        seconds_max: 0.01,
    };
    let free = simulate_free(&policy, &workload(CHURN), &options, &mut |_| {}).unwrap();
    assert_eq!(free.ops, 10_000);
}

#[test]
fn every_policy_comes_to_rest_and_gives_the_same_twice() {
    let registry = Registry::builtin();
    let churn = "churn(keys=2k, ops=8k, value=50B, deletes=0.2)";
    for info in registry.infos() {
        for threads in [1, 2, 4] {
            let free = run(info.name, churn, machine(2000.0), threads);
            let policy = registry.build(info.name).unwrap();
            let view = lsmith_tree::TreeView::new(free.simulation.tree.clone(), MEMTABLE_BYTES);
            assert_eq!(policy.next_merge(&view), None, "{} {threads}", info.name);
            let again = run(info.name, churn, machine(2000.0), threads);
            assert_eq!(again.seconds, free.seconds, "{}", info.name);
            assert_eq!(again.simulation.tree, free.simulation.tree, "{}", info.name);
        }
    }
}
