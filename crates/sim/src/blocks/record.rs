//! Records of one size.

use crate::keyed::{Record, is_tombstone, kind_of};
use lsmith_tree::{EntryKind, SeqNo};

/// A record without a sequence number: its key as a number, what it says, how large it is. 8
/// bytes, since there can be a hundred million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRecord {
    key: u32,
    /// Logical bytes, and the kind in the two lowest bits.
    bytes_kind: u32,
}

impl BlockRecord {
    /// `bytes` end below 2^30.
    pub(super) fn new(key: u32, bytes: u32, kind: EntryKind) -> BlockRecord {
        debug_assert!(bytes < 1 << 30, "{bytes} bytes are too many");
        BlockRecord { key, bytes_kind: bytes << 2 | kind as u32 }
    }
}

impl Record for BlockRecord {
    #[inline]
    fn rank(self) -> u32 {
        self.key
    }

    #[inline]
    fn bytes(self) -> u64 {
        u64::from(self.bytes_kind >> 2)
    }

    #[inline]
    fn kind(self) -> EntryKind {
        kind_of((self.bytes_kind & 3) as u8)
    }

    fn with_kind(self, kind: EntryKind) -> BlockRecord {
        BlockRecord { bytes_kind: self.bytes_kind & !3 | kind as u32, ..self }
    }

    #[inline]
    fn is_tombstone(self) -> bool {
        is_tombstone(self.bytes_kind as u8)
    }

    #[inline]
    fn seq(self) -> SeqNo {
        SeqNo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_takes_eight_bytes_and_gives_back_what_was_put_in() {
        assert_eq!(size_of::<BlockRecord>(), 8);
        for kind in [EntryKind::Put, EntryKind::Delete, EntryKind::Insert, EntryKind::Remove] {
            let record = BlockRecord::new(u32::MAX, 1 << 20, EntryKind::Put).with_kind(kind);
            assert_eq!((record.rank(), record.bytes()), (u32::MAX, 1 << 20));
            assert_eq!(record.kind(), kind);
        }
    }
}
