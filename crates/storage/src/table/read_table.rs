//! What tables of both kinds do: sorted tables, and roots of append tables.

use super::counts::{ReadCount, ReadTally, TableMemory};
use crate::cursor::Cursor;
use crate::error::Result;
use crate::format::{Block, Slot, TableFacts};
use lsmith_tree::{KeyRange, SeqNo};
use std::ops::Range;
use std::sync::Arc;

/// An open table, whichever kind it is.
pub trait ReadTable {
    /// Returns the facts about the entries that the table shows. The profile is in
    /// [`tree_table`](ReadTable::tree_table). Of an append table the sequence numbers are bounds,
    /// because a batch does not look for the greatest and smallest one when it drops entries.
    fn facts(&self) -> &TableFacts;

    /// Returns the memory of fences, filter and profile.
    fn memory(&self) -> TableMemory;

    /// Returns the metadata of the table for trees.
    fn tree_table(&self) -> &Arc<lsmith_tree::Table>;

    /// Loads the memory that [`excludes`](ReadTable::excludes) reads first for this `key_hash`.
    fn touch(&self, hash: u64) -> u64;

    /// Returns true if the filter knows that the table has no key with this `key_hash`, or no key
    /// that begins with the prefix of this `prefix_hash`. The prefix must have as many bytes as the
    /// filter [holds](TableFacts::prefix_bytes), more than 0.
    fn excludes(&self, hash: u64, reads: &mut ReadCount) -> bool;

    /// Finds the newest version of `key` that is not newer than `snapshot`, tombstones included.
    /// Does not ask the filter. Returns the entry and the block that has its value; the entry's
    /// offsets are into this block.
    ///
    /// # Errors
    ///
    /// Fails with `Corruption` if a block is damaged, and with `Io`.
    fn search(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Option<(Block, Slot)>>;

    /// If reads of blocks have waited for the device recently, requests the block that
    /// [`search`](ReadTable::search) for `key` reads first. Does nothing for append tables, and
    /// where blocks are read by calls.
    fn request(&self, key: &[u8]) {
        let _ = key;
    }

    /// [Searches](ReadTable::search) for `key`, unless the filter [excludes](ReadTable::excludes)
    /// it. `hash` must be the `key_hash` of `key`. A reader of many tables makes both steps itself:
    /// in most of them it makes only the first.
    ///
    /// # Errors
    ///
    /// As [`search`](ReadTable::search).
    fn find(
        &self,
        key: &[u8],
        hash: u64,
        snapshot: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Option<(Block, Slot)>> {
        if self.excludes(hash, reads) { Ok(None) } else { self.search(key, snapshot, reads) }
    }

    /// Reads what leads to entries within `ranges`, which must be in key order and disjoint, and
    /// checks it: all checksums, the order of the entries, and that filter, index and facts agree
    /// with them. Reads from the file, not from the cache or the parts loaded when the table was
    /// opened. Other blocks may be gone.
    ///
    /// # Errors
    ///
    /// Fails with the first damage found, with path and offset, or with `Io`.
    fn verify(&self, ranges: &[KeyRange]) -> Result<()>;

    /// Returns the file ranges that no read within `ranges` needs, ascending. `ranges` must be in
    /// key order and disjoint. For an append table, whose other roots may need them, there are
    /// none.
    fn dead_places(&self, ranges: &[KeyRange]) -> Vec<Range<u64>>;

    /// Returns true if the table was written outside of a store.
    fn is_from_outside(&self) -> bool;

    /// Removes the blocks of this table, of all roots of an append table, from the cache. Call this
    /// when nobody reads them any more.
    fn forget_blocks(&self);
}

/// A cursor over an open table, whichever kind it is.
pub trait ReadCursor: Cursor {
    /// Makes the cursor add its reads to `tally` when it is dropped.
    fn count_in(&mut self, tally: &Arc<ReadTally>);

    /// Limits the cursor to `range`. Callers must ask only for keys within it from now on. The
    /// cursor is on no entry after this.
    fn keep_within(&mut self, range: KeyRange);
}
