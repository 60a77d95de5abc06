//! A cursor over a memtable that writers go on changing.

use super::buffer::Memtable;
use super::chain::Version;
use super::key::MemKey;
use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};
use std::ops::{Bound, Range};
use std::sync::Arc;

/// Keys copied by the first fill after a seek: many seeks are followed by few steps.
const FILL_KEYS_MIN: usize = 4;
/// Keys copied at once at most. Writers wait for the copying, some microseconds.
const FILL_KEYS_MAX: usize = 64;
/// Values up to this many bytes are copied, longer ones held by handle. To count a handle costs a
/// cache miss that nothing overlaps with, and the consumer mostly copies the bytes anyway.
const COPIED_BYTES_MAX: usize = 512;

/// Walks all versions of all keys. It stands on copies of a stretch of keys, taken under the lock,
/// and takes the following stretch where it leaves this one; each is twice as long as the one
/// before.
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
    /// The bytes of the copied values.
    copied: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    key: MemKey,
    seq: SeqNo,
    kind: EntryKind,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Copied(Range<usize>),
    Shared(Bytes),
}

impl Stretch {
    fn clear(&mut self) {
        self.entries.clear();
        self.copied.clear();
    }

    fn push(&mut self, key: &MemKey, version: &Version) {
        let value = if version.value.len() <= COPIED_BYTES_MAX {
            let start = self.copied.len();
            self.copied.extend_from_slice(&version.value);
            Value::Copied(start..self.copied.len())
        } else {
            Value::Shared(version.value.clone())
        };
        let Version { seq, kind, .. } = *version;
        self.entries.push(Entry { key: key.clone(), seq, kind, value });
    }
}

impl MemtableCursor {
    pub(super) fn new(memtable: Arc<Memtable>) -> MemtableCursor {
        MemtableCursor { memtable, stretch: Stretch::default(), at: 0, fill_keys: FILL_KEYS_MIN }
    }

    /// Copies the keys from `start` on and stands on the first entry.
    fn fill_forward(&mut self, start: Bound<&[u8]>) {
        self.stretch.clear();
        let state = self.memtable.read();
        let keys = state.chains.range::<[u8], _>((start, Bound::Unbounded));
        for (key, chain) in keys.take(self.fill_keys) {
            chain.versions().for_each(|version| self.stretch.push(key, version));
        }
        drop(state);
        self.at = 0;
        self.fill_keys = (self.fill_keys * 2).min(FILL_KEYS_MAX);
    }

    /// Copies the keys up to `end` and stands on the last entry.
    fn fill_backward(&mut self, end: Bound<&[u8]>) {
        self.stretch.clear();
        let state = self.memtable.read();
        let keys = state.chains.range::<[u8], _>((Bound::Unbounded, end)).rev();
        for (key, chain) in keys.take(self.fill_keys) {
            chain.versions().rev().for_each(|version| self.stretch.push(key, version));
        }
        drop(state);
        self.stretch.entries.reverse();
        self.at = self.stretch.entries.len().saturating_sub(1);
        self.fill_keys = (self.fill_keys * 2).min(FILL_KEYS_MAX);
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
            && let Some(last) = self.stretch.entries.last().map(|last| last.key.clone())
        {
            self.fill_forward(Bound::Excluded(last.as_bytes()));
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(at) = self.at.checked_sub(1) {
            self.at = at;
        } else if let Some(first) = self.stretch.entries.first().map(|first| first.key.clone()) {
            self.fill_backward(Bound::Excluded(first.as_bytes()));
        }
        Ok(())
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        let entry = self.here()?;
        let value = match &entry.value {
            Value::Copied(range) => &self.stretch.copied[range.clone()],
            Value::Shared(value) => value,
        };
        Some(EntryRef { key: entry.key.as_bytes(), seq: entry.seq, kind: entry.kind, value })
    }

    fn value(&self) -> Bytes {
        match self.here().map(|entry| &entry.value) {
            Some(Value::Copied(range)) => {
                Bytes::copy_from_slice(&self.stretch.copied[range.clone()])
            }
            Some(Value::Shared(value)) => value.clone(),
            None => Bytes::new(),
        }
    }
}
