//! Iterators over a keyspace.

use crate::db::Store;
use crate::keyspace::KeyspaceShared;
use crate::record::{note, user_key};
use crate::recorder::Picked;
use crate::snapshots::SnapshotGuard;
use crate::stats::Timer;
use crate::version::{CountedReads, OwnWrites, Source, Version};
use bytes::Bytes;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::read::{MergingCursor, VisibleIter};
use lsmith_storage::sync::Process;
use lsmith_storage::table::ReadTally;
use lsmith_tree::{Key, KeyRange, key_after};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// An iterator over the entries of a keyspace within a key range at one moment. It yields ascending
/// keys from the front and descending keys from the back. It ends after an error, except after one
/// of a [single key](crate::Error::key): then it goes on behind the key.
///
/// While it lives, the iterator keeps the files of the tables that it reads, even if they are
/// merged away, and their dead blocks. It also keeps its store open, because the next process to
/// open the store would free that space.
///
/// As an [`Iterator`] it yields handles that may outlive it. Keys are copied. Values are copied
/// too, or, where tables are not mapped into memory, may share their block or up to 64 KiB of
/// neighbouring blocks. [`next_ref`](Iter::next_ref) lends each entry without a copy.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let store = lsmith::Store::builder(dir.path()).open()?;
/// # let fruit = store.keyspace("fruit")?;
/// fruit.put("apple", "red")?;
/// fruit.put("pear", "green")?;
/// let mut entries = fruit.iter();
/// let mut bytes = 0;
/// while let Some(entry) = entries.next_ref() {
///     let (key, value) = entry?;
///     bytes += key.len() + value.len();
/// }
/// assert_eq!(bytes, 17);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "iterator")]
pub struct Iter {
    entries: VisibleIter<MergingCursor<Source>>,
    /// The process that made the first step, which is timed or returns `error`.
    moved_in: Process,
    /// The error that the first step returns in place of entries.
    error: Option<Error>,
    // Dropped after the cursors: the snapshot first, then the tables, then the store.
    snapshot: Arc<SnapshotGuard>,
    _version: Arc<Version>,
    note: ScanNote,
}

/// A range read that is recorded.
pub(super) struct RecordedScan {
    keyspace: Arc<KeyspaceShared>,
    /// The key that it begins at, as the tree has it.
    start: Bytes,
    /// The steps so far: the entries that it has read, and one if it has come to its end.
    steps: u64,
}

impl RecordedScan {
    /// Returns a range read within `bounds` of the tree of `keyspace`, before its first step.
    pub(super) fn new(
        keyspace: &Arc<KeyspaceShared>,
        (lower, _): &(Bound<Bytes>, Bound<Bytes>),
    ) -> RecordedScan {
        let start = match lower {
            Bound::Included(key) | Bound::Excluded(key) => key.clone(),
            Bound::Unbounded => Bytes::new(),
        };
        RecordedScan { keyspace: Arc::clone(keyspace), start, steps: 0 }
    }
}

/// Counts the range read when it is dropped, if it was one, and then lets the store go.
struct ScanNote {
    /// What the cursors have read, once they are dropped.
    tally: Arc<ReadTally>,
    /// The number of runs on storage that a range read looked at, once it is over.
    runs: Option<u64>,
    /// What is recorded of it, if it is. Its steps are then counted.
    recorded: Option<Box<RecordedScan>>,
    /// Where it is counted for the policy, if it is.
    counted: Option<Arc<CountedReads>>,
    store: Store,
}

impl ScanNote {
    /// Starts a timer of the first step. It records nothing of later ones.
    fn timer(&self) -> Timer<'_> {
        let context = self.store.context();
        let is_first = self.recorded.as_ref().is_none_or(|scan| scan.steps == 1);
        let recorders = context.recorders.as_ref().filter(|_| is_first);
        Timer::begin(recorders, &*context.options.env)
    }
}

impl Drop for ScanNote {
    fn drop(&mut self) {
        if let Some(runs) = self.runs {
            self.store.context().counts.note_scan(runs, &self.tally.count());
            if let Some(counted) = &self.counted {
                counted.note_scan();
            }
        }
        if let Some(scan) = self.recorded.take().filter(|_| self.runs.is_some()) {
            let RecordedScan { keyspace, start, steps } = *scan;
            let picked = Picked::Scan(user_key(&keyspace, &start), steps);
            note(self.store.context(), &keyspace, &start, &picked);
        }
    }
}

impl Iter {
    /// Iterates over the keys of `version` within bounds that `snapshot` sees, with the writes of
    /// `own` on top, and takes the first `key_from` bytes from each.
    pub(super) fn new(
        store: Store,
        version: Arc<Version>,
        snapshot: Arc<SnapshotGuard>,
        own: Option<OwnWrites>,
        (lower, upper): (Bound<Bytes>, Bound<Bytes>),
        key_from: usize,
    ) -> Iter {
        let tally = Arc::new(ReadTally::default());
        let bounds = (lower, upper);
        let cursor = version.cursor_within(own, || range_of(&bounds), &tally);
        let (lower, upper) = bounds;
        let entries = VisibleIter::new(cursor, snapshot.seq(), lower, upper);
        let entries = entries.without_first(key_from).combining(version.rules.combiner());
        let entries = entries.hiding(version.hidden()).reading(version.value_reader());
        let (moved_in, error) = (Process::NOWHERE, None);
        let counted = version.counted.clone();
        let note = ScanNote { tally, runs: None, recorded: None, counted, store };
        Iter { entries, moved_in, error, snapshot, _version: version, note }
    }

    /// Has the range read recorded as `scan`, if that is given.
    pub(super) fn record(&mut self, scan: Option<RecordedScan>) {
        self.note.recorded = scan.map(Box::new);
    }

    /// Replaces all entries by `error`.
    pub(crate) fn replaced_by(mut self, error: Error) -> Iter {
        let none = MergingCursor::new(Vec::new());
        self.entries =
            VisibleIter::new(none, self.snapshot.seq(), Bound::Unbounded, Bound::Unbounded);
        self.error = Some(error);
        self
    }

    /// Begins anew, with the keys between `lower` and `upper`, as the tree has them. They must lie
    /// within the bounds that the iterator was made with: beyond them it may lack runs.
    pub(super) fn restart(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) {
        self.entries.restart(lower, upper);
    }

    /// Calls `step`, and records how long the first call takes.
    #[inline]
    fn step<'a, T>(
        &'a mut self,
        step: impl FnOnce(&'a mut VisibleIter<MergingCursor<Source>>) -> Option<Result<T>>,
    ) -> Option<Result<T>> {
        if self.moved_in.is_here() {
            return step(&mut self.entries);
        }
        if let Err(error) = self.begin() {
            return Some(Err(error));
        }
        let timer = self.note.timer();
        let entry = step(&mut self.entries);
        timer.end(|recorders| &recorders.seek_nanos);
        entry
    }

    /// Prepares the first step, or fails. Each step of a recorded range read is prepared, which
    /// counts it.
    #[cold]
    fn begin(&mut self) -> Result<()> {
        if let Some(error) = self.error.take() {
            // The steps that follow find no entries.
            self.moved_in = Process::here();
            return Err(error);
        }
        self.note.store.context().check_here()?;
        let Some(scan) = &mut self.note.recorded else {
            self.moved_in = Process::here();
            return Ok(());
        };
        scan.steps += 1;
        Ok(())
    }

    /// Returns the next key and value from the front, lent until the next step.
    ///
    /// # Errors
    /// `Io` if a read fails; `Corruption` if a block that is read is damaged; `InvalidArgument` if
    /// [`Snapshot::range`](crate::Snapshot::range) was called with a keyspace of another store;
    /// `Callback` if the operator fails for a key, or the clock of the store panics.
    pub fn next_ref(&mut self) -> Option<Result<(&[u8], &[u8])>> {
        self.step(VisibleIter::next_ref)
    }

    /// Returns the next key and value from the back, lent until the next step.
    ///
    /// # Errors
    /// As [`next_ref`](Iter::next_ref).
    pub fn next_back_ref(&mut self) -> Option<Result<(&[u8], &[u8])>> {
        self.step(VisibleIter::next_back_ref)
    }
}

impl Drop for Iter {
    /// Tells the note how many runs were looked at. What was read of them is known only when the
    /// cursors are dropped.
    fn drop(&mut self) {
        let is_recorded = self.note.recorded.as_ref().is_some_and(|scan| scan.steps > 0);
        if self.moved_in.is_here() || is_recorded {
            let opened = self.entries.cursor().sources().filter(|source| source.is_run_opened());
            self.note.runs = Some(opened.count() as u64);
        }
    }
}

impl Iterator for Iter {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Result<(Bytes, Bytes)>> {
        self.step(VisibleIter::next)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Result<(Bytes, Bytes)>> {
        self.step(VisibleIter::next_back)
    }
}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("snapshot", &self.snapshot.seq()).finish_non_exhaustive()
    }
}

/// Returns the lower and the upper bound of all keys that begin with `prefix`.
pub fn prefix_bounds(prefix: &[u8]) -> (Bound<Bytes>, Bound<Bytes>) {
    let lower = Bound::Included(Bytes::copy_from_slice(prefix));
    let mut above = prefix.to_vec();
    while let Some(last) = above.pop() {
        if last < u8::MAX {
            above.push(last + 1);
            return (lower, Bound::Excluded(Bytes::from(above)));
        }
    }
    (lower, Bound::Unbounded)
}

/// Returns the keys within bounds as a range, which may end before it begins.
pub(super) fn range_of((lower, upper): &(Bound<Bytes>, Bound<Bytes>)) -> KeyRange {
    let start = match lower {
        Bound::Unbounded => Key::new(),
        Bound::Included(key) => Key::copy_from_slice(key),
        Bound::Excluded(key) => key_after(key),
    };
    let end = match upper {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(key_after(key)),
        Bound::Excluded(key) => Some(Key::copy_from_slice(key)),
    };
    KeyRange { start, end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_above_a_prefix_skips_bytes_that_cannot_grow() {
        let above = |prefix: &[u8]| prefix_bounds(prefix).1;
        assert_eq!(above(b"ab"), Bound::Excluded(Bytes::from("ac")));
        assert_eq!(above(b"a\xff\xff"), Bound::Excluded(Bytes::from("b")));
        assert_eq!(above(b"\xff"), Bound::Unbounded);
        assert_eq!(above(b""), Bound::Unbounded);
    }
}
