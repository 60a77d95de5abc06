//! The sorted buffer itself.

use super::arena::Free;
use super::index::Index;
use super::leaf::Change;
use super::record::{Memory, Record};
use super::versions::{KeepFrom, Version};
use crate::cursor::EntryRef;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, RwLock, RwLockReadGuard};
use lsmith_tree::{SeqNo, logical_bytes};

/// A sorted buffer of writes. See the [module](super).
#[derive(Debug, Default)]
pub struct Memtable {
    index: RwLock<Index>,
    /// Taken before the index by who takes both.
    writer: Mutex<Writer>,
}

/// What only writes need.
#[derive(Debug, Default)]
struct Writer {
    counts: Counts,
    /// Of the index's arena.
    free: Free,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    live_bytes: u64,
    written_bytes: u64,
    entries: u64,
    /// Bytes of memory beside the arena, roughly.
    beside_bytes: usize,
    seqs: Option<(SeqNo, SeqNo)>,
}

impl Counts {
    fn note(&mut self, entry: &EntryRef<'_>, change: Change) {
        debug_assert!(self.seqs.is_none_or(|(_, before)| before < entry.seq));
        let oldest = self.seqs.map_or(entry.seq, |(oldest, _)| oldest);
        self.seqs = Some((oldest, entry.seq));
        self.written_bytes += logical_bytes(entry.key.len(), entry.value.len());
        let Change { live_before, live_now, taken_bytes, freed_bytes } = change;
        self.beside_bytes = self.beside_bytes + taken_bytes - freed_bytes;
        self.live_bytes = self.live_bytes + live_now.unwrap_or(0) - live_before.unwrap_or(0);
        self.entries =
            self.entries + u64::from(live_now.is_some()) - u64::from(live_before.is_some());
    }
}

/// How full a memtable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Logical bytes of the newest versions of its keys.
    pub live_bytes: u64,
    /// Logical bytes of all writes that it took, overwritten ones included.
    pub written_bytes: u64,
    /// Whether its arena has no room left for many more entries.
    pub is_out_of_room: bool,
}

impl Memtable {
    /// An empty memtable.
    pub fn new() -> Memtable {
        Memtable::default()
    }

    /// Adds a write and forgets the versions of its key that nobody can read any more: those
    /// under the newest version at or below `keep`. Writes come in the order of their sequence
    /// numbers, and `keep` is older than the write itself, which no reader sees yet.
    pub fn insert(&self, entry: EntryRef<'_>, keep: KeepFrom) {
        debug_assert!(keep.0 < entry.seq, "nobody reads what is being written");
        debug_assert!(!entry.kind.is_tombstone() || entry.value.is_empty());
        let Writer { counts, free } = &mut *self.writer.lock();
        let words = Record::words_max(&entry);
        loop {
            let index = self.index.read();
            if !index.arena.has_room(free, words) {
                drop(index);
                self.index.write().arena.grow(free, words, entry.seq);
                continue;
            }
            let mut memory = Memory { arena: &index.arena, free };
            let inserted = index.leaf(entry.key).write().insert(&entry, keep, &mut memory);
            drop(index);
            match inserted {
                Some(change) => return counts.note(&entry, change),
                None => self.index.write().split(entry.key),
            }
        }
    }

    /// The newest version of `key` that `snapshot` sees. The snapshot must be a live one, of which
    /// the writer knows, or the version may have been forgotten.
    pub fn get(&self, key: &[u8], snapshot: SeqNo) -> Option<Version> {
        self.get_from(key, || snapshot)
    }

    /// The newest version of `key` at or below `visible`, for readers without a snapshot.
    ///
    /// `visible` is loaded under the lock, which makes it safe without the writer knowing of the
    /// reader: a writer that pruned before we took the lock kept the newest version at or below
    /// a `visible` that it had loaded before, and `visible` only grows, so that what we load is
    /// no older; a writer that comes later waits until we have our copy.
    pub fn get_latest(&self, key: &[u8], visible: &AtomicU64) -> Option<Version> {
        self.get_from(key, || SeqNo(visible.load(Ordering::Acquire)))
    }

    /// Asks for the snapshot once the leaf of `key` is locked.
    #[inline]
    fn get_from(&self, key: &[u8], snapshot: impl FnOnce() -> SeqNo) -> Option<Version> {
        let index = self.index.read();
        let leaf = index.leaf(key).read();
        leaf.get(key, snapshot(), &index.arena)
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.seq_range().is_none()
    }

    /// Logical bytes that a flush without snapshots writes: per key those of the newest version,
    /// and none where insert and remove cancel.
    pub fn live_bytes(&self) -> u64 {
        self.writer.lock().counts.live_bytes
    }

    /// Returns how full the memtable is.
    #[inline]
    pub fn fill(&self) -> Fill {
        let Writer { counts, free } = &*self.writer.lock();
        let (live_bytes, written_bytes) = (counts.live_bytes, counts.written_bytes);
        Fill { live_bytes, written_bytes, is_out_of_room: free.is_short() }
    }

    /// Entries that a flush without snapshots writes: keys, less those where insert and remove
    /// cancel.
    pub fn entries(&self) -> u64 {
        self.writer.lock().counts.entries
    }

    /// Bytes of memory in use, roughly: old versions that snapshots hold count too.
    pub fn allocated_bytes(&self) -> usize {
        let Writer { counts, free } = &*self.writer.lock();
        counts.beside_bytes + free.used_bytes()
    }

    /// The oldest and the newest sequence number ever written here, forgotten ones included;
    /// `None` before the first write.
    pub fn seq_range(&self) -> Option<(SeqNo, SeqNo)> {
        self.writer.lock().counts.seqs
    }

    /// The first and the last key that were ever written here; `None` before the first write.
    pub fn key_range(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let index = self.index.read();
        let last = index.last().leaf.read();
        let position = last.len().checked_sub(1)?;
        let last_key = last.key(position, &index.arena);
        // Given back first: where there is one leaf, a writer who came between two reads of its
        // lock would wait for the first, and the second for him.
        drop(last);
        Some((index.leaf(b"").read().key(0, &index.arena), last_key))
    }

    pub(super) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read()
    }
}
