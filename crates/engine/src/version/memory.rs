//! A run in memory, with the memtable or the folded run that holds its entries.

use crate::version::Moment;
use lsmith_storage::combine::Stack;
use lsmith_storage::cursor::Cursor;
use lsmith_storage::error::Result;
use lsmith_storage::memtable::{Folded, FoldedRest, FoundVersion, Sealed};
use lsmith_storage::read::{ConcatCursor, Parts};
use lsmith_tree::{KeyRange, Run, SeqNo};
use std::sync::Arc;

/// A run in memory. Parts that plans have taken are not visible through it.
#[derive(Debug)]
pub(crate) struct MemoryRun {
    run: Arc<Run>,
    sealed: Sealed,
    /// True if all entries are visible.
    whole: bool,
}

impl MemoryRun {
    /// Returns `run` with its entries, which `sealed` holds.
    pub(crate) fn new(run: &Arc<Run>, sealed: Sealed) -> MemoryRun {
        let whole = run.slices().len() == 1 && run.slices()[0].is_whole();
        MemoryRun { run: Arc::clone(run), sealed, whole }
    }

    /// Returns the run.
    pub(crate) fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// Returns the folded run and the visible rest of it, or `None` if the memtable is as written.
    pub(crate) fn folded(&self) -> Option<(&Arc<Folded>, FoldedRest)> {
        let Sealed::Folded(folded) = &self.sealed else { return None };
        let slices = self.run.slices().iter();
        Some((folded, folded.entries_within(slices.map(|slice| slice.range().clone()))))
    }

    /// Returns the version of `key` that a read at `moment` sees, which may be a tombstone.
    pub(crate) fn get(&self, key: &[u8], moment: Moment<'_>) -> Option<FoundVersion> {
        if !self.whole && !is_visible(&self.run, key) {
            return None;
        }
        match moment {
            Moment::Latest(visible) => self.sealed.get_latest(key, visible),
            Moment::Snapshot(seq) => self.sealed.get(key, seq),
        }
    }

    /// Adds the versions of `key` that a read at `moment` sees to `stack`, newest first, down to
    /// one that makes it whole.
    pub(crate) fn push_on(&self, stack: &mut Stack, key: &[u8], moment: Moment<'_>) {
        if self.whole || is_visible(&self.run, key) {
            self.sealed.push_on(stack, key, || moment.in_memory());
        }
    }

    /// Returns a sequence number that no entry exceeds.
    pub(crate) fn newest(&self) -> SeqNo {
        let tables = self.run.slices().iter().map(|slice| slice.table().seq_max);
        tables.max().unwrap_or(SeqNo::MAX)
    }

    /// Returns a cursor over the visible entries in `range`.
    pub(crate) fn cursor(&self, range: &KeyRange) -> Box<dyn Cursor> {
        if self.whole && self.run.lies_within(range) {
            return self.sealed.cursor();
        }
        let ranges = self.run.clip(range).map(|slice| slice.range().clone()).collect();
        Box::new(ConcatCursor::new(MemoryParts { ranges, sealed: self.sealed.clone() }))
    }
}

/// Returns true if a slice of `run` covers `key`.
fn is_visible(run: &Run, key: &[u8]) -> bool {
    let slices = run.slices();
    let after = slices.partition_point(|slice| *slice.range().start <= *key);
    after.checked_sub(1).is_some_and(|index| slices[index].range().contains(key))
}

/// The visible parts of a memory run, in key order.
struct MemoryParts {
    ranges: Vec<KeyRange>,
    sealed: Sealed,
}

impl Parts for MemoryParts {
    type Cursor = Box<dyn Cursor>;

    fn count(&self) -> usize {
        self.ranges.len()
    }

    fn start(&self, index: usize) -> &[u8] {
        &self.ranges[index].start
    }

    fn end(&self, index: usize) -> Option<&[u8]> {
        self.ranges[index].end.as_deref()
    }

    fn source(&self, _: usize) -> usize {
        0
    }

    fn open(&self, _: usize) -> Result<Box<dyn Cursor>> {
        Ok(self.sealed.cursor())
    }

    fn enter(&self, _: usize, _: &mut Box<dyn Cursor>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_storage::cursor::EntryRef;
    use lsmith_storage::memtable::{FoldedBuilder, KeepFrom, Memtable};
    use lsmith_tree::{EntryKind, RunId, Slice, TableId};

    fn keys(memory: &MemoryRun, range: &str) -> Vec<String> {
        let mut cursor = memory.cursor(&range.parse().unwrap());
        cursor.seek_first().unwrap();
        let mut keys = Vec::new();
        while let Some(entry) = cursor.entry() {
            keys.push(String::from_utf8(entry.key.to_vec()).unwrap());
            cursor.next().unwrap();
        }
        keys
    }

    #[test]
    fn parts_that_plans_have_taken_are_invisible() {
        let memtable = Arc::new(Memtable::new());
        let mut builder = FoldedBuilder::new(1, 4096);
        for (index, key) in ["a", "c", "e", "g", "i"].iter().enumerate() {
            let seq = SeqNo(index as u64 + 1);
            let kind = EntryKind::Put;
            let value = b"v";
            let entry = EntryRef { key: key.as_bytes(), seq, kind, value };
            memtable.insert(entry, KeepFrom(SeqNo(0)));
            builder.add(entry);
        }
        let (folded, table) = builder.finish(None).unwrap();
        assert_eq!(table.id, TableId(1));
        let whole = Slice::whole(table);
        let part = |range: &str| whole.clip(&range.parse().unwrap()).unwrap();
        let run = Arc::new(Run::new(RunId(1), vec![part("..d"), part("f..g"), part("h..")]));
        for sealed in [Sealed::Written(memtable), Sealed::Folded(Arc::new(folded))] {
            let memory = MemoryRun::new(&run, sealed);
            let seen = |key: &str| memory.get(key.as_bytes(), Moment::Snapshot(SeqNo(9))).is_some();
            assert_eq!(["a", "c", "e", "g", "i"].map(seen), [true, true, false, false, true]);
            assert_eq!(keys(&memory, ".."), ["a", "c", "i"]);
            assert_eq!(keys(&memory, "b..h"), ["c"]);
            assert_eq!(keys(&memory, "d..h"), [""; 0]);
        }
    }
}
