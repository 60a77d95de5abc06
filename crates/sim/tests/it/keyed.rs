//! Keyed simulations against a map, against unit simulations, and against sums done by hand.

use crate::common::{ALL, policy, unit};
use lsmith_sim::{Event, KeyedSim, KeyedWorkload, UNIT_BYTES, simulate_keyed};
use lsmith_tree::{EntryKind, check_tree};
use lsmith_workload::{NoInputs, Rng, Workload};
use std::collections::BTreeMap;

/// Live keys by rank, with the logical bytes of their newest version.
type Model = BTreeMap<u64, u64>;

/// Makes writes that keep the promises of their kinds. The model has the newest version of each
/// rank.
struct Writer {
    rng: Rng,
    ranks: u64,
    model: Model,
    /// Ranks inserted once and not written since: only those may be removed.
    inserted: BTreeMap<u64, bool>,
}

impl Writer {
    fn new(seed: u64, ranks: u64) -> Writer {
        Writer { rng: Rng::new(seed, 0), ranks, model: Model::new(), inserted: BTreeMap::new() }
    }

    fn next(&mut self) -> (EntryKind, u32, u32) {
        let rank = self.rng.below(self.ranks);
        let bytes = 20 + self.rng.below(400);
        let once = self.inserted.get(&rank).copied().unwrap_or(false);
        let present = self.model.contains_key(&rank);
        let kind = match (self.rng.below(4), present) {
            (0 | 1, false) => EntryKind::Insert,
            (0, true) if once => EntryKind::Remove,
            (0 | 1, true) => EntryKind::Delete,
            _ => EntryKind::Put,
        };
        self.inserted.insert(rank, kind == EntryKind::Insert);
        let bytes = if kind.is_tombstone() { 18 } else { bytes };
        if kind.is_tombstone() {
            self.model.remove(&rank)
        } else {
            self.model.insert(rank, bytes)
        };
        (kind, rank as u32, bytes as u32)
    }

    fn live_bytes(&self) -> u64 {
        self.model.values().sum()
    }
}

fn assert_same(sim: &KeyedSim, model: &Model, spec: &str) {
    assert!(sim.live() == model.clone().into_iter().collect::<Vec<_>>(), "{spec} lost something");
    let held: u64 = sim.tree().runs().map(|(_, run)| run.bytes()).sum();
    let obsolete: u64 = sim.obsolete_bytes().iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(held - obsolete, model.values().sum(), "{spec}: live bytes");
}

#[test]
fn what_is_live_stays_live_under_every_policy() {
    for spec in ALL {
        let mut sim = KeyedSim::new(&policy(spec), 4096);
        let mut writer = Writer::new(7, 300);
        for _ in 0..5000 {
            let (kind, rank, bytes) = writer.next();
            sim.write(kind, rank, bytes);
            if sim.is_full() {
                sim.flush(writer.live_bytes(), &mut |_| {}).expect("legal plans");
                assert_same(&sim, &writer.model, spec);
            }
        }
        assert!(sim.figures().parts.flushes > 100, "{spec}");
        assert_eq!(check_tree(sim.tree()), Ok(()), "{spec}");
    }
}

#[test]
fn what_is_live_stays_live_when_policies_change() {
    let mut sim = KeyedSim::new(&policy(ALL[0]), 2048);
    let mut writer = Writer::new(11, 1000);
    for round in 0..60 {
        let spec = ALL[round * 7 % ALL.len()];
        sim.set_policy(&policy(spec));
        for _ in 0..100 {
            let (kind, rank, bytes) = writer.next();
            sim.write(kind, rank, bytes);
            if sim.is_full() {
                sim.flush(writer.live_bytes(), &mut |_| {}).expect("legal plans");
            }
        }
        sim.flush(writer.live_bytes(), &mut |_| {}).expect("legal plans");
        assert_same(&sim, &writer.model, spec);
    }
}

/// If keys are distinct and flushes have one size, stack policies depend on sizes alone. Policies
/// that merge by ranges of keys do not.
#[test]
fn distinct_keys_cost_what_unit_flushes_cost() {
    let ranges = ["leveled", "triangular", "jungle"];
    let by_range = |spec: &str| ranges.iter().any(|name| spec.starts_with(name));
    for spec in ALL.iter().filter(|spec| !by_range(spec)) {
        let flushes = 200;
        let mut sim = KeyedSim::new(&policy(spec), UNIT_BYTES);
        let mut live_bytes = 0;
        // Every rank once, in an order that spreads each flush over all of them.
        for step in 0..flushes * 16u64 {
            let rank = step * 1223 % (flushes * 16);
            sim.write(EntryKind::Put, rank as u32, (UNIT_BYTES / 16) as u32);
            live_bytes += UNIT_BYTES / 16;
            if sim.is_full() {
                sim.flush(live_bytes, &mut |_| {}).expect("legal plans");
            }
        }
        let mut keyed = sim.finish();
        let unit = unit(spec, flushes as usize);
        // Unit simulations have no blocks and no requests.
        let parts = &mut keyed.figures.parts;
        assert_eq!(parts.requested_bytes, flushes * UNIT_BYTES, "{spec}");
        (parts.requested_bytes, parts.blocks_written, keyed.figures.write_cost_blocks) =
            (0, 0, 0.0);
        assert_eq!(keyed.figures, unit.figures, "{spec}");
        assert_eq!(keyed.run_bytes_oldest_first(), unit.run_bytes_oldest_first(), "{spec}");
    }
}

/// Two flushes of the same ten keys, merged: half of what was written is obsolete.
#[test]
fn overwrites_vanish_in_merges() {
    let mut sim = KeyedSim::new(&policy("bigtable(k=1)"), 1000);
    for flush in 0..2 {
        for rank in 0..10 {
            sim.write(EntryKind::Put, rank, 100);
        }
        assert!(sim.is_full(), "flush {flush}");
        sim.flush(1000, &mut |_| {}).expect("legal plans");
    }
    let figures = sim.figures();
    assert_eq!(sim.tree().disk_bytes(), 1000);
    assert_eq!((figures.parts.merge_read_bytes, figures.parts.merge_memory_bytes), (1000, 1000));
    assert_eq!(figures.parts.merge_written_bytes, 1000);
    // Flushed 1000 each, merged to 1000: once each eagerly, the second twice by the system.
    assert_eq!((figures.write_cost_eager, figures.write_cost_system), (1.0, 1.5));
    // Old table and output, over what is live.
    assert_eq!(figures.space_cost_peak, 2.0);
}

/// A memtable takes an overwrite in place, so that it holds the newest versions only.
#[test]
fn overwrites_in_memory_cost_nothing() {
    let mut sim = KeyedSim::new(&policy("none"), 1000);
    for _ in 0..3 {
        for rank in 0..9 {
            sim.write(EntryKind::Put, rank, 100);
        }
    }
    assert!(!sim.is_full());
    sim.write(EntryKind::Put, 9, 99);
    assert!(!sim.is_full());
    sim.write(EntryKind::Put, 9, 100);
    assert!(sim.is_full());
    sim.flush(1000, &mut |_| {}).expect("legal plans");
    assert_eq!((sim.tree().disk_bytes(), sim.figures().parts.flush_bytes), (1000, 1000));
}

/// A memtable is sealed before its writes, overwritten ones included, exceed four times its
/// capacity.
#[test]
fn overwrites_fill_a_memtable_in_the_end() {
    let mut sim = KeyedSim::new(&policy("none"), 1000);
    for write in 0..40 {
        assert!(!sim.is_full(), "after {write} writes");
        sim.write(EntryKind::Put, 5, 100);
    }
    assert!(sim.is_full());
    sim.flush(100, &mut |_| {}).expect("legal plans");
    assert_eq!((sim.tree().disk_bytes(), sim.is_full()), (100, false));
}

/// Tombstones go when nothing lies beneath them, and not before.
#[test]
fn tombstones_go_at_the_bottom() {
    let mut sim = KeyedSim::new(&policy("tiered(ratio=2)"), 1000);
    let flush = |sim: &mut KeyedSim, kind: EntryKind, ranks: std::ops::Range<u32>, bytes| {
        ranks.for_each(|rank| sim.write(kind, rank, bytes));
        sim.flush(1000, &mut |_| {}).expect("legal plans");
    };
    let tombstones =
        |sim: &KeyedSim| sim.tree().disk_runs().map(|run| run.size().tombstones).sum::<u64>();
    // Two flushes make a run at level 1; the third stays above it, tombstones and all.
    flush(&mut sim, EntryKind::Put, 0..10, 100);
    flush(&mut sim, EntryKind::Put, 10..20, 100);
    flush(&mut sim, EntryKind::Delete, 5..15, 18);
    assert_eq!(tombstones(&sim), 10);
    assert_eq!(sim.live().len(), 10);
    // The fourth makes one run of everything.
    flush(&mut sim, EntryKind::Put, 30..40, 100);
    assert_eq!((tombstones(&sim), sim.tree().disk_run_count()), (0, 1));
    assert_eq!(sim.tree().disk_bytes(), 20 * 100);
    assert!(sim.tree().dropped_below().0 >= 30);
}

/// The tombstone of an absent key is written only if a run below may hold the key.
#[test]
fn a_flush_into_an_empty_tree_drops_tombstones() {
    let mut sim = KeyedSim::new(&policy("none"), 1000);
    sim.write(EntryKind::Put, 1, 100);
    sim.write(EntryKind::Delete, 2, 18);
    sim.flush(100, &mut |_| {}).expect("legal plans");
    assert_eq!((sim.tree().disk_bytes(), sim.figures().parts.flush_bytes), (100, 118));
    sim.write(EntryKind::Delete, 1, 18);
    sim.flush(0, &mut |_| {}).expect("legal plans");
    assert_eq!(sim.tree().disk_bytes(), 118);
}

fn workload(spec: &str) -> KeyedWorkload {
    let spec = spec.parse().expect("a spec from a test");
    KeyedWorkload::new(Workload::from_spec(&spec, &NoInputs).expect("it needs no files"))
}

/// A table that overlaps nothing below it is moved, not rewritten.
#[test]
fn ordered_loads_are_moved_down_by_leveled() {
    let input = workload("load(keys=20k, value=100B, order=sequential)");
    let result = simulate_keyed(&policy("leveled(ratio=4)"), &input, 64 << 10, &mut |_| {});
    let figures = result.expect("legal plans").figures;
    assert_eq!((figures.parts.merges, figures.parts.merge_written_bytes), (0, 0));
    assert!(figures.parts.moves > 20);
    assert_eq!((figures.write_cost_eager, figures.write_cost_system), (1.0, 1.0));
}

#[test]
fn workloads_end_where_they_say() {
    let input = workload("uniform(keys=2k, ops=20k, deletes=0.1, flushes=7)");
    let mut rests = 0;
    let mut count = |event: Event<'_>| rests += u32::from(matches!(event, Event::Rest { .. }));
    let result = simulate_keyed(&policy("binomial(k=3)"), &input, 32 << 10, &mut count);
    let result = result.expect("legal plans");
    assert_eq!((result.tree.flushes(), rests), (7, 7));
    assert!(result.figures.space_cost_peak >= 1.0);
}

#[test]
fn the_same_workload_gives_the_same_plans() {
    let input = workload("update(keys=5k, share=0.7)");
    for spec in ALL {
        let [first, second] = [0, 1].map(|_| {
            let mut plans = Vec::new();
            let mut note = |event: Event<'_>| {
                if let Event::Merge { plan, .. } = event {
                    plans.push(plan.to_string());
                }
            };
            simulate_keyed(&policy(spec), &input, 64 << 10, &mut note).expect("legal plans");
            plans
        });
        assert!(first == second && !first.is_empty(), "{spec}");
    }
}

/// The windows of `sweep` may lie where no run has a key.
#[test]
fn a_merge_of_empty_windows_has_no_entries() {
    let spec = "churn(keys=8k, ops=40k, value=100B)".parse().unwrap();
    let input = KeyedWorkload::new(Workload::from_spec(&spec, &NoInputs).unwrap());
    let sweep = policy("sweep(k=8, young=0.2, least=5)");
    let found = simulate_keyed(&sweep, &input, 64 << 10, &mut |_| {}).unwrap();
    assert!(found.figures.parts.merges >= 20, "{:?}", found.figures.parts);
}
