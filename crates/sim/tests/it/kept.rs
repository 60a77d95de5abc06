//! Merges keep tables where no other input has keys.

use lsmith_policy::Registry;
use lsmith_sim::{Event, Figures, FluidWorkload, KeyedWorkload, simulate_fluid, simulate_keyed};
use lsmith_tree::check_tree;
use lsmith_workload::{NoInputs, Workload};

const MEMTABLE_BYTES: u64 = 32 << 10;

fn workload(spec: &str) -> KeyedWorkload {
    let spec = spec.parse().expect("a spec");
    let workload = Workload::from_spec(&spec, &NoInputs).expect("a workload");
    KeyedWorkload::new(workload)
}

fn figures(policy: &str, workload: &KeyedWorkload) -> Figures {
    let policy = Registry::builtin().build(policy).expect("a policy");
    let mut check = |event: Event<'_>| {
        if let Event::Rest { tree } = event {
            assert_eq!(check_tree(tree), Ok(()));
        }
    };
    simulate_keyed(&policy, workload, MEMTABLE_BYTES, &mut check).expect("plans are legal").figures
}

/// Returns the bytes that flushes and merges write per flushed byte.
fn written(figures: &Figures) -> f64 {
    let parts = figures.parts;
    (parts.flush_written_bytes + parts.merge_written_bytes) as f64 / parts.flush_bytes as f64
}

/// Tables of `leveldb`, `rocksdb` and `spooky` are far larger here than memtables, which are
/// therefore joined once. Flushes wait in no run: merges are the same with and without kept tables,
/// except where a policy looks at single tables.
#[test]
fn keys_in_order_are_written_once_under_every_policy() {
    let order = workload("load(keys=30k, value=100B, order=sequential)");
    let rewritten = order.clone().with_rewrites();
    for info in Registry::builtin().infos() {
        let [kept, all] = [&order, &rewritten].map(|workload| figures(info.name, workload));
        match info.name {
            "leveldb" | "rocksdb" | "spooky" => assert!(written(&kept) <= 2.0, "{}", info.name),
            name => assert_eq!(written(&kept), 1.0, "{name}"),
        }
        assert!(written(&all) >= written(&kept), "{}", info.name);
        if !matches!(info.name, "hbase_stripe" | "sweep") {
            assert_eq!(kept.parts.merges, all.parts.merges, "{}", info.name);
            assert_eq!(kept.read_cost_mean, all.read_cost_mean, "{}", info.name);
        }
    }
}

/// Expected sizes have their tables in the same places.
#[test]
fn expected_sizes_are_kept_too() {
    let order = workload("load(keys=30k, value=100B, order=sequential)");
    let fluid = FluidWorkload::new(order.workload()).unwrap();
    for policy in ["minlatency", "tiered", "auto", "leveled", "universal", "cola"] {
        let policy = Registry::builtin().build(policy).unwrap();
        let done = simulate_fluid(&policy, &fluid, MEMTABLE_BYTES, &mut |_| {}).unwrap();
        assert_eq!(written(&done.figures), 1.0, "{}", policy.spec());
    }
}

/// Entries in random order always interleave.
#[test]
fn nothing_is_kept_of_random_keys() {
    let random = workload("load(keys=30k, value=100B)");
    let rewritten = random.clone().with_rewrites();
    for policy in ["minlatency", "tiered", "auto", "universal"] {
        let [kept, all] = [&random, &rewritten].map(|workload| figures(policy, workload));
        assert_eq!((kept.parts.reused_bytes, written(&kept)), (0, written(&all)), "{policy}");
    }
}

/// A run of more tables than a merge may keep is written again, and then not for a long time.
#[test]
fn runs_do_not_become_thousands_of_small_tables() {
    let order = workload("load(keys=24k, value=100B, order=sequential)");
    let mut tables_max = 0;
    let policy = Registry::builtin().build("minlatency(k=3)").unwrap();
    let mut count = |event: Event<'_>| {
        if let Event::Flushed { tree } = event {
            let tables = tree.disk_runs().map(|run| run.slices().len()).max();
            tables_max = tables_max.max(tables.unwrap_or(0));
        }
    };
    let figures = simulate_keyed(&policy, &order, 1 << 10, &mut count).unwrap().figures;
    assert!(figures.parts.flushes > 2_500, "{}", figures.parts.flushes);
    assert!((900..=1100).contains(&tables_max), "{tables_max} tables");
    assert!((1.2..2.0).contains(&written(&figures)), "{}", written(&figures));
}
