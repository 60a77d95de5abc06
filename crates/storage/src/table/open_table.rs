//! Open tables of both kinds behind one interface.
//!
//! Both kinds implement [`ReadTable`]. An [`OpenTable`] is an enum that forwards it, not a trait
//! object, so that reads of sorted tables stay direct calls. The contents of the variants are
//! shared, so a clone is cheap.

use super::append::{AppendCursor, AppendTable};
use super::cache::BlockCache;
use super::counts::{ReadCount, ReadTally, TableMemory};
use super::cursor::{CacheFill, TableCursor};
use super::read_table::{ReadCursor, ReadTable};
use super::reader::Table;
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

/// Evaluates `$call` with `$inner` bound to what is in `$open`, an open table or its cursor. A
/// further kind of table is a variant of both, and an arm here.
macro_rules! on_each {
    ($kinds:ident, $open:expr, $inner:ident => $call:expr) => {
        match $open {
            $kinds::Sorted($inner) => $call,
            $kinds::Append($inner) => $call,
        }
    };
}

impl OpenTable {
    /// Opens table `table` at `path`. `root` is the name of the root of an append table, or
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

    /// Sets the sequence number of all entries of a sorted table, which is 0 in the file, to `seq`.
    ///
    /// # Panics
    ///
    /// Panics if the table is shared, or if it is an append table, whose entries have sequence
    /// numbers.
    pub fn set_seq(&mut self, seq: SeqNo) {
        let OpenTable::Sorted(table) = self else {
            panic!("the entries of an append table have numbers");
        };
        Arc::get_mut(table).expect("no cursor holds the table yet").set_seq(seq);
    }

    /// Returns a cursor over the entries. `fill` says whether it reads blocks through the cache.
    #[inline]
    pub fn cursor(&self, fill: CacheFill) -> OpenCursor {
        match self {
            OpenTable::Sorted(table) => OpenCursor::Sorted(table.cursor(fill)),
            OpenTable::Append(table) => OpenCursor::Append(Box::new(table.cursor(fill))),
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

impl ReadTable for OpenTable {
    #[inline]
    fn facts(&self) -> &TableFacts {
        on_each!(OpenTable, self, table => table.facts())
    }

    fn memory(&self) -> TableMemory {
        on_each!(OpenTable, self, table => table.memory())
    }

    #[inline]
    fn tree_table(&self) -> &Arc<lsmith_tree::Table> {
        on_each!(OpenTable, self, table => table.tree_table())
    }

    #[inline]
    fn touch(&self, hash: u64) -> u64 {
        on_each!(OpenTable, self, table => table.touch(hash))
    }

    #[inline(always)]
    fn excludes(&self, hash: u64, reads: &mut ReadCount) -> bool {
        on_each!(OpenTable, self, table => table.excludes(hash, reads))
    }

    #[inline(always)]
    fn search(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Option<(Block, Slot)>> {
        on_each!(OpenTable, self, table => table.search(key, snapshot, reads))
    }

    fn request(&self, key: &[u8]) {
        on_each!(OpenTable, self, table => table.request(key));
    }

    fn verify(&self, ranges: &[KeyRange]) -> Result<()> {
        on_each!(OpenTable, self, table => table.verify(ranges))
    }

    fn dead_places(&self, ranges: &[KeyRange]) -> Vec<Range<u64>> {
        on_each!(OpenTable, self, table => table.dead_places(ranges))
    }

    fn is_from_outside(&self) -> bool {
        on_each!(OpenTable, self, table => table.is_from_outside())
    }

    fn forget_blocks(&self) {
        on_each!(OpenTable, self, table => table.forget_blocks());
    }
}

/// A cursor over a table of a run. A run of sorted tables only is walked by [`TableCursor`],
/// because asking at every step which kind of table it is costs a tenth of the step.
pub trait RunCursor: ReadCursor + Send + Sized {
    /// Returns a cursor over `table`. `fill` says whether it reads blocks through the cache.
    ///
    /// # Panics
    ///
    /// May panic if the table is of a kind that the cursor cannot walk.
    fn over(table: &OpenTable, fill: CacheFill) -> Self;
}

impl RunCursor for TableCursor {
    #[inline]
    fn over(table: &OpenTable, fill: CacheFill) -> TableCursor {
        table.as_sorted().expect("the run has sorted tables only").cursor(fill)
    }
}

impl RunCursor for OpenCursor {
    #[inline]
    fn over(table: &OpenTable, fill: CacheFill) -> OpenCursor {
        table.cursor(fill)
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

impl ReadCursor for OpenCursor {
    #[inline]
    fn count_in(&mut self, tally: &Arc<ReadTally>) {
        on_each!(OpenCursor, self, cursor => cursor.count_in(tally));
    }

    #[inline]
    fn keep_within(&mut self, range: KeyRange) {
        on_each!(OpenCursor, self, cursor => cursor.keep_within(range));
    }
}

impl Cursor for OpenCursor {
    #[inline]
    fn seek_first(&mut self) -> Result<()> {
        on_each!(OpenCursor, self, cursor => cursor.seek_first())
    }

    #[inline]
    fn seek_last(&mut self) -> Result<()> {
        on_each!(OpenCursor, self, cursor => cursor.seek_last())
    }

    #[inline]
    fn approach(&mut self, key: &[u8]) -> bool {
        on_each!(OpenCursor, self, cursor => cursor.approach(key))
    }

    #[inline]
    fn approach_before(&mut self, key: &[u8]) -> bool {
        on_each!(OpenCursor, self, cursor => cursor.approach_before(key))
    }

    #[inline]
    fn touch(&self) -> u64 {
        on_each!(OpenCursor, self, cursor => cursor.touch())
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        on_each!(OpenCursor, self, cursor => cursor.seek(key))
    }

    #[inline]
    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        on_each!(OpenCursor, self, cursor => cursor.seek_before(key))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        on_each!(OpenCursor, self, cursor => cursor.next())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        on_each!(OpenCursor, self, cursor => cursor.prev())
    }

    #[inline]
    fn entry(&self) -> Option<EntryRef<'_>> {
        on_each!(OpenCursor, self, cursor => cursor.entry())
    }

    #[inline]
    fn value(&self) -> Bytes {
        on_each!(OpenCursor, self, cursor => cursor.value())
    }
}
