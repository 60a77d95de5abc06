//! The sorted buffer itself.

use super::chain::{Chain, Version};
use super::cursor::MemtableCursor;
use super::key::MemKey;
use lsmith_policy::is_memtable_full;
use lsmith_tree::{SeqNo, logical_bytes};
use parking_lot::{RwLock, RwLockReadGuard};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the tree per key: its place, and a third of that for places not filled (a tree filled
/// in random order is on average about two thirds full).
const PLACE_BYTES: usize = (size_of::<MemKey>() + size_of::<Chain>()) * 4 / 3;

/// The oldest place in time at which anybody may still read: the older of the oldest live snapshot
/// and the newest sequence number that readers without a snapshot see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepFrom(pub(crate) SeqNo);

/// A sorted buffer of writes. See the [module](super).
#[derive(Debug, Default)]
pub(crate) struct Memtable {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) chains: BTreeMap<MemKey, Chain>,
    live_bytes: u64,
    written_bytes: u64,
    entries: u64,
    allocated_bytes: usize,
    seqs: Option<(SeqNo, SeqNo)>,
}

impl Memtable {
    /// An empty memtable.
    pub(crate) fn new() -> Memtable {
        Memtable::default()
    }

    /// Adds a write and forgets the versions of its key that nobody can read any more: those
    /// under the newest version at or below `keep`. Writes come in the order of their sequence
    /// numbers, and `keep` is older than the write itself, which no reader sees yet.
    ///
    /// The value is held by its handle: a slice of a larger buffer keeps all of that in memory.
    pub(crate) fn insert(&self, key: impl AsRef<[u8]>, version: Version, keep: KeepFrom) {
        let key = key.as_ref();
        debug_assert!(keep.0 < version.seq, "nobody reads what is being written");
        debug_assert!(!version.kind.is_tombstone() || version.value.is_empty());
        let state = &mut *self.state.write();
        let newest = version.seq;
        debug_assert!(state.seqs.is_none_or(|(_, before)| before < newest));
        let oldest = state.seqs.map_or(newest, |(oldest, _)| oldest);
        state.seqs = Some((oldest, newest));

        state.allocated_bytes += version.allocated_bytes();
        state.written_bytes += logical_bytes(key.len(), version.value.len());
        let (live_before, live_now) = match state.chains.entry(MemKey::new(key)) {
            Entry::Vacant(place) => {
                // The newest version is part of its place.
                state.allocated_bytes += PLACE_BYTES + place.key().shared_bytes();
                state.allocated_bytes -= size_of::<Version>();
                (None, place.insert(Chain::new(version)).live_bytes(key.len()))
            }
            Entry::Occupied(mut place) => {
                let chain = place.get_mut();
                let live_before = chain.live_bytes(key.len());
                state.allocated_bytes -= chain.push(version, keep);
                (live_before, chain.live_bytes(key.len()))
            }
        };
        state.live_bytes = state.live_bytes + live_now.unwrap_or(0) - live_before.unwrap_or(0);
        state.entries =
            state.entries + u64::from(live_now.is_some()) - u64::from(live_before.is_some());
    }

    /// The newest version of `key` that `snapshot` sees. The snapshot must be a live one, of which
    /// the writer knows, or the version may have been forgotten.
    pub(crate) fn get(&self, key: &[u8], snapshot: SeqNo) -> Option<Version> {
        self.state.read().chains.get(key)?.at(snapshot).cloned()
    }

    /// The newest version of `key` at or below `visible`, for readers without a snapshot.
    ///
    /// `visible` is loaded under the lock, which makes it safe without the writer knowing of the
    /// reader: a writer that pruned before we took the lock kept the newest version at or below
    /// a `visible` that it had loaded before, and `visible` only grows, so that what we load is
    /// no older; a writer that comes later waits until we have our copy.
    pub(crate) fn get_latest(&self, key: &[u8], visible: &AtomicU64) -> Option<Version> {
        let state = self.state.read();
        let snapshot = SeqNo(visible.load(Ordering::Acquire));
        state.chains.get(key)?.at(snapshot).cloned()
    }

    /// A cursor over all versions, valid while writers go on. It shows everything that a snapshot
    /// needs that was live before the cursor was last positioned by a seek; of newer writes it
    /// shows some.
    pub(crate) fn cursor(self: &Arc<Self>) -> MemtableCursor {
        MemtableCursor::new(Arc::clone(self))
    }

    /// Logical bytes that a flush without snapshots writes: per key those of the newest version,
    /// and none where insert and remove cancel.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.state.read().live_bytes
    }

    /// Whether it is to be sealed, under a policy that wants it sealed at `seal_bytes`.
    pub(crate) fn is_full(&self, seal_bytes: u64) -> bool {
        let state = self.state.read();
        is_memtable_full(seal_bytes, state.live_bytes, state.written_bytes)
    }

    /// Entries that a flush without snapshots writes: keys, less those where insert and remove
    /// cancel.
    pub(crate) fn entries(&self) -> u64 {
        self.state.read().entries
    }

    /// Bytes of memory in use, roughly: old versions that snapshots hold count too.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.state.read().allocated_bytes
    }

    /// The oldest and the newest sequence number ever written here, forgotten ones included;
    /// `None` before the first write.
    pub(crate) fn seq_range(&self) -> Option<(SeqNo, SeqNo)> {
        self.state.read().seqs
    }

    /// The first and the last key that were ever written here; `None` before the first write.
    pub(crate) fn key_range(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let state = self.state.read();
        let (first, _) = state.chains.first_key_value()?;
        let (last, _) = state.chains.last_key_value()?;
        let copy = |key: &MemKey| key.as_bytes().to_vec();
        Some((copy(first), copy(last)))
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }
}
