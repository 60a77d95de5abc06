//! An open table.

use super::cache::{BlockCache, CacheName};
use super::counts::{ReadCount, TableMemory, profile_bytes};
use super::mapped::Mapped;
use super::read_table::ReadTable;
use super::table_file::{TableFile, TableParts};
use super::writer::OUTSIDE;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::format::{
    Block, BlockAnswer, Damage, FEATURE_COMPRESSED, Fences, Filter, Slot, TableFacts,
};
use lsmith_tree::{KeyRange, SeqNo};
use std::hint::black_box;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

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

impl Table {
    /// Opens table `table` at `path`.
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

    /// Sets the sequence number of all entries, which is 0 in the file, to `seq`.
    pub fn set_seq(&mut self, seq: SeqNo) {
        self.file.seq_base = seq.0;
        self.facts.seq_min = seq;
        self.facts.seq_max = seq;
        let table = lsmith_tree::Table { seq_min: seq, seq_max: seq, ..(*self.tree_table).clone() };
        self.tree_table = Arc::new(table);
    }

    /// Returns true if the file is mapped.
    pub(super) fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }

    /// Requests all of block `index` from the device, if reads have waited recently and it is not
    /// in the cache.
    #[inline]
    pub(super) fn request_block(&self, index: usize) {
        if self.cache.waits.are_recent() {
            self.request_block_now(index);
        }
    }

    #[cold]
    fn request_block_now(&self, index: usize) {
        let place = self.fences.place(index);
        if self.is_mapped() || !self.cache.has_block(self.name, place.start) {
            self.cache.waits.count_request();
            self.file.announce(place);
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
        let start = self.env.now();
        let sealed = self.file.fill(buffer, offset)?;
        let bytes = place.end - place.start;
        self.cache.waits.count_call(self.env.now().saturating_sub(start), bytes);
        let block = self.file.unsealed_block(sealed, offset)?;
        self.cache.insert(self.name, offset, block.clone());
        Ok(block)
    }

    /// Returns the error for damage in block `index`.
    #[cold]
    pub(super) fn damaged(&self, damage: Damage, index: usize) -> Error {
        self.file.damaged(damage, self.fences.place(index).start)
    }
}

impl ReadTable for Table {
    fn facts(&self) -> &TableFacts {
        &self.facts
    }

    fn memory(&self) -> TableMemory {
        self.memory
    }

    fn tree_table(&self) -> &Arc<lsmith_tree::Table> {
        &self.tree_table
    }

    #[inline]
    fn touch(&self, hash: u64) -> u64 {
        self.filter.as_ref().map_or(0, |filter| filter.touch(hash))
    }

    #[inline(always)]
    fn excludes(&self, hash: u64, reads: &mut ReadCount) -> bool {
        let is_excluded = self.filter.as_ref().is_some_and(|filter| !filter.may_hold(hash));
        reads.filter_negatives += u64::from(is_excluded);
        is_excluded
    }

    // Called by most reads, and by rare ones: without this a read pays for a call.
    #[inline(always)]
    fn search(
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
            // A block that is read by one call is read at once.
            if self.is_mapped() {
                self.request_block(index);
                black_box(self.touch_block(index));
            }
            let block = self.block(index, reads)?;
            match block.find(key, snapshot).map_err(|damage| self.damaged(damage, index))? {
                BlockAnswer::Found(slot) => return Ok(Some((block, slot))),
                BlockAnswer::Beyond if self.fences.may_continue_key(index + 1, key) => index += 1,
                BlockAnswer::Beyond | BlockAnswer::Absent => return Ok(None),
            }
        }
    }

    fn request(&self, key: &[u8]) {
        let facts = &self.facts;
        let has_key = *facts.first_key <= *key && *key <= *facts.last_key;
        if has_key && self.cache.waits.are_recent() {
            let place = self.fences.place(self.fences.block_for(key));
            // Not counted: the search counts its own request, and finds out how long reads take.
            if self.is_mapped() || !self.cache.has_block(self.name, place.start) {
                self.file.announce(place);
            }
        }
    }

    fn is_from_outside(&self) -> bool {
        self.file.sealed_as == OUTSIDE
    }

    fn forget_blocks(&self) {
        self.cache.remove_table(self.name);
    }

    fn verify(&self, ranges: &[KeyRange]) -> Result<()> {
        self.check(ranges)
    }

    fn dead_places(&self, ranges: &[KeyRange]) -> Vec<Range<u64>> {
        self.unneeded_places(ranges)
    }
}
