//! Counts memtables by logical bytes, for policies that take memory in parts.

use super::entry::Entry;
use super::memtable::Memtable;
use lsmith_tree::{EntryKind, SeqNo};

/// Counts the memtables that writes would fill if each were sealed when full.
///
/// A policy that counts in blocks seals small memtables and never empties memory. This count makes
/// a number of flushes the same writes under every policy.
#[derive(Clone, Debug)]
pub struct FullMemtables {
    memtable: Memtable,
    memtable_bytes: u64,
    count: u64,
}

impl FullMemtables {
    /// Returns a count of memtables of `memtable_bytes` logical bytes.
    pub fn new(memtable_bytes: u64) -> FullMemtables {
        FullMemtables { memtable: Memtable::default(), memtable_bytes, count: 0 }
    }

    /// Returns the count with `flushes` memtables from before.
    pub(super) fn after(self, flushes: u64) -> FullMemtables {
        FullMemtables { count: self.count + flushes, ..self }
    }

    /// Adds a write of an entry of `bytes` logical bytes, at least 1. Equal keys have equal ranks.
    pub fn write(&mut self, kind: EntryKind, key: u32, bytes: u32) {
        self.memtable.write(Entry::new(key, bytes, SeqNo::default(), kind));
        if self.memtable.is_full(self.memtable_bytes) {
            self.memtable.clear();
            self.count += 1;
        }
    }

    /// Returns the number of full memtables.
    pub fn count(&self) -> u64 {
        self.count
    }
}
