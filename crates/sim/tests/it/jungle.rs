//! Append tables that merges append to: exact sizes, bounded space, and the cost between leveling
//! and tiering.

use crate::common::{policy, unit};
use lsmith_sim::{Event, Figures, KeyedSim};
use lsmith_tree::{EntryKind, Tree, check_tree, node_bytes};
use lsmith_workload::Rng;
use std::collections::BTreeMap;

const KEYS: u64 = 60_000;
const ENTRY_BYTES: u32 = 1000;
const TABLE_BYTES: u64 = 256 << 10;

/// What is seen of a simulation.
struct Seen {
    figures: Figures,
    /// The greatest total bytes of an append table over its bytes after a rewrite, at rest.
    tree_max: f64,
    tree: Tree,
}

/// Loads all keys in random order, then updates keys at random `rounds` times their number.
fn updates(spec: &str, rounds: u64) -> Seen {
    let mut sim = KeyedSim::new(&policy(spec), TABLE_BYTES);
    let mut rng = Rng::new(5, 0);
    let mut live = BTreeMap::new();
    let mut tree_max: f64 = 1.0;
    for _ in 0..KEYS * rounds {
        let rank = rng.below(KEYS) as u32;
        sim.write(EntryKind::Put, rank, ENTRY_BYTES);
        live.insert(rank, ENTRY_BYTES);
        if sim.is_full() {
            let live_bytes = live.len() as u64 * u64::from(ENTRY_BYTES);
            sim.flush(live_bytes, &mut |_| {}).expect("legal plans");
            let slices = sim.tree().disk_runs().flat_map(|run| run.slices());
            for slice in slices {
                let live = slice.bytes_with_nodes() as f64;
                tree_max = tree_max.max((live + slice.dead_bytes() as f64) / live);
            }
        }
    }
    assert_eq!(check_tree(sim.tree()), Ok(()));
    Seen { figures: sim.figures(), tree_max, tree: sim.tree().clone() }
}

/// A map of what each append table holds, beside the simulation.
#[test]
fn live_and_dead_bytes_are_exact() {
    let mut sim = KeyedSim::new(&policy("jungle(c=4, ratio=3)"), 8192);
    let mut rng = Rng::new(3, 0);
    let mut live: BTreeMap<u32, u32> = BTreeMap::new();
    // Everything that was ever written to the file of an append table or replaced in it, and its
    // entries.
    let mut files: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut merges = 0;
    for _ in 0..6000 {
        let rank = rng.below(500) as u32;
        let bytes = 20 + rng.below(300) as u32;
        let kind = if rng.below(4) == 0 { EntryKind::Delete } else { EntryKind::Put };
        let bytes = if kind.is_tombstone() { 18 } else { bytes };
        match kind.is_tombstone() {
            true => live.remove(&rank),
            false => live.insert(rank, bytes),
        };
        sim.write(kind, rank, bytes);
        if !sim.is_full() {
            continue;
        }
        let live_bytes = live.values().map(|bytes| u64::from(*bytes)).sum();
        sim.flush(live_bytes, &mut |event| {
            let Event::Merge { tree, plan, edit } = event else { return };
            let written: u64 = edit.counters.iter().map(|(_, count)| count.bytes_written).sum();
            let total = |slice: &lsmith_tree::Slice| slice.size().bytes + slice.dead_bytes();
            let (mut grown, mut replaced) = (0, 0);
            for slice in edit.add.iter().flat_map(|addition| &addition.slices) {
                let now = (total(slice), slice.size().entries);
                let (before, entries) = files.insert(slice.table().id.0, now).unwrap_or_default();
                grown += now.0 - before;
                assert_eq!(before > 0, slice.table().root > 1 || now.0 == before);
                if before > 0 && now.0 > before {
                    // Append tables of one leaf: a batch replaces all nodes.
                    assert!(entries <= 128, "{entries}");
                    replaced += node_bytes(entries);
                }
            }
            if plan.makes_append() && plan.mode == lsmith_tree::Mode::Merge {
                assert_eq!(grown, written + replaced, "{plan} on {tree}");
            }
            merges += 1;
        })
        .expect("legal plans");
        let found: Vec<(u64, u64)> = sim.live();
        let expected: Vec<(u64, u64)> =
            live.iter().map(|(rank, bytes)| (u64::from(*rank), u64::from(*bytes))).collect();
        assert_eq!(found, expected);
        assert_eq!(check_tree(sim.tree()), Ok(()));
    }
    assert!(merges > 100, "{merges}");
}

#[test]
fn dead_space_is_bounded_by_c() {
    let mut means = Vec::new();
    for c in [1.0, 2.0, 3.0, 5.0, 10.0] {
        let seen = updates(&format!("jungle(c={c}, ratio=10)"), 12);
        let Figures { space_cost_mean, .. } = seen.figures;
        assert!(seen.tree_max <= c, "c={c}: {}", seen.tree_max);
        // Each level above the last repeats a tenth of it, and a memtable waits.
        assert!(space_cost_mean < 1.3 * c, "c={c}: {space_cost_mean}");
        means.push(space_cost_mean);
        assert!(seen.tree.levels().iter().all(|level| level.runs().len() <= 1));
    }
    assert!(means.is_sorted_by(|less, more| less < more), "{means:?}");
}

#[test]
fn write_cost_falls_from_that_of_leveling_towards_that_of_tiering() {
    let cost = |spec: &str| updates(spec, 12).figures.write_cost_system;
    let leveled = cost("leveled(ratio=10, l0=1)");
    let tiered = cost("tiered(ratio=10)");
    let jungle = ["1", "2", "3", "5", "10"].map(|c| cost(&format!("jungle(c={c}, ratio=10)")));
    assert!(jungle.is_sorted_by(|more, less| more > less), "{jungle:?}");
    assert!(jungle[0] > 0.7 * leveled && jungle[0] < 1.5 * leveled, "{jungle:?}, {leveled}");
    // A memtable that is appended to level 0 counts as flushed before. That write is not made.
    assert!(jungle[4] - 1.0 < 1.4 * tiered, "{jungle:?}, {tiered}");
    assert!(3.0 * jungle[1] < leveled, "{jungle:?}, {leveled}");
}

/// By size alone nothing overlaps: each flush is written once for each level that it is appended
/// to, and moves cost as much.
#[test]
fn by_size_an_entry_is_written_about_once_per_level() {
    let simulation = unit("jungle(c=3, ratio=4)", 400);
    let levels = simulation.tree.levels().len() as f64;
    let cost = simulation.figures.write_cost_system;
    assert!(cost > 1.0 && cost <= levels + 1.0, "{cost} for {levels} levels");
}

#[test]
fn keys_in_order_are_written_once_or_twice() {
    let mut sim = KeyedSim::new(&policy("jungle"), TABLE_BYTES);
    for rank in 0..60_000 {
        sim.write(EntryKind::Put, rank, ENTRY_BYTES);
        if sim.is_full() {
            let live_bytes = u64::from(rank + 1) * u64::from(ENTRY_BYTES);
            sim.flush(live_bytes, &mut |_| {}).expect("legal plans");
        }
    }
    let figures = sim.figures();
    assert!(figures.write_cost_system < 3.0, "{}", figures.write_cost_system);
    assert!(figures.space_cost_mean < 1.1, "{}", figures.space_cost_mean);
}
