//! The bytes of each keyspace of a group.

use super::entry::{Entry, KeyedEntry};
use super::rank::rank_from;
use crate::{Event, KeyspaceBytes};
use lsmith_tree::{Mode, TreeEdit};

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
