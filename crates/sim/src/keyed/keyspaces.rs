//! The bytes of each keyspace of a group.

use super::entry::{Entry, KeyedEntry};
use super::table::rank_from;
use crate::Event;
use lsmith_tree::{Mode, TreeEdit};

/// The logical bytes of one keyspace of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceBytes {
    /// Bytes in sealed memtables.
    pub flushed: u64,
    /// Bytes of all flushes and merge outputs. A memtable that goes straight into a merge counts as
    /// flushed first, as in [`write_cost_system`](crate::Figures::write_cost_system).
    pub written: u64,
}

impl KeyspaceBytes {
    /// Returns the bytes written per byte flushed: the part of the keyspace in
    /// [`write_cost_system`](crate::Figures::write_cost_system). 0 if nothing was flushed.
    #[must_use]
    pub fn write_cost(&self) -> f64 {
        if self.flushed == 0 { 0.0 } else { self.written as f64 / self.flushed as f64 }
    }
}

/// Counts the bytes of each keyspace of a group. Counts nothing without a group.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyspaceMeter {
    /// The ranks of each keyspace; 0 without a group.
    ranks: u64,
    bytes: Vec<KeyspaceBytes>,
    /// The bytes of each keyspace in the memtable that was sealed last.
    sealed: Vec<u64>,
}

impl KeyspaceMeter {
    /// Returns a meter of keyspaces with `ranks` ranks each.
    pub(super) fn new(ranks: u64) -> KeyspaceMeter {
        KeyspaceMeter { ranks, ..KeyspaceMeter::default() }
    }

    /// Returns the index of the keyspace of `rank`, for which there is room afterwards.
    fn index(&mut self, rank: u64) -> usize {
        let index = (rank / self.ranks) as usize;
        if index >= self.bytes.len() {
            self.bytes.resize(index + 1, KeyspaceBytes::default());
            self.sealed.resize(index + 1, 0);
        }
        index
    }

    /// Notes that a memtable of `entries` is sealed.
    pub(super) fn seal(&mut self, entries: &[Entry]) {
        if self.ranks == 0 {
            return;
        }
        self.sealed.fill(0);
        for entry in entries {
            let index = self.index(entry.rank().into());
            self.sealed[index] += entry.bytes();
            self.bytes[index].flushed += entry.bytes();
        }
    }

    /// Notes `event`.
    pub(super) fn observe(&mut self, event: &Event<'_>) {
        if let Event::Merge { plan, edit, .. } = event
            && plan.mode == Mode::Merge
            && self.ranks > 0
        {
            let goes_straight_into_a_merge = edit.flushes > 0 && plan.inputs.len() > 1;
            if goes_straight_into_a_merge {
                let flushed = self.bytes.iter_mut().zip(&self.sealed);
                flushed.for_each(|(bytes, sealed)| bytes.written += sealed);
            }
            self.add_output(edit);
        }
    }

    fn add_output(&mut self, edit: &TreeEdit) {
        for slice in edit.add.iter().flat_map(|addition| &addition.slices) {
            let index = self.index(rank_from(&slice.range().start));
            self.bytes[index].written += slice.size().bytes;
        }
    }

    /// Returns the bytes of each keyspace.
    pub(super) fn bytes(self) -> Vec<KeyspaceBytes> {
        self.bytes
    }
}
