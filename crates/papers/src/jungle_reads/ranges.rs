//! Blocks of range reads, by formula and counted: append tables have the values of each batch in a
//! place of their own.

use crate::jungle_fig6::{KEY_BYTES, VALUE_BYTES};
use crate::unsynced::Unsynced;
use anyhow::{Context, bail};
use lsmith::{Keyspace, StoreStats, inspect};
use lsmith_model::formulas::{BatchedTable, batched_scan_blocks};
use lsmith_tree::{BLOCK_BYTES_USUAL, Slice, logical_bytes};
use lsmith_workload::Rng;
use std::path::Path;

/// Entries of a range read.
pub(super) const ITEMS: [u64; 4] = [1, 10, 100, 1000];

/// Range reads of each length.
pub(super) const READS: u64 = 1000;

/// Bytes of the head of an entry in a block, and of a block besides its entries.
const HEAD_BYTES: f64 = 3.0;
const BLOCK_HEAD_BYTES: f64 = 26.0;

/// Blocks of a range read of each of [`ITEMS`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Blocks {
    pub(super) predicted: [f64; ITEMS.len()],
    pub(super) counted: [f64; ITEMS.len()],
}

/// Returns the entries in a block of values.
fn per_block() -> f64 {
    (BLOCK_BYTES_USUAL / logical_bytes(KEY_BYTES, VALUE_BYTES)) as f64
}

/// Returns the entries in so many bytes of blocks.
fn entries_in(bytes: u64) -> f64 {
    let entry = (KEY_BYTES + VALUE_BYTES) as f64 + HEAD_BYTES + BLOCK_HEAD_BYTES / per_block();
    bytes as f64 / entry
}

/// Returns what the formula must know of an append table or a sorted table.
fn batched(slice: &Slice, dir: &Path, env: &Unsynced) -> anyhow::Result<BatchedTable> {
    let live = slice.size().entries as f64;
    if !slice.is_append() {
        return Ok(BatchedTable::sorted(live));
    }
    let path = dir.join(format!("{:06}.table", slice.table().id.0));
    let file = inspect::AppendFile::open(env, &path)?;
    let mut end = 0;
    let mut batches = Vec::new();
    let mut levels = 0;
    for root in file.roots().iter().filter(|root| root.end <= slice.table().root) {
        batches.push(entries_in(root.footer.filter.start - end));
        end = root.end;
        levels = root.properties.as_ref().context("a root is damaged")?.levels;
    }
    let leaves = file.parts().count() as f64;
    Ok(BatchedTable { live, batches, levels: levels as f64, leaves })
}

/// Reads ranges of the store as it is.
pub(super) fn read(
    space: &Keyspace,
    keys: u64,
    dir: &Path,
    rng: &mut Rng,
) -> anyhow::Result<Blocks> {
    let env = Unsynced::default();
    let tree = space.tree();
    let runs = tree
        .disk_runs()
        .map(|run| run.slices().iter().map(|slice| batched(slice, dir, &env)).collect());
    let runs: Vec<Vec<BatchedTable>> = runs.collect::<anyhow::Result<_>>()?;
    let mut found = Blocks::default();
    for (at, items) in ITEMS.into_iter().enumerate() {
        found.predicted[at] = batched_scan_blocks(&runs, keys as f64, items as f64, per_block());
        let before = space.store().stats();
        for _ in 0..READS {
            let from = rng.below(keys - items).to_be_bytes();
            let mut range = space.range(from..);
            for _ in 0..items {
                range.next().context("a key is missing")??;
            }
        }
        let after = space.store().stats();
        if after.scans - before.scans != READS {
            bail!("range reads were not counted");
        }
        let blocks = |stats: &StoreStats| stats.scan_blocks - stats.scan_blocks_in_vain;
        found.counted[at] = (blocks(&after) - blocks(&before)) as f64 / READS as f64;
    }
    Ok(found)
}
