//! Theorems 1, 3 and 4 of Thonangi & Yang. Adversaries choose the keys, as worst cases do.
//!
//! Theorem 2 and Corollary 1 are in `bounds.rs`, because they hold for every merge on its own.

use crate::steps::{Dice, Present, Watched};
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{BlockSim, BlockSizes, rank_key};
use lsmith_tree::{EntryKind, Key, KeyRange, LevelId, Place, Tree, TreeView};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Keys are below this.
const DOMAIN: u32 = 1_000_000_000;

/// One merge that was carried out.
#[derive(Clone, Debug)]
struct Done {
    /// The keys that went down.
    range: KeyRange,
    /// The level that the merge wrote to.
    into: usize,
    /// Blocks' worth of records that went down.
    moved: f64,
    /// Blocks written.
    written: u64,
    /// True if a level was rewritten by itself.
    is_compaction: bool,
    /// True if the merge started a pass over the level above.
    starts_pass: bool,
}

/// An index that sees each of its merges.
struct Index {
    sim: BlockSim,
    sizes: BlockSizes,
    policy: Arc<Watched>,
    present: Present,
    dice: Dice,
    /// The keys in memory whose newest write is an insert.
    in_memory: BTreeSet<u32>,
}

impl Index {
    fn new(spec: &str, memory_blocks: u64, per_block: usize) -> Index {
        let sizes = BlockSizes { memory_blocks, per_block, entry_bytes: 100 };
        let policy = Watched::new(Registry::builtin().build(spec).expect(spec));
        let watched: Arc<dyn MergePolicy> = policy.clone();
        Index {
            sim: BlockSim::new(&watched, sizes),
            sizes,
            policy,
            present: Present::default(),
            dice: Dice(11),
            in_memory: BTreeSet::new(),
        }
    }

    fn insert(&mut self, key: u32) -> Vec<Done> {
        let request = self.present.insert(key);
        self.write(request)
    }

    /// Removes a record from anywhere.
    fn remove(&mut self) -> Vec<Done> {
        let request = self.present.remove(self.dice.below(DOMAIN));
        self.write(request)
    }

    fn write(&mut self, (kind, key): (EntryKind, u32)) -> Vec<Done> {
        match kind {
            EntryKind::Insert => self.in_memory.insert(key),
            _ => self.in_memory.remove(&key),
        };
        self.sim.write(kind, key).expect("legal plans");
        let steps = self.policy.take();
        let after = steps.iter().skip(1).map(|step| &step.view);
        let done = steps.iter().zip(after).filter_map(|(step, after)| {
            let plan = step.plan.as_ref()?;
            let [before, after] = [&step.view.tree, &after.tree];
            Some(self.done(&step.view, plan, [before, after]))
        });
        let done: Vec<Done> = done.collect();
        for merge in done.iter().filter(|merge| merge.into == 1 && !merge.is_compaction) {
            self.in_memory.retain(|key| !merge.range.contains(&rank_key(u64::from(*key))));
        }
        done
    }

    fn done(
        &self,
        view: &TreeView,
        plan: &lsmith_tree::MergePlan,
        [before, after]: [&Tree; 2],
    ) -> Done {
        let input = &plan.inputs[0];
        let (from, run) = before.run(input.run).expect("a run of the tree");
        let is_compaction = plan.inputs.len() == 1 && plan.place == Place::Oldest;
        let into = match from {
            LevelId::Memory => 1,
            LevelId::Disk(level) if is_compaction => level,
            LevelId::Disk(level) => level + 1,
        };
        let written = |tree: &Tree| {
            tree.levels().get(into).map_or(0, |level| level.counters().blocks_written)
        };
        let entries: u64 = run.clip(&input.range).map(|slice| slice.size().entries).sum();
        let name = format!("next_{from}");
        let note = plan.memo.iter().find(|(memo, _)| **memo == *name);
        let next = note.and_then(|(_, text)| cursor(text.as_deref()));
        Done {
            range: input.range.clone(),
            into,
            moved: entries as f64 / self.sizes.per_block as f64,
            written: written(after) - written(before),
            is_compaction,
            starts_pass: next.is_some_and(|next| cursor(view.memo(&name)).is_none_or(|c| next < c)),
        }
    }

    /// Returns where the next window of memory starts, in turn.
    fn cursor(&self) -> u32 {
        cursor(self.sim.tree().memo().text("next_mem")).unwrap_or(0)
    }

    fn capacity(&self, level: usize, ratio: f64) -> f64 {
        self.sizes.memory_blocks as f64 * ratio.powi(level as i32)
    }
}

/// Returns the key of a note on the next window.
fn cursor(text: Option<&str>) -> Option<u32> {
    Some(number(&lsmith_tree::text::parse_key(text?).expect("what was printed")))
}

/// Returns the number that stands behind `key`.
fn number(key: &Key) -> u32 {
    let mut rank = [0; 8];
    let bytes = key.len().min(8);
    rank[..bytes].copy_from_slice(&key[..bytes]);
    u32::try_from(u64::from_be_bytes(rank)).expect("keys are 4 bytes")
}

/// Where an adversary inserts.
#[derive(Clone, Copy, Debug)]
enum Inserts {
    /// Anywhere.
    Anywhere,
    /// Where the last window of memory was, so that windows ahead are sparse.
    Behind,
    /// Where the next window will be.
    Ahead,
    /// At the end.
    Ascending,
}

impl Inserts {
    fn key(self, index: &mut Index, step: u32) -> u32 {
        let near = index.dice.below(DOMAIN / 1000);
        match self {
            Inserts::Anywhere => index.dice.below(DOMAIN),
            Inserts::Behind => index.cursor().saturating_sub(near),
            Inserts::Ahead => index.cursor() + near,
            Inserts::Ascending => step * 8,
        }
    }
}

/// Theorem 1, worst case: one merge in turn into level 1 can write K_1 * min(rate * B / ratio,
/// 1 - 1 / ratio) blocks.
///
/// The adversary waits for the start of a pass. Then it removes what is in memory, puts the records
/// of the next window into as many blocks below as it can, and fills memory behind the window.
#[test]
fn one_merge_in_turn_can_write_most_of_a_level() {
    for (per_block, ratio, reuse) in [(8, 4.0, true), (39, 4.0, true), (39, 10.0, false)] {
        let rate = 0.1;
        let spec = format!("rr(ratio={ratio}, rate={rate}, reuse={reuse})");
        let mut index = Index::new(&spec, 40, per_block);
        let capacity = index.capacity(1, ratio);
        let bound = capacity * (rate * per_block as f64 / ratio).min(1.0 - 1.0 / ratio);
        let is_ready = |index: &Index, done: &[Done]| {
            let run = index.sim.tree().runs_at(LevelId::Disk(1)).first();
            let ahead = run.map_or(0, |run| {
                run.cells().filter(|cell| number(&cell.start) > index.cursor()).count()
            });
            done.iter().any(|merge| merge.starts_pass) && ahead as f64 >= bound
        };
        loop {
            let key = index.dice.below(DOMAIN);
            let done = index.insert(key);
            if is_ready(&index, &done) {
                break;
            }
            assert!(index.present.0.len() < 1_000_000, "{spec}: no chance to attack");
        }
        for key in index.in_memory.clone() {
            index.present.0.remove(&key);
            assert!(index.write((EntryKind::Remove, key)).is_empty());
        }
        let run = Arc::clone(&index.sim.tree().runs_at(LevelId::Disk(1))[0]);
        let starts: Vec<u32> = run.cells().map(|cell| number(&cell.start)).collect();
        let ahead: Vec<u32> = starts.into_iter().filter(|start| *start > index.cursor()).collect();
        let memory = 40 * per_block;
        let window = (rate * memory as f64).round() as usize;
        let behind = index.cursor() / 2;
        let mut done = Vec::new();
        for record in 0..memory {
            assert!(done.is_empty(), "{spec}: merged too early");
            done = match record.checked_sub(window) {
                None => index.insert(ahead[record * ahead.len() / window] + 1),
                Some(rest) => index.insert(behind + rest as u32),
            };
        }
        let written = done[0].written as f64;
        assert!(written >= bound, "{spec}: {written} blocks, {bound} expected");
    }
}

/// Theorem 1, amortized: over whole passes a block that goes down in turn costs at most
/// ratio / (1 - rate).
#[test]
fn merges_in_turn_cost_little_more_than_the_ratio_over_whole_passes() {
    let mut most = 0.0_f64;
    for (ratio, rate) in [(4.0, 0.2), (4.0, 0.05), (10.0, 0.1)] {
        for inserts in [Inserts::Anywhere, Inserts::Behind, Inserts::Ahead, Inserts::Ascending] {
            let spec = format!("rr(ratio={ratio}, rate={rate}, reuse=false)");
            let mut index = Index::new(&spec, 40, 8);
            // For each level: blocks that went down and blocks written, in this pass and in whole
            // ones.
            let mut pass = [[0.0; 2]; 3];
            let mut passes = [[0.0; 2]; 3];
            for step in 0..30_000 {
                let key = inserts.key(&mut index, step);
                let mut done = index.insert(key);
                if index.present.0.len() > 8_000 {
                    done.extend(index.remove());
                }
                for merge in done.iter().filter(|merge| !merge.is_compaction && merge.into < 3) {
                    let pass = &mut pass[merge.into];
                    if merge.starts_pass {
                        let [moved, written] = std::mem::take(pass);
                        passes[merge.into][0] += moved;
                        passes[merge.into][1] += written;
                    }
                    pass[0] += merge.moved;
                    pass[1] += merge.written as f64;
                }
            }
            let bound = ratio / (1.0 - rate);
            for (into, [moved, written]) in passes.into_iter().enumerate().skip(1) {
                let cost = written / f64::max(moved, 1.0);
                assert!(cost <= bound, "{spec}, {inserts:?}: {cost} of {bound} into {into}");
                most = most.max(cost / bound);
            }
        }
    }
    assert!(most > 0.7, "the bound is never near: {most}");
}

/// Theorem 3: compactions of a level write at most 1 / (1 - rate) blocks per block that goes down
/// into it.
///
/// The adversary inserts single records between full blocks of level 2. Merges keep these blocks,
/// and write blocks of one record between them. This is what it takes to see compactions at all.
#[test]
fn compactions_cost_little_per_block_that_goes_down() {
    let mut seen = 0;
    for (policy, rate, per_block, share) in
        [("rr", 0.2, 4, 30), ("rr", 0.5, 4, 100), ("choose_best", 0.5, 3, 100)]
    {
        let spec = format!("{policy}(ratio=16, rate={rate})");
        let mut index = Index::new(&spec, 10, per_block);
        for _ in 0..300 * per_block {
            let key = index.dice.below(DOMAIN);
            index.insert(key);
        }
        let mut moved = [0.0; 4];
        let mut written = [0.0; 4];
        for step in 0..3000 * per_block as u32 {
            let is_gap = index.dice.below(100) < share;
            let key = if is_gap { gap(&mut index) } else { DOMAIN + step * 100 };
            for merge in index.insert(key) {
                if merge.is_compaction {
                    written[merge.into] += merge.written as f64;
                    seen += 1;
                } else {
                    moved[merge.into] += merge.moved;
                }
            }
        }
        for (level, (written, moved)) in written.into_iter().zip(moved).enumerate() {
            let bound = moved / (1.0 - rate);
            assert!(written <= bound, "{spec}: {written} of {bound} into level {level}");
        }
    }
    assert!(seen >= 4, "{seen} compactions are too few to judge");
}

/// Returns a key between two neighbouring full blocks of level 2, or any key.
fn gap(index: &mut Index) -> u32 {
    let run = index.sim.tree().runs_at(LevelId::Disk(2)).first().cloned();
    let at = index.dice.below(DOMAIN);
    let Some(run) = run else { return at };
    let full = index.sizes.per_block as u64;
    let range = KeyRange { start: rank_key(u64::from(at)), end: None };
    let mut cells = run.overlapping(&range).iter().flat_map(|slice| slice.cells());
    let mut before = None;
    let found = cells.find(|cell| {
        let is_full = cell.size.entries == full;
        let is_gap = before == Some(true) && is_full;
        before = Some(is_full);
        is_gap
    });
    found.map_or(at, |cell| number(&cell.start) - 1)
}

/// Theorem 4: the best threshold of level 2 does not depend on what lies below. So the settings
/// found from the top down are the best of all.
#[test]
fn thresholds_found_from_the_top_down_are_the_best_of_all() {
    const TAUS: [&str; 6] = ["0", "0.2", "0.4", "0.6", "0.8", "1"];
    // Level 2 goes down whole: into a small bottom level, into one that is nearly full, and into an
    // inner level whose own merges are partial or full.
    let small = TAUS.map(|tau| costs(1_800, tau, true));
    let large = TAUS.map(|tau| costs(3_600, tau, true));
    let inner = [false, true].map(|beta| TAUS.map(|tau| costs(8_000, &format!("{tau}/1"), beta)));
    let least_of = (0..TAUS.len()).min_by(|a, b| small[*a][0].total_cmp(&small[*b][0]));
    let best = least_of.expect("there are settings");
    for other in [large, inner[0], inner[1]] {
        for ((tau, [expected, _]), [found, _]) in TAUS.iter().zip(small).zip(other) {
            let off = found / expected - 1.0;
            assert!(off.abs() < 0.04, "tau {tau}: {expected} and {found}");
        }
    }
    // The best of all combinations, with all levels counted, has the threshold found above.
    for (records, full) in [(1_800, small), (3_600, large)] {
        let partial = TAUS.map(|tau| costs(records, tau, false));
        let all = full.into_iter().chain(partial).map(|cost| cost[1]);
        let least = all.fold(f64::INFINITY, f64::min);
        let [whole, part] = [full, partial].map(|costs| costs[best][1]);
        let found = f64::min(whole, part);
        assert!(
            found < 1.01 * least,
            "{records} records: {} costs {found}, best {least}",
            TAUS[best]
        );
    }
}

/// Returns what merges write into levels 1 and 2, and into all levels, per block from memory.
fn costs(records: u32, tau: &str, beta: bool) -> [f64; 2] {
    let spec = format!("mixed(ratio=4, rate=0.2, tau={tau}, beta={beta})");
    let mut index = Index::new(&spec, 10, 8);
    for _ in 0..records {
        let key = index.dice.below(DOMAIN);
        index.insert(key);
    }
    let mut written = [0.0; 8];
    let mut moved = 0.0;
    for step in 0..25_000 {
        let key = index.dice.below(DOMAIN);
        let mut done = index.insert(key);
        done.extend(index.remove());
        for merge in done.iter().filter(|_| step > 5_000) {
            written[merge.into] += merge.written as f64;
            if merge.into == 1 && !merge.is_compaction {
                moved += merge.moved;
            }
        }
    }
    [written[..3].iter().sum::<f64>() / moved, written.iter().sum::<f64>() / moved]
}
