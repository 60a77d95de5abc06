//! Snapshots: sequence numbers that readers hold.

use super::{Iter, Keyspace, Store, TableWriter};
use crate::snapshots::SnapshotGuard;
use crate::version::Moment;
use bytes::Bytes;
use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::table::ReadTally;
use lsmith_tree::{EntryKind, ErasedWalk, SeqNo};
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
    pub fn seq(&self) -> SeqNo {
        self.guard.seq()
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
        keyspace.read(key.as_ref(), Moment::Snapshot(self.seq()), |value| value.into_shared())
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
        let moment = Moment::Snapshot(self.seq());
        keyspace.read(key.as_ref(), moment, |value| look(value.bytes()))
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

    /// Adds the entries that `keyspace` has in `range` at the snapshot to `writer`, with their
    /// sequence numbers. Deletions are entries too, as long as no merge has dropped them. A key
    /// with combines has the value that they make. Returns the number of entries.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace belongs to another store or to a group, or forgets
    /// numbers, or its entries expire. Otherwise as [`get`](Snapshot::get) and
    /// [`TableWriter::put_at`].
    pub fn export<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
        writer: &mut TableWriter,
    ) -> Result<u64> {
        self.check_store(keyspace)?;
        let refuse = |message| Err(Error::new(ErrorKind::InvalidArgument, message));
        let name = keyspace.name();
        if !keyspace.shared().keeps_numbers {
            return refuse(format!("the keyspace `{name}` forgets sequence numbers"));
        }
        if keyspace.expiry().is_some() {
            return refuse(format!("entries of the keyspace `{name}` expire"));
        }
        let tally = Arc::new(ReadTally::default());
        let version = keyspace.version_at(&self.guard);
        let mut entries = version.cursor(&tally);
        match range.start_bound() {
            Bound::Unbounded => entries.seek_first()?,
            Bound::Included(key) | Bound::Excluded(key) => entries.seek(key.as_ref())?,
        }
        let mut hides = ErasedWalk::new(version.all_erased());
        let mut exported = 0;
        // The key of the last entry that the snapshot sees. Older entries of it are hidden.
        let mut seen: Option<Vec<u8>> = None;
        while let Some(entry) = entries.entry() {
            let EntryRef { key, seq, kind, value } = entry;
            if !is_below(key, range.end_bound()) {
                break;
            }
            let is_before =
                matches!(range.start_bound(), Bound::Excluded(start) if start.as_ref() == key);
            let newest = hides.part_of(key).map_or(SeqNo(0), |part| part.newest_at(self.seq()));
            let is_new = seen.as_deref() != Some(key);
            if seq <= self.seq() && seq >= newest && !is_before && is_new {
                match kind {
                    EntryKind::Combine => {
                        let combined = self.get(keyspace, key)?;
                        writer.put_at(key, combined.expect("a combine gives a value"), seq)?;
                    }
                    kind if kind.is_value() => writer.put_at(key, value, seq)?,
                    _ => writer.delete_at(key, seq)?,
                }
                exported += 1;
                let seen = seen.get_or_insert_default();
                seen.clear();
                seen.extend_from_slice(key);
            }
            entries.next()?;
        }
        Ok(exported)
    }

    /// Returns the store that the snapshot belongs to.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// Returns true if `key` lies below `end`.
fn is_below<K: AsRef<[u8]>>(key: &[u8], end: Bound<&K>) -> bool {
    match end {
        Bound::Unbounded => true,
        Bound::Included(end) => key <= end.as_ref(),
        Bound::Excluded(end) => key < end.as_ref(),
    }
}
