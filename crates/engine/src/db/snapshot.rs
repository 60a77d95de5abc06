//! Snapshots: sequence numbers held for reading.

use super::{Iter, Keyspace, Store};
use crate::snapshots::SnapshotGuard;
use crate::version::Moment;
use bytes::Bytes;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_tree::SeqNo;
use std::ops::RangeBounds;
use std::sync::Arc;

/// What the store held at one moment, across all keyspaces.
///
/// A snapshot is a sequence number: holding one costs nothing but the versions that merges must
/// keep for it, and delays nothing.
#[derive(Clone, Debug)]
pub struct Snapshot {
    store: Store,
    guard: Arc<SnapshotGuard>,
}

impl Store {
    /// What all keyspaces hold now, to be read later.
    pub fn snapshot(&self) -> Snapshot {
        let guard = Arc::new(self.context().take_snapshot());
        Snapshot { store: self.clone(), guard }
    }
}

impl Snapshot {
    /// The number of the last write that the snapshot sees.
    pub fn seq(&self) -> SeqNo {
        self.guard.seq()
    }

    /// An error unless `keyspace` is one of the store of which this is a snapshot.
    fn check(&self, keyspace: &Keyspace) -> Result<()> {
        if Arc::ptr_eq(self.store.context(), keyspace.store().context()) {
            return Ok(());
        }
        let name = keyspace.name();
        let told = format!("the keyspace `{name}` is of another store than the snapshot");
        Err(Error::new(ErrorKind::InvalidArgument, told))
    }

    /// The value that `key` had in `keyspace`.
    ///
    /// # Errors
    /// `InvalidArgument` where the keyspace is of another store; `Io`, `Corruption`.
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.check(keyspace)?;
        keyspace.read(key.as_ref(), Moment::Snapshot(self.seq()), |value| value.into_shared())
    }

    /// Shows the value that `key` had in `keyspace` to `look`, as
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
        self.check(keyspace)?;
        let moment = Moment::Snapshot(self.seq());
        keyspace.read(key.as_ref(), moment, |value| look(value.bytes()))
    }

    /// The entries that `keyspace` had within `range`, from both ends; none where the range ends
    /// before it begins. Of a keyspace of another store there is nothing but an error of kind
    /// `InvalidArgument`.
    pub fn range<K: AsRef<[u8]>>(&self, keyspace: &Keyspace, range: impl RangeBounds<K>) -> Iter {
        let bound =
            |bound: std::ops::Bound<&K>| bound.map(|key| Bytes::copy_from_slice(key.as_ref()));
        let bounds = (bound(range.start_bound()), bound(range.end_bound()));
        let entries = keyspace.iterate(bounds, Arc::clone(&self.guard));
        match self.check(keyspace) {
            Ok(()) => entries,
            Err(error) => entries.refused(error),
        }
    }

    /// The store of which this is a snapshot.
    pub fn store(&self) -> &Store {
        &self.store
    }
}
