//! Decoded entries of blocks, and the way back over them.

use super::codec::append_key;
use lsmith_tree::{EntryKind, SeqNo};
use std::ops::Range;

/// A decoded entry of a block, without its key. Offsets are into the payload of the block. Searches
/// make many slots, so they are small.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub(super) start: u32,
    pub(super) shared: u32,
    pub(super) suffix_start: u32,
    pub(super) value_start: u32,
    pub(super) end: u32,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// The sequence number of the entry.
    pub seq: SeqNo,
}

impl Slot {
    /// Returns the offset at which the entry starts.
    pub fn start(&self) -> usize {
        self.start as usize
    }

    /// Returns the number of bytes that the key shares with the previous key.
    pub fn shared(&self) -> usize {
        self.shared as usize
    }

    /// Returns the offset at which the next entry starts.
    pub fn end(&self) -> usize {
        self.end as usize
    }

    /// Returns a slot to read the value by, without its first `bytes`.
    #[must_use]
    pub fn with_value_from(self, bytes: usize) -> Slot {
        Slot { value_start: (self.value_start + bytes as u32).min(self.end), ..self }
    }

    /// Returns the length of the key.
    #[inline]
    pub fn key_bytes(&self) -> usize {
        self.shared() + self.suffix().len()
    }

    /// Returns the place of the part of the key that is stored with the entry.
    pub(super) fn suffix(&self) -> Range<usize> {
        self.suffix_start as usize..self.value_start as usize
    }

    /// Returns the place of the value.
    pub(super) fn value(&self) -> Range<usize> {
        self.value_start as usize..self.end as usize
    }
}

/// The entries in front of a searched one, decoded on the way to it. A backward walk returns them
/// again without decoding.
#[derive(Debug, Default)]
pub struct Trail {
    slots: Vec<(Slot, usize)>,
    /// Their keys, one behind the other. Each slot comes with the start of its key here.
    keys: Vec<u8>,
}

impl Trail {
    /// Removes all entries.
    #[inline]
    pub fn clear(&mut self) {
        self.slots.clear();
        self.keys.clear();
    }

    /// Returns the number of entries.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Adds the next entry, with its `key`.
    #[inline]
    pub(super) fn push(&mut self, slot: Slot, key: &[u8]) {
        self.slots.push((slot, self.keys.len()));
        append_key(&mut self.keys, key);
    }

    /// Removes and returns the last entry, and sets `key` to its key.
    #[inline]
    pub fn pop(&mut self, key: &mut Vec<u8>) -> Option<Slot> {
        let (slot, key_start) = self.slots.pop()?;
        key.clear();
        append_key(key, self.keys.get(key_start..).unwrap_or_default());
        self.keys.truncate(key_start);
        Some(slot)
    }
}
