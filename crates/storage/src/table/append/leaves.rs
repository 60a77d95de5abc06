//! Builds leaves from entries in order.

use crate::cursor::EntryRef;
use crate::format::{BlockBuilder, NODE_BYTES, NodeSum, Span, ValueRef, common_prefix_bytes};
use lsmith_tree::{EntryKind, SeqNo, Size, logical_bytes};
use std::collections::VecDeque;

/// Bytes of an entry of a leaf besides its key and its reference, usually.
const HEAD_BYTES_USUAL: usize = 4;

/// A new leaf, without a seal, because its place is not known yet.
#[derive(Debug)]
pub(super) struct Leaf {
    /// A key above all keys of the leaf before, and at most the first key of this one.
    pub(super) separator: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) sum: NodeSum,
}

/// An entry that waits for its leaf.
#[derive(Debug)]
pub(super) struct LeafEntry {
    pub(super) key: Vec<u8>,
    pub(super) seq: SeqNo,
    pub(super) kind: EntryKind,
    pub(super) value: ValueRef,
}

impl LeafEntry {
    /// Returns true if the block of the value is not finished yet.
    fn is_open(&self) -> bool {
        self.value.value_bytes > 0 && self.value.block.bytes == 0
    }
}

/// Builds leaves one after the other.
#[derive(Debug, Default)]
pub(super) struct LeafBuilder {
    /// The entries that wait, with their bytes in a leaf, roughly.
    pending: VecDeque<(LeafEntry, usize)>,
    /// The sum of these bytes.
    pending_bytes: usize,
    /// The separator of the next leaf.
    separator: Vec<u8>,
    /// The entry that was added last.
    last_key: Vec<u8>,
    last_seq: SeqNo,
    has_open: bool,
    done: Vec<Leaf>,
}

impl LeafBuilder {
    /// Sets the separator of the next leaf, unless entries already wait for it.
    pub(super) fn begin(&mut self, separator: &[u8]) {
        if self.pending.is_empty() {
            self.separator.clear();
            self.separator.extend_from_slice(separator);
        }
    }

    /// Returns true if no entry waits.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns true if the waiting entries would make a leaf that is almost empty.
    pub(super) fn is_small(&self) -> bool {
        self.pending_bytes < NODE_BYTES / 4
    }

    /// Returns true if the waiting entries fit into one leaf together with one of `bytes`.
    pub(super) fn fits_with(&self, bytes: u64) -> bool {
        self.pending_bytes as u64 + bytes <= NODE_BYTES as u64
    }

    /// Adds the next entry. Fails if it does not come behind the one before.
    pub(super) fn add(&mut self, entry: LeafEntry) -> std::result::Result<(), &'static str> {
        let shared = common_prefix_bytes(&self.last_key, &entry.key);
        match (self.last_key.get(shared), entry.key.get(shared)) {
            (None, None) if entry.seq >= self.last_seq => {
                return Err("versions of a key do not come newest first");
            }
            (last, this) if last > this => {
                return Err("entries do not come in the order of their keys");
            }
            _ => {}
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&entry.key[shared..]);
        self.last_seq = entry.seq;
        let bytes = entry_bytes(shared, &entry);
        self.pending_bytes += bytes;
        self.has_open |= entry.is_open();
        self.pending.push_back((entry, bytes));
        self.make_full_leaves();
        Ok(())
    }

    /// Fills in the place of the block that was open until now.
    pub(super) fn close(&mut self, block: Span) {
        let waiting = self.pending.iter_mut().filter(|(entry, _)| entry.is_open());
        waiting.for_each(|(entry, _)| entry.value.block = block);
        self.has_open = false;
        self.make_full_leaves();
    }

    /// Ends the leaf. All blocks must be closed. Returns all leaves since the last call.
    pub(super) fn end(&mut self) -> Vec<Leaf> {
        debug_assert!(!self.has_open, "references need the places of their blocks");
        // Two leaves of one size are better than a full one and a small one.
        if self.pending_bytes > NODE_BYTES {
            self.make_leaf(self.pending_bytes / 2, true);
        }
        while !self.pending.is_empty() {
            self.make_leaf(NODE_BYTES, true);
        }
        std::mem::take(&mut self.done)
    }

    fn make_full_leaves(&mut self) {
        let is_long = |leaves: &LeafBuilder| leaves.pending_bytes >= 2 * NODE_BYTES;
        while !self.has_open && is_long(self) && self.make_leaf(NODE_BYTES, false) {}
    }

    /// Makes a leaf of the first entries: about `bytes` bytes, and at least one key. Unless
    /// `is_end`, more versions of the last key may come, and it waits. Returns false if there is no
    /// other.
    fn make_leaf(&mut self, bytes: usize, is_end: bool) -> bool {
        if !is_end && self.pending.front().is_none_or(|(entry, _)| entry.key == self.last_key) {
            return false;
        }
        let mut builder = BlockBuilder::default();
        let mut payload = Vec::with_capacity(bytes.min(NODE_BYTES));
        let mut reference = Vec::new();
        let mut key = Vec::new();
        let mut sum = NodeSum::default();
        while let Some((entry, _)) = self.pending.front() {
            let shared = common_prefix_bytes(&key, &entry.key);
            let is_new = builder.is_empty() || key != entry.key;
            reference.clear();
            entry.value.put(&mut reference);
            let bytes_with =
                builder.bytes_with(&payload, shared, entry.key.len() + reference.len());
            // All versions of a key are in one leaf.
            let is_full = bytes_with > NODE_BYTES || payload.len() >= bytes;
            let waits = !is_end && entry.key == self.last_key;
            if is_new && sum.keys > 0 && (is_full || waits) {
                break;
            }
            let (entry, waited) = self.pending.pop_front().expect("it is the front");
            self.pending_bytes -= waited;
            let LeafEntry { seq, kind, .. } = entry;
            let stored = EntryRef { key: &entry.key, seq, kind, value: &reference };
            builder.add(&mut payload, shared, &stored);
            sum.keys += u64::from(is_new);
            sum.size += Size {
                bytes: logical_bytes(entry.key.len(), entry.value.value_bytes as usize),
                entries: 1,
                tombstones: u64::from(kind.is_tombstone()),
            };
            key = entry.key;
        }
        builder.finish_payload(&mut payload);
        let separator = std::mem::take(&mut self.separator);
        if let Some((next, _)) = self.pending.front() {
            let shared = common_prefix_bytes(&key, &next.key);
            self.separator = next.key[..=shared].to_vec();
        }
        self.done.push(Leaf { separator, payload, sum });
        true
    }
}

/// Returns the bytes of an entry in a leaf, roughly.
fn entry_bytes(shared: usize, entry: &LeafEntry) -> usize {
    let mut reference = Vec::new();
    entry.value.put(&mut reference);
    entry.key.len() - shared + reference.len() + HEAD_BYTES_USUAL
}
