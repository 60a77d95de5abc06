//! An open table.

use super::cache::{BlockCache, CacheName};
use super::mapped::Mapped;
use super::table_file::{TableFile, TableParts};
use super::writer::OUTSIDE;
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

/// Counts the work of reads, summed over calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCount {
    /// Tables that a filter excluded.
    pub filter_negatives: u64,
    /// Blocks found in the cache.
    pub blocks_cached: u64,
    /// Blocks looked at in the map of a file. Whether the system had them in memory is unknown.
    pub blocks_mapped: u64,
    /// Blocks read from a file.
    pub blocks_read: u64,
    /// Bytes read from a file, or looked at in its map.
    pub bytes_read: u64,
    /// Blocks, of all of these, in which a cursor found no entry of its range. Fence pointers are
    /// shorter than keys, so a search may begin one block early.
    pub blocks_in_vain: u64,
}

impl ReadCount {
    /// Returns the number of blocks looked at, wherever they were.
    pub fn blocks(&self) -> u64 {
        self.blocks_cached + self.blocks_mapped + self.blocks_read
    }

    /// Counts a block of `bytes` bytes in the map of a file.
    #[inline(always)]
    pub(super) fn count_mapped(&mut self, bytes: u64) {
        self.blocks_mapped += 1;
        self.bytes_read += bytes;
    }
}

/// The memory that an open table holds in bytes, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// Fence pointers, with the places of their blocks.
    pub fences: u64,
    /// The filter.
    pub filters: u64,
    /// The profile, where plans can cut.
    pub profiles: u64,
}

impl TableMemory {
    /// Returns the sum of all parts.
    pub fn total(&self) -> u64 {
        self.fences + self.filters + self.profiles
    }
}

/// Counts the reads of many cursors, added when a cursor is dropped.
#[derive(Debug, Default)]
pub struct ReadTally {
    blocks: AtomicU64,
    bytes: AtomicU64,
    cached: AtomicU64,
    mapped: AtomicU64,
    in_vain: AtomicU64,
    excluded: AtomicU64,
}

impl ReadTally {
    pub(super) fn add(&self, reads: ReadCount) {
        let add = |counter: &AtomicU64, count| {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        };
        add(&self.blocks, reads.blocks_read);
        add(&self.bytes, reads.bytes_read);
        add(&self.cached, reads.blocks_cached);
        add(&self.mapped, reads.blocks_mapped);
        add(&self.in_vain, reads.blocks_in_vain);
    }

    /// Adds `tables` that filters excluded, so that no cursor reads them.
    pub fn note_excluded(&self, tables: u64) {
        self.excluded.fetch_add(tables, Ordering::Relaxed);
    }

    /// Returns all counts.
    pub fn count(&self) -> ReadCount {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReadCount {
            filter_negatives: read(&self.excluded),
            blocks_cached: read(&self.cached),
            blocks_mapped: read(&self.mapped),
            blocks_read: read(&self.blocks),
            bytes_read: read(&self.bytes),
            blocks_in_vain: read(&self.in_vain),
        }
    }

    /// Returns the number of blocks read from files.
    pub fn blocks(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes read from files.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// An open table. Its index and filter are in memory; its blocks are read through the map or the
/// cache.
#[derive(Debug)]
pub struct Table {
    pub(super) file: TableFile,
    pub(super) fences: Fences,
    filter: Option<Filter>,
    /// The facts without the profile.
    facts: TableFacts,
    tree_table: Arc<lsmith_tree::Table>,
    cache: Arc<BlockCache>,
    /// The name of this table in the cache.
    name: CacheName,
    mapped: Option<Mapped>,
    env: Arc<dyn Env>,
    memory: TableMemory,
}

/// Returns the memory of the profile of `table`, in bytes.
pub(super) fn profile_bytes(table: &lsmith_tree::Table) -> u64 {
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
    /// Fails with `Corruption` if the file is damaged or is another table, with `Unsupported` if it
    /// has another format version or unknown features, and with `Io`.
    pub fn open(
        env: &Arc<dyn Env>,
        path: &Path,
        table: u64,
        cache: Arc<BlockCache>,
    ) -> Result<Arc<Table>> {
        let mut file = TableFile::open(&**env, path, table, &cache.files)?;
        let TableParts { footer, fences, filter, mut facts } = file.parts()?;
        file.sealed_as = footer.table;
        let tree_table = Arc::new(facts.take_tree_table());
        let memory = TableMemory {
            fences: fences.memory_bytes() as u64,
            filters: filter.as_ref().map_or(0, Filter::memory_bytes) as u64,
            profiles: profile_bytes(&tree_table),
        };
        // Compressed blocks are decompressed into the cache, so their file is not mapped.
        let plain = footer.features & FEATURE_COMPRESSED == 0 && cache.maps;
        let map = plain.then(|| file.map()).flatten();
        let mapped = map.map(|bytes| Mapped::new(bytes, fences.count()));
        let env = Arc::clone(env);
        let name = cache.name_table();
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

    /// Returns true if the table was written outside of a store.
    pub fn is_from_outside(&self) -> bool {
        self.file.sealed_as == OUTSIDE
    }

    /// Removes the blocks of this table from the cache. Call this when the file is deleted.
    pub fn forget_blocks(&self) {
        self.cache.remove_table(self.name);
    }

    /// Sets the sequence number of all entries, which is 0 in the file, to `seq`.
    pub fn set_seq(&mut self, seq: SeqNo) {
        self.file.seq_base = seq.0;
        self.facts.seq_min = seq;
        self.facts.seq_max = seq;
        let table = lsmith_tree::Table { seq_min: seq, seq_max: seq, ..(*self.tree_table).clone() };
        self.tree_table = Arc::new(table);
    }

    /// Returns the facts about the table; the profile is in [`tree_table`](Table::tree_table).
    pub fn facts(&self) -> &TableFacts {
        &self.facts
    }

    /// Returns the memory of fences, filter and profile.
    pub fn memory(&self) -> TableMemory {
        self.memory
    }

    /// Returns the metadata of the table for trees.
    pub fn tree_table(&self) -> &Arc<lsmith_tree::Table> {
        &self.tree_table
    }

    /// Loads the memory that [`excludes`](Table::excludes) reads first for this `key_hash`.
    #[inline]
    pub fn touch(&self, hash: u64) -> u64 {
        self.filter.as_ref().map_or(0, |filter| filter.touch(hash))
    }

    /// Returns true if the filter knows that the table has no key with this `key_hash`, or no key
    /// that begins with the prefix of this `prefix_hash`. The prefix must have as many bytes as the
    /// filter [holds](TableFacts::prefix_bytes), more than 0.
    #[inline(always)]
    pub fn excludes(&self, hash: u64, reads: &mut ReadCount) -> bool {
        let is_excluded = self.filter.as_ref().is_some_and(|filter| !filter.may_hold(hash));
        reads.filter_negatives += u64::from(is_excluded);
        is_excluded
    }

    /// Finds the newest version of `key` that is not newer than `snapshot`, tombstones included.
    /// Does not ask the filter. Returns the entry and its block.
    ///
    /// # Errors
    ///
    /// Fails with `Corruption` if a block is damaged, and with `Io`.
    // Called by most reads, and by rare ones: without this a read pays for a call.
    #[inline(always)]
    pub fn search(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Option<(Block, Slot)>> {
        if key < &*self.facts.first_key || key > &*self.facts.last_key {
            return Ok(None);
        }
        let mut index = self.fences.block_for(key);
        loop {
            self.request_block(index);
            black_box(self.touch_block(index));
            let block = self.block(index, reads)?;
            match block.find(key, snapshot).map_err(|damage| self.damaged(damage, index))? {
                BlockAnswer::Found(slot) => return Ok(Some((block, slot))),
                BlockAnswer::Beyond if self.fences.may_continue_key(index + 1, key) => index += 1,
                BlockAnswer::Beyond | BlockAnswer::Absent => return Ok(None),
            }
        }
    }

    /// Returns true if the file is mapped.
    pub(super) fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }

    /// Requests all of block `index` from the device, if the file is mapped and reads of maps have
    /// waited recently.
    #[inline]
    pub(super) fn request_block(&self, index: usize) {
        if self.cache.waits.are_recent() {
            self.request_block_now(index);
        }
    }

    #[cold]
    fn request_block_now(&self, index: usize) {
        if self.is_mapped() {
            self.cache.waits.count_request();
            self.file.announce(self.fences.place(index));
        }
    }

    /// Loads the bytes of block `index` that a read needs first, if the file is mapped.
    #[inline]
    pub(super) fn touch_block(&self, index: usize) -> u64 {
        let Some(mapped) = &self.mapped else { return 0 };
        let place = self.fences.place(index);
        if self.cache.waits.must_time(self.file.table, index) {
            return self.touch_timed(mapped, index, &place);
        }
        mapped.touch(index, &place)
    }

    #[cold]
    fn touch_timed(&self, mapped: &Mapped, index: usize, place: &Range<u64>) -> u64 {
        let start = self.env.now();
        let touched = black_box(mapped.touch(index, place));
        self.cache.waits.count_read(self.env.now().saturating_sub(start));
        touched
    }

    /// Returns block `index` from the map or the cache, or reads it from the file into the cache.
    pub(super) fn block(&self, index: usize, reads: &mut ReadCount) -> Result<Block> {
        match self.near_block(index, reads)? {
            Some(block) => Ok(block),
            None => self.load_block(index, reads),
        }
    }

    /// Returns block `index` if the file is mapped or the block is in the cache.
    #[inline(always)]
    pub(super) fn near_block(&self, index: usize, reads: &mut ReadCount) -> Result<Option<Block>> {
        let place = self.fences.place(index);
        if let Some(mapped) = &self.mapped {
            reads.count_mapped(place.end - place.start);
            return mapped.block(&self.file, index, place).map(Some);
        }
        let block = self.cache.block(self.name, place.start);
        reads.blocks_cached += u64::from(block.is_some());
        Ok(block)
    }

    /// Reads block `index` from the file into the cache.
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

    /// Returns the error for damage in block `index`.
    #[cold]
    pub(super) fn damaged(&self, damage: Damage, index: usize) -> Error {
        self.file.damaged(damage, self.fences.place(index).start)
    }
}
