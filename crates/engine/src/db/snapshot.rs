//! Snapshots: sequence numbers that readers hold.

use super::{Iter, Keyspace, Store};
use crate::snapshots::SnapshotGuard;
use bytes::Bytes;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_tree::SeqNo;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The content of all keyspaces of a store at one moment.
///
/// A snapshot is a sequence number and copies nothing. While it lives, memtables and merges keep
/// the older entries that it sees. It delays neither writers nor merges. Clones are cheap. A
/// snapshot keeps its store open.
#[derive(Clone, Debug)]
pub struct Snapshot {
    store: Store,
    guard: Arc<SnapshotGuard>,
}

impl Store {
    /// Returns a snapshot of all keyspaces as they are now.
    pub fn snapshot(&self) -> Snapshot {
        let guard = Arc::new(self.context().take_snapshot());
        Snapshot { store: self.clone(), guard }
    }
}

impl Snapshot {
    /// Returns the sequence number of the last write that the snapshot sees.
    #[doc(alias = "sequence number")]
    pub fn seq(&self) -> SeqNo {
        self.guard.seq()
    }

    /// Returns what keeps the entries that the snapshot sees.
    pub(super) fn guard(&self) -> &SnapshotGuard {
        &self.guard
    }

    /// Fails with `InvalidArgument` if `keyspace` belongs to another store than the snapshot.
    pub(super) fn check_store(&self, keyspace: &Keyspace) -> Result<()> {
        if Arc::ptr_eq(self.store.context(), keyspace.store().context()) {
            return Ok(());
        }
        let name = keyspace.name();
        let message = format!("the keyspace `{name}` belongs to another store than the snapshot");
        Err(Error::new(ErrorKind::InvalidArgument, message))
    }

    /// Returns the value that `key` has in `keyspace` at the snapshot, or `None` if the key is
    /// absent.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace belongs to another store. Otherwise as [`Keyspace::get`].
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.check_store(keyspace)?;
        keyspace.read(key.as_ref(), Some(self.guard()), |value| value.into_shared())
    }

    /// Calls `look` with the value that `key` has in `keyspace` at the snapshot, as
    /// [`Keyspace::get_with`] does.
    ///
    /// # Errors
    /// As [`get`](Snapshot::get).
    pub fn get_with<R>(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.check_store(keyspace)?;
        keyspace.read(key.as_ref(), Some(self.guard()), |value| look(value.bytes()))
    }

    /// Returns an iterator over the entries that `keyspace` has in `range` at the snapshot, in key
    /// order. It can be read from both ends, and is empty if the range ends before it begins.
    ///
    /// If the keyspace belongs to another store, the iterator yields one error of kind
    /// `InvalidArgument`.
    pub fn range<K: AsRef<[u8]>>(&self, keyspace: &Keyspace, range: impl RangeBounds<K>) -> Iter {
        let bound = |bound: Bound<&K>| bound.map(|key| Bytes::copy_from_slice(key.as_ref()));
        let bounds = (bound(range.start_bound()), bound(range.end_bound()));
        let entries = keyspace.iterate(bounds, Arc::clone(&self.guard));
        match self.check_store(keyspace) {
            Ok(()) => entries,
            Err(error) => entries.replaced_by(error),
        }
    }

    /// Returns the store that the snapshot belongs to.
    pub fn store(&self) -> &Store {
        &self.store
    }
}
