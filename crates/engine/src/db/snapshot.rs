//! Snapshots: sequence numbers held for reading.

use crate::db::{Iter, Keyspace, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};
use crate::version::Moment;
use bytes::Bytes;
use lsmith_tree::SeqNo;
use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Arc;

/// All live snapshots of a store.
#[derive(Debug)]
pub(crate) struct Snapshots {
    live: Mutex<BTreeMap<u64, usize>>,
    /// The oldest live one, or one older still; `u64::MAX` for none.
    oldest: AtomicU64,
}

impl Snapshots {
    pub(crate) fn new() -> Snapshots {
        Snapshots { live: Mutex::default(), oldest: AtomicU64::new(u64::MAX) }
    }

    /// Takes a snapshot of what `visible` shows.
    ///
    /// A writer that is about to forget old versions loads `visible` first and `oldest` second.
    /// Here `oldest` is lowered first and `visible` loaded second: whichever way the four steps
    /// fall, the writer either learns of the snapshot or keeps what it needs, because a
    /// snapshot of which it does not learn is no older than the number it has loaded.
    pub(crate) fn take(self: &Arc<Self>, visible: &AtomicU64) -> SnapshotGuard {
        let mut live = self.live.lock();
        self.oldest.fetch_min(visible.load(SeqCst), SeqCst);
        let seq = visible.load(SeqCst);
        *live.entry(seq).or_default() += 1;
        self.oldest.store(*live.keys().next().expect("just entered"), SeqCst);
        SnapshotGuard { seq: SeqNo(seq), of: Arc::clone(self) }
    }

    /// Shows what a bulk load has brought in: `publish` hands readers the version that holds it,
    /// and `visible` moves to `seq`, the number of all its entries. For snapshots that is one step,
    /// so that each sees the whole load for ever or nothing of it for ever:
    ///
    /// * One that was taken before is older than `seq`. A merge that has the load among its inputs
    ///   found it in the version, and asks for the live snapshots after that: it waits here, and
    ///   learns of this one. So the entries keep their number, and what they hide is kept.
    /// * One that is taken later sees `seq`, and so does everything that is read with it, because
    ///   versions are loaded after snapshots are taken.
    ///
    /// Who reads without a snapshot sees the load from the moment on at which the version is there;
    /// a snapshot that he takes then waits here and sees it too.
    pub(crate) fn show_load<T>(
        &self,
        seq: SeqNo,
        visible: &AtomicU64,
        publish: impl FnOnce() -> T,
    ) -> T {
        let _live = self.live.lock();
        let published = publish();
        visible.store(seq.0, SeqCst);
        published
    }

    /// The number from which on versions must be kept: the older of what `visible` shows and the
    /// oldest live snapshot.
    pub(crate) fn keep_from(&self, visible: &AtomicU64) -> SeqNo {
        let seen = visible.load(SeqCst);
        SeqNo(seen.min(self.oldest.load(SeqCst)))
    }

    /// All live snapshots, newest first.
    pub(crate) fn newest_first(&self) -> Vec<SeqNo> {
        self.live.lock().keys().rev().map(|&seq| SeqNo(seq)).collect()
    }
}

/// Keeps one snapshot alive.
#[derive(Debug)]
pub(crate) struct SnapshotGuard {
    seq: SeqNo,
    of: Arc<Snapshots>,
}

impl SnapshotGuard {
    pub(crate) fn seq(&self) -> SeqNo {
        self.seq
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        let mut live = self.of.live.lock();
        if let Some(count) = live.get_mut(&self.seq.0) {
            *count -= 1;
            if *count == 0 {
                live.remove(&self.seq.0);
            }
        }
        self.of.oldest.store(live.keys().next().copied().unwrap_or(u64::MAX), SeqCst);
    }
}

/// What the store held at one moment, across all keyspaces.
///
/// A snapshot is a sequence number: holding one costs nothing but the versions that merges must
/// keep for it, and delays nothing.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) store: Store,
    pub(crate) guard: Arc<SnapshotGuard>,
}

impl Snapshot {
    /// The number of the last write that the snapshot sees.
    pub fn seq(&self) -> SeqNo {
        self.guard.seq()
    }

    /// An error unless `keyspace` is one of the store of which this is a snapshot.
    fn check(&self, keyspace: &Keyspace) -> Result<()> {
        if Arc::ptr_eq(self.store.shared(), keyspace.store().shared()) {
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
