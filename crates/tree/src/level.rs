//! Levels: runs of one age class, and the counters of what merges did to them.

use crate::range::KeyRange;
use crate::run::{Run, RunId};
use crate::size::Size;
use std::sync::Arc;

/// Checks after every edit look at all slices if there are at most this many.
pub(crate) const SLICES_FEW: usize = 128;

/// Counters of what merges have done to a level since the tree was created. Bytes are logical.
/// Blocks are counted by interpreters that know blocks, and are 0 otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Memtables flushed to this level as runs of their own.
    pub flushes: u64,
    /// Merges into this level, without flushes and moves.
    pub merges: u64,
    /// Moves to this level.
    pub moves: u64,
    /// Input bytes of those merges that came from memory.
    pub bytes_from_memory: u64,
    /// All other input bytes of those merges.
    pub bytes_in: u64,
    /// Entries of all inputs.
    pub entries_in: u64,
    /// Blocks that those merges read from storage. Reused blocks do not count; neighbours that were
    /// rewritten do.
    pub blocks_in: u64,
    /// Bytes written to this level, by flushes and merges.
    pub bytes_written: u64,
    /// Entries written to this level.
    pub entries_written: u64,
    /// Blocks written to this level.
    pub blocks_written: u64,
    /// Bytes that merges reused without rewriting.
    pub bytes_reused: u64,
    /// Entries reused.
    pub entries_reused: u64,
    /// Blocks reused.
    pub blocks_reused: u64,
    /// Bytes moved to this level.
    pub bytes_moved: u64,
    /// Times that the level was rewritten by itself, to fill its blocks.
    pub compactions: u64,
    /// Empty room in blocks that was added to this level since its last compaction, in bytes.
    pub room_added: u64,
    /// Empty room in blocks that merges into this level have taken since then, in bytes.
    pub room_taken: u64,
    /// The empty room that merges into this level may have added since then, in bytes.
    pub slack: u64,
}

macro_rules! counter_fields {
    ($($name:ident),* $(,)?) => {
        impl Counters {
            /// Returns the names and values of all counters, in the order of the text form.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// Returns the counter called `name`.
            pub fn field_mut(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// Adds the counters of `other`, saturating. If `other` has a compaction, the counters
            /// of empty room start again from 0.
            pub fn add(&mut self, other: &Counters) {
                if other.compactions > 0 {
                    self.room_added = 0;
                    self.room_taken = 0;
                    self.slack = 0;
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
    /// The bytes of all runs, kept because they are read far more often than runs change.
    bytes: u64,
    /// The number of runs in knots.
    tied: usize,
    pub(crate) counters: Counters,
}

impl Level {
    /// Returns a level of `runs`, newest first.
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

    /// Applies `change` to a run. The run is copied only if somebody else holds it.
    pub(crate) fn change(&mut self, index: usize, change: impl FnOnce(&mut Run)) {
        let run = Arc::make_mut(&mut self.runs[index]);
        self.bytes = self.bytes.saturating_sub(run.bytes());
        change(run);
        debug_assert!(run.slices().len() > SLICES_FEW || run.adds_up(), "{run}");
        self.bytes = self.bytes.saturating_add(run.bytes());
    }

    /// Returns the runs, newest first.
    pub fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// Returns the counters of this level.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the logical bytes of all runs.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if one of the runs is in a knot.
    pub fn has_knots(&self) -> bool {
        self.tied > 0
    }

    /// Returns the size of all runs together.
    pub fn size(&self) -> Size {
        self.runs.iter().map(|run| run.size()).sum()
    }

    /// Returns the least range that covers all runs.
    pub fn hull(&self) -> KeyRange {
        let empty = KeyRange { start: crate::Key::new(), end: Some(crate::Key::new()) };
        self.runs.iter().fold(empty, |hull, run| hull.hull(&run.hull()))
    }

    pub(crate) fn index_of(&self, id: RunId) -> Option<usize> {
        self.runs.iter().position(|run| run.id() == id)
    }
}
