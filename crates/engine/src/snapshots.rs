//! The live snapshots of a store: sequence numbers for which merges keep old versions.
//!
//! Some changes have no place in the order of sequence numbers that would hide them from older
//! snapshots: tables that arrive with sequence numbers of their own, the clearing of a keyspace,
//! what another process has written, and what a [filter](crate::MergeFilter) drops. Each of them
//! ends an *era*. A snapshot belongs to the era in which it was taken, and goes on reading the
//! version from the end of its era, which is [pinned](Pin) as long as a snapshot of the era lives.
//! So a snapshot pins at most one version of each keyspace, however many changes follow.

use crate::version::Version;
use lsmith_storage::sync::atomic::{AtomicU64, Ordering::SeqCst};
use lsmith_storage::sync::{Mutex, Process};
use lsmith_tree::SeqNo;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All live snapshots of a store.
#[derive(Debug)]
pub(crate) struct Snapshots {
    live: Mutex<Live>,
    /// The oldest live snapshot, or an older sequence number. `u64::MAX` if there is none.
    oldest: AtomicU64,
    /// No version is pinned for this era or a later one.
    unpinned_from: AtomicU64,
    /// The process that has the snapshots.
    process: Process,
}

#[derive(Debug, Default)]
struct Live {
    /// The era of snapshots that are taken now.
    era: u64,
    /// The number of guards of each live snapshot, by era and sequence number. A newer snapshot has
    /// no smaller era and no smaller sequence number.
    guards: BTreeMap<(u64, u64), usize>,
    /// Pinned versions, by era and keyspace.
    pins: BTreeMap<(u64, u32), Pin>,
}

/// The version that snapshots of one era read of a keyspace, in place of the newest one.
#[derive(Debug)]
struct Pin {
    version: Arc<Version>,
    /// True if later versions have lost entries, or got some, that a transaction which began in
    /// this era does not find by their sequence numbers.
    is_replaced: bool,
}

impl Live {
    /// Makes live snapshots go on reading `before`, the version of `keyspace` that they read now.
    /// Those are the snapshots of era `from` and later ones. Ends their eras.
    fn pin(&mut self, keyspace: u32, from: u64, before: &Arc<Version>, replaces: bool) {
        let mut next = from;
        while let Some((&(era, _), _)) = self.guards.range((next, 0)..).next() {
            let new = || Pin { version: Arc::clone(before), is_replaced: false };
            self.pins.entry((era, keyspace)).or_insert_with(new).is_replaced |= replaces;
            next = era + 1;
            self.era = self.era.max(next);
        }
    }

    /// Returns the oldest live snapshot; `u64::MAX` if there is none.
    fn oldest(&self) -> u64 {
        self.guards.keys().next().map_or(u64::MAX, |(_, seq)| *seq)
    }

    /// Returns the first era behind those for which versions are pinned.
    fn unpinned_from(&self) -> u64 {
        self.pins.last_key_value().map_or(0, |((era, _), _)| era + 1)
    }

    /// Removes a guard of `snapshot`. Returns the versions that no other snapshot reads.
    fn let_go(&mut self, snapshot: (u64, u64)) -> Vec<Pin> {
        let Some(count) = self.guards.get_mut(&snapshot) else { return Vec::new() };
        *count -= 1;
        if *count > 0 {
            return Vec::new();
        }
        self.guards.remove(&snapshot);
        let (era, _) = snapshot;
        let is_over = self.guards.range((era, 0)..(era + 1, 0)).next().is_none();
        if self.pins.is_empty() || !is_over {
            return Vec::new();
        }
        let of_era = self.pins.range((era, 0)..(era + 1, 0)).map(|(&key, _)| key);
        let of_era: Vec<_> = of_era.collect();
        of_era.iter().filter_map(|key| self.pins.remove(key)).collect()
    }
}

impl Snapshots {
    pub(crate) fn new() -> Snapshots {
        Snapshots {
            live: Mutex::default(),
            oldest: AtomicU64::new(u64::MAX),
            unpinned_from: AtomicU64::new(0),
            process: Process::here(),
        }
    }

    /// Takes a snapshot at the sequence number in `visible`.
    ///
    /// A writer that is about to drop old versions loads `visible` first and `oldest` second. This
    /// function lowers `oldest` first and loads `visible` second. In every order of these four
    /// steps the writer keeps what the snapshot needs: either it sees the snapshot, or the snapshot
    /// is no older than the sequence number that the writer has loaded.
    ///
    /// In a child of the process that opened the store, nothing is kept for the snapshot, which
    /// can read nothing.
    pub(crate) fn take(self: &Arc<Self>, visible: &AtomicU64) -> SnapshotGuard {
        if !self.process.is_here() {
            // No version is pinned for that era, so nobody looks for one.
            let (seq, era) = (SeqNo(visible.load(SeqCst)), u64::MAX);
            return SnapshotGuard { seq, era, of: Arc::clone(self) };
        }
        let mut live = self.live.lock();
        self.oldest.fetch_min(visible.load(SeqCst), SeqCst);
        let seq = visible.load(SeqCst);
        let era = live.era;
        *live.guards.entry((era, seq)).or_default() += 1;
        self.oldest.store(live.oldest(), SeqCst);
        SnapshotGuard { seq: SeqNo(seq), era, of: Arc::clone(self) }
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

    /// Shows tables with sequence numbers of their own to readers, or that a keyspace was cleared,
    /// as [`show_load`](Snapshots::show_load) shows a load. `before` is the version of `keyspace`
    /// from before, which all live snapshots go on reading.
    ///
    /// A reader loads the version of the keyspace first, and asks for a
    /// [pinned](Snapshots::pinned) one second. So a reader that finds none has loaded `before`, or
    /// its snapshot is of a later era.
    pub(crate) fn show_arrival<T>(
        &self,
        seq: SeqNo,
        visible: &AtomicU64,
        keyspace: u32,
        before: &Arc<Version>,
        publish: impl FnOnce() -> T,
    ) -> T {
        let mut live = self.live.lock();
        live.pin(keyspace, 0, before, true);
        self.unpinned_from.store(live.unpinned_from(), SeqCst);
        let published = publish();
        visible.store(seq.0, SeqCst);
        published
    }

    /// Begins an era, if there are snapshots of the present one. Returns the era of the snapshots
    /// that are taken from now on.
    pub(crate) fn begin_era(&self) -> u64 {
        let mut live = self.live.lock();
        if live.guards.last_key_value().is_some_and(|((newest, _), _)| *newest == live.era) {
            live.era += 1;
        }
        live.era
    }

    /// Shows the output of a merge whose filter has dropped or changed values of `keyspace`. The
    /// merge knew the snapshots of eras before `from`, and has kept what they see. Later ones go on
    /// reading `before`, the version without the output.
    pub(crate) fn show_filtered(
        &self,
        from: u64,
        keyspace: u32,
        before: &Arc<Version>,
        publish: impl FnOnce(),
    ) {
        let mut live = self.live.lock();
        live.pin(keyspace, from, before, false);
        self.unpinned_from.store(live.unpinned_from(), SeqCst);
        publish();
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
        for (keyspace, version) in before {
            live.pin(keyspace, 0, &version, true);
        }
        self.unpinned_from.store(live.unpinned_from(), SeqCst);
        visible.store(seq.0, SeqCst);
        publish();
    }

    /// Returns the version of `keyspace` that the snapshot `at` must read in place of the newest
    /// one, if there is any.
    #[inline]
    pub(crate) fn pinned(&self, keyspace: u32, at: &SnapshotGuard) -> Option<Arc<Version>> {
        if at.era >= self.unpinned_from.load(SeqCst) {
            return None;
        }
        let live = self.live.lock();
        live.pins.get(&(at.era, keyspace)).map(|pin| Arc::clone(&pin.version))
    }

    /// Returns true if `keyspace` was cleared since the snapshot `at` was taken, or if tables with
    /// sequence numbers of their own came into it.
    pub(crate) fn is_replaced(&self, keyspace: u32, at: &SnapshotGuard) -> bool {
        let live = self.live.lock();
        live.pins.get(&(at.era, keyspace)).is_some_and(|pin| pin.is_replaced)
    }

    /// Lets go of the pinned versions of `keyspace`, which was dropped, and returns them.
    pub(crate) fn unpin(&self, keyspace: u32) -> Vec<Arc<Version>> {
        let mut live = self.live.lock();
        let of_keyspace = live.pins.keys().filter(|(_, of)| *of == keyspace).copied();
        let of_keyspace: Vec<_> = of_keyspace.collect();
        let unpinned = of_keyspace.iter().filter_map(|key| live.pins.remove(key));
        unpinned.map(|pin| pin.version).collect()
    }

    /// Returns the sequence number from which on old versions must be kept: the smaller of
    /// `visible` and the oldest live snapshot.
    pub(crate) fn keep_from(&self, visible: &AtomicU64) -> SeqNo {
        let seen = visible.load(SeqCst);
        SeqNo(seen.min(self.oldest.load(SeqCst)))
    }

    /// Returns the numbers of all live snapshots, newest first.
    pub(crate) fn newest_first(&self) -> Vec<SeqNo> {
        let live = self.live.lock();
        let mut seqs: Vec<SeqNo> = live.guards.keys().rev().map(|(_, seq)| SeqNo(*seq)).collect();
        drop(live);
        seqs.dedup();
        seqs
    }
}

/// Keeps one snapshot alive.
#[derive(Debug)]
pub(crate) struct SnapshotGuard {
    seq: SeqNo,
    era: u64,
    of: Arc<Snapshots>,
}

impl SnapshotGuard {
    pub(crate) fn seq(&self) -> SeqNo {
        self.seq
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        if !self.of.process.is_here() {
            return;
        }
        let mut live = self.of.live.lock();
        let unpinned = live.let_go((self.era, self.seq.0));
        self.of.oldest.store(live.oldest(), SeqCst);
        // Versions are dropped outside of the lock.
        drop(live);
        drop(unpinned);
    }
}
