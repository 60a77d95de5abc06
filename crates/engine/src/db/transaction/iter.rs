//! Iterators of transactions.

use super::changes::Changes;
use super::reads::{Reads, Went};
use crate::db::iter::range_of;
use crate::db::{Iter, Keyspace};
use crate::snapshots::SnapshotGuard;
use bytes::Bytes;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::sync::Mutex;
use std::borrow::Cow;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// An iterator over a key range as a [`Transaction`](crate::Transaction) sees it: as the store was
/// when the transaction began, with the writes that it had made when the iterator was made. It
/// yields ascending keys from the front and descending keys from the back, and ends after an error.
pub struct TransactionIter {
    entries: Iter,
    /// The transaction's read set, and this iterator's index in it.
    reads: Option<(Arc<Mutex<Reads>>, usize)>,
    keyspace: Keyspace,
}

impl TransactionIter {
    pub(super) fn new(
        keyspace: &Keyspace,
        bounds: (Bound<Bytes>, Bound<Bytes>),
        began: Arc<SnapshotGuard>,
        changes: &Changes,
        reads: Option<Arc<Mutex<Reads>>>,
    ) -> TransactionIter {
        let bounds = keyspace.stored_bounds(bounds);
        let reads = reads.map(|reads| {
            let range_index = reads.lock().begin_range(range_of(&bounds));
            (reads, range_index)
        });
        let own = changes.own_writes(began.seq());
        let entries = keyspace.iterate_over(own, bounds, began);
        TransactionIter { entries, reads, keyspace: keyspace.clone() }
    }

    /// Returns an iterator that yields `error` in place of entries.
    pub(super) fn failed(
        keyspace: &Keyspace,
        bounds: (Bound<Bytes>, Bound<Bytes>),
        began: Arc<SnapshotGuard>,
        error: Error,
    ) -> TransactionIter {
        let entries = keyspace.iterate(bounds, began).replaced_by(error);
        TransactionIter { entries, reads: None, keyspace: keyspace.clone() }
    }

    /// Notes what a step has found. A key with an error of its own has been read too.
    fn note_next(&self, next: &Option<Result<(Bytes, Bytes)>>, is_back: bool) {
        match next {
            Some(Ok((key, _))) => self.note(Some(key), is_back),
            Some(Err(error)) => {
                if let Some(key) = error.key() {
                    self.note(Some(key), is_back);
                }
            }
            None => self.note(None, is_back),
        }
    }

    /// Notes that `key` was returned from the front or, if `is_back`, from the back, or that there
    /// is none.
    fn note(&self, key: Option<&[u8]>, is_back: bool) {
        let Some((reads, range_index)) = &self.reads else { return };
        let stored: Option<Cow<'_, [u8]>> = key.map(|key| self.keyspace.stored_key(key));
        let went = match &stored {
            Some(key) if is_back => Went::Back(key),
            Some(key) => Went::Front(key),
            None => Went::End,
        };
        reads.lock().note(*range_index, went);
    }
}

impl Iterator for TransactionIter {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Result<(Bytes, Bytes)>> {
        let next = self.entries.next();
        self.note_next(&next, false);
        next
    }
}

impl DoubleEndedIterator for TransactionIter {
    fn next_back(&mut self) -> Option<Result<(Bytes, Bytes)>> {
        let next = self.entries.next_back();
        self.note_next(&next, true);
        next
    }
}

impl fmt::Debug for TransactionIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TransactionIter").field(&self.entries).finish()
    }
}
