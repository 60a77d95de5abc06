//! The live snapshots of a store: sequence numbers for which merges keep old versions.
//!
//! Tables with sequence numbers of their own arrive with numbers that are older than snapshots
//! which must not see them. So each snapshot from before goes on reading the version from before,
//! which is [pinned](Pin) until the last of them is dropped.

use crate::version::Version;
use lsmith_storage::sync::Mutex;
use lsmith_storage::sync::atomic::{AtomicU64, Ordering::SeqCst};
use lsmith_tree::SeqNo;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All live snapshots of a store.
#[derive(Debug)]
pub(crate) struct Snapshots {
    live: Mutex<Live>,
    /// The oldest live snapshot, or an older number. `u64::MAX` if there is none.
    oldest: AtomicU64,
    /// The sequence number of the newest arrival for which a version was pinned; 0 if there was
    /// none. Snapshots from this number on need no pinned version.
    newest_pin: AtomicU64,
}

#[derive(Debug, Default)]
struct Live {
    /// The number of guards of each live sequence number.
    guards: BTreeMap<u64, usize>,
    /// Pinned versions, oldest arrival first.
    pins: Vec<Pin>,
}

/// The version of a keyspace from before tables arrived, for snapshots from before.
#[derive(Debug)]
struct Pin {
    keyspace: u32,
    /// The sequence number of the arrival. Older snapshots do not see it.
    arrival: SeqNo,
    version: Arc<Version>,
}

impl Snapshots {
    pub(crate) fn new() -> Snapshots {
        Snapshots {
            live: Mutex::default(),
            oldest: AtomicU64::new(u64::MAX),
            newest_pin: AtomicU64::new(0),
        }
    }

    /// Takes a snapshot at the sequence number in `visible`.
    ///
    /// A writer that is about to drop old versions loads `visible` first and `oldest` second. This
    /// function lowers `oldest` first and loads `visible` second. In every order of these four
    /// steps the writer keeps what the snapshot needs: either it sees the snapshot, or the snapshot
    /// is no older than the number that the writer has loaded.
    pub(crate) fn take(self: &Arc<Self>, visible: &AtomicU64) -> SnapshotGuard {
        let mut live = self.live.lock();
        self.oldest.fetch_min(visible.load(SeqCst), SeqCst);
        let seq = visible.load(SeqCst);
        *live.guards.entry(seq).or_default() += 1;
        self.oldest.store(*live.guards.keys().next().expect("just entered"), SeqCst);
        SnapshotGuard { seq: SeqNo(seq), of: Arc::clone(self) }
    }

    /// Shows a bulk load to readers: `publish` publishes the version that holds it, and `visible`
    /// moves to `seq`, the sequence number of all its entries. No snapshot falls between these two
    /// steps, so each snapshot sees either the whole load or nothing of it, for ever:
    ///
    /// * An earlier snapshot is older than `seq`. A merge that takes the load found it in the
    ///   version, and asks for the live snapshots after that. It waits here, and sees the snapshot.
    ///   So the entries keep their sequence number, and the entries that they hide are kept.
    /// * A later snapshot is at `seq` or newer, and its reads find the load, because versions are
    ///   loaded after snapshots are taken.
    ///
    /// A read without a snapshot sees the load as soon as the version is published. A snapshot
    /// taken after such a read waits here, and sees the load too.
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

    /// Shows tables with sequence numbers of their own to readers, as
    /// [`show_load`](Snapshots::show_load) shows a load. `before` is the version of `keyspace`
    /// without them, which all live snapshots go on reading.
    ///
    /// A reader loads the version of the keyspace first, and asks for a
    /// [pinned](Snapshots::pinned) one second. So a reader that finds none has loaded `before`, or
    /// its snapshot is no older than `seq`.
    pub(crate) fn show_arrival<T>(
        &self,
        seq: SeqNo,
        visible: &AtomicU64,
        keyspace: u32,
        before: &Arc<Version>,
        publish: impl FnOnce() -> T,
    ) -> T {
        let mut live = self.live.lock();
        if !live.guards.is_empty() {
            live.pins.push(Pin { keyspace, arrival: seq, version: Arc::clone(before) });
            self.newest_pin.store(seq.0, SeqCst);
        }
        let published = publish();
        visible.store(seq.0, SeqCst);
        published
    }

    /// Shows what another process has written up to `seq` to the readers of this one. `publish`
    /// publishes the versions that hold it, in place of the versions `before`, which all live
    /// snapshots go on reading.
    ///
    /// Memtables of the new versions have only the newest entry of each key. So `visible` moves
    /// first: a reader that finds a new version then looks for its newest entries.
    pub(crate) fn show_view(
        &self,
        seq: SeqNo,
        visible: &AtomicU64,
        before: impl IntoIterator<Item = (u32, Arc<Version>)>,
        publish: impl FnOnce(),
    ) {
        let mut live = self.live.lock();
        let is_read = !live.guards.is_empty();
        if is_read {
            let pin = |(keyspace, version)| Pin { keyspace, arrival: seq, version };
            live.pins.extend(before.into_iter().map(pin));
            self.newest_pin.store(seq.0, SeqCst);
        }
        visible.store(seq.0, SeqCst);
        publish();
    }

    /// Returns true if a snapshot at `seq` is live.
    pub(crate) fn has(&self, seq: SeqNo) -> bool {
        self.live.lock().guards.contains_key(&seq.0)
    }

    /// Returns the version of `keyspace` that a snapshot at `seq` must read in place of the newest
    /// one, if there is any.
    pub(crate) fn pinned(&self, keyspace: u32, seq: SeqNo) -> Option<Arc<Version>> {
        if seq.0 >= self.newest_pin.load(SeqCst) {
            return None;
        }
        let live = self.live.lock();
        let pin = live.pins.iter().find(|pin| pin.keyspace == keyspace && seq < pin.arrival)?;
        Some(Arc::clone(&pin.version))
    }

    /// Lets go of the pinned versions of `keyspace`, which was dropped, and returns them.
    pub(crate) fn unpin(&self, keyspace: u32) -> Vec<Arc<Version>> {
        let mut live = self.live.lock();
        let unpinned = live.pins.extract_if(.., |pin| pin.keyspace == keyspace);
        unpinned.map(|pin| pin.version).collect()
    }

    /// Returns the sequence number from which on old versions must be kept: the smaller of
    /// `visible` and the oldest live snapshot.
    pub(crate) fn keep_from(&self, visible: &AtomicU64) -> SeqNo {
        let seen = visible.load(SeqCst);
        SeqNo(seen.min(self.oldest.load(SeqCst)))
    }

    /// Returns all live snapshots, newest first.
    pub(crate) fn newest_first(&self) -> Vec<SeqNo> {
        self.live.lock().guards.keys().rev().map(|&seq| SeqNo(seq)).collect()
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
        if let Some(count) = live.guards.get_mut(&self.seq.0) {
            *count -= 1;
            if *count == 0 {
                live.guards.remove(&self.seq.0);
            }
        }
        let oldest = live.guards.keys().next().copied().unwrap_or(u64::MAX);
        self.of.oldest.store(oldest, SeqCst);
        let unpinned: Vec<Pin> = live.pins.extract_if(.., |pin| pin.arrival.0 <= oldest).collect();
        // Versions are dropped outside of the lock.
        drop(live);
        drop(unpinned);
    }
}
