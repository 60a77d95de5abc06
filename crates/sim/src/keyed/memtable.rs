//! The active memtable.

use super::entry::{Entry, KeyedEntry};
use lsmith_policy::is_memtable_full;

/// Slots of a new index, a power of two.
const SLOTS_MIN: usize = 1 << 10;

/// The newest version of each key written since the last seal, as the net effect of all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Memtable {
    /// Entries in the order of first writes. An entry of 0 bytes stands for a pair that has
    /// cancelled.
    entries: Vec<Entry>,
    /// The positions of ranks in `entries`. It fits into the CPU caches, unlike an array with a
    /// slot per rank of a large key space.
    index: Index,
    bytes: u64,
    written_bytes: u64,
}

/// An open-addressing hash table from ranks to positions.
#[derive(Clone, Debug, Default)]
struct Index {
    /// The rank, and the position plus one; 0 for an empty slot.
    slots: Vec<(u32, u32)>,
    used: usize,
}

impl Index {
    /// Returns the position of `rank`. If it has none, sets it to `new` and returns `None`.
    fn place_or(&mut self, rank: u32, new: usize) -> Option<usize> {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = Index::hash(rank) & mask;
        loop {
            match self.slots[at] {
                (_, 0) => break,
                (found, place) if found == rank => return Some(place as usize - 1),
                _ => at = (at + 1) & mask,
            }
        }
        self.slots[at] = (rank, u32::try_from(new + 1).expect("as many as ranks"));
        self.used += 1;
        None
    }

    /// Returns true if `rank` has a position.
    fn holds(&self, rank: u32) -> bool {
        let Some(mask) = self.slots.len().checked_sub(1) else { return false };
        let mut at = Index::hash(rank) & mask;
        loop {
            match self.slots[at] {
                (_, 0) => return false,
                (found, _) if found == rank => return true,
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Hashes neighbouring ranks, and multiples of a number, far apart.
    fn hash(rank: u32) -> usize {
        (u64::from(rank).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
    }

    fn grow(&mut self) {
        let slots = vec![(0, 0); (self.slots.len() * 2).max(SLOTS_MIN)];
        let old = std::mem::replace(&mut self.slots, slots);
        self.used = 0;
        for (rank, place) in old.into_iter().filter(|(_, place)| *place > 0) {
            self.place_or(rank, place as usize - 1);
        }
    }

    fn clear(&mut self) {
        // Many small memtables may follow a large one.
        if self.used * 8 < self.slots.len() && self.slots.len() > SLOTS_MIN {
            self.slots.truncate(self.slots.len() / 2);
        }
        self.slots.fill((0, 0));
        self.used = 0;
    }
}

impl Memtable {
    /// Adds a write, newer than all others.
    pub(super) fn write(&mut self, entry: Entry) {
        self.written_bytes += entry.bytes();
        let Some(place) = self.index.place_or(entry.rank(), self.entries.len()) else {
            self.entries.push(entry);
            self.bytes += entry.bytes();
            return;
        };
        let older = &mut self.entries[place];
        self.bytes -= older.bytes();
        let net = if older.bytes() > 0 { entry.over(*older) } else { Some(entry) };
        self.bytes += net.map_or(0, Entry::bytes);
        *older = net.unwrap_or(Entry::new(entry.rank(), 0, entry.seq(), entry.kind()));
    }

    /// Returns true if the key with this rank was written since the last seal.
    pub(super) fn holds(&self, rank: u32) -> bool {
        self.index.holds(rank)
    }

    /// Returns the logical bytes of all entries.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if the memtable should be sealed, given `seal_bytes` of the policy.
    pub(super) fn is_full(&self, seal_bytes: u64) -> bool {
        is_memtable_full(seal_bytes, self.bytes, self.written_bytes)
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.index.clear();
        self.bytes = 0;
        self.written_bytes = 0;
    }

    /// Removes and returns all entries, in key order.
    pub(super) fn take(&mut self) -> Vec<Entry> {
        // The next memtable is about as large.
        let room = Vec::with_capacity(self.entries.len());
        let mut entries = std::mem::replace(&mut self.entries, room);
        self.clear();
        entries.retain(|entry| entry.bytes() > 0);
        entries.sort_unstable_by_key(|entry| entry.rank());
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
