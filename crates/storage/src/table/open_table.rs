//! Open tables of both kinds behind one interface.
//!
//! An enum, not a trait object, so that reads of sorted tables stay direct calls. The contents of
//! the variants are shared, so a clone is cheap.

use super::append::{AppendCursor, AppendTable};
use super::cache::BlockCache;
use super::cursor::{CacheFill, TableCursor};
use super::reader::{ReadCount, ReadTally, Table, TableMemory};
use crate::cursor::{Cursor, EntryRef};
use crate::env::Env;
use crate::error::Result;
use crate::format::{Block, Slot, TableFacts};
use bytes::Bytes;
use lsmith_tree::{KeyRange, SeqNo};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// An open table: a sorted one, or one root of an append table.
#[derive(Clone, Debug)]
pub enum OpenTable {
    /// A sorted table.
    Sorted(Arc<Table>),
    /// One root of an append table.
    Append(Arc<AppendTable>),
}

impl OpenTable {
    /// Opens table number `table` at `path`. `root` is the name of the root of an append table, or
    /// 0 for a sorted one.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::open`] and [`AppendTable::open`] do.
    pub fn open(
        env: &Arc<dyn Env>,
        path: &Path,
        table: u64,
        root: u64,
        cache: Arc<BlockCache>,
    ) -> Result<OpenTable> {
        Ok(match root {
            0 => OpenTable::Sorted(Table::open(env, path, table, cache)?),
            _ => OpenTable::Append(AppendTable::open(env, path, table, root, cache)?),
        })
    }

    /// Returns true if the table was written outside of a store.
    pub fn is_from_outside(&self) -> bool {
        match self {
            OpenTable::Sorted(table) => table.is_from_outside(),
            OpenTable::Append(_) => false,
        }
    }

    /// Removes the blocks of this table from the cache.
    pub fn forget_blocks(&self) {
        match self {
            OpenTable::Sorted(table) => table.forget_blocks(),
            OpenTable::Append(table) => table.forget_blocks(),
        }
    }

    /// Sets the sequence number of all entries of a sorted table, which is 0 in the file, to `seq`.
    ///
    /// # Panics
    ///
    /// Panics if the table is shared, or if it is an append table, whose entries have numbers.
    pub fn set_seq(&mut self, seq: SeqNo) {
        let OpenTable::Sorted(table) = self else {
            panic!("the entries of an append table have numbers");
        };
        Arc::get_mut(table).expect("no cursor holds the table yet").set_seq(seq);
    }

    /// Returns the facts about the table; the profile is in [`tree_table`](OpenTable::tree_table).
    #[inline]
    pub fn facts(&self) -> &TableFacts {
        match self {
            OpenTable::Sorted(table) => table.facts(),
            OpenTable::Append(table) => table.facts(),
        }
    }

    /// Returns the memory of fences, filter and profile.
    pub fn memory(&self) -> TableMemory {
        match self {
            OpenTable::Sorted(table) => table.memory(),
            OpenTable::Append(table) => table.memory(),
        }
    }

    /// Returns the metadata of the table for trees.
    #[inline]
    pub fn tree_table(&self) -> &Arc<lsmith_tree::Table> {
        match self {
            OpenTable::Sorted(table) => table.tree_table(),
            OpenTable::Append(table) => table.tree_table(),
        }
    }

    /// Loads the memory that [`excludes`](OpenTable::excludes) reads first for this `key_hash`.
    #[inline]
    pub fn touch(&self, hash: u64) -> u64 {
        match self {
            OpenTable::Sorted(table) => table.touch(hash),
            OpenTable::Append(table) => table.touch(hash),
        }
    }

    /// Finds the newest version of `key` that is not newer than `snapshot`, tombstones included.
    /// `hash` must be the `key_hash` of `key`. Returns the entry and its block.
    ///
    /// # Errors
    ///
    /// Fails with `Corruption` if a block is damaged, and with `Io`.
    pub fn find(
        &self,
        key: &[u8],
        hash: u64,
        snapshot: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Option<(Block, Slot)>> {
        if self.excludes(hash, reads) { Ok(None) } else { self.search(key, snapshot, reads) }
    }

    /// Returns true if the filter knows that the table has no key with this `key_hash`, or no key
    /// that begins with the prefix of this `prefix_hash`. The prefix must have as many bytes as the
    /// filter [holds](TableFacts::prefix_bytes), more than 0.
    #[inline(always)]
    pub fn excludes(&self, hash: u64, reads: &mut ReadCount) -> bool {
        match self {
            OpenTable::Sorted(table) => table.excludes(hash, reads),
            OpenTable::Append(table) => table.excludes(hash, reads),
        }
    }

    /// Looks in the table for `key`, once the filter does not [exclude](OpenTable::excludes) it. A
    /// reader of many tables makes both steps of [`find`](OpenTable::find) itself: in most of them
    /// it makes only the first.
    ///
    /// # Errors
    ///
    /// As [`find`](OpenTable::find).
    #[inline(always)]
    pub fn search(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Option<(Block, Slot)>> {
        match self {
            OpenTable::Sorted(table) => table.search(key, snapshot, reads),
            OpenTable::Append(table) => table.search(key, snapshot, reads),
        }
    }

    /// Returns a cursor over the entries. `fill` says whether it reads blocks through the cache.
    #[inline]
    pub fn cursor(&self, fill: CacheFill) -> OpenCursor {
        match self {
            OpenTable::Sorted(table) => OpenCursor::Sorted(table.cursor(fill)),
            OpenTable::Append(table) => OpenCursor::Append(Box::new(table.cursor(fill))),
        }
    }

    /// Reads what leads to entries within `ranges` from the file, and checks it.
    ///
    /// # Errors
    ///
    /// Fails with the first damage found, with path and offset, or with `Io`.
    pub fn verify(&self, ranges: &[KeyRange]) -> Result<()> {
        match self {
            OpenTable::Sorted(table) => table.verify(ranges),
            OpenTable::Append(table) => table.verify(ranges),
        }
    }

    /// Returns the file ranges that no read within `ranges` needs, ascending. For an append table,
    /// whose other roots may need them, there are none.
    pub fn dead_places(&self, ranges: &[KeyRange]) -> Vec<Range<u64>> {
        match self {
            OpenTable::Sorted(table) => table.dead_places(ranges),
            OpenTable::Append(_) => Vec::new(),
        }
    }

    /// Returns the root if the table is an append table.
    #[inline]
    pub fn as_append(&self) -> Option<&Arc<AppendTable>> {
        match self {
            OpenTable::Sorted(_) => None,
            OpenTable::Append(table) => Some(table),
        }
    }

    /// Returns the table if it is a sorted one.
    #[inline]
    pub fn as_sorted(&self) -> Option<&Arc<Table>> {
        match self {
            OpenTable::Sorted(table) => Some(table),
            OpenTable::Append(_) => None,
        }
    }
}

/// A cursor over a table of a run. A run of sorted tables only is walked by [`TableCursor`],
/// because asking at every step which kind of table it is costs a tenth of the step.
pub trait RunCursor: Cursor + Send + Sized {
    /// Returns a cursor over `table`. `fill` says whether it reads blocks through the cache.
    ///
    /// # Panics
    ///
    /// May panic if the table is of a kind that the cursor cannot walk.
    fn over(table: &OpenTable, fill: CacheFill) -> Self;

    /// Makes the cursor add its reads to `tally` when it is dropped.
    fn count_in(&mut self, tally: &Arc<ReadTally>);

    /// Limits the cursor to `range`. Callers must ask only for keys within it from now on. The
    /// cursor is on no entry after this.
    fn keep_within(&mut self, range: KeyRange);
}

impl RunCursor for TableCursor {
    #[inline]
    fn over(table: &OpenTable, fill: CacheFill) -> TableCursor {
        table.as_sorted().expect("the run has sorted tables only").cursor(fill)
    }

    #[inline]
    fn count_in(&mut self, tally: &Arc<ReadTally>) {
        TableCursor::count_in(self, tally);
    }

    #[inline]
    fn keep_within(&mut self, range: KeyRange) {
        TableCursor::keep_within(self, range);
    }
}

impl RunCursor for OpenCursor {
    fn over(table: &OpenTable, fill: CacheFill) -> OpenCursor {
        table.cursor(fill)
    }

    fn count_in(&mut self, tally: &Arc<ReadTally>) {
        OpenCursor::count_in(self, tally);
    }

    fn keep_within(&mut self, range: KeyRange) {
        OpenCursor::keep_within(self, range);
    }
}

/// A cursor over an [`OpenTable`].
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "cursors over sorted tables must be direct")]
pub enum OpenCursor {
    /// Over a sorted table.
    Sorted(TableCursor),
    /// Over a root of an append table.
    Append(Box<AppendCursor>),
}

/// Calls a method of either cursor.
macro_rules! each {
    ($cursor:expr, $name:ident => $call:expr) => {
        match $cursor {
            OpenCursor::Sorted($name) => $call,
            OpenCursor::Append($name) => $call,
        }
    };
}

impl OpenCursor {
    /// Makes the cursor add its reads to `tally` when it is dropped.
    #[inline]
    pub fn count_in(&mut self, tally: &Arc<ReadTally>) {
        each!(self, cursor => cursor.count_in(tally));
    }

    /// Limits the cursor to `range`. Callers must ask only for keys within it from now on. The
    /// cursor is on no entry after this.
    #[inline]
    pub fn keep_within(&mut self, range: KeyRange) {
        each!(self, cursor => cursor.keep_within(range));
    }
}

impl Cursor for OpenCursor {
    #[inline]
    fn seek_first(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_first())
    }

    #[inline]
    fn seek_last(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_last())
    }

    #[inline]
    fn approach(&mut self, key: &[u8]) -> bool {
        each!(self, cursor => cursor.approach(key))
    }

    #[inline]
    fn approach_before(&mut self, key: &[u8]) -> bool {
        each!(self, cursor => cursor.approach_before(key))
    }

    #[inline]
    fn touch(&self) -> u64 {
        each!(self, cursor => cursor.touch())
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        each!(self, cursor => cursor.seek(key))
    }

    #[inline]
    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        each!(self, cursor => cursor.seek_before(key))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        each!(self, cursor => cursor.next())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        each!(self, cursor => cursor.prev())
    }

    #[inline]
    fn entry(&self) -> Option<EntryRef<'_>> {
        each!(self, cursor => cursor.entry())
    }

    #[inline]
    fn value(&self) -> Bytes {
        each!(self, cursor => cursor.value())
    }
}
