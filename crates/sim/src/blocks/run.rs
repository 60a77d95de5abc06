//! Requests in, blocks out.

use super::BlockRecord;
use super::memory::Memory;
use crate::keyed::{KeyedContent, Record, rank_from};
use crate::{Drive, Event, SimError};
use lsmith_policy::MergePolicy;
use lsmith_tree::{EntryKind, Input, KeyRange, LevelId, Tree};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The sizes of a simulation in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Blocks' worth of records that memory holds: K_0.
    pub memory_blocks: u64,
    /// Records in a full block: B.
    pub per_block: usize,
    /// Bytes that a record counts for, key and payload.
    pub record_bytes: u64,
}

/// What a run has cost since it was last asked to count anew.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockFigures {
    /// Inserts and deletes.
    pub requests: u64,
    /// Data blocks written below memory; blocks that were kept cost nothing.
    pub blocks_written: u64,
    /// Data blocks that merges kept.
    pub blocks_kept: u64,
    /// `write_cost_blocks`: data blocks written per megabyte (10^6 bytes) of requests, each of
    /// which counts as one record.
    ///
    /// Source: Thonangi & Yang, section V ("Metrics of comparison").
    pub write_cost_blocks: f64,
}

/// Records of every table.
pub type BlockContent = KeyedContent<BlockRecord>;

/// A tree under a policy that counts in blocks, with memory as its sorted top level. A copy goes on
/// alone.
#[derive(Clone, Debug)]
pub struct BlockSim {
    drive: Drive<BlockContent>,
    sizes: BlockSizes,
    memory: Memory,
    requests: u64,
    start: (u64, u64, u64),
}

impl BlockSim {
    /// Returns an empty tree under `policy`.
    pub fn new(policy: &Arc<dyn MergePolicy>, sizes: BlockSizes) -> BlockSim {
        let block_bytes = sizes.per_block as u64 * sizes.record_bytes;
        let content = BlockContent::new(block_bytes, true);
        let memtable_bytes = sizes.memory_blocks * block_bytes;
        let mut drive = Drive::new(Arc::clone(policy), content, memtable_bytes);
        drive.set_block_bytes(block_bytes);
        BlockSim { drive, sizes, memory: Memory::new(), requests: 0, start: (0, 0, 0) }
    }

    /// Makes one request: writes an entry of this kind for the key with this number. Merges follow
    /// when memory is full.
    ///
    /// # Errors
    /// Fails if the policy proposes an illegal plan or never comes to rest.
    pub fn write(&mut self, kind: EntryKind, key: u32) -> Result<(), SimError> {
        self.requests += 1;
        let bytes = u32::try_from(self.sizes.record_bytes).expect("a block is far below 4 GiB");
        self.memory.write(BlockRecord::new(key, bytes, kind));
        let capacity = self.sizes.memory_blocks as usize * self.sizes.per_block;
        if self.memory.len() >= capacity { self.merge() } else { Ok(()) }
    }

    /// Shows the policy all of memory, packed into blocks from the smallest key, and settles.
    fn merge(&mut self) -> Result<(), SimError> {
        let id = self.drive.tree().next_table();
        let count = self.memory.len();
        let records = self.memory.records();
        let slice = self.drive.content_mut().add(id, count, records);
        let taken = &mut Vec::new();
        self.drive.replace_memory(Some(slice), &mut |event| {
            if let Event::Merge { tree, plan, .. } = event {
                let in_memory = |input: &&Input| {
                    tree.run(input.run).is_some_and(|(level, _)| level == LevelId::Memory)
                };
                taken.extend(plan.inputs.iter().filter(in_memory).map(|input| input.range.clone()));
            }
        })?;
        for range in taken {
            let (first, last) = numbers(range);
            self.memory.forget(first, last);
        }
        Ok(())
    }

    /// Returns the keys that are present, ascending: what a scan of everything would find.
    pub fn live(&self) -> Vec<u32> {
        let content = self.drive.content();
        let mut net: BTreeMap<u32, EntryKind> = BTreeMap::new();
        for run in self.tree().disk_runs().rev() {
            net.extend(content.entries(run).map(|record| (record.rank(), record.kind())));
        }
        net.extend(self.memory.records().map(|record| (record.rank(), record.kind())));
        net.into_iter().filter(|(_, kind)| !kind.is_tombstone()).map(|(key, _)| key).collect()
    }

    /// Returns the tree, at rest.
    pub fn tree(&self) -> &Tree {
        self.drive.tree()
    }

    /// Returns the drive, for what its policy explains.
    pub fn drive(&self) -> &Drive<BlockContent> {
        &self.drive
    }

    fn counted(&self) -> (u64, u64, u64) {
        let levels = self.tree().levels().iter().map(|level| level.counters());
        let sum = levels.fold((0, 0), |(written, kept), counters| {
            (written + counters.blocks_written, kept + counters.blocks_reused)
        });
        (self.requests, sum.0, sum.1)
    }

    /// Counts anew from here.
    pub fn restart(&mut self) {
        self.start = self.counted();
    }

    /// Returns what it has cost since the last [`restart`](BlockSim::restart).
    pub fn figures(&self) -> BlockFigures {
        let now = self.counted();
        let start = self.start;
        let requests = now.0 - start.0;
        let bytes = requests * self.sizes.record_bytes;
        let blocks_written = now.1 - start.1;
        BlockFigures {
            requests,
            blocks_written,
            blocks_kept: now.2 - start.2,
            write_cost_blocks: blocks_written as f64 * 1e6 / (bytes.max(1)) as f64,
        }
    }
}

/// Returns the first and the last number within `range`.
fn numbers(range: &KeyRange) -> (u32, u32) {
    let number = |rank: u64| u32::try_from(rank).unwrap_or(u32::MAX);
    let from = number(rank_from(&range.start));
    let end = range.end.as_ref().map_or(u64::MAX, |end| rank_from(end));
    (from, number(end.saturating_sub(1)).max(from))
}
