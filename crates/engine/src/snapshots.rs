//! The live snapshots of a store: sequence numbers for which merges keep old versions.

use lsmith_storage::sync::Mutex;
use lsmith_storage::sync::atomic::{AtomicU64, Ordering::SeqCst};
use lsmith_tree::SeqNo;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All live snapshots of a store.
#[derive(Debug)]
pub(crate) struct Snapshots {
    /// The number of guards of each live sequence number.
    live: Mutex<BTreeMap<u64, usize>>,
    /// The oldest live snapshot, or an older number. `u64::MAX` if there is none.
    oldest: AtomicU64,
}

impl Snapshots {
    pub(crate) fn new() -> Snapshots {
        Snapshots { live: Mutex::default(), oldest: AtomicU64::new(u64::MAX) }
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
        *live.entry(seq).or_default() += 1;
        self.oldest.store(*live.keys().next().expect("just entered"), SeqCst);
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

    /// Returns the sequence number from which on old versions must be kept: the smaller of
    /// `visible` and the oldest live snapshot.
    pub(crate) fn keep_from(&self, visible: &AtomicU64) -> SeqNo {
        let seen = visible.load(SeqCst);
        SeqNo(seen.min(self.oldest.load(SeqCst)))
    }

    /// Returns all live snapshots, newest first.
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
