//! An open table.

use super::cache::{BlockCache, CacheName};
use super::cursor::{CacheFill, TableCursor};
use super::mapped::Mapped;
use super::table_file::{Parts, TableFile};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::format::{
    Block, BlockAnswer, Damage, FEATURE_COMPRESSED, Fences, Filter, Slot, TableFacts,
};
use crate::sync::atomic::{AtomicU64, Ordering};
use lsmith_tree::{ProfilePoint, SeqNo};
use std::hint::black_box;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// What reads had to do. Adds up over calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCount {
    /// Tables that a filter ruled out.
    pub filter_negatives: u64,
    /// Blocks that the cache had.
    pub blocks_cached: u64,
    /// Blocks read from a file.
    pub blocks_read: u64,
    /// Bytes read from a file.
    pub bytes_read: u64,
}

/// Bytes that an open table holds in memory, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// Fence pointers, with the places of their blocks.
    pub fences: u64,
    /// The filter.
    pub filters: u64,
    /// The profile, at which plans cut.
    pub profiles: u64,
}

impl TableMemory {
    /// Returns the sum of all parts.
    pub fn total(&self) -> u64 {
        self.fences + self.filters + self.profiles
    }
}

/// What many cursors have read, of which some are gone.
#[derive(Debug, Default)]
pub struct ReadTally {
    blocks: AtomicU64,
    bytes: AtomicU64,
}

impl ReadTally {
    pub(super) fn add(&self, reads: ReadCount) {
        self.blocks.fetch_add(reads.blocks_read, Ordering::Relaxed);
        self.bytes.fetch_add(reads.bytes_read, Ordering::Relaxed);
    }

    /// Blocks read from files.
    pub fn blocks(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed)
    }

    /// Bytes read from files.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// An open table. Its index and filter are in memory, its blocks come through the cache.
#[derive(Debug)]
pub struct Table {
    pub(super) file: TableFile,
    pub(super) fences: Fences,
    filter: Option<Filter>,
    /// Without the profile.
    facts: TableFacts,
    tree_table: Arc<lsmith_tree::Table>,
    cache: Arc<BlockCache>,
    /// What the cache calls this table.
    name: CacheName,
    mapped: Option<Mapped>,
    env: Arc<dyn Env>,
    memory: TableMemory,
}

/// What the profile of `table` holds in memory.
fn profile_bytes(table: &lsmith_tree::Table) -> u64 {
    let point = |point: &ProfilePoint| {
        let after = point.after.as_ref().map_or(0, |after| after.len());
        (size_of::<ProfilePoint>() + point.key.len() + after) as u64
    };
    table.profile.iter().map(point).sum()
}

impl Table {
    /// Opens table number `table` at `path`.
    ///
    /// # Errors
    ///
    /// Besides `Io`: `Corruption` where the file is not what was written or is another table,
    /// `Unsupported` where it has a newer format.
    pub fn open(
        env: &Arc<dyn Env>,
        path: &Path,
        table: u64,
        cache: Arc<BlockCache>,
    ) -> Result<Arc<Table>> {
        let file = TableFile::open(&**env, path, table)?;
        let Parts { footer, fences, filter, mut facts } = file.parts()?;
        let tree_table = Arc::new(facts.take_tree_table());
        let memory = TableMemory {
            fences: fences.memory_bytes() as u64,
            filters: filter.as_ref().map_or(0, Filter::memory_bytes) as u64,
            profiles: profile_bytes(&tree_table),
        };
        // What is compressed is kept as what it comes to.
        let plain = footer.features & FEATURE_COMPRESSED == 0;
        let mapped = plain.then(|| file.map()).flatten();
        let mapped = mapped.map(|bytes| Mapped::new(bytes, fences.count()));
        let (env, name) = (Arc::clone(env), cache.name_table());
        Ok(Arc::new(Table {
            file,
            fences,
            filter,
            facts,
            tree_table,
            cache,
            name,
            mapped,
            env,
            memory,
        }))
    }

    /// Forgets the blocks that the cache has, to be called when the file is deleted.
    pub fn forget_blocks(&self) {
        self.cache.remove_table(self.name);
    }

    /// Gives all entries, which have number 0 in the file, the number `seq`.
    pub fn date(&mut self, seq: SeqNo) {
        self.file.seq_base = seq.0;
        (self.facts.seq_min, self.facts.seq_max) = (seq, seq);
        let table = lsmith_tree::Table { seq_min: seq, seq_max: seq, ..(*self.tree_table).clone() };
        self.tree_table = Arc::new(table);
    }

    /// What the table holds as a whole; the profile is in [`tree_table`](Table::tree_table).
    pub fn facts(&self) -> &TableFacts {
        &self.facts
    }

    /// What the table holds in memory: fences, filter and profile.
    pub fn memory(&self) -> TableMemory {
        self.memory
    }

    /// What trees know of the table.
    pub fn tree_table(&self) -> &Arc<lsmith_tree::Table> {
        &self.tree_table
    }

    /// Loads what [`find`](Table::find) looks at first for a key with this `key_hash`.
    #[inline]
    pub fn touch(&self, hash: u64) -> u64 {
        self.filter.as_ref().map_or(0, |filter| filter.touch(hash))
    }

    /// The newest version of `key`, of which `hash` is the `key_hash`, that is not newer than
    /// `snapshot`, tombstones included, and the block that it lies in.
    ///
    /// # Errors
    ///
    /// `Io`, and `Corruption` where a block is not what was written.
    pub fn find(
        &self,
        key: &[u8],
        hash: u64,
        snapshot: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Option<(Block, Slot)>> {
        if let Some(filter) = &self.filter
            && !filter.may_hold(hash)
        {
            reads.filter_negatives += 1;
            return Ok(None);
        }
        if key < &*self.facts.first_key || key > &*self.facts.last_key {
            return Ok(None);
        }
        let mut index = self.fences.block_for(key);
        loop {
            self.ask_for(index);
            black_box(self.touch_block(index));
            let block = self.block(index, reads)?;
            match block.find(key, snapshot).map_err(|damage| self.damaged(damage, index))? {
                BlockAnswer::Found(slot) => return Ok(Some((block, slot))),
                BlockAnswer::Beyond if self.fences.may_continue_key(index + 1, key) => index += 1,
                BlockAnswer::Beyond | BlockAnswer::Absent => return Ok(None),
            }
        }
    }

    /// A cursor over the entries of the table. `fill` says whether its blocks come through the
    /// cache or past it.
    pub fn cursor(self: &Arc<Self>, fill: CacheFill) -> TableCursor {
        TableCursor::new(self.clone(), fill)
    }

    /// Whether the file is mapped.
    pub(super) fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }

    /// Asks the device for all of block `index`, which will be looked at in the map of the file, if
    /// such looks have waited lately.
    #[inline]
    pub(super) fn ask_for(&self, index: usize) {
        if self.cache.waits.lately() {
            self.ask_for_now(index);
        }
    }

    #[cold]
    fn ask_for_now(&self, index: usize) {
        if self.is_mapped() {
            self.cache.waits.asked();
            self.file.announce(self.fences.place(index));
        }
    }

    /// Loads what is looked at first in block `index`, where the file is mapped.
    #[inline]
    pub(super) fn touch_block(&self, index: usize) -> u64 {
        let Some(mapped) = &self.mapped else { return 0 };
        let place = self.fences.place(index);
        if self.cache.waits.wants_time(self.file.table, index) {
            return self.touch_timed(mapped, index, &place);
        }
        mapped.touch(index, &place)
    }

    #[cold]
    fn touch_timed(&self, mapped: &Mapped, index: usize, place: &Range<u64>) -> u64 {
        let start = self.env.now();
        let touched = black_box(mapped.touch(index, place));
        self.cache.waits.looked(self.env.now().saturating_sub(start));
        touched
    }

    /// Block `index`, from the map or the cache, or else from the file and then into the cache.
    pub(super) fn block(&self, index: usize, reads: &mut ReadCount) -> Result<Block> {
        match self.near_block(index, reads)? {
            Some(block) => Ok(block),
            None => self.load_block(index, reads),
        }
    }

    /// Block `index`, if the file is mapped or the block in the cache.
    pub(super) fn near_block(&self, index: usize, reads: &mut ReadCount) -> Result<Option<Block>> {
        let place = self.fences.place(index);
        if let Some(mapped) = &self.mapped {
            reads.blocks_read += 1;
            reads.bytes_read += place.end - place.start;
            return mapped.block(&self.file, index, place).map(Some);
        }
        let block = self.cache.block(self.name, place.start);
        reads.blocks_cached += u64::from(block.is_some());
        Ok(block)
    }

    /// Block `index` from the file, and then into the cache.
    pub(super) fn load_block(&self, index: usize, reads: &mut ReadCount) -> Result<Block> {
        let place = self.fences.place(index);
        reads.blocks_read += 1;
        reads.bytes_read += place.end - place.start;
        let offset = place.start;
        let buffer = self.cache.buffer((place.end - place.start) as usize);
        let block = self.file.unsealed_block(self.file.fill(buffer, offset)?, offset)?;
        self.cache.insert(self.name, offset, block.clone());
        Ok(block)
    }

    /// Damage in block `index`, as an error.
    #[cold]
    pub(super) fn damaged(&self, damage: Damage, index: usize) -> Error {
        self.file.damaged(damage, self.fences.place(index).start)
    }
}
