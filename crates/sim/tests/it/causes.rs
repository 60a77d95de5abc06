//! Causes of bytes written against sums that are known in another way.

use crate::common::{ALL, policy};
use lsmith_sim::{Event, KeyedSim, KeyedWorkload, Simulation, watch_keyed};
use lsmith_tree::{Cause, Causes, PlanCauses};
use lsmith_workload::{NoInputs, Workload};

const MEMTABLE_BYTES: u64 = 32 << 10;

const BLOCK_POLICIES: [&str; 7] = [
    "full(ratio=3)",
    "full(ratio=3, reuse=false)",
    "rr(ratio=3, rate=0.2)",
    "choose_best(ratio=3, rate=0.2)",
    "choose_best(ratio=3, rate=0.2, reuse=false)",
    "test_mixed(ratio=3, rate=0.2)",
    "mixed(ratio=3, rate=0.2)",
];

fn policies() -> impl Iterator<Item = &'static str> {
    ALL.iter().copied().chain(BLOCK_POLICIES).chain(["sweep(k=7, young=0.2, least=3)"])
}

fn workload(spec: &str) -> KeyedWorkload {
    KeyedWorkload::new(
        Workload::from_spec(&spec.parse().expect("a spec"), &NoInputs).expect("a workload"),
    )
}

/// The causes of a whole simulation.
struct Summed {
    simulation: Simulation,
    /// Logical bytes of all entries at the end, without the active memtable.
    held_bytes: u64,
    causes: Causes,
    tombstones: u64,
    /// The least number of older runs of any merge, by level.
    oldest: Vec<usize>,
}

fn sum(spec: &str, workload: &KeyedWorkload) -> Summed {
    let mut causes = Causes::default();
    let mut tombstones = 0;
    let mut oldest = Vec::new();
    let mut observe = |event: Event<'_>| {
        let Event::Merge { tree, plan, edit } = event else { return };
        let found = PlanCauses::of(tree, plan, edit).expect("a plan of this tree");
        let written: u64 = edit.counters.iter().map(|(_, counts)| counts.bytes_written).sum();
        assert_eq!(found.causes.written(), written as i64, "{spec}: {plan}");
        for (cause, bytes) in found.causes.each() {
            assert!(
                if cause.saves() { bytes <= 0 } else { bytes >= 0 },
                "{spec}: {cause:?} {plan}"
            );
        }
        assert_eq!(edit.counters[0].0, found.to, "{spec}: {plan}");
        causes.add(&found.causes);
        tombstones += found.tombstones;
        oldest.resize(oldest.len().max(found.to + 1), usize::MAX);
        oldest[found.to] = found.older_runs.min(oldest[found.to]);
    };
    let mut held_bytes = 0;
    let mut at_rest = |sim: &KeyedSim| {
        let live: u64 = sim.live().iter().map(|(_, bytes)| bytes).sum();
        let obsolete: u64 = sim.obsolete_bytes().iter().map(|(_, bytes)| bytes).sum();
        held_bytes = live + obsolete;
    };
    let policy = policy(spec);
    let simulation = watch_keyed(&policy, workload, MEMTABLE_BYTES, &mut observe, &mut at_rest)
        .expect("legal plans");
    Summed { simulation, held_bytes, causes, tombstones, oldest }
}

/// Everything that left memory is on storage or was dropped. Both sides are counted apart: what
/// merges took and wrote, and what the last tree holds.
#[test]
fn what_left_memory_is_on_storage_or_was_dropped() {
    for workload in [
        workload("load(keys=8k, value=100B)"),
        workload("churn(keys=2k, ops=15k, deletes=0.3, value=100B)"),
        workload("uniform(domain=9k, keys=3k, ops=15k)"),
    ] {
        for spec in policies() {
            let Summed { simulation, held_bytes, causes, .. } = sum(spec, &workload);
            let parts = simulation.figures.parts;
            let name = format!("{spec}, {}", workload.workload().spec());
            let written = parts.flush_written_bytes + parts.merge_written_bytes;
            assert_eq!(causes.written(), written as i64, "{name}");
            assert_eq!(causes.bytes(Cause::Flushed), parts.flush_bytes as i64, "{name}");
            let left = parts.flush_bytes as i64 + causes.bytes(Cause::Dropped);
            let on_storage = held_bytes - simulation.tree.memory().bytes();
            assert_eq!(left, on_storage as i64, "{name}");
            assert!(parts.sealed > 20, "{name}");
        }
    }
}

/// A load writes every key once: nothing is dropped, and no tombstone is written.
#[test]
fn a_load_drops_nothing() {
    let workload = workload("load(keys=8k, value=100B)");
    for spec in policies() {
        let Summed { causes, tombstones, .. } = sum(spec, &workload);
        assert_eq!((causes.bytes(Cause::Dropped), tombstones), (0, 0), "{spec}");
    }
}

/// A load in key order overlaps nothing: `leveled` moves tables, and partial merges keep blocks.
#[test]
fn a_load_in_key_order_overlaps_nothing() {
    let workload = workload("load(keys=8k, value=100B, order=sequential)");
    let leveled = sum("leveled(ratio=3, l0=1)", &workload).causes;
    assert_eq!(leveled.bytes(Cause::Overlap), 0);
    assert_eq!(leveled.bytes(Cause::CarriedDown), -leveled.bytes(Cause::Moved));
    assert!(leveled.bytes(Cause::Moved) < 0);
    let kept = sum("choose_best(ratio=3, rate=0.2)", &workload).causes;
    assert!(kept.bytes(Cause::Reused) < 0);
}

/// `tiered` merges runs of a level into a new one, so that no run is rewritten in its place.
#[test]
fn tiered_rewrites_no_run_in_its_place() {
    let Summed { causes, oldest, .. } =
        sum("tiered(ratio=3, eager=never)", &workload("load(keys=8k, value=100B)"));
    assert_eq!((causes.bytes(Cause::Overlap), causes.bytes(Cause::Compacted)), (0, 0));
    assert!(causes.bytes(Cause::CarriedDown) > causes.bytes(Cause::Flushed));
    assert_eq!(oldest[1..].iter().min(), Some(&0));
}
