//! A cursor over a memtable that writers go on changing.

use super::arena::{Arena, words_of};
use super::buffer::Memtable;
use super::chain::{Place, Stored};
use super::leaf::{Leaf, Written};
use super::record::Head;
use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};
use std::ops::{Bound, Range};
use std::sync::Arc;

/// Keys copied by the first fill after a seek: many seeks are followed by few steps.
const FILL_KEYS_MIN: usize = 4;
/// Keys copied at once at most. Writers to these keys wait for the copying, a microsecond.
const FILL_KEYS_MAX: usize = 64;

/// Walks all versions of all keys. It stands on copies of a stretch of keys, taken under the lock
/// of their leaf, and takes the following stretch where it leaves this one; each is twice as long
/// as the one before, up to a whole leaf.
#[derive(Debug)]
pub struct MemtableCursor {
    memtable: Arc<Memtable>,
    stretch: Stretch,
    /// The place in the stretch; beyond it where the cursor stands nowhere.
    at: usize,
    fill_keys: usize,
}

/// Whole keys, in the store's order.
#[derive(Debug, Default)]
struct Stretch {
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
    value: Held,
}

/// Bytes that begin with one of the words copied.
#[derive(Clone, Copy, Debug)]
struct Span {
    word: u32,
    bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum Held {
    Copied(Span),
    /// Which of the shared ones.
    Shared(u32),
}

impl Stretch {
    fn clear(&mut self) {
        self.entries.clear();
        self.copied.clear();
        self.shared.clear();
    }

    /// Copies these words of `arena`, and says where they are now.
    fn copy(&mut self, at: u32, words: usize, arena: &Arena) -> u32 {
        let word = self.copied.len() as u32;
        arena.copy(at, words, &mut self.copied);
        word
    }

    /// Adds the keys at `positions` of `leaf` with all their versions.
    fn take(&mut self, leaf: &Leaf, positions: Range<usize>, arena: &Arena) {
        leaf.touch(positions.clone(), arena);
        for position in positions {
            match leaf.written(position, arena) {
                Written::Once(record, head) => {
                    let Head { seq, kind, key_bytes, value_bytes } = head;
                    let word = self.copy(record.key_at(), head.words(), arena);
                    let key = Span { word, bytes: key_bytes.into() };
                    let word = word + words_of(key_bytes.into()) as u32;
                    let value = Span { word, bytes: value_bytes.into() };
                    self.entries.push(Entry { seq, kind, key, value: Held::Copied(value) });
                }
                Written::Chained(record, chain) => {
                    let key_bytes = record.key_bytes(arena);
                    let word = self.copy(record.key_at(), words_of(key_bytes), arena);
                    let key = Span { word, bytes: key_bytes as u32 };
                    for &Stored { seq, kind, ref place } in chain.versions() {
                        let value = self.hold(place, arena);
                        self.entries.push(Entry { seq, kind, key, value });
                    }
                }
            }
        }
    }

    fn hold(&mut self, place: &Place, arena: &Arena) -> Held {
        match place {
            Place::Short { at, bytes } => {
                let word = self.copy(*at, words_of(usize::from(*bytes)), arena);
                Held::Copied(Span { word, bytes: u32::from(*bytes) })
            }
            Place::Long(value) => {
                self.shared.push(Bytes::clone(value));
                Held::Shared(self.shared.len() as u32 - 1)
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
    /// A cursor over all versions, valid while writers go on. It shows everything that a snapshot
    /// needs that was live before the cursor was last positioned by a seek; of newer writes it
    /// shows some.
    pub fn cursor(self: &Arc<Self>) -> MemtableCursor {
        MemtableCursor::new(Arc::clone(self))
    }
}

impl MemtableCursor {
    pub(super) fn new(memtable: Arc<Memtable>) -> MemtableCursor {
        MemtableCursor { memtable, stretch: Stretch::default(), at: 0, fill_keys: FILL_KEYS_MIN }
    }

    /// Copies keys from `start` on and stands on the first entry.
    fn fill_forward(&mut self, start: Bound<&[u8]>) {
        self.stretch.clear();
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
            let from = below + usize::from(equal && excluded);
            if from < leaf.len() {
                let upto = leaf.len().min(from + self.fill_keys);
                self.stretch.take(&leaf, from..upto, &index.arena);
                break;
            }
            let Some(upper) = found.upper else { break };
            start = Bound::Included(upper);
        }
        drop(index);
        self.grow();
    }

    /// Copies keys below `end` and stands on the last entry.
    fn fill_backward(&mut self, end: Bound<&[u8]>) {
        self.stretch.clear();
        let index = self.memtable.index();
        let (mut found, mut end) = match end {
            Bound::Included(end) | Bound::Excluded(end) => (index.find_below(end), Some(end)),
            Bound::Unbounded => (index.last(), None),
        };
        loop {
            let leaf = found.leaf.read();
            let upto = end.map_or(leaf.len(), |end| leaf.find(end, &index.arena).0);
            if upto > 0 {
                let from = upto.saturating_sub(self.fill_keys);
                self.stretch.take(&leaf, from..upto, &index.arena);
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
        self.at = self.stretch.entries.len().saturating_sub(1);
        self.grow();
    }

    fn grow(&mut self) {
        self.fill_keys = (self.fill_keys * 2).min(FILL_KEYS_MAX);
    }

    /// The key of the first or the last entry of the stretch.
    fn border(&self, entry: Option<&Entry>) -> Option<Vec<u8>> {
        entry.map(|entry| self.stretch.key(entry).to_vec())
    }

    fn here(&self) -> Option<&Entry> {
        self.stretch.entries.get(self.at)
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
        if self.at == self.stretch.entries.len()
            && let Some(last) = self.border(self.stretch.entries.last())
        {
            self.fill_forward(Bound::Excluded(&last));
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(at) = self.at.checked_sub(1) {
            self.at = at;
        } else if let Some(first) = self.border(self.stretch.entries.first()) {
            self.fill_backward(Bound::Excluded(&first));
        }
        Ok(())
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        let entry = self.here()?;
        let value = match entry.value {
            Held::Copied(span) => self.stretch.bytes(span),
            Held::Shared(index) => &self.stretch.shared[index as usize],
        };
        Some(EntryRef { key: self.stretch.key(entry), seq: entry.seq, kind: entry.kind, value })
    }

    fn value(&self) -> Bytes {
        match self.here().map(|entry| entry.value) {
            Some(Held::Copied(span)) => Bytes::copy_from_slice(self.stretch.bytes(span)),
            Some(Held::Shared(index)) => self.stretch.shared[index as usize].clone(),
            None => Bytes::new(),
        }
    }
}
