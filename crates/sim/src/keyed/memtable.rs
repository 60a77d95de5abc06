//! The active memtable.

use super::entry::Entry;
use lsmith_policy::is_memtable_full;

/// The newest version of each key written since the last seal, as the net effect of all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Memtable {
    /// In the order of first writes. An entry of 0 bytes stands for a pair that has cancelled.
    entries: Vec<Entry>,
    /// The index of each rank in `entries`, plus one; 0 where it has none.
    slots: Vec<u32>,
    bytes: u64,
    written_bytes: u64,
}

impl Memtable {
    /// Takes a write, the newest of all.
    pub(super) fn write(&mut self, entry: Entry) {
        self.written_bytes += u64::from(entry.bytes);
        let rank = entry.rank as usize;
        if rank >= self.slots.len() {
            self.slots.resize(rank + 1, 0);
        }
        let Some(index) = self.slots[rank].checked_sub(1) else {
            self.entries.push(entry);
            self.slots[rank] = u32::try_from(self.entries.len()).expect("as many as ranks");
            self.bytes += u64::from(entry.bytes);
            return;
        };
        let older = &mut self.entries[index as usize];
        self.bytes -= u64::from(older.bytes);
        match entry.over(Some(*older).filter(|older| older.bytes > 0)) {
            Some(net) => {
                self.bytes += u64::from(net.bytes);
                *older = net;
            }
            None => older.bytes = 0,
        }
    }

    /// Logical bytes of all entries.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is to be sealed, under a policy that wants it sealed at `seal_bytes`.
    pub(super) fn is_full(&self, seal_bytes: u64) -> bool {
        is_memtable_full(seal_bytes, self.bytes, self.written_bytes)
    }

    /// All entries in key order; the memtable is then empty.
    pub(super) fn take(&mut self) -> Vec<Entry> {
        let mut entries = std::mem::take(&mut self.entries);
        for entry in &entries {
            self.slots[entry.rank as usize] = 0;
        }
        (self.bytes, self.written_bytes) = (0, 0);
        entries.retain(|entry| entry.bytes > 0);
        entries.sort_unstable_by_key(|entry| entry.rank);
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_tree::EntryKind::{Insert, Put, Remove};
    use lsmith_tree::SeqNo;

    #[test]
    fn the_newest_version_counts_and_what_cancels_does_not() {
        let mut memtable = Memtable::default();
        let entry = |rank, bytes, seq, kind| Entry::new(rank, bytes, SeqNo(seq), kind);
        for (entry, bytes) in [
            (entry(7, 100, 1, Put), 100),
            (entry(3, 50, 2, Insert), 150),
            (entry(7, 30, 3, Put), 80),
            (entry(3, 12, 4, Remove), 30),
            (entry(5, 12, 5, Insert), 42),
            (entry(5, 12, 6, Remove), 30),
            (entry(5, 20, 7, Put), 50),
        ] {
            memtable.write(entry);
            assert_eq!(memtable.bytes(), bytes, "after {entry:?}");
        }
        assert_eq!(memtable.take(), [entry(5, 20, 7, Put), entry(7, 30, 3, Put)]);
        assert_eq!(memtable.bytes(), 0);
        memtable.write(entry(7, 10, 8, Put));
        assert_eq!(memtable.take(), [entry(7, 10, 8, Put)]);
    }
}
