//! A cursor over a memtable that writers continue to change.

use super::arena::{Arena, words_of};
use super::arena_entry::ArenaHead;
use super::buffer::Memtable;
use super::chain::{Stored, ValuePlace};
use super::leaf::{KeyVersions, Leaf};
use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use bytes::Bytes;
use lsmith_tree::{EntryKind, KeyRange, RangeDeletes, SeqNo};
use std::ops::{Bound, Range};
use std::sync::Arc;

/// The number of keys copied by the first fill after a seek. Few steps follow most seeks.
const FILL_KEYS_MIN: usize = 4;
/// The most keys copied at once. Writers of these keys wait for the copy, a microsecond.
const FILL_KEYS_MAX: usize = 64;

/// Walks all versions of all keys. The cursor is on a copy of neighbouring keys, made under the
/// lock of their leaf. At an end of the copy it copies the next keys. Each copy is twice as long as
/// the one before, up to `FILL_KEYS_MAX` keys.
#[derive(Debug)]
pub struct MemtableCursor {
    memtable: Arc<Memtable>,
    /// The range deletes of the memtable, as they were when the cursor was made.
    range_deletes: RangeDeletes,
    copies: CopiedEntries,
    /// The index of the current entry, beyond the last if the cursor is on no entry.
    at: usize,
    fill_keys: usize,
}

/// Copies of whole keys with all their versions, in the store's order.
#[derive(Debug, Default)]
struct CopiedEntries {
    entries: Vec<Entry>,
    /// The words of keys and short values.
    copied: Vec<[u8; 8]>,
    /// The long values.
    shared: Vec<Bytes>,
}

#[derive(Debug)]
struct Entry {
    seq: SeqNo,
    kind: EntryKind,
    key: Span,
    value: CopiedValue,
    /// Whether no other version of the key is left.
    is_alone: bool,
}

/// Bytes that start with one of the copied words.
#[derive(Clone, Copy, Debug)]
struct Span {
    word: u32,
    bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum CopiedValue {
    Copied(Span),
    /// An index into the shared values.
    Shared(u32),
}

impl CopiedEntries {
    fn clear(&mut self) {
        self.entries.clear();
        self.copied.clear();
        self.shared.clear();
    }

    /// Copies the `words` words at `at` of `arena`, and returns their index in the copy.
    fn copy(&mut self, at: u32, words: usize, arena: &Arena) -> u32 {
        let word = self.copied.len() as u32;
        arena.copy(at, words, &mut self.copied);
        word
    }

    /// Adds the keys at `positions` of `leaf` with all their versions.
    fn take(&mut self, leaf: &Leaf, positions: Range<usize>, arena: &Arena) {
        leaf.touch(positions.clone(), arena);
        for position in positions {
            match leaf.versions(position, arena) {
                KeyVersions::Once(arena_entry, head) => {
                    let ArenaHead { seq, kind, key_bytes, value_bytes } = head;
                    let word = self.copy(arena_entry.key_at(), head.words(), arena);
                    let key = Span { word, bytes: key_bytes.into() };
                    let value_word = word + words_of(key_bytes.into()) as u32;
                    let value = Span { word: value_word, bytes: value_bytes.into() };
                    let value = CopiedValue::Copied(value);
                    self.entries.push(Entry { seq, kind, key, value, is_alone: true });
                }
                KeyVersions::Chained(arena_entry, chain) => {
                    let key_bytes = arena_entry.key_bytes(arena);
                    let word = self.copy(arena_entry.key_at(), words_of(key_bytes), arena);
                    let key = Span { word, bytes: key_bytes as u32 };
                    for &Stored { seq, kind, ref place, .. } in chain.versions() {
                        let value = self.copy_value(place, arena);
                        self.entries.push(Entry { seq, kind, key, value, is_alone: false });
                    }
                }
            }
        }
    }

    fn copy_value(&mut self, place: &ValuePlace, arena: &Arena) -> CopiedValue {
        match place {
            ValuePlace::Short { at, bytes } => {
                let word = self.copy(*at, words_of(usize::from(*bytes)), arena);
                CopiedValue::Copied(Span { word, bytes: u32::from(*bytes) })
            }
            ValuePlace::Long(value) => {
                self.shared.push(Bytes::clone(value));
                CopiedValue::Shared(self.shared.len() as u32 - 1)
            }
        }
    }

    fn bytes(&self, span: Span) -> &[u8] {
        &self.copied[span.word as usize..].as_flattened()[..span.bytes as usize]
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        self.bytes(entry.key)
    }
}

impl Memtable {
    /// Returns a cursor over all versions, which stays valid while writers continue. For a snapshot
    /// that was live before the last seek of the cursor, it shows every version that the snapshot
    /// needs. It shows some of the newer writes.
    pub fn cursor(self: &Arc<Self>) -> MemtableCursor {
        MemtableCursor::new(Arc::clone(self))
    }
}

impl MemtableCursor {
    pub(super) fn new(memtable: Arc<Memtable>) -> MemtableCursor {
        MemtableCursor {
            range_deletes: memtable.range_deletes(),
            memtable,
            copies: CopiedEntries::default(),
            at: 0,
            fill_keys: FILL_KEYS_MIN,
        }
    }

    /// Copies keys from `start` on and goes to the first entry.
    fn fill_forward(&mut self, start: Bound<&[u8]>) {
        self.copies.clear();
        self.at = 0;
        let mut start: Bound<&[u8]> = start;
        let index = self.memtable.index();
        loop {
            let (key, excluded) = match start {
                Bound::Included(key) => (key, false),
                Bound::Excluded(key) => (key, true),
                Bound::Unbounded => (&[][..], false),
            };
            let found = index.find(key);
            let leaf = found.leaf.read();
            let (below, equal) = leaf.find(key, &index.arena);
            let first = below + usize::from(equal && excluded);
            if first < leaf.len() {
                let end = leaf.len().min(first + self.fill_keys);
                self.copies.take(&leaf, first..end, &index.arena);
                break;
            }
            let Some(upper) = found.upper else { break };
            start = Bound::Included(upper);
        }
        drop(index);
        self.grow();
    }

    /// Copies keys below `end` and goes to the last entry.
    fn fill_backward(&mut self, end: Bound<&[u8]>) {
        self.copies.clear();
        let index = self.memtable.index();
        let (mut found, mut end) = match end {
            Bound::Included(end) | Bound::Excluded(end) => (index.find_below(end), Some(end)),
            Bound::Unbounded => (index.last(), None),
        };
        loop {
            let leaf = found.leaf.read();
            let below = end.map_or(leaf.len(), |end| leaf.find(end, &index.arena).0);
            if below > 0 {
                let first = below.saturating_sub(self.fill_keys);
                self.copies.take(&leaf, first..below, &index.arena);
                break;
            }
            let lower = found.lower;
            if lower.is_empty() {
                break;
            }
            drop(leaf);
            found = index.find_below(lower);
            end = Some(lower);
        }
        drop(index);
        self.at = self.copies.entries.len().saturating_sub(1);
        self.grow();
    }

    fn grow(&mut self) {
        self.fill_keys = (self.fill_keys * 2).min(FILL_KEYS_MAX);
    }

    /// Returns the key of `entry`, the first or the last one of the copy.
    fn border(&self, entry: Option<&Entry>) -> Option<Vec<u8>> {
        entry.map(|entry| self.copies.key(entry).to_vec())
    }

    /// Returns the part of `range` around the current key in which all entries that a reader sees
    /// are older than the range delete with sequence number `below`, if it is known. The reader
    /// sees this range delete.
    fn older_range(&self, range: &KeyRange, below: SeqNo) -> Option<KeyRange> {
        if self.newest() <= below {
            return Some(range.clone());
        }
        // Nothing was written there since the range delete, at least up to when the cursor was
        // made. So later writes are newer than the reader.
        let part = self.range_deletes.part_of(self.copies.key(self.here()?))?;
        let is_clean = part.seqs.first() == Some(&below) && part.written == SeqNo(0);
        is_clean.then(|| part.range.intersection(range))
    }

    fn here(&self) -> Option<&Entry> {
        self.copies.entries.get(self.at)
    }
}

impl Cursor for MemtableCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.seek(b"")
    }

    fn seek_last(&mut self) -> Result<()> {
        self.fill_keys = FILL_KEYS_MIN;
        self.fill_backward(Bound::Unbounded);
        Ok(())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.fill_keys = FILL_KEYS_MIN;
        self.fill_forward(Bound::Included(key));
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.fill_keys = FILL_KEYS_MIN;
        self.fill_backward(Bound::Excluded(key));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        if self.at == self.copies.entries.len()
            && let Some(last) = self.border(self.copies.entries.last())
        {
            self.fill_forward(Bound::Excluded(&last));
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(at) = self.at.checked_sub(1) {
            self.at = at;
        } else if let Some(first) = self.border(self.copies.entries.first()) {
            self.fill_backward(Bound::Excluded(&first));
        }
        Ok(())
    }

    fn leap(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        match self.older_range(range, below) {
            Some(KeyRange { end: Some(end), .. }) => self.seek(&end),
            Some(KeyRange { end: None, .. }) => {
                self.copies.clear();
                self.at = 0;
                Ok(())
            }
            None => self.next(),
        }
    }

    fn leap_back(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        match self.older_range(range, below) {
            Some(older) => self.seek_before(&older.start),
            None => self.prev(),
        }
    }

    fn newest(&self) -> SeqNo {
        self.memtable.seq_range().map_or(SeqNo(0), |(_, newest)| newest)
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        let entry = self.here()?;
        let value = match entry.value {
            CopiedValue::Copied(span) => self.copies.bytes(span),
            CopiedValue::Shared(index) => &self.copies.shared[index as usize],
        };
        Some(EntryRef { key: self.copies.key(entry), seq: entry.seq, kind: entry.kind, value })
    }

    fn is_alone(&self) -> bool {
        self.here().is_some_and(|entry| entry.is_alone)
    }

    fn value(&self) -> Bytes {
        match self.here().map(|entry| entry.value) {
            Some(CopiedValue::Copied(span)) => Bytes::copy_from_slice(self.copies.bytes(span)),
            Some(CopiedValue::Shared(index)) => self.copies.shared[index as usize].clone(),
            None => Bytes::new(),
        }
    }
}
