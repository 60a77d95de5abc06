//! Levels: runs of one age class, and what has been counted there.

use crate::range::KeyRange;
use crate::run::{Run, RunId};
use crate::slice::Size;
use std::sync::Arc;

/// What merges have done to a level since the tree began. Bytes are logical; blocks are counted
/// by interpreters that know blocks, and are 0 elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Memtables flushed to this level as runs of their own.
    pub flushes: u64,
    /// Merges whose output went to this level, flushes and moves not included.
    pub merges: u64,
    /// Moves to this level.
    pub moves: u64,
    /// Bytes of the inputs of those merges that came from memory.
    pub bytes_from_memory: u64,
    /// Bytes of all other inputs of those merges.
    pub bytes_in: u64,
    /// Entries of all inputs.
    pub entries_in: u64,
    /// Blocks that those merges read from storage: not those that they took over, but also those
    /// beside what they took, where they were written anew.
    pub blocks_in: u64,
    /// Bytes written to this level, by flushes and merges.
    pub bytes_written: u64,
    /// Entries written to this level.
    pub entries_written: u64,
    /// Blocks written to this level.
    pub blocks_written: u64,
    /// Bytes that a merge took over without rewriting them.
    pub bytes_reused: u64,
    /// Entries taken over.
    pub entries_reused: u64,
    /// Blocks taken over.
    pub blocks_reused: u64,
    /// Bytes moved to this level.
    pub bytes_moved: u64,
    /// Rewritings of the level alone, to give back empty room.
    pub compactions: u64,
    /// Empty room in blocks added to this level since it was last compacted, in bytes.
    pub room_added: u64,
    /// Empty room in blocks taken from this level by merges into it, since then.
    pub room_taken: u64,
    /// The allowance of empty room that merges into this level have brought, since then.
    pub slack: u64,
}

macro_rules! counter_fields {
    ($($name:ident),* $(,)?) => {
        impl Counters {
            /// Names and values of all counters, in the order of the text form.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// The counter called `name`.
            pub fn field_mut(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// Adds `other` to each counter, up to as much as there can be; a compaction first
            /// settles the account of empty room.
            pub fn add(&mut self, other: &Counters) {
                if other.compactions > 0 {
                    (self.room_added, self.room_taken, self.slack) = (0, 0, 0);
                }
                $(self.$name = self.$name.saturating_add(other.$name);)*
            }
        }
    };
}

counter_fields!(
    flushes,
    merges,
    moves,
    bytes_from_memory,
    bytes_in,
    entries_in,
    blocks_in,
    bytes_written,
    entries_written,
    blocks_written,
    bytes_reused,
    entries_reused,
    blocks_reused,
    bytes_moved,
    compactions,
    room_added,
    room_taken,
    slack,
);

/// Runs of one age class, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level {
    runs: Vec<Arc<Run>>,
    /// Of all runs: asked for far more often than runs come and go.
    bytes: u64,
    /// How many of the runs are in a knot.
    tied: usize,
    pub(crate) counters: Counters,
}

impl Level {
    /// A level of `runs`, newest first.
    pub fn new(runs: Vec<Run>) -> Level {
        let mut level = Level::default();
        level.set_runs(runs.into_iter().map(Arc::new).collect());
        level
    }

    pub(crate) fn set_runs(&mut self, runs: Vec<Arc<Run>>) {
        self.bytes = runs.iter().fold(0, |bytes, run| bytes.saturating_add(run.bytes()));
        self.tied = runs.iter().filter(|run| run.knot().is_some()).count();
        self.runs = runs;
    }

    pub(crate) fn insert(&mut self, index: usize, run: Run) {
        self.bytes = self.bytes.saturating_add(run.bytes());
        self.tied += usize::from(run.knot().is_some());
        self.runs.insert(index, Arc::new(run));
    }

    pub(crate) fn remove(&mut self, index: usize) {
        let run = self.runs.remove(index);
        self.bytes = self.bytes.saturating_sub(run.bytes());
        self.tied -= usize::from(run.knot().is_some());
    }

    /// Lets `change` have a run, in place where nobody else looks at it.
    pub(crate) fn change(&mut self, index: usize, change: impl FnOnce(&mut Run)) {
        let run = Arc::make_mut(&mut self.runs[index]);
        self.bytes = self.bytes.saturating_sub(run.bytes());
        change(run);
        debug_assert!(run.adds_up(), "{run}");
        self.bytes = self.bytes.saturating_add(run.bytes());
    }

    /// The runs, newest first.
    pub fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// What has been counted at this level.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Logical bytes of all runs.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether one of the runs is in a knot.
    pub fn has_knots(&self) -> bool {
        self.tied > 0
    }

    /// What all runs hold.
    pub fn size(&self) -> Size {
        self.runs.iter().map(|run| run.size()).sum()
    }

    /// The least range that covers all runs.
    pub fn hull(&self) -> KeyRange {
        let empty = KeyRange { start: crate::Key::new(), end: Some(crate::Key::new()) };
        self.runs.iter().fold(empty, |hull, run| hull.hull(&run.hull()))
    }

    pub(crate) fn index_of(&self, id: RunId) -> Option<usize> {
        self.runs.iter().position(|run| run.id() == id)
    }
}
