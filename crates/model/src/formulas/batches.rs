//! The blocks that a range read looks at in append tables to which batches were appended.

/// An append table. Each batch has put its entries at the end of the file, in the order of their
/// keys.
///
/// A batch of `e` entries for any of `n` keys replaces the share `e / n` of what is there. So of
/// each batch a part `q` is still live. In the order of keys, the live entries of one batch follow
/// each other, with dead ones between them. From one to the next it is `g` places in the file
/// with the probability `q (1 - q)^(g - 1)`. They are in one block of `k` entries with the
/// probability `1 - g / k`, or never if `g` is more than `k`.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchedTable {
    /// Live entries.
    pub live: f64,
    /// Entries of each batch when it was written, the oldest first. The first one made the append
    /// table.
    pub batches: Vec<f64>,
    /// Levels of nodes; 0 for a sorted table, whose index is in memory.
    pub levels: f64,
    /// Leaves.
    pub leaves: f64,
}

/// A batch of an append table.
#[derive(Clone, Copy, Debug)]
struct Batch {
    /// Its share of all live entries of the append table.
    share: f64,
    /// The number of blocks that hold live entries of the batch.
    blocks: f64,
}

impl BatchedTable {
    /// Returns a sorted table of so many entries.
    #[must_use]
    pub fn sorted(live: f64) -> BatchedTable {
        BatchedTable { live, batches: vec![live], levels: 0.0, leaves: 1.0 }
    }

    /// Returns the batches, in blocks of `per_block` entries.
    fn parts(&self, per_block: f64) -> Vec<Batch> {
        // Going back from the newest batch, the part of older entries that is still live.
        let mut left = 1.0;
        let mut parts: Vec<(f64, f64)> = Vec::with_capacity(self.batches.len());
        for written in self.batches.iter().rev() {
            parts.push((written * left, left));
            left *= (1.0 - written / self.live).max(0.0);
        }
        // An append table that grows has more keys now than when its first batches came.
        let sum: f64 = parts.iter().map(|(live, _)| live).sum();
        let scale = self.live / sum.max(1e-9);
        let part = |(live, share_live): (f64, f64)| {
            let live = live * scale;
            let share_live = (share_live * scale).min(1.0);
            let blocks = 1.0 + (live - 1.0).max(0.0) * other_block(share_live, per_block);
            Batch { share: live / self.live, blocks: blocks.min(live) }
        };
        parts.into_iter().map(part).collect()
    }
}

/// Returns the probability that the next live entry of a batch is in another block of `per_block`
/// entries. The part `live` of the batch is live.
fn other_block(live: f64, per_block: f64) -> f64 {
    let places = per_block.floor() as u32;
    let same = (1..places)
        .map(|gap| live * (1.0 - live).powi(gap as i32 - 1) * (1.0 - f64::from(gap) / per_block));
    1.0 - same.sum::<f64>()
}

/// Returns the blocks, nodes included, that a range read of `items` entries looks at in runs of
/// append tables. The store has `keys` live keys. A run may have any of them. A block of values has
/// `per_block` entries.
///
/// A run with the share `r` of the keys stands on `(items - 1) r` entries and on one more. Where
/// the read begins, the first entry of each batch may be in the middle of its block.
#[must_use]
pub fn batched_scan_blocks(
    runs: &[Vec<BatchedTable>],
    keys: f64,
    items: f64,
    per_block: f64,
) -> f64 {
    runs.iter().map(|tables| run_blocks(tables, keys, items, per_block)).sum()
}

fn run_blocks(tables: &[BatchedTable], keys: f64, items: f64, per_block: f64) -> f64 {
    let live: f64 = tables.iter().map(|table| table.live).sum();
    let share = live / keys;
    let further = (items - 1.0).max(0.0);
    let entries = further * share + 1.0;
    let of_table = |table: &BatchedTable| {
        let parts = table.parts(per_block);
        let blocks: f64 = parts.iter().map(|part| part.blocks).sum();
        let middle = |part: &Batch| {
            let missed = (1.0 - share * part.share).max(0.0).powf(further);
            let is_met = 1.0 - missed * (1.0 - part.share);
            (1.0 - part.blocks / (part.share * table.live)).max(0.0) * is_met
        };
        let begun: f64 = parts.iter().map(middle).sum();
        let nodes = table.levels
            + (entries - 1.0) * (table.levels + table.leaves - 1.0).max(0.0) / table.live;
        // A read begins in an append table as often as it has entries.
        (entries * blocks / table.live + begun + nodes) * table.live / live
    };
    tables.iter().filter(|table| table.live > 0.0).map(of_table).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sorted_run_has_a_block_for_each_few_entries() {
        let run = vec![BatchedTable::sorted(1e6)];
        let blocks = batched_scan_blocks(&[run], 1e6, 1000.0, 4.0);
        assert!((blocks - (999.0 / 4.0 + 1.0)).abs() < 0.01, "{blocks}");
    }

    #[test]
    fn entries_that_all_came_alone_are_in_blocks_of_their_own() {
        let batches = vec![1.0; 100_000];
        let table = BatchedTable { live: 1e5, batches, levels: 0.0, leaves: 1.0 };
        let blocks = batched_scan_blocks(&[vec![table]], 1e5, 50.0, 4.0);
        assert!((blocks - 50.0).abs() < 0.5, "{blocks}");
    }

    /// Appends batches of random keys to an append table, and counts the blocks of range reads.
    #[test]
    fn the_formula_is_near_a_count() {
        const KEYS: usize = 2000;
        const IN_BLOCK: usize = 4;
        let mut state = 1_u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % bound
        };
        for (count, in_batch) in [(0, 1), (8, 200), (30, 60), (3, 1000)] {
            // The batch of each key, and the place of its entry there.
            let mut newest: Vec<(usize, usize)> = (0..KEYS).map(|key| (0, key)).collect();
            let mut batches = vec![KEYS as f64];
            for batch in 1..=count {
                let mut keys: Vec<usize> = (0..in_batch).map(|_| below(KEYS)).collect();
                keys.sort_unstable();
                keys.dedup();
                batches.push(keys.len() as f64);
                for (place, key) in keys.into_iter().enumerate() {
                    newest[key] = (batch, place);
                }
            }
            let table = BatchedTable { live: KEYS as f64, batches, levels: 0.0, leaves: 1.0 };
            for items in [1, 10, 100] {
                let reads = KEYS - items;
                let counted = (0..reads).map(|from| {
                    let blocks = newest[from..from + items].iter();
                    let blocks: std::collections::BTreeSet<_> =
                        blocks.map(|(batch, place)| (batch, place / IN_BLOCK)).collect();
                    blocks.len()
                });
                let counted = counted.sum::<usize>() as f64 / reads as f64;
                let tables = [vec![table.clone()]];
                let predicted =
                    batched_scan_blocks(&tables, KEYS as f64, items as f64, IN_BLOCK as f64);
                let off = predicted / counted - 1.0;
                assert!(off.abs() < 0.08, "{count} {in_batch} {items}: {predicted} {counted}");
            }
        }
    }
}
