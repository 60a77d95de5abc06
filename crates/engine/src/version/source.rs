//! Cursors over the places that hold entries: memtables, and runs in memory and on storage.

use super::{MemoryRun, OpenRun, OpenSlice};
use bytes::Bytes;
use lsmith_storage::cursor::{Cursor, DISORDER, EntryRef};
use lsmith_storage::error::{Error, Result};
use lsmith_storage::memtable::MemtableCursor;
use lsmith_storage::read::{ConcatCursor, Parts};
use lsmith_storage::table::{CacheFill, OpenCursor, ReadTally, RunCursor, TableCursor};
use lsmith_tree::{KeyRange, SeqNo};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

impl OpenRun {
    /// Returns a cursor over the entries of the run in `range`. Blocks read go into the cache as
    /// `fill` says. Adds all reads to `tally`, if there is one.
    pub(crate) fn source(
        self: &Arc<Self>,
        range: &KeyRange,
        fill: CacheFill,
        tally: Option<&Arc<ReadTally>>,
    ) -> Source {
        if self.has_append() {
            let parts: RunParts<OpenCursor> = self.parts(range, fill, tally);
            let cursor = Box::new(ConcatCursor::new(parts));
            let newest = self.slices().map(|part| part.table().newest()).max().unwrap_or_default();
            return Source::Other { cursor, is_on_storage: true, newest };
        }
        Source::Run(ConcatCursor::new(self.parts(range, fill, tally)))
    }

    fn parts<C>(
        self: &Arc<Self>,
        range: &KeyRange,
        fill: CacheFill,
        tally: Option<&Arc<ReadTally>>,
    ) -> RunParts<C> {
        RunParts {
            run: Arc::clone(self),
            parts: self.overlap(range),
            range: range.clone(),
            fill,
            tally: tally.cloned(),
            cursor: PhantomData,
        }
    }
}

/// The slices of a run that overlap a range, with their tables, in key order. `C` walks the tables.
pub(crate) struct RunParts<C> {
    run: Arc<OpenRun>,
    parts: Range<usize>,
    /// Entries outside of this range are left out.
    range: KeyRange,
    fill: CacheFill,
    tally: Option<Arc<ReadTally>>,
    cursor: PhantomData<fn() -> C>,
}

impl<C> RunParts<C> {
    /// Returns true if the part at `index` is the first or the last, which the range may cut.
    fn is_outer(&self, index: usize) -> bool {
        index == 0 || index + 1 == self.parts.len()
    }

    fn part(&self, index: usize) -> &OpenSlice {
        self.run.part(self.parts.start + index)
    }
}

impl<C: RunCursor> Parts for RunParts<C> {
    type Cursor = C;

    fn count(&self) -> usize {
        self.parts.len()
    }

    fn start(&self, index: usize) -> &[u8] {
        let start = &self.part(index).range().start;
        if index == 0 && !self.range.start.is_empty() {
            start.max(&self.range.start)
        } else {
            start
        }
    }

    fn end(&self, index: usize) -> Option<&[u8]> {
        let end = self.part(index).range().end.as_deref();
        match self.range.end.as_deref().filter(|_| index + 1 == self.parts.len()) {
            Some(limit) => Some(end.map_or(limit, |end| end.min(limit))),
            None => end,
        }
    }

    fn part_for(&self, key: &[u8]) -> usize {
        let below = self.run.parts_below(key).saturating_sub(self.parts.start);
        match self.range.end.as_ref() {
            Some(end) if **end <= *key => self.parts.len(),
            _ => below.min(self.parts.len()),
        }
    }

    fn is_cut(&self, index: usize) -> bool {
        self.part(index).is_cut() || (self.is_outer(index) && !self.range.is_all())
    }

    fn source(&self, index: usize) -> usize {
        Arc::as_ptr(self.part(index).table()) as usize
    }

    fn newest(&self, index: usize) -> SeqNo {
        self.part(index).table().newest()
    }

    fn disorder(&self, index: usize) -> Error {
        Error::corruption(self.part(index).table().path(), 0, DISORDER)
    }

    fn open(&self, index: usize) -> Result<C> {
        let mut cursor = C::over(self.part(index).table().table(), self.fill);
        if let Some(tally) = &self.tally {
            cursor.count_in(tally);
        }
        Ok(cursor)
    }

    fn enter(&self, index: usize, cursor: &mut C) {
        if !self.part(index).is_cut() && self.range.is_all() {
            return cursor.keep_within(KeyRange::ALL);
        }
        let range = self.part(index).range();
        cursor.keep_within(if self.is_outer(index) {
            range.intersection(&self.range)
        } else {
            range.clone()
        });
    }
}

/// A cursor over one place that holds entries. Every step of an iterator goes through it, so it is
/// an enum: a comparison costs less than a virtual call.
pub(crate) enum Source {
    /// The active memtable.
    Active(MemtableCursor),
    /// A run in memory, or a run on storage that has append tables.
    Other {
        cursor: Box<dyn Cursor>,
        is_on_storage: bool,
        /// A sequence number that no entry exceeds.
        newest: SeqNo,
    },
    /// A run of sorted tables.
    Run(ConcatCursor<RunParts<TableCursor>>),
}

impl Source {
    /// Returns a cursor over the entries of `run`, a run in memory, in `range`.
    pub(crate) fn of_memory(run: &MemoryRun, range: &KeyRange) -> Source {
        let (cursor, newest) = (run.cursor(range), run.newest());
        Source::Other { cursor, is_on_storage: false, newest }
    }

    /// Returns true if this is a run on storage that was looked at.
    pub(crate) fn is_run_opened(&self) -> bool {
        match self {
            Source::Run(cursor) => cursor.has_opened(),
            Source::Other { cursor, is_on_storage, .. } => *is_on_storage && cursor.has_opened(),
            Source::Active(_) => false,
        }
    }
}

/// Evaluates `$call` with `$cursor` bound to the cursor in `$source`. Asks first whether it is the
/// most frequent one: one comparison, where a `match` of all takes four more instructions.
macro_rules! on_cursor {
    ($source:expr, $cursor:ident => $call:expr) => {
        if let Source::Run($cursor) = $source {
            $call
        } else {
            match $source {
                Source::Active($cursor) => $call,
                Source::Other { cursor: $cursor, .. } => $call,
                Source::Run($cursor) => $call,
            }
        }
    };
}

impl Cursor for Source {
    fn seek_first(&mut self) -> Result<()> {
        on_cursor!(self, cursor => cursor.seek_first())
    }

    fn seek_last(&mut self) -> Result<()> {
        on_cursor!(self, cursor => cursor.seek_last())
    }

    fn approach(&mut self, key: &[u8]) -> bool {
        on_cursor!(self, cursor => cursor.approach(key))
    }

    fn approach_before(&mut self, key: &[u8]) -> bool {
        on_cursor!(self, cursor => cursor.approach_before(key))
    }

    #[inline]
    fn touch(&self) -> u64 {
        on_cursor!(self, cursor => cursor.touch())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        on_cursor!(self, cursor => cursor.seek(key))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        on_cursor!(self, cursor => cursor.seek_before(key))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        on_cursor!(self, cursor => cursor.next())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        on_cursor!(self, cursor => cursor.prev())
    }

    #[inline]
    fn entry(&self) -> Option<EntryRef<'_>> {
        on_cursor!(self, cursor => cursor.entry())
    }

    fn leap(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        match self {
            // The cursor of a run in memory does not know what is newest in it. In memory only the
            // tombstone that stands for a range delete has the sequence number of that range
            // delete.
            Source::Other { cursor, newest, is_on_storage: false } if *newest <= below => {
                match &range.end {
                    Some(end) => cursor.seek(end),
                    None => {
                        cursor.seek_last()?;
                        cursor.next()
                    }
                }
            }
            source => on_cursor!(source, cursor => cursor.leap(range, below)),
        }
    }

    fn leap_back(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        match self {
            Source::Other { cursor, newest, is_on_storage: false } if *newest <= below => {
                cursor.seek_before(&range.start)
            }
            source => on_cursor!(source, cursor => cursor.leap_back(range, below)),
        }
    }

    fn disorder(&self) -> Error {
        on_cursor!(self, cursor => cursor.disorder())
    }

    fn newest(&self) -> SeqNo {
        match self {
            Source::Other { newest, .. } => *newest,
            source => on_cursor!(source, cursor => cursor.newest()),
        }
    }

    fn value(&self) -> Bytes {
        on_cursor!(self, cursor => cursor.value())
    }
}
