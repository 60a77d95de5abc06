//! Entries, and the net effect of versions of one key.

use lsmith_tree::{EntryKind, SeqNo, Size};
use lsmith_workload::Lives;
use std::fmt::Debug;

/// One version of a key in a simulation: its rank, kind and size. Values are not stored.
pub trait KeyedEntry: Copy + Debug + 'static {
    /// Returns the rank of the key in byte order.
    fn rank(self) -> u32;

    /// Returns the logical bytes.
    fn bytes(self) -> u64;

    /// Returns the kind.
    fn kind(self) -> EntryKind;

    /// Returns the same entry with another kind.
    #[must_use]
    fn with_kind(self, kind: EntryKind) -> Self;

    /// Returns true if the entry is a tombstone.
    #[inline]
    fn is_tombstone(self) -> bool {
        self.kind().is_tombstone()
    }

    /// Returns an integer that orders entries as their sequence numbers do; negative if the
    /// sequence number is forgotten.
    fn age(self) -> i64;

    /// Returns the sequence number of entries of this [age](KeyedEntry::age); 0 if it is not
    /// stored, or forgotten.
    fn seq_of(age: i64) -> SeqNo;

    /// Returns the sequence number; 0 if it is not stored, or forgotten.
    #[inline]
    fn seq(self) -> SeqNo {
        Self::seq_of(self.age())
    }

    /// Returns the number of the write, even if the sequence number is forgotten; 0 if it is not
    /// stored.
    fn written(self) -> SeqNo;

    /// Returns the entry without its sequence number.
    #[must_use]
    fn forgotten(self) -> Self;

    /// Returns a tombstone of the key if the entry has `expired`. Returns the entry otherwise.
    #[must_use]
    fn expired(self, expired: &Expired) -> Self;

    /// Returns the net effect of this entry over `older`, an entry of the same key.
    #[must_use]
    fn over(self, older: Self) -> Option<Self> {
        self.kind().over(older.kind()).map(|kind| self.with_kind(kind))
    }

    /// Returns the size of the entry.
    #[inline]
    fn size(self) -> Size {
        let tombstones = u64::from(self.is_tombstone());
        Size { bytes: self.bytes(), entries: 1, tombstones }
    }
}

/// The entries that have expired at one moment.
#[derive(Clone, Debug, Default)]
pub struct Expired {
    lives: Lives,
    /// The number of the last write.
    now: SeqNo,
}

impl Expired {
    /// Returns the entries with these `lives` that have expired when write `now` is made.
    pub(crate) fn new(lives: &Lives, now: SeqNo) -> Expired {
        Expired { lives: lives.clone(), now }
    }

    /// Returns true if the entry of write number `written` has expired, if it can.
    #[inline]
    fn has(&self, written: SeqNo) -> bool {
        self.lives.end(written.0).is_some_and(|end| end <= self.now.0)
    }
}

/// An entry with its sequence number. 16 bytes, since there can be hundreds of millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    rank: u32,
    bytes: u32,
    /// From the lowest bit on: the kind, the bytes of a tombstone of the key, if the entry expires,
    /// the number of the write, and the sign, which is set if the sequence number is forgotten. So
    /// merges, which look at the number of each entry, do so in one step.
    packed: i64,
}

/// The lowest bit of the bytes of a tombstone.
const TOMBSTONE_BIT: u32 = 3;

/// The lowest bit of the number of the write. A simulation has fewer than 2^42 writes, and a store
/// no keys of 2^18 bytes.
const SEQ_BIT: u32 = 21;

impl Entry {
    /// `bytes` are logical: key, value and 8.
    pub(super) fn new(rank: u32, bytes: u32, seq: SeqNo, kind: EntryKind) -> Entry {
        Entry { rank, bytes, packed: (seq.0 << SEQ_BIT) as i64 | kind as i64 }
    }

    /// Returns an entry that expires. `bytes` are logical: key, time, value and 8. A tombstone of
    /// the key has `tombstone_bytes`.
    pub(super) fn expiring(rank: u32, bytes: u32, seq: SeqNo, tombstone_bytes: u32) -> Entry {
        let entry = Entry::new(rank, bytes, seq, EntryKind::Expiring);
        Entry { packed: entry.packed | i64::from(tombstone_bytes) << TOMBSTONE_BIT, ..entry }
    }
}

impl KeyedEntry for Entry {
    #[inline]
    fn rank(self) -> u32 {
        self.rank
    }

    #[inline]
    fn bytes(self) -> u64 {
        u64::from(self.bytes)
    }

    #[inline]
    fn kind(self) -> EntryKind {
        kind_of((self.packed & 7) as u8)
    }

    fn with_kind(self, kind: EntryKind) -> Entry {
        Entry { packed: self.packed & !7 | kind as i64, ..self }
    }

    #[inline]
    fn is_tombstone(self) -> bool {
        is_tombstone(self.packed as u8)
    }

    #[inline]
    fn age(self) -> i64 {
        self.packed
    }

    #[inline]
    fn seq_of(age: i64) -> SeqNo {
        SeqNo(age.max(0) as u64 >> SEQ_BIT)
    }

    #[inline]
    fn expired(self, expired: &Expired) -> Entry {
        if self.kind() != EntryKind::Expiring || !expired.has(self.written()) {
            return self;
        }
        let bytes = self.packed >> TOMBSTONE_BIT & ((1 << (SEQ_BIT - TOMBSTONE_BIT)) - 1);
        let tombstone = Entry::new(self.rank, bytes as u32, self.written(), EntryKind::Delete);
        Entry { packed: tombstone.packed | self.packed & i64::MIN, ..tombstone }
    }

    #[inline]
    fn written(self) -> SeqNo {
        SeqNo((self.packed & i64::MAX) as u64 >> SEQ_BIT)
    }

    fn forgotten(self) -> Entry {
        Entry { packed: self.packed | i64::MIN, ..self }
    }
}

/// Returns true if the kind in the three lowest bits of `byte` is a tombstone.
#[inline]
pub(crate) fn is_tombstone(byte: u8) -> bool {
    const { assert!(EntryKind::Delete as u8 & 5 == 1 && EntryKind::Remove as u8 & 5 == 1) };
    const { assert!(EntryKind::Put as u8 & 5 == 0 && EntryKind::Insert as u8 & 5 == 0) };
    const { assert!(EntryKind::Combine as u8 & 5 != 1 && EntryKind::Expiring as u8 & 5 != 1) };
    byte & 5 == 1
}

/// Returns the kind in the three lowest bits of `byte`.
#[inline]
pub(crate) fn kind_of(byte: u8) -> EntryKind {
    use EntryKind::{Combine, Delete, Expiring, Insert, Put, Remove};
    // Codes that are no kinds do not occur.
    const KINDS: [EntryKind; 8] = [Put, Delete, Insert, Remove, Put, Combine, Expiring, Put];
    KINDS[usize::from(byte & 7)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use EntryKind::{Combine, Delete, Expiring, Insert, Put, Remove};

    #[test]
    fn an_entry_takes_sixteen_bytes_and_gives_back_what_was_put_in() {
        assert_eq!(size_of::<Entry>(), 16);
        for kind in [Put, Delete, Insert, Remove, Combine] {
            let seq = SeqNo((1 << 42) - 1);
            let entry = Entry::new(u32::MAX, u32::MAX, seq, kind);
            assert_eq!((entry.seq(), entry.kind()), (seq, kind));
            assert_eq!((entry.rank(), entry.bytes()), (u32::MAX, u64::from(u32::MAX)));
            assert_eq!(kind_of(kind as u8), kind);
            assert_eq!(entry.is_tombstone(), kind.is_tombstone());
            assert_eq!(entry.expired(&Expired::new(&Lives::All(1), seq)), entry);
            let forgotten = entry.forgotten();
            assert_eq!((forgotten.seq(), forgotten.written()), (SeqNo(0), seq));
            assert_eq!((forgotten.kind(), forgotten.bytes()), (kind, entry.bytes()));
        }
    }

    #[test]
    fn an_expired_entry_is_a_tombstone() {
        let entry = Entry::expiring(7, 1000, SeqNo((1 << 42) - 1), (1 << 18) - 1);
        assert_eq!((entry.seq(), entry.kind()), (SeqNo((1 << 42) - 1), Expiring));
        let expired = |now| Expired::new(&Lives::All(5), SeqNo(now));
        assert_eq!(entry.expired(&expired(entry.seq().0 + 4)), entry);
        let tombstone = Entry::new(7, (1 << 18) - 1, entry.seq(), Delete);
        assert_eq!(entry.expired(&expired(entry.seq().0 + 5)), tombstone);
    }
}
