//! The entries of simulations in blocks.

use crate::keyed::{Expired, KeyedEntry, is_tombstone, kind_of};
use lsmith_tree::{EntryKind, SeqNo};

/// An entry without a sequence number: key, kind and size. It takes 8 bytes, because there can be a
/// hundred million entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    key: u32,
    /// Logical bytes, and the kind in the three lowest bits.
    bytes_kind: u32,
}

impl BlockEntry {
    /// Returns an entry of `bytes` logical bytes, below 2^29.
    pub(super) fn new(key: u32, bytes: u32, kind: EntryKind) -> BlockEntry {
        debug_assert!(bytes < 1 << 29, "{bytes} bytes are too many");
        BlockEntry { key, bytes_kind: bytes << 3 | kind as u32 }
    }
}

impl KeyedEntry for BlockEntry {
    #[inline]
    fn rank(self) -> u32 {
        self.key
    }

    #[inline]
    fn bytes(self) -> u64 {
        u64::from(self.bytes_kind >> 3)
    }

    #[inline]
    fn kind(self) -> EntryKind {
        kind_of((self.bytes_kind & 7) as u8)
    }

    fn with_kind(self, kind: EntryKind) -> BlockEntry {
        BlockEntry { bytes_kind: self.bytes_kind & !7 | kind as u32, ..self }
    }

    #[inline]
    fn is_tombstone(self) -> bool {
        is_tombstone(self.bytes_kind as u8)
    }

    #[inline]
    fn age(self) -> i64 {
        0
    }

    #[inline]
    fn seq_of(_: i64) -> SeqNo {
        SeqNo::default()
    }

    #[inline]
    fn written(self) -> SeqNo {
        SeqNo::default()
    }

    fn forgotten(self) -> BlockEntry {
        self
    }

    #[inline]
    fn expired(self, _: &Expired) -> BlockEntry {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_takes_eight_bytes_and_keeps_its_fields() {
        assert_eq!(size_of::<BlockEntry>(), 8);
        for kind in [EntryKind::Put, EntryKind::Delete, EntryKind::Insert, EntryKind::Remove] {
            let entry = BlockEntry::new(u32::MAX, 1 << 20, EntryKind::Put).with_kind(kind);
            assert_eq!((entry.rank(), entry.bytes()), (u32::MAX, 1 << 20));
            assert_eq!(entry.kind(), kind);
        }
    }
}
