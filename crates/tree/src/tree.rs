//! The tree: all runs at one moment, in order of age.

use crate::dropped::Dropped;
use crate::entry::SeqNo;
use crate::level::Level;
use crate::memo::Memo;
use crate::range::KeyRange;
use crate::range_deletes::RangeDeletes;
use crate::reads::Reads;
use crate::run::{Run, RunId};
use crate::size::Size;
use crate::slice::{Slice, Table, TableId};
use std::fmt;
use std::sync::Arc;

/// The most levels of a tree, without memory.
pub const LEVELS_MAX: usize = 64;

/// The place of a run: memory, or a level on storage. Memory is younger than level 0, and level 0
/// is younger than level 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LevelId {
    /// Sealed memtables.
    Memory,
    /// A level on storage. Level 0 is the youngest.
    Disk(usize),
}

impl fmt::Display for LevelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LevelId::Memory => f.write_str("mem"),
            LevelId::Disk(index) => write!(f, "L{index}"),
        }
    }
}

/// All runs in order of age, and what the tree remembers of its past.
///
/// A tree changes only through [`apply`](crate::apply). A clone copies names and pointers, not
/// tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    pub(crate) memory: Level,
    pub(crate) levels: Vec<Level>,
    pub(crate) next_run: u64,
    pub(crate) next_table: u64,
    pub(crate) flushes: u64,
    pub(crate) flushed: Size,
    pub(crate) reads: Reads,
    pub(crate) dropped: Dropped,
    pub(crate) range_deletes: RangeDeletes,
    pub(crate) memo: Memo,
}

impl Tree {
    /// Returns a tree without runs.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// Returns a tree of these levels, level 0 first, without memtables.
    pub fn from_levels(levels: Vec<Level>) -> Tree {
        let mut tree = Tree { levels, ..Tree::default() };
        tree.count_names();
        tree
    }

    /// Returns the sealed memtables, newest first.
    pub fn memory(&self) -> &Level {
        &self.memory
    }

    /// Returns the levels on storage, youngest first. A level without runs stays, with its
    /// counters.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Returns the runs of one level, newest first. A level that does not exist has none.
    pub fn runs_at(&self, level: LevelId) -> &[Arc<Run>] {
        match level {
            LevelId::Memory => self.memory.runs(),
            LevelId::Disk(index) => self.levels.get(index).map_or(&[], Level::runs),
        }
    }

    /// Returns all runs with their levels, newest first, including memory.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = (LevelId, &Arc<Run>)> {
        let levels = self.levels.iter().enumerate();
        let disk =
            levels.flat_map(|(i, level)| level.runs().iter().map(move |r| (LevelId::Disk(i), r)));
        self.memory.runs().iter().map(|run| (LevelId::Memory, run)).chain(disk)
    }

    /// Returns the runs on storage, newest first.
    pub fn disk_runs(&self) -> impl DoubleEndedIterator<Item = &Arc<Run>> {
        self.levels.iter().flat_map(|level| level.runs().iter())
    }

    /// Returns the number of runs on storage.
    pub fn disk_run_count(&self) -> usize {
        self.levels.iter().map(|level| level.runs().len()).sum()
    }

    /// Returns the logical bytes on storage.
    pub fn disk_bytes(&self) -> u64 {
        self.levels.iter().fold(0, |bytes, level| bytes.saturating_add(level.bytes()))
    }

    /// Returns the run called `id`, with its level; `None` if the tree has no such run.
    pub fn run(&self, id: RunId) -> Option<(LevelId, &Arc<Run>)> {
        let (level, index) = self.find(id)?;
        Some((level, &self.runs_at(level)[index]))
    }

    /// Returns the name of the next run.
    pub fn next_run(&self) -> RunId {
        RunId(self.next_run)
    }

    /// Returns the name of the next table. An interpreter may have used later names already.
    pub fn next_table(&self) -> TableId {
        TableId(self.next_table)
    }

    /// Makes `id` the name of the next table, unless that is a later one. For interpreters of
    /// several plans at a time, which use names before an edit brings them in.
    pub fn skip_tables_below(&mut self, id: TableId) {
        self.next_table = self.next_table.max(id.0);
    }

    /// Returns the number of memtables that were flushed or merged since the tree was created: its
    /// logical clock.
    pub fn flushes(&self) -> u64 {
        self.flushes
    }

    /// Returns the size of these memtables.
    pub fn flushed(&self) -> Size {
        self.flushed
    }

    /// Returns how often the tree was read while recent memtables were filled. Nothing is counted
    /// unless the policy asks for it.
    pub fn reads(&self) -> Reads {
        self.reads
    }

    /// Returns the greatest sequence number of all tombstones that merges have dropped. A table
    /// with older entries must not be added: it could bring back deleted data.
    pub fn dropped_below(&self) -> SeqNo {
        self.dropped.below(&KeyRange::ALL)
    }

    /// Returns which tombstones merges have dropped, by key range.
    pub fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    /// Returns the range deletes, as far as runs may hold entries that they hide. Range
    /// deletes of memtables are not among them.
    pub fn range_deletes(&self) -> &RangeDeletes {
        &self.range_deletes
    }

    /// Returns the notes of the policy.
    pub fn memo(&self) -> &Memo {
        &self.memo
    }

    /// Replaces the metadata of every table by `table(old)`, for example with profiles loaded from
    /// disk. `table` is called once per slice.
    ///
    /// # Panics
    /// If a new table does not hold the keys of a slice.
    #[must_use]
    pub fn with_tables(mut self, mut table: impl FnMut(&Arc<Table>) -> Arc<Table>) -> Tree {
        let levels = std::iter::once(&mut self.memory).chain(&mut self.levels);
        for level in levels {
            let runs = level.runs().iter().map(|run| {
                let slices = run.slices().iter().map(|slice| {
                    let known = Slice::whole(table(slice.table()));
                    known.clip(slice.range()).expect("a table that holds the slice")
                });
                Arc::new(Run::new(run.id(), slices.collect()).in_knot(run.knot()))
            });
            level.set_runs(runs.collect());
        }
        self
    }

    /// Returns the level at `index`, and adds levels if it does not exist.
    pub(crate) fn level_mut(&mut self, index: usize) -> &mut Level {
        if self.levels.len() <= index {
            self.levels.resize_with(index + 1, Level::default);
        }
        &mut self.levels[index]
    }

    pub(crate) fn find_mut(&mut self, id: RunId) -> Option<(&mut Level, usize)> {
        match self.find(id)? {
            (LevelId::Memory, index) => Some((&mut self.memory, index)),
            (LevelId::Disk(level), index) => Some((&mut self.levels[level], index)),
        }
    }

    /// Returns the level and index of a run. Written as loops because every edit calls it many
    /// times.
    fn find(&self, id: RunId) -> Option<(LevelId, usize)> {
        if let Some(index) = self.memory.index_of(id) {
            return Some((LevelId::Memory, index));
        }
        for (depth, level) in self.levels.iter().enumerate() {
            if let Some(index) = level.index_of(id) {
                return Some((LevelId::Disk(depth), index));
            }
        }
        None
    }

    /// Raises the next names above every name in use.
    pub(crate) fn count_names(&mut self) {
        let runs = self.runs().map(|(_, run)| run.id().0.saturating_add(1)).max();
        let slices = self.runs().flat_map(|(_, run)| run.slices().iter());
        let tables = slices.map(|slice| slice.table().id.0.saturating_add(1)).max();
        self.next_run = self.next_run.max(runs.unwrap_or(0));
        self.next_table = self.next_table.max(tables.unwrap_or(0));
    }
}
