//! A cursor over a memtable that writers go on changing.

use super::buffer::Memtable;
use super::chain::{Chain, Version};
use super::key::MemKey;
use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

/// Keys copied by the first fill after a seek: many seeks are followed by few steps.
const FILL_KEYS_MIN: usize = 4;
/// Keys copied at once at most. Writers wait for the copying, some microseconds.
const FILL_KEYS_MAX: usize = 64;

/// Walks all versions of all keys. It stands on copies (of handles) of a stretch of keys, taken
/// under the lock, and takes the following stretch where it leaves this one; each is twice as long
/// as the one before.
#[derive(Debug)]
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    /// Whole keys, in the store's order.
    stretch: Vec<(MemKey, Version)>,
    /// The place in `stretch`; beyond it where the cursor stands nowhere.
    at: usize,
    fill_keys: usize,
}

impl MemtableCursor {
    pub(super) fn new(memtable: Arc<Memtable>) -> MemtableCursor {
        MemtableCursor { memtable, stretch: Vec::new(), at: 0, fill_keys: FILL_KEYS_MIN }
    }

    /// Copies the keys from `start` on and stands on the first entry.
    fn fill_forward(&mut self, start: Bound<&[u8]>) {
        self.stretch.clear();
        let state = self.memtable.read();
        let keys = state.chains.range::<[u8], _>((start, Bound::Unbounded));
        for (key, chain) in keys.take(self.fill_keys) {
            self.stretch.extend(chain.versions().map(|version| (key.clone(), version.clone())));
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
            let oldest_first = Chain::versions(chain).rev();
            self.stretch.extend(oldest_first.map(|version| (key.clone(), version.clone())));
        }
        drop(state);
        self.stretch.reverse();
        self.at = self.stretch.len().saturating_sub(1);
        self.fill_keys = (self.fill_keys * 2).min(FILL_KEYS_MAX);
    }
}

impl Cursor for MemtableCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.fill_keys = FILL_KEYS_MIN;
        self.fill_forward(Bound::Unbounded);
        Ok(())
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
        if self.at == self.stretch.len()
            && let Some((last, _)) = self.stretch.last().cloned()
        {
            self.fill_forward(Bound::Excluded(last.as_bytes()));
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(at) = self.at.checked_sub(1) {
            self.at = at;
        } else if let Some((first, _)) = self.stretch.first().cloned() {
            self.fill_backward(Bound::Excluded(first.as_bytes()));
        }
        Ok(())
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        let (key, Version { seq, kind, value }) = self.stretch.get(self.at)?;
        Some(EntryRef { key: key.as_bytes(), seq: *seq, kind: *kind, value })
    }

    fn value(&self) -> Bytes {
        self.stretch.get(self.at).map_or_else(Bytes::new, |(_, version)| version.value.clone())
    }
}
