//! Versions, and reads in them.

use super::{MemoryRun, Moment, OpenRun, OpenSlice, Ticket};
use crate::rules::Rules;
use bytes::Bytes;
use lsmith_storage::combine::{Combiner, Stack};
use lsmith_storage::cursor::{Cursor, DISORDER, EntryRef};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::expiry::{EXPIRY_BYTES, has_expired};
use lsmith_storage::format::{Block, Slot, key_hash};
use lsmith_storage::memtable::{Memtable, MemtableCursor};
use lsmith_storage::read::{ConcatCursor, Hidden, MergingCursor, Parts};
use lsmith_storage::sync::atomic::Ordering;
use lsmith_storage::table::{
    CacheFill, OpenCursor, OpenTable, ReadCount, ReadTable, ReadTally, RunCursor, TableCursor,
};
use lsmith_tree::{EntryKind, Erased, Key, KeyRange, MergePlan, RunId, SeqNo, Tree};
use std::hint::black_box;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// The number of tables whose filters are loaded from main memory at the same time.
const TABLES_ASKED: usize = 8;

impl OpenRun {
    /// Returns a cursor over the entries of the run in `range`. Blocks read go into the cache as
    /// `fill` says. Adds all reads to `tally`, if there is one.
    pub(crate) fn source(
        self: &Arc<Self>,
        range: &KeyRange,
        fill: CacheFill,
        tally: Option<&Arc<ReadTally>>,
    ) -> Source {
        if self.has_trees() {
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

/// Everything that a reader needs, as of one moment: memtables and runs, newest first.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) active: Arc<Memtable>,
    /// The range deletes of the tree and of sealed memtables. `None` if there are none. The active
    /// memtable has its own.
    pub(crate) erased: Option<Box<Erased>>,
    pub(crate) memory: Vec<Arc<MemoryRun>>,
    pub(crate) runs: Vec<Arc<OpenRun>>,
    pub(crate) tree: Tree,
    pub(crate) rules: Arc<Rules>,
    /// Dropped last. Until then nothing that the runs show is freed.
    pub(crate) ticket: Option<Ticket>,
    /// True if the keyspace was dropped. The version is then empty, and reads fail.
    pub(crate) is_dropped: bool,
}

impl Drop for Version {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let memory = std::mem::take(&mut self.memory);
        let runs = std::mem::take(&mut self.runs);
        let tree = std::mem::take(&mut self.tree);
        let leftovers = ticket.leftovers();
        // The fields of a tuple are dropped in order, the ticket last.
        let version = (Arc::clone(&self.active), memory, runs, tree, ticket);
        if leftovers.is_here() {
            leftovers.leave(version);
        } else {
            // What would be freed is the parent's.
            std::mem::forget((version, leftovers));
        }
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
        /// A number that no entry exceeds.
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
            // tombstone that stands for a range delete has the number of that range delete.
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

/// A value that a lookup found.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    /// A value in memory: a shared handle, or a copy if it is short, because writers go on there.
    InMemory(Bytes),
    /// A value in a block of a table, which does not change as long as the version lives.
    InBlock {
        /// The block.
        block: Block,
        /// The place of the entry in the block.
        slot: Slot,
        /// Borrows the version, which keeps the block alive.
        version: PhantomData<&'a Version>,
    },
}

impl Value<'_> {
    /// Returns the bytes without a copy.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Value::InMemory(value) => value,
            Value::InBlock { block, slot, .. } => block.value(slot),
        }
    }

    /// Returns the value without its first `bytes`.
    fn without_first(self, bytes: usize) -> Self {
        match self {
            Value::InMemory(value) => Value::InMemory(value.slice(bytes.min(value.len())..)),
            Value::InBlock { block, slot, version } => {
                Value::InBlock { block, slot: slot.with_value_from(bytes), version }
            }
        }
    }

    /// Returns a handle of the bytes that outlives the version.
    #[inline]
    pub(crate) fn into_shared(self) -> Bytes {
        match self {
            Value::InMemory(value) => value,
            Value::InBlock { block, slot, .. } => block.shared_value(&slot),
        }
    }
}

/// Returns the error of a read in a keyspace that was dropped.
#[cold]
pub(crate) fn dropped() -> Error {
    Error::new(ErrorKind::NotFound, "the keyspace was dropped: its handles are of no use any more")
}

impl Version {
    /// Returns the version of a keyspace without entries.
    pub(crate) fn empty() -> Version {
        Version {
            active: Arc::default(),
            erased: None,
            memory: Vec::new(),
            runs: Vec::new(),
            tree: Tree::new(),
            rules: Arc::default(),
            ticket: None,
            is_dropped: false,
        }
    }

    /// Returns the value of `key` at `moment`, or `None` if the key is absent. Counts reads of
    /// tables in `reads`.
    #[inline]
    pub(crate) fn get(
        &self,
        key: &[u8],
        moment: Moment<'_>,
        reads: &mut ReadCount,
    ) -> Result<Option<Value<'_>>> {
        // Before the entry: see there.
        let newest_erased = self.newest_erased(key, moment);
        let found = match moment {
            Moment::Latest(visible) => self.active.get_latest(key, visible),
            Moment::Snapshot(seq) => self.active.get(key, seq),
        };
        let in_memory = || self.memory.iter().find_map(|memory| memory.get(key, moment));
        if let Some(version) = found.or_else(in_memory) {
            let lsmith_storage::memtable::FoundVersion { kind, value, seq } = version;
            if seq < newest_erased {
                return Ok(None);
            }
            if kind.is_value() {
                return Ok(Some(Value::InMemory(value)));
            }
            return self.compute(Value::InMemory(value), kind, key, moment, reads);
        }
        let seq = moment.in_tables();
        let hash = key_hash(key);
        let mut runs = self.runs.iter();
        loop {
            let mut slots: [Option<&OpenTable>; TABLES_ASKED] = [None; TABLES_ASKED];
            let mut asked = 0;
            while asked < TABLES_ASKED
                && let Some(run) = runs.next()
            {
                if let Some(handle) = run.table_of(key)
                    && (newest_erased == SeqNo(0) || handle.newest() >= newest_erased)
                {
                    slots[asked] = Some(handle.table());
                    asked += 1;
                }
            }
            let were_all = asked < TABLES_ASKED;
            let tables = slots[..asked].iter().flatten();
            black_box(tables.clone().fold(0, |all, table| all ^ table.touch(hash)));
            for table in tables {
                if table.excludes(hash, reads) {
                    continue;
                }
                if let Some((block, slot)) = table.search(key, seq, reads)? {
                    let value = Value::InBlock { block, slot, version: PhantomData };
                    if slot.seq < newest_erased {
                        return Ok(None);
                    }
                    if slot.kind.is_value() {
                        return Ok(Some(value));
                    }
                    return self.compute(value, slot.kind, key, moment, reads);
                }
            }
            if were_all {
                // Of a dropped keyspace nothing is found, so other reads need not look.
                return if self.is_dropped { Err(dropped()) } else { Ok(None) };
            }
        }
    }

    /// Returns the value of `key`, whose newest entry at `moment`, with value `stored`, does not
    /// say it by itself: it is a combine, a tombstone, or expires.
    #[cold]
    #[inline(never)]
    fn compute<'a>(
        &'a self,
        stored: Value<'a>,
        kind: EntryKind,
        key: &[u8],
        moment: Moment<'_>,
        reads: &mut ReadCount,
    ) -> Result<Option<Value<'a>>> {
        if kind.is_tombstone() {
            return Ok(None);
        }
        if kind == EntryKind::Expiring {
            let has_expired = has_expired(kind, stored.bytes(), self.rules.now()?);
            return Ok((!has_expired).then(|| stored.without_first(EXPIRY_BYTES)));
        }
        let mut erased = self.newest_erased(key, moment);
        // A range delete that became visible meanwhile may lie under entries that were seen.
        let stack = loop {
            let stack = self.stack(key, moment, erased, reads)?;
            let newest = self.newest_erased(key, moment);
            if newest == std::mem::replace(&mut erased, newest) {
                break stack;
            }
        };
        let value = stack.combine(key, Some(&*self.rules))?;
        Ok(value.map(Value::InMemory))
    }

    /// Reads all entries of `key` down to the first that is no combine, or that lies under the
    /// range delete `erased`.
    fn stack(
        &self,
        key: &[u8],
        moment: Moment<'_>,
        erased: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Stack> {
        let mut stack = Stack::at(self.rules.now()?).above(erased);
        self.active.push_on(&mut stack, key, || moment.in_memory());
        for memory in self.memory.iter() {
            if !stack.is_whole() {
                memory.push_on(&mut stack, key, moment);
            }
        }
        let hash = key_hash(key);
        for table in self.runs.iter().filter_map(|run| run.table_of(key)) {
            let mut seq = moment.in_tables();
            while !stack.is_whole()
                && let Some((block, slot)) = table.table().find(key, hash, seq, reads)?
            {
                stack.push(slot.seq, slot.kind, block.shared_value(&slot));
                // A combine always has a number, and older entries of the table smaller ones.
                let Some(older) = slot.seq.0.checked_sub(1) else { break };
                seq = SeqNo(older);
            }
        }
        Ok(stack)
    }

    /// Returns the number of the newest range delete that covers `key` at `moment`; 0 if there is
    /// none. Entries with smaller numbers are hidden.
    ///
    /// A read without a snapshot calls this first, and looks for the entry then. Let `t` be the
    /// moment at which the range deletes were copied. The read then sees either the entry that was
    /// the newest at `t` or at the number found here, or a later one, which was the newest when it
    /// became visible, during the read.
    #[inline]
    fn newest_erased(&self, key: &[u8], moment: Moment<'_>) -> SeqNo {
        let hides = self.active.has_erased() || self.erased.is_some();
        if hides { self.find_erased(key, moment) } else { SeqNo(0) }
    }

    #[cold]
    fn find_erased(&self, key: &[u8], moment: Moment<'_>) -> SeqNo {
        let in_active = self.active.erased();
        let at = match moment {
            Moment::Latest(visible) => SeqNo(visible.load(Ordering::Acquire)),
            Moment::Snapshot(seq) => seq,
        };
        let older = self.erased.as_deref().map(|erased| erased.newest_at(key, at));
        in_active.newest_at(key, at).max(older.unwrap_or_default())
    }

    /// Returns what range deletes hide from readers, whose cost does not depend on their number.
    pub(crate) fn hidden(&self) -> Hidden {
        Hidden::new(self.erased.as_deref().cloned().unwrap_or_default(), self.active.erased())
    }

    /// Returns the number of the newest range delete of `key`, visible or not; 0 if there is none.
    pub(super) fn newest_erased_of(&self, key: &[u8]) -> SeqNo {
        self.newest_erased(key, Moment::Snapshot(SeqNo::MAX))
    }

    /// Returns a key in `range` under a range delete newer than `since`, and the number of that, if
    /// there is one.
    pub(super) fn erased_within(&self, range: &KeyRange, since: SeqNo) -> Option<(Key, SeqNo)> {
        let in_active = self.active.erased();
        let first = |erased: &Erased| {
            let part = erased.overlapping(range).find(|part| part.seqs[0] > since)?;
            Some((part.range.intersection(range).start, part.seqs[0]))
        };
        self.erased.as_deref().and_then(first).or_else(|| first(&in_active))
    }

    /// Returns all range deletes, for a merge: it costs as much as there are. Range deletes of the
    /// active memtable may not be visible yet.
    pub(crate) fn all_erased(&self) -> Erased {
        let in_active = self.active.erased();
        match self.erased.as_deref() {
            None => in_active,
            Some(erased) => Erased::all([erased, &in_active]),
        }
    }

    /// Returns the number up to which the merge of `plan` applies range deletes. They are in the
    /// tree, or leave memory with what the plan takes. A newer range delete may be in no table and
    /// in no synced log. Power loss would take it, and would not bring back what the merge has left
    /// out.
    ///
    /// All range deletes in memory up to the newest one in the tree are in the tree too.
    pub(crate) fn lasting_erased(&self, plan: &MergePlan) -> SeqNo {
        let taken = plan.inputs.iter().filter_map(|input| self.memory_run(input.run));
        let newest_taken = taken.map(|run| run.newest()).max().unwrap_or_default();
        let in_tree = self.tree.erased().parts().filter_map(|part| part.seqs.first().copied());
        newest_taken.max(in_tree.max().unwrap_or_default())
    }

    /// Returns a cursor over all entries, merged from all sources, newest source first. Adds all
    /// reads to `tally`.
    pub(crate) fn cursor(&self, tally: &Arc<ReadTally>) -> MergingCursor<Source> {
        self.cursor_within(None, || KeyRange::ALL, tally)
    }

    /// Returns the same cursor with the entries of `own`, which have no numbers and are newer than
    /// all others of their keys. Callers look only at keys in `range`, so runs that have none there
    /// may be missing. `range` is called at most once, and only if filters hold prefixes.
    pub(crate) fn cursor_within(
        &self,
        own: Option<Box<dyn Cursor>>,
        range: impl FnOnce() -> KeyRange,
        tally: &Arc<ReadTally>,
    ) -> MergingCursor<Source> {
        let own =
            own.map(|cursor| Source::Other { cursor, is_on_storage: false, newest: SeqNo::MAX });
        let active = (!self.active.is_empty()).then(|| Source::Active(self.active.cursor()));
        let in_memory = |run: &Arc<MemoryRun>| Source::of_memory(run, &KeyRange::ALL);
        let memory = self.memory.iter().map(in_memory);
        let source = |run: &Arc<OpenRun>| run.source(&KeyRange::ALL, CacheFill::Yes, Some(tally));
        let range = self.runs.iter().any(|run| run.has_prefixes()).then(range);
        let is_wanted = |run: &&Arc<OpenRun>| {
            range.as_ref().is_none_or(|range| !run.has_prefixes() || !run.is_excluded(range, tally))
        };
        let runs = self.runs.iter().filter(is_wanted).map(source);
        MergingCursor::new(own.into_iter().chain(active).chain(memory).chain(runs).collect())
    }

    /// Returns the run in memory with number `run`, if there is one.
    pub(crate) fn memory_run(&self, run: RunId) -> Option<&Arc<MemoryRun>> {
        self.memory.iter().find(|memory| memory.run().id() == run)
    }

    /// Returns the run on storage with number `run`, if there is one.
    pub(crate) fn disk_run(&self, run: RunId) -> Option<&Arc<OpenRun>> {
        self.runs.iter().find(|open| open.run().id() == run)
    }
}
