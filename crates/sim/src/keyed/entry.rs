//! Entries, and what versions of one key come to.

use lsmith_tree::{EntryKind, SeqNo};

/// One version of a key: where the key stands in byte order, what it says, how large it is. The
/// value itself is of no interest. 16 bytes, since there can be hundreds of millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The place of the key in byte order.
    pub(super) rank: u32,
    /// Logical bytes: key, value and 8.
    pub(super) bytes: u32,
    /// The sequence number, and the kind in the two lowest bits.
    seq_kind: u64,
}

impl Entry {
    pub(super) fn new(rank: u32, bytes: u32, seq: SeqNo, kind: EntryKind) -> Entry {
        Entry { rank, bytes, seq_kind: seq.0 << 2 | kind as u64 }
    }

    pub(super) fn seq(self) -> SeqNo {
        SeqNo(self.seq_kind >> 2)
    }

    pub(super) fn kind(self) -> EntryKind {
        EntryKind::from_byte((self.seq_kind & 3) as u8).expect("two bits make a kind")
    }

    fn with_kind(self, kind: EntryKind) -> Entry {
        Entry { seq_kind: self.seq_kind & !3 | kind as u64, ..self }
    }

    /// The net effect of this entry on top of `older`, an entry of the same key or nothing.
    pub(super) fn over(self, older: Option<Entry>) -> Option<Entry> {
        match older {
            Some(older) => self.kind().over(older.kind()).map(|kind| self.with_kind(kind)),
            None => Some(self),
        }
    }
}

/// What a merge of entries drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    /// Entries.
    pub(super) entries: u64,
    /// The greatest sequence number of a tombstone among them.
    pub(super) below: SeqNo,
}

/// Merges entries of several runs: the runs one behind the other, newest first, each in key order.
/// What is left is in key order, one entry per key; tombstones go too where nothing lies beneath.
pub(super) fn merge(entries: &mut Vec<Entry>, nothing_beneath: bool) -> Dropped {
    // Stable, so that entries of one key stay newest first; and made for input that is sorted in
    // long stretches, which it merges.
    entries.sort_by_key(|entry| entry.rank);
    let mut dropped = Dropped::default();
    let (mut from, mut kept) = (0, 0);
    while from < entries.len() {
        let newest = entries[from];
        let upto = from + 1 + run_length(&entries[from + 1..], newest.rank);
        let versions = entries[from..upto].iter().rev();
        // From the oldest to the newest, as they were written.
        let net = versions.fold(None, |older, entry| {
            let net = entry.over(older);
            if net.is_none() {
                dropped.below = dropped.below.max(newest.seq());
            }
            net
        });
        dropped.entries += (upto - from) as u64;
        from = upto;
        match net {
            Some(entry) if nothing_beneath && entry.kind().is_tombstone() => {
                dropped.below = dropped.below.max(entry.seq());
            }
            Some(entry) => {
                dropped.entries -= 1;
                entries[kept] = entry;
                kept += 1;
            }
            None => {}
        }
    }
    entries.truncate(kept);
    dropped
}

/// How many of the first entries have this rank.
fn run_length(entries: &[Entry], rank: u32) -> usize {
    entries.iter().take_while(|entry| entry.rank == rank).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use EntryKind::{Delete, Insert, Put, Remove};

    fn entry(rank: u32, seq: u64, kind: EntryKind) -> Entry {
        Entry::new(rank, 10, SeqNo(seq), kind)
    }

    #[test]
    fn an_entry_takes_sixteen_bytes_and_gives_back_what_was_put_in() {
        assert_eq!(size_of::<Entry>(), 16);
        for kind in [Put, Delete, Insert, Remove] {
            let seq = SeqNo((1 << 62) - 1);
            let entry = Entry::new(u32::MAX, u32::MAX, seq, kind);
            assert_eq!((entry.seq(), entry.kind()), (seq, kind));
        }
    }

    #[test]
    fn the_newest_version_stays_and_pairs_vanish() {
        let newer = [entry(1, 9, Put), entry(2, 8, Remove), entry(4, 7, Delete)];
        let older = [entry(1, 3, Put), entry(2, 2, Insert), entry(3, 1, Put)];
        let mut entries = [newer, older].concat();
        let dropped = merge(&mut entries, false);
        assert_eq!(entries, [entry(1, 9, Put), entry(3, 1, Put), entry(4, 7, Delete)]);
        assert_eq!(dropped, Dropped { entries: 3, below: SeqNo(8) });

        let dropped = merge(&mut entries, true);
        assert_eq!(entries, [entry(1, 9, Put), entry(3, 1, Put)]);
        assert_eq!(dropped, Dropped { entries: 1, below: SeqNo(7) });
    }

    #[test]
    fn versions_are_folded_from_the_oldest_on() {
        let mut entries =
            vec![entry(5, 4, Remove), entry(5, 3, Put), entry(5, 2, Delete), entry(5, 1, Insert)];
        merge(&mut entries, false);
        assert_eq!(entries, [entry(5, 4, Remove)]);
    }
}
