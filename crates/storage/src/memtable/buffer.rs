//! The sorted buffer itself.

use super::arena::FreeWords;
use super::arena_entry::{ArenaEntry, Memory};
use super::chunk::Chunks;
use super::index::Index;
use super::leaf::WriteEffect;
use super::versions::{FoundVersion, KeepFrom};
use crate::combine::Stack;
use crate::cursor::EntryRef;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, RwLock, RwLockReadGuard};
use lsmith_tree::{EntryKind, KeyRange, RangeDeletes, Readers, SeqNo, logical_bytes};
use std::sync::Arc;

/// The account of all memtables is off by fewer bytes than this for each.
const NOTED_STEP_BYTES: usize = 32 * 1024;

/// A sorted buffer of writes. See the [module](super).
#[derive(Debug, Default)]
pub struct Memtable {
    index: RwLock<Index>,
    /// A thread that takes both locks takes this one before the index.
    writer: Mutex<Writer>,
    /// True once a write has begun.
    has_begun: AtomicBool,
    /// True once a range was deleted.
    has_range_deletes: AtomicBool,
    /// The range deletes. Their sequence numbers are also in a tombstone of the first key of each
    /// range.
    range_deletes: RwLock<RangeDeletes>,
}

/// The state that only writes need.
#[derive(Debug, Default)]
struct Writer {
    counts: Counts,
    /// The free words of the index's arena.
    free: FreeWords,
    /// The bytes outside the arena that the account of all memtables has.
    noted_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    live_bytes: u64,
    written_bytes: u64,
    entries: u64,
    /// Bytes of memory outside the arena, roughly.
    beside_bytes: usize,
    seqs: Option<(SeqNo, SeqNo)>,
}

impl Counts {
    fn note(&mut self, entry: &EntryRef<'_>, change: WriteEffect) {
        debug_assert!(self.seqs.is_none_or(|(_, before)| before < entry.seq));
        let oldest = self.seqs.map_or(entry.seq, |(oldest, _)| oldest);
        self.seqs = Some((oldest, entry.seq));
        self.written_bytes += logical_bytes(entry.key.len(), entry.value.len());
        let WriteEffect { live_before, live_now, taken_bytes, freed_bytes } = change;
        self.beside_bytes = self.beside_bytes + taken_bytes - freed_bytes;
        self.live_bytes = self.live_bytes + live_now.unwrap_or(0) - live_before.unwrap_or(0);
        self.entries =
            self.entries + u64::from(live_now.is_some()) - u64::from(live_before.is_some());
    }
}

/// Returns the key of the tombstone that stands for the range delete of `range`.
pub fn range_deletes_key(range: &KeyRange) -> &[u8] {
    // The least key is one zero byte.
    if range.start.is_empty() { &[0] } else { &range.start }
}

/// Tells how full a memtable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Logical bytes of the newest versions of its keys.
    pub live_bytes: u64,
    /// Logical bytes of all writes, overwritten ones included.
    pub written_bytes: u64,
    /// Whether the arena has no room left for many more entries.
    pub is_out_of_room: bool,
}

impl Memtable {
    /// Creates an empty memtable.
    pub fn new() -> Memtable {
        Memtable::default()
    }

    /// Creates an empty memtable that takes its memory from `chunks`.
    pub fn within(chunks: &Arc<Chunks>) -> Memtable {
        Memtable { index: RwLock::new(Index::new(chunks)), ..Memtable::default() }
    }

    /// Adds a write and drops the versions of its key that no reader can read any more: those under
    /// the newest version at or below `keep`. Writes must come in the order of their sequence
    /// numbers. `keep` must be older than the write itself, which no reader sees yet.
    pub fn insert(&self, entry: EntryRef<'_>, keep: KeepFrom) {
        debug_assert!(keep.0 < entry.seq, "no reader sees the write yet");
        debug_assert!(!entry.kind.is_tombstone() || entry.value.is_empty());
        let Writer { counts, free, noted_bytes } = &mut *self.writer.lock();
        let words = ArenaEntry::words_max(&entry);
        loop {
            let index = self.index.read();
            if !index.arena.has_room(free, words) {
                drop(index);
                self.index.write().arena.grow(free, words, entry.seq);
                // Here, because the first write finds no room, and few others do.
                self.has_begun.store(true, Ordering::Release);
                continue;
            }
            let mut memory = Memory { arena: &index.arena, free };
            let inserted = index.leaf(entry.key).write().insert(&entry, keep, &mut memory);
            drop(index);
            match inserted {
                Some(change) => {
                    counts.note(&entry, change);
                    if counts.beside_bytes.abs_diff(*noted_bytes) >= NOTED_STEP_BYTES {
                        *noted_bytes = counts.beside_bytes;
                        self.index.read().arena.note_beside(*noted_bytes);
                    }
                    break;
                }
                None => self.index.write().split(entry.key),
            }
        }
        debug_assert!(self.has_begun.load(Ordering::Relaxed), "an empty arena has no room");
        if self.has_range_deletes() {
            self.note_write(entry.key, entry.seq);
        }
    }

    /// Notes that `key` was written, if that is the first write there since a range delete. Only
    /// writers change the range deletes, one after the other.
    fn note_write(&self, key: &[u8], seq: SeqNo) {
        let is_first =
            self.range_deletes.read().part_of(key).is_some_and(|part| part.written == SeqNo(0));
        if is_first {
            self.range_deletes.write().note_write(key, seq);
        }
    }

    /// Deletes all keys in `range`, which is not empty, by the write with sequence number `seq`.
    /// Forgets older range deletes that none of `readers` can tell from it.
    ///
    /// The first key of the range gets a tombstone. So the range delete has a place in the order of
    /// entries, and stays in memory as long as the memtable.
    pub fn delete_range(
        &self,
        range: &KeyRange,
        seq: SeqNo,
        keep: KeepFrom,
        readers: &Readers<'_>,
    ) {
        let key = range_deletes_key(range);
        self.insert(EntryRef { key, seq, kind: EntryKind::Delete, value: b"" }, keep);
        self.range_deletes.write().delete_range(range, seq, readers);
        self.has_range_deletes.store(true, Ordering::Release);
    }

    /// Returns true if a range was deleted.
    #[inline]
    pub fn has_range_deletes(&self) -> bool {
        self.has_range_deletes.load(Ordering::Acquire)
    }

    /// Returns the range deletes.
    pub fn range_deletes(&self) -> RangeDeletes {
        if self.has_range_deletes() {
            self.range_deletes.read().clone()
        } else {
            RangeDeletes::default()
        }
    }

    /// Returns the newest version of `key` that `snapshot` sees. The snapshot must be live and
    /// known to the writer; otherwise the version may have been dropped.
    pub fn get(&self, key: &[u8], snapshot: SeqNo) -> Option<FoundVersion> {
        self.get_from(key, || snapshot)
    }

    /// Returns the newest version of `key` at or below `visible`, for readers without a snapshot.
    ///
    /// The read loads `visible` under the lock of the leaf, so the writer need not know of the
    /// reader. A writer that pruned before this lock kept the newest version at or below a
    /// `visible` that it had loaded earlier. `visible` only grows, so this read loads no older
    /// value. A writer that comes later waits until the read has its copy.
    pub fn get_latest(&self, key: &[u8], visible: &AtomicU64) -> Option<FoundVersion> {
        self.get_from(key, || SeqNo(visible.load(Ordering::Acquire)))
    }

    /// Calls `snapshot` once the leaf of `key` is locked.
    #[inline]
    fn get_from(&self, key: &[u8], snapshot: impl FnOnce() -> SeqNo) -> Option<FoundVersion> {
        // A store that is only read has an empty memtable in front of all.
        if !self.has_begun.load(Ordering::Acquire) {
            return None;
        }
        let index = self.index.read();
        let leaf = index.leaf(key).read();
        leaf.get(key, snapshot(), &index.arena)
    }

    /// Adds the versions of `key` that `snapshot` sees to `stack`, newest first, down to one that
    /// makes it whole. `snapshot` is called once the leaf of the key is locked, as in
    /// [`get_latest`](Memtable::get_latest).
    pub fn push_on(&self, stack: &mut Stack, key: &[u8], snapshot: impl FnOnce() -> SeqNo) {
        let index = self.index.read();
        let leaf = index.leaf(key).read();
        leaf.push_on(stack, key, snapshot(), &index.arena);
    }

    /// Returns true if there was no write yet.
    pub fn is_empty(&self) -> bool {
        self.seq_range().is_none()
    }

    /// Returns the logical bytes that a flush without snapshots writes: it writes the newest
    /// version of each key, and nothing for keys whose insert and remove cancel.
    pub fn live_bytes(&self) -> u64 {
        self.writer.lock().counts.live_bytes
    }

    /// Returns how full the memtable is.
    #[inline]
    pub fn fill(&self) -> Fill {
        let Writer { counts, free, .. } = &*self.writer.lock();
        Fill {
            live_bytes: counts.live_bytes,
            written_bytes: counts.written_bytes,
            is_out_of_room: free.is_short(),
        }
    }

    /// Returns the number of entries that a flush without snapshots writes: one per key, and none
    /// for keys whose insert and remove cancel.
    pub fn entries(&self) -> u64 {
        self.writer.lock().counts.entries
    }

    /// Returns the memory in use in bytes, roughly. Old versions held for snapshots count too.
    pub fn allocated_bytes(&self) -> usize {
        let beside_bytes = self.writer.lock().counts.beside_bytes;
        beside_bytes + self.index.read().arena.held_bytes()
    }

    /// Returns the smallest and the greatest sequence number ever written here, including dropped
    /// versions, or `None` before the first write.
    pub fn seq_range(&self) -> Option<(SeqNo, SeqNo)> {
        self.writer.lock().counts.seqs
    }

    /// Returns the smallest and the greatest key ever written here, or `None` before the first
    /// write.
    pub fn key_range(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let index = self.index.read();
        let last = index.last().leaf.read();
        let position = last.len().checked_sub(1)?;
        let last_key = last.key(position, &index.arena);
        // Released first. If there is only one leaf, a writer between two read locks of it would
        // wait for the first one, and the second one would wait for the writer.
        drop(last);
        Some((index.leaf(b"").read().key(0, &index.arena), last_key))
    }

    pub(super) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read()
    }
}
