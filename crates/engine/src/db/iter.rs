//! Iterators over a keyspace.

use crate::db::Store;
use crate::snapshots::SnapshotGuard;
use crate::version::{Source, Version};
use bytes::Bytes;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::read::{MergingCursor, VisibleIter};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// The entries of a keyspace within bounds as of one moment, in key order from the front and in
/// reverse from the back.
///
/// An iterator holds the tables that it reads: files of tables that are merged away meanwhile
/// stay until it is dropped, and so does the space of dead blocks. It keeps its store open too, or
/// whoever opened the store next could give that space back. After an error it ends.
///
/// As an [`Iterator`] it gives handles that can be kept: a copy of each key, and values that are
/// copies too, or share the memory of the block that holds them, or of up to 64 KiB of neighbouring
/// blocks, where tables are not mapped into memory. Who only
/// looks at the entries spares that with [`next_ref`](Iter::next_ref).
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let store = lsmith::Store::builder(dir.path()).open()?;
/// # let fruit = store.keyspace("fruit")?;
/// fruit.put("apple", "red")?;
/// fruit.put("pear", "green")?;
/// let (mut entries, mut bytes) = (fruit.iter(), 0);
/// while let Some(entry) = entries.next_ref() {
///     let (key, value) = entry?;
///     bytes += key.len() + value.len();
/// }
/// assert_eq!(bytes, 17);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Iter {
    entries: VisibleIter<MergingCursor<Source>>,
    /// Whether it has made its first step, or nobody wants to know how long that takes and nothing
    /// was refused.
    moved: bool,
    /// Why there are no entries, to be told by the first step.
    refused: Option<Error>,
    // Dropped after the cursors: the snapshot first, then the tables, then the store.
    snapshot: Arc<SnapshotGuard>,
    _version: Arc<Version>,
    store: Store,
}

impl Iter {
    pub(crate) fn new(
        store: Store,
        version: Arc<Version>,
        snapshot: Arc<SnapshotGuard>,
        (lower, upper): (Bound<Bytes>, Bound<Bytes>),
    ) -> Iter {
        let entries = VisibleIter::new(version.cursor(), snapshot.seq(), lower, upper);
        let moved = store.context().recorders.is_none();
        Iter { entries, moved, refused: None, snapshot, _version: version, store }
    }

    /// The same without any entries, and with `error` in their place.
    pub(crate) fn refused(mut self, error: Error) -> Iter {
        let (no, seq) = (Bound::Unbounded, self.snapshot.seq());
        self.entries = VisibleIter::new(MergingCursor::new(Vec::new()), seq, no.clone(), no);
        (self.moved, self.refused) = (false, Some(error));
        self
    }

    /// Makes a step, and measures the first.
    #[inline]
    fn step<'a, T>(
        &'a mut self,
        step: impl FnOnce(&'a mut VisibleIter<MergingCursor<Source>>) -> Option<Result<T>>,
    ) -> Option<Result<T>> {
        if self.moved {
            return step(&mut self.entries);
        }
        self.moved = true;
        if let Some(error) = self.refused.take() {
            return Some(Err(error));
        }
        let timer = self.store.context().timer();
        let entry = step(&mut self.entries);
        timer.end(|recorders| &recorders.seek_nanos);
        entry
    }

    /// The following entry from the front, lent until the next step.
    ///
    /// # Errors
    /// `Io`, `Corruption`; `InvalidArgument` as the only thing there is, where a
    /// [`Snapshot`](crate::Snapshot::range) was asked for a keyspace of another store.
    pub fn next_ref(&mut self) -> Option<Result<(&[u8], &[u8])>> {
        self.step(VisibleIter::next_ref)
    }

    /// The following entry from the back, lent until the next step.
    ///
    /// # Errors
    /// As [`next_ref`](Iter::next_ref).
    pub fn next_back_ref(&mut self) -> Option<Result<(&[u8], &[u8])>> {
        self.step(VisibleIter::next_back_ref)
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

/// The bounds of all keys that begin with `prefix`.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> (Bound<Bytes>, Bound<Bytes>) {
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
