//! A simulation in blocks, request by request.

use super::BlockEntry;
use super::memory::Memory;
use crate::cache::{BlockCaches, BlocksUncached};
use crate::keyed::{KeyedContent, KeyedEntry, rank_from, scan};
use crate::{Drive, Event, SimError};
use lsmith_policy::MergePolicy;
use lsmith_tree::{EntryKind, Input, KeyRange, LevelId, Tree};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The sizes of a simulation in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// The size of memory in full blocks: K_0.
    pub memory_blocks: u64,
    /// Entries in a full block: B.
    pub per_block: usize,
    /// Bytes of an entry, key and payload.
    pub entry_bytes: u64,
}

/// The costs of a run since the last [`restart`](BlockSim::restart).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockFigures {
    /// Inserts and deletes.
    pub requests: u64,
    /// Data blocks written below memory, without kept blocks.
    pub blocks_written: u64,
    /// Data blocks that merges kept.
    pub blocks_kept: u64,
    /// `write_cost_blocks`: data blocks written per megabyte (10^6 bytes) of requests. Each request
    /// counts as one entry.
    ///
    /// Source: Thonangi & Yang, section V ("Metrics of comparison").
    pub write_cost_blocks: f64,
}

/// The entries of every table.
pub type BlockContent = KeyedContent<BlockEntry>;

/// A tree under a policy that counts in blocks, with memory as its sorted top level. Copies are
/// independent.
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
        let block_bytes = sizes.per_block as u64 * sizes.entry_bytes;
        let content = BlockContent::new(block_bytes, true);
        let memtable_bytes = sizes.memory_blocks * block_bytes;
        let mut drive = Drive::new(Arc::clone(policy), content, memtable_bytes);
        drive.set_block_bytes(block_bytes);
        BlockSim { drive, sizes, memory: Memory::new(), requests: 0, start: (0, 0, 0) }
    }

    /// Returns the same simulation, which must be empty, with a cache of each of these sizes, in
    /// blocks. Each is as if it were alone.
    ///
    /// As in the paper, everything goes through the cache: blocks that lookups, range reads and
    /// merges read, and blocks that merges write. If it is full, blocks leave whose last use is
    /// longest ago. Blocks that a merge has replaced leave when it ends.
    ///
    /// Source: Thonangi & Yang, section V ("Implementation and setup").
    #[must_use]
    pub fn with_caches(mut self, blocks: &[u64]) -> BlockSim {
        let block_bytes = self.sizes.per_block as u64 * self.sizes.entry_bytes;
        let bytes: Vec<u64> = blocks.iter().map(|blocks| blocks * block_bytes).collect();
        self.drive.content_mut().set_caches(BlockCaches::new(&bytes, true));
        self
    }

    /// Looks a key up: reads a block of each level, from the first below memory down to the level
    /// with the key.
    pub fn lookup(&mut self, key: u32) {
        if !self.memory.holds(key) {
            let (tree, content) = self.drive.tree_and_content();
            content.look_through(tree, key);
        }
    }

    /// Reads `items` present keys, in order, from `key` on.
    pub fn scan(&mut self, key: u32, items: u32) {
        let runs = self.drive.tree().runs().filter(|(level, _)| *level != LevelId::Memory);
        let runs = runs.map(|(level, run)| (level, &**run));
        let memory = self.memory.entries_from(key);
        let active = memory.map(|entry| (entry.rank(), entry.is_tombstone()));
        let seen = scan(self.drive.content(), runs, active, (key, items));
        self.drive.content_mut().read_seen(&seen.blocks);
    }

    /// Returns the data blocks that each cache has missed since the simulation began, in the order
    /// of the sizes. A cache of 0 blocks misses all.
    pub fn uncached(&self) -> Vec<BlocksUncached> {
        self.drive.content().caches().uncached().collect()
    }

    /// Makes one request: writes an entry of this kind for the key of this rank. Merges if
    /// memory is full.
    ///
    /// # Errors
    /// Fails if the policy proposes an illegal plan or never rests.
    pub fn write(&mut self, kind: EntryKind, key: u32) -> Result<(), SimError> {
        self.requests += 1;
        let bytes = u32::try_from(self.sizes.entry_bytes).expect("a block is far below 4 GiB");
        self.memory.write(BlockEntry::new(key, bytes, kind));
        let capacity = self.sizes.memory_blocks as usize * self.sizes.per_block;
        if self.memory.len() >= capacity { self.merge() } else { Ok(()) }
    }

    /// Adds all of memory to the tree, packed into blocks from the smallest key, and settles.
    fn merge(&mut self) -> Result<(), SimError> {
        let id = self.drive.tree().next_table();
        let count = self.memory.len();
        let entries = self.memory.entries();
        let slice = self.drive.content_mut().add(id, count, entries);
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

    /// Returns the present keys, ascending, as a full scan would.
    pub fn live(&self) -> Vec<u32> {
        let content = self.drive.content();
        let mut net: BTreeMap<u32, EntryKind> = BTreeMap::new();
        for run in self.tree().disk_runs().rev() {
            net.extend(content.entries(run).map(|entry| (entry.rank(), entry.kind())));
        }
        net.extend(self.memory.entries().map(|entry| (entry.rank(), entry.kind())));
        net.into_iter().filter(|(_, kind)| !kind.is_tombstone()).map(|(key, _)| key).collect()
    }

    /// Returns the tree, at rest.
    pub fn tree(&self) -> &Tree {
        self.drive.tree()
    }

    /// Returns the drive, for explanations of its policy.
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

    /// Resets the figures.
    pub fn restart(&mut self) {
        self.start = self.counted();
    }

    /// Returns the costs since the last [`restart`](BlockSim::restart).
    pub fn figures(&self) -> BlockFigures {
        let now = self.counted();
        let start = self.start;
        let requests = now.0 - start.0;
        let bytes = requests * self.sizes.entry_bytes;
        let blocks_written = now.1 - start.1;
        BlockFigures {
            requests,
            blocks_written,
            blocks_kept: now.2 - start.2,
            write_cost_blocks: blocks_written as f64 * 1e6 / (bytes.max(1)) as f64,
        }
    }
}

/// Returns the first and the last rank within `range`.
fn numbers(range: &KeyRange) -> (u32, u32) {
    let rank32 = |rank: u64| u32::try_from(rank).unwrap_or(u32::MAX);
    let from = rank32(rank_from(&range.start));
    let end = range.end.as_ref().map_or(u64::MAX, |end| rank_from(end));
    (from, rank32(end.saturating_sub(1)).max(from))
}
