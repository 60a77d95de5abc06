//! Bounds of merges that count in blocks, with random keys and with keys made to break them.
//!
//! Every merge is also executed on plain maps, without blocks, and the results are compared.

use crate::steps::{Dice, Present};
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{Event, KeyedSim};
use lsmith_tree::{
    BLOCK_BYTES_USUAL, Counters, EntryKind, KeyRange, LevelId, MergePlan, Mode, Place, Run, RunId,
    Tree, TreeEdit,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Blocks that memory holds.
const MEMORY: u64 = 20;
/// Entries in a block.
const PER_BLOCK: u64 = 8;
const RECORD_BYTES: u32 = (BLOCK_BYTES_USUAL / PER_BLOCK) as u32;
const REQUESTS: u32 = 12_000;

const POLICIES: [&str; 8] = [
    "full(ratio=4)",
    "full(ratio=4, reuse=false)",
    "rr(ratio=4, rate=0.2)",
    "rr(ratio=4, rate=0.2, reuse=false)",
    "choose_best(ratio=4, rate=0.2)",
    "choose_best(ratio=4, rate=0.1, piece=12kB)",
    "test_mixed(ratio=4, rate=0.2)",
    "mixed(ratio=4, rate=0.2)",
];

/// Where keys fall.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// Anywhere.
    Random,
    /// Ascending: nothing overlaps.
    Ascending,
    /// As far from all earlier keys as possible: all windows overlap the same amount.
    Spread,
    /// From 64 ascending sequences in turn: every window covers one sequence.
    Comb,
    /// Into narrow stretches, one after the other.
    Clusters,
    /// First dense keys, then single keys between the blocks of the dense ones.
    Gaps,
}

const KEYS: [Keys; 6] =
    [Keys::Random, Keys::Ascending, Keys::Spread, Keys::Comb, Keys::Clusters, Keys::Gaps];

impl Keys {
    fn key(self, index: u32, dice: &mut Dice) -> u32 {
        match self {
            Keys::Random => dice.below(u32::MAX),
            Keys::Ascending => index << 8,
            Keys::Spread => index.reverse_bits(),
            Keys::Comb => (index % 64) << 26 | index,
            Keys::Clusters => {
                (index / 300).wrapping_mul(0x9e37_79b9) & !0xffff | dice.below(0xffff)
            }
            Keys::Gaps if index < REQUESTS / 3 => index << 8,
            Keys::Gaps => ((dice.below(REQUESTS / 24) * 8) << 8).wrapping_sub(index % 200),
        }
    }
}

/// The kinds, keys and sizes of requests.
#[derive(Clone, Copy, Debug)]
struct Mix {
    keys: Keys,
    /// Percent of requests that remove a record from anywhere.
    removes: u32,
    /// Logical bytes of the least record and of the largest.
    bytes: [u32; 2],
}

/// Records that fill blocks, and memory, to the last byte.
const EXACT: [u32; 2] = [RECORD_BYTES; 2];
/// Blocks hold as many of these records, but memory holds a few more than `MEMORY` blocks do.
const SMALLER: [u32; 2] = [RECORD_BYTES - 12; 2];
const ANY: [u32; 2] = [20, 920];

/// One level as a map.
type Map = BTreeMap<u32, EntryKind>;

/// A simulation, and the same on maps.
struct Twin {
    sim: KeyedSim,
    memory: Map,
    runs: BTreeMap<RunId, Map>,
    message: String,
}

/// The effect of a merge.
struct Merged<'a> {
    tree: &'a Tree,
    plan: &'a MergePlan,
    /// The level that it merged into.
    level: usize,
    counters: Counters,
}

impl Twin {
    fn new(spec: &str, mix: Mix) -> Twin {
        let policy: Arc<dyn MergePolicy> = Registry::builtin().build(spec).expect(spec);
        let sim = KeyedSim::new(&policy, MEMORY * BLOCK_BYTES_USUAL);
        let message = format!("{spec}, {mix:?}");
        Twin { sim, memory: Map::new(), runs: BTreeMap::new(), message }
    }

    /// Makes requests. Calls `merged` for each merge, and `rest` for each tree at rest.
    fn run(
        &mut self,
        mix: Mix,
        mut merged: impl FnMut(&Merged<'_>, &str),
        mut rest: impl FnMut(&Tree, &str),
    ) {
        let mut dice = Dice(5);
        let mut present = Present::default();
        for index in 0..REQUESTS {
            let key = mix.keys.key(index, &mut dice);
            let (kind, rank) = if dice.below(100) < mix.removes {
                present.remove(dice.below(u32::MAX))
            } else {
                present.insert(key)
            };
            let [least, most] = mix.bytes;
            let bytes = least + dice.below(most - least + 1);
            self.sim.write(kind, rank, bytes);
            put(&mut self.memory, rank, kind);
            if !self.sim.is_full() {
                continue;
            }
            let Twin { sim, memory, runs, message } = self;
            sim.flush(1, &mut |event| match event {
                Event::Sealed { tree, .. } => {
                    assert_eq!(tree.memory().size().entries, memory.len() as u64, "{message}");
                }
                Event::Merge { tree, plan, edit } => {
                    let (level, counters) = edit.counters[0];
                    merged(&Merged { tree, plan, level, counters }, message);
                    conserves(memory, runs, (tree, plan, edit), message);
                }
                Event::Rest { tree } => {
                    for run in tree.disk_runs() {
                        let entries = runs.get(&run.id()).map_or(0, Map::len) as u64;
                        assert_eq!(run.size().entries, entries, "{message}: {}", run.id());
                    }
                    rest(tree, message);
                }
                Event::Flushed { .. } => unreachable!("this is no whole simulation"),
            })
            .expect(message);
        }
        let mut live = BTreeSet::new();
        for run in self.sim.tree().disk_runs().rev() {
            net(&mut live, &self.runs[&run.id()]);
        }
        net(&mut live, &self.memory);
        assert!(live == present.0, "{}: something was lost", self.message);
    }
}

/// Puts an entry over what `map` has of its key.
fn put(map: &mut Map, rank: u32, newer: EntryKind) {
    let net = match map.remove(&rank) {
        None => Some(newer),
        Some(older) => newer.over(older),
    };
    map.extend(net.map(|net| (rank, net)));
}

fn net(live: &mut BTreeSet<u32>, newer: &Map) {
    for (rank, kind) in newer {
        if kind.is_tombstone() {
            live.remove(rank)
        } else {
            live.insert(*rank)
        };
    }
}

/// Takes what lies within `range` out of `map`.
fn take(map: &mut Map, range: &KeyRange) -> Map {
    let bound = |key: &[u8]| {
        let mut rank = [0; 8];
        rank[..key.len().min(8)].copy_from_slice(&key[..key.len().min(8)]);
        u64::from_be_bytes(rank) + u64::from(key.len() > 8)
    };
    let (from, end) = (bound(&range.start), range.end.as_ref().map_or(u64::MAX, |end| bound(end)));
    let within = |rank: u32| (from..end).contains(&u64::from(rank));
    let (taken, left) = std::mem::take(map).into_iter().partition(|(rank, _)| within(*rank));
    *map = left;
    taken
}

/// Carries out `plan` on maps, and checks the counters of `edit`. The entries read, less the
/// entries that the rules of merging drop, must be the entries written and reused. Reused entries
/// must lie in tables that existed before.
fn conserves(
    memory: &mut Map,
    runs: &mut BTreeMap<RunId, Map>,
    (tree, plan, edit): (&Tree, &MergePlan, &TreeEdit),
    message: &str,
) {
    let message = format!("{message}: {plan}");
    let is_bottom = plan.mode == Mode::Merge && tree.is_bottom_for(plan).expect("a legal plan");
    let mut output = Map::new();
    let mut taken = 0;
    for input in plan.inputs.iter().rev() {
        let (level, _) = tree.run(input.run).expect("a run of the tree");
        let from = match level {
            LevelId::Memory => &mut *memory,
            LevelId::Disk(_) => runs.get_mut(&input.run).expect("a run of the model"),
        };
        let newer = take(from, &input.range);
        taken += newer.len() as u64;
        newer.into_iter().for_each(|(rank, kind)| put(&mut output, rank, kind));
    }
    output.retain(|_, kind| !(is_bottom && kind.is_tombstone()));
    let left = output.len() as u64;
    let target = match plan.place {
        Place::Into(run) => Some(run),
        _ => edit.add.first().map(|addition| addition.run),
    };
    if let Some(target) = target {
        runs.entry(target).or_default().extend(output);
    }

    let Counters { entries_in, entries_written, entries_reused, .. } = edit.counters[0].1;
    if plan.mode == Mode::Move {
        assert_eq!((entries_in, entries_written, entries_reused), (0, 0, 0), "{message}");
        return;
    }
    // Blocks beside the window that were joined count as read and as written.
    assert!(entries_in >= taken, "{message}: {entries_in} of {taken} read");
    let dropped = taken - left;
    assert_eq!(entries_written + entries_reused, entries_in - dropped, "{message}");
    let old: BTreeSet<_> = tree.runs().flat_map(|(_, run)| run.slices()).map(id).collect();
    let kept = edit.add.iter().flat_map(|addition| &addition.slices);
    let kept: u64 = kept.filter(|s| old.contains(&id(s))).map(|s| s.size().entries).sum();
    assert_eq!(kept, entries_reused, "{message}");
}

fn id(slice: &lsmith_tree::Slice) -> lsmith_tree::TableId {
    slice.table().id
}

/// Two neighbouring blocks never fit into one, and none is empty or too full.
fn check_pairs(tree: &Tree, message: &str) {
    for run in tree.disk_runs() {
        let blocks: Vec<u64> = run.cells().map(|cell| cell.size.bytes).collect();
        assert!(blocks.iter().all(|bytes| (1..=BLOCK_BYTES_USUAL).contains(bytes)), "{message}");
        let thin = blocks.windows(2).position(|pair| pair[0] + pair[1] <= BLOCK_BYTES_USUAL);
        assert_eq!(thin, None, "{message}: two blocks of {} fit into one: {blocks:?}", run.id());
    }
}

/// Returns the empty part of the level that wastes most. A level wastes nothing if its records
/// could not do with fewer blocks.
fn waste(tree: &Tree) -> f64 {
    let is_packed = |run: &Run| run.cell_count() == run.size().entries.div_ceil(PER_BLOCK);
    let runs = tree.disk_runs().filter(|run| !is_packed(run));
    let full = |run: &Arc<Run>| run.size().entries as f64 / (run.cell_count() * PER_BLOCK) as f64;
    runs.map(|run| 1.0 - full(run)).fold(0.0, f64::max)
}

#[test]
fn neighbours_never_fit_into_one_block_and_at_most_a_fifth_is_empty() {
    let mut most: f64 = 0.0;
    for keys in KEYS {
        for (removes, bytes) in [(0, EXACT), (50, EXACT), (45, ANY)] {
            for policy in POLICIES {
                let mix = Mix { keys, removes, bytes };
                let merged = |merged: &Merged<'_>, message: &str| check_pairs(merged.tree, message);
                Twin::new(policy, mix).run(mix, merged, |tree, message| {
                    check_pairs(tree, message);
                    if bytes == EXACT {
                        assert!(waste(tree) <= 0.2, "{message}: {} is empty", waste(tree));
                        most = most.max(waste(tree));
                    }
                });
            }
        }
    }
    assert!(most > 0.18, "the bound is never near: {most}");
}

/// Theorem 2: what `choose_best` writes into level i.
#[test]
fn every_merge_of_the_best_window_is_bounded() {
    let mut most: f64 = 0.0;
    for keys in KEYS {
        for removes in [0, 50] {
            for (ratio, rate, reuse) in
                [(4.0, 0.2, true), (4.0, 0.2, false), (2.0, 0.1, true), (10.0, 0.05, true)]
            {
                let mix = Mix { keys, removes, bytes: EXACT };
                let spec = format!("choose_best(ratio={ratio}, rate={rate}, reuse={reuse})");
                let bound = |level: usize| {
                    let capacity = MEMORY as f64 * f64::powi(ratio, level as i32);
                    rate * (1.0 / ratio + 1.0) * capacity + 1.0
                };
                let merged = |merged: &Merged<'_>, message: &str| {
                    if merged.counters.compactions > 0 {
                        return;
                    }
                    let written = merged.counters.blocks_written as f64;
                    let bound = bound(merged.level);
                    let Merged { plan, level, .. } = merged;
                    assert!(
                        written <= bound,
                        "{message}: {written} of {bound} into {level} by {plan}"
                    );
                    most = most.max(written / bound);
                };
                Twin::new(&spec, mix).run(mix, merged, |_, _| {});
            }
        }
    }
    assert!(most > 0.8, "the bound is never near: {most}");
}

/// Corollary 1: while a level fills, a block that `full` merges into it costs half of ratio + 1.
#[test]
fn full_merges_cost_half_the_ratio_while_a_level_fills() {
    for keys in KEYS {
        for (ratio, reuse) in [(3.0, false), (3.0, true), (4.0, false), (4.0, true)] {
            let mix = Mix { keys, removes: 0, bytes: SMALLER };
            let mut cycles = 0;
            let mut sums: BTreeMap<usize, [u64; 3]> = BTreeMap::new();
            let merged = |merged: &Merged<'_>, message: &str| {
                // A merge out of a level ends the time in which that level filled.
                let from = match merged.tree.run(merged.plan.inputs[0].run) {
                    Some((LevelId::Disk(level), _)) => level,
                    _ => 0,
                };
                if let Some([written, moved, merges]) = sums.remove(&from) {
                    let bound = moved as f64 / PER_BLOCK as f64 * (ratio + 1.0) / 2.0;
                    // Each merge can end with a block that is not full.
                    let bound = bound + merges as f64;
                    assert!(written as f64 <= bound, "{message}: {written} of {bound} into {from}");
                    cycles += 1;
                }
                let sum = sums.entry(merged.level).or_default();
                let entries = merged.tree.run(merged.plan.inputs[0].run).map(|(_, run)| run.size());
                sum[0] += merged.counters.blocks_written;
                sum[1] += entries.map_or(0, |size| size.entries);
                sum[2] += 1;
            };
            let spec = format!("full(ratio={ratio}, reuse={reuse})");
            Twin::new(&spec, mix).run(mix, merged, |_, _| {});
            assert!(cycles >= 4, "{spec}, {keys:?}: {cycles} cycles");
        }
    }
}
