//! A cursor over a memtable that writers go on changing.

use super::buffer::Memtable;
use super::leaf::{Leaf, Value};
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
pub(crate) struct MemtableCursor {
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
    /// The bytes of keys and values.
    copied: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    key: Range<usize>,
    seq: SeqNo,
    kind: EntryKind,
    value: Held,
}

#[derive(Debug)]
enum Held {
    Copied(Range<usize>),
    Shared(Bytes),
}

impl Stretch {
    fn clear(&mut self) {
        self.entries.clear();
        self.copied.clear();
    }

    fn copy(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.copied.len();
        self.copied.extend_from_slice(bytes);
        start..self.copied.len()
    }

    /// Adds the keys at `positions` of `leaf` with all their versions.
    fn take(&mut self, leaf: &Leaf, positions: Range<usize>) {
        for position in positions {
            let key = self.copy(leaf.key(position));
            for (version, value) in leaf.versions(position) {
                let value = match value {
                    Value::Short(bytes) => Held::Copied(self.copy(bytes)),
                    Value::Long(value) => Held::Shared(value.clone()),
                };
                let (seq, kind) = (version.seq, version.kind);
                self.entries.push(Entry { key: key.clone(), seq, kind, value });
            }
        }
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        &self.copied[entry.key.clone()]
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
            let (below, equal) = leaf.find(key);
            let from = below + usize::from(equal && excluded);
            if from < leaf.len() {
                self.stretch.take(&leaf, from..leaf.len().min(from + self.fill_keys));
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
            let upto = end.map_or(leaf.len(), |end| leaf.find(end).0);
            if upto > 0 {
                self.stretch.take(&leaf, upto.saturating_sub(self.fill_keys)..upto);
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
        let value = match &entry.value {
            Held::Copied(range) => &self.stretch.copied[range.clone()],
            Held::Shared(value) => value,
        };
        Some(EntryRef { key: self.stretch.key(entry), seq: entry.seq, kind: entry.kind, value })
    }

    fn value(&self) -> Bytes {
        match self.here().map(|entry| &entry.value) {
            Some(Held::Copied(range)) => {
                Bytes::copy_from_slice(&self.stretch.copied[range.clone()])
            }
            Some(Held::Shared(value)) => value.clone(),
            None => Bytes::new(),
        }
    }
}
