//! A tree with everything open that is needed to read it.

use super::{MemoryRun, Moment, OpenRun, OpenSlice, Ticket};
use bytes::Bytes;
use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::Result;
use lsmith_storage::format::{Block, Slot, key_hash};
use lsmith_storage::memtable::{Memtable, MemtableCursor};
use lsmith_storage::read::{ConcatCursor, MergingCursor, Parts};
use lsmith_storage::table::{CacheFill, ReadCount, ReadTally, Table, TableCursor};
use lsmith_tree::{KeyRange, RunId, SeqNo, Tree};
use std::hint::black_box;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Tables whose filters are loaded side by side: they lie in main memory as a rule.
const TABLES_ASKED: usize = 8;

impl OpenRun {
    /// The parts of the run within `range`.
    pub(crate) fn parts(self: &Arc<Self>, range: &KeyRange, fill: CacheFill) -> RunParts {
        let parts = self.overlap(range);
        RunParts { run: Arc::clone(self), parts, range: range.clone(), fill, tally: None }
    }
}

/// Slices of a run with their tables, to be walked one after the other.
pub(crate) struct RunParts {
    run: Arc<OpenRun>,
    parts: Range<usize>,
    /// What is wanted of them.
    range: KeyRange,
    fill: CacheFill,
    tally: Option<Arc<ReadTally>>,
}

impl RunParts {
    /// A cursor over all parts.
    pub(crate) fn cursor(self) -> Box<dyn Cursor> {
        Box::new(ConcatCursor::new(self))
    }

    /// Whether the part at `index` is the first or the last, which what is wanted may cut.
    fn is_outer(&self, index: usize) -> bool {
        index == 0 || index + 1 == self.parts.len()
    }

    /// What is read is added to `tally`.
    pub(crate) fn tallied(mut self, tally: &Arc<ReadTally>) -> RunParts {
        self.tally = Some(Arc::clone(tally));
        self
    }

    fn part(&self, index: usize) -> &OpenSlice {
        self.run.part(self.parts.start + index)
    }
}

impl Parts for RunParts {
    type Cursor = TableCursor;

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

    fn open(&self, index: usize) -> Result<TableCursor> {
        let cursor = self.part(index).table().table().cursor(self.fill);
        Ok(self.tally.iter().fold(cursor, TableCursor::tallied))
    }

    fn enter(&self, index: usize, cursor: &mut TableCursor) {
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

/// What a reader needs, as of one moment. Newest first.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) active: Arc<Memtable>,
    pub(crate) memory: Vec<Arc<MemoryRun>>,
    pub(crate) runs: Vec<Arc<OpenRun>>,
    pub(crate) tree: Tree,
    /// The last to go: until then nothing that the runs show is given back.
    pub(crate) ticket: Option<Ticket>,
}

impl Drop for Version {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let (memory, runs) = (std::mem::take(&mut self.memory), std::mem::take(&mut self.runs));
        let tree = std::mem::take(&mut self.tree);
        // In the order in which they go.
        ticket.leftovers().leave((Arc::clone(&self.active), memory, runs, tree, ticket));
    }
}

/// One of the places where a reader finds entries. All calls end here, so they are told apart
/// by a comparison, not by a call through a table of functions.
pub(crate) enum Source {
    /// The memtable that is being written.
    Active(MemtableCursor),
    /// A run in memory.
    Memory(Box<dyn Cursor>),
    /// A run on storage.
    Run(ConcatCursor<RunParts>),
}

/// Calls `$call` on whatever cursor `$source` is.
macro_rules! on_cursor {
    ($source:expr, $cursor:ident => $call:expr) => {
        match $source {
            Source::Active($cursor) => $call,
            Source::Memory($cursor) => $call,
            Source::Run($cursor) => $call,
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

    fn approach(&mut self, key: &[u8]) {
        on_cursor!(self, cursor => cursor.approach(key));
    }

    fn approach_before(&mut self, key: &[u8]) {
        on_cursor!(self, cursor => cursor.approach_before(key));
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

    fn value(&self) -> Bytes {
        on_cursor!(self, cursor => cursor.value())
    }
}

/// A value, where it was found.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    /// In a memtable: another handle of it, or a copy if it is short, because writers go on there.
    InMemory(Bytes),
    /// In a block of a table, which stays as it is as long as the version lives.
    InBlock {
        /// The block.
        block: Block,
        /// Its place there.
        slot: Slot,
        /// What keeps it.
        version: PhantomData<&'a Version>,
    },
}

impl Value<'_> {
    /// The bytes, without a copy.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Value::InMemory(value) => value,
            Value::InBlock { block, slot, .. } => block.value(slot),
        }
    }

    /// A handle that outlives the version.
    #[inline]
    pub(crate) fn into_shared(self) -> Bytes {
        match self {
            Value::InMemory(value) => value,
            Value::InBlock { block, slot, .. } => block.shared_value(&slot),
        }
    }
}

impl Version {
    /// The value of `key` at `moment`; `None` where it is absent.
    #[inline]
    pub(crate) fn get(
        &self,
        key: &[u8],
        moment: Moment<'_>,
        reads: &mut ReadCount,
    ) -> Result<Option<Value<'_>>> {
        let found = match moment {
            Moment::Latest(visible) => self.active.get_latest(key, visible),
            Moment::Snapshot(seq) => self.active.get(key, seq),
        };
        let in_memory = || self.memory.iter().find_map(|memory| memory.get(key, moment));
        if let Some(version) = found.or_else(in_memory) {
            let lsmith_storage::memtable::FoundVersion { kind, value, .. } = version;
            return Ok((!kind.is_tombstone()).then_some(Value::InMemory(value)));
        }
        // What is in a table was visible when its memtable was sealed.
        let seq = match moment {
            Moment::Latest(_) => SeqNo::MAX,
            Moment::Snapshot(seq) => seq,
        };
        let hash = key_hash(key);
        let mut asked = self.runs.iter().filter_map(|run| run.table_of(key));
        loop {
            let mut tables: [Option<&Table>; TABLES_ASKED] = [None; TABLES_ASKED];
            for (table, handle) in tables.iter_mut().zip(&mut asked) {
                *table = Some(&**handle.table());
            }
            let were_all = tables[TABLES_ASKED - 1].is_none();
            let tables = tables.iter().flatten();
            black_box(tables.clone().fold(0, |all, table| all ^ table.touch(hash)));
            for table in tables {
                if let Some((block, slot)) = table.find(key, hash, seq, reads)? {
                    let value = Value::InBlock { block, slot, version: PhantomData };
                    return Ok((!slot.kind.is_tombstone()).then_some(value));
                }
            }
            if were_all {
                return Ok(None);
            }
        }
    }

    /// A cursor over all entries, newest source first.
    pub(crate) fn cursor(&self) -> MergingCursor<Source> {
        let active = (!self.active.is_empty()).then(|| Source::Active(self.active.cursor()));
        let memory = self.memory.iter();
        let memory = memory.map(|memory| Source::Memory(memory.cursor(&KeyRange::ALL)));
        let parts = self.runs.iter().map(|run| run.parts(&KeyRange::ALL, CacheFill::Yes));
        let runs = parts.map(|parts| Source::Run(ConcatCursor::new(parts)));
        MergingCursor::new(active.into_iter().chain(memory).chain(runs).collect())
    }

    /// The run in memory called `run`.
    pub(crate) fn memory_run(&self, run: RunId) -> Option<&Arc<MemoryRun>> {
        self.memory.iter().find(|memory| memory.run().id() == run)
    }

    /// The run on storage called `run`.
    pub(crate) fn disk_run(&self, run: RunId) -> Option<&Arc<OpenRun>> {
        self.runs.iter().find(|open| open.run().id() == run)
    }
}
