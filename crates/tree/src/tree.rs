//! The tree: what exists, in order of age, at one moment.

use crate::entry::SeqNo;
use crate::level::Level;
use crate::memo::Memo;
use crate::run::{Run, RunId};
use crate::slice::{Size, Slice, Table, TableId};
use std::fmt;
use std::sync::Arc;

/// Levels that a tree can have below memory.
pub const LEVELS_MAX: usize = 64;

/// Where a run is: in memory, or in a level below it. Memory is younger than level 0, which is
/// younger than level 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LevelId {
    /// Sealed memtables.
    Memory,
    /// A level on storage, 0 the youngest.
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

/// All runs in order of age, and what the tree remembers about its past.
///
/// A tree changes only through [`apply`](crate::apply). Copying one copies names and pointers, no
/// tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    pub(crate) memory: Level,
    pub(crate) levels: Vec<Level>,
    pub(crate) next_run: u64,
    pub(crate) next_table: u64,
    pub(crate) flushes: u64,
    pub(crate) flushed: Size,
    pub(crate) dropped_below: SeqNo,
    pub(crate) memo: Memo,
}

impl Tree {
    /// A tree without runs.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// A tree of the given levels below an empty memory; level 0 first.
    pub fn from_levels(levels: Vec<Level>) -> Tree {
        let mut tree = Tree { levels, ..Tree::default() };
        tree.count_names();
        tree
    }

    /// Sealed memtables, newest first.
    pub fn memory(&self) -> &Level {
        &self.memory
    }

    /// Levels on storage, youngest first. Any of them can be empty: levels stay, with what was
    /// counted at them.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The runs of one level, newest first; none where there is no such level.
    pub fn runs_at(&self, level: LevelId) -> &[Arc<Run>] {
        match level {
            LevelId::Memory => self.memory.runs(),
            LevelId::Disk(index) => self.levels.get(index).map_or(&[], Level::runs),
        }
    }

    /// All runs with their levels, newest first, memory included.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = (LevelId, &Arc<Run>)> {
        let disk = self.levels.iter().enumerate();
        let disk =
            disk.flat_map(|(i, level)| level.runs().iter().map(move |r| (LevelId::Disk(i), r)));
        self.memory.runs().iter().map(|run| (LevelId::Memory, run)).chain(disk)
    }

    /// Runs on storage, newest first.
    pub fn disk_runs(&self) -> impl DoubleEndedIterator<Item = &Arc<Run>> {
        self.levels.iter().flat_map(|level| level.runs().iter())
    }

    /// How many runs there are on storage.
    pub fn disk_run_count(&self) -> usize {
        self.levels.iter().map(|level| level.runs().len()).sum()
    }

    /// Logical bytes on storage.
    pub fn disk_bytes(&self) -> u64 {
        self.levels.iter().fold(0, |bytes, level| bytes.saturating_add(level.bytes()))
    }

    /// The run called `id`, with its level.
    pub fn run(&self, id: RunId) -> Option<(LevelId, &Arc<Run>)> {
        let (level, index) = self.find(id)?;
        Some((level, &self.runs_at(level)[index]))
    }

    /// The name that the next run gets.
    pub fn next_run(&self) -> RunId {
        RunId(self.next_run)
    }

    /// The name that the next table gets, unless the interpreter gave names ahead.
    pub fn next_table(&self) -> TableId {
        TableId(self.next_table)
    }

    /// Memtables flushed or merged straight in since the tree began: its logical clock.
    pub fn flushes(&self) -> u64 {
        self.flushes
    }

    /// What those memtables held.
    pub fn flushed(&self) -> Size {
        self.flushed
    }

    /// The greatest sequence number of any tombstone ever dropped: a table older than that must
    /// not be let in, or it could bring back what was deleted.
    pub fn dropped_below(&self) -> SeqNo {
        self.dropped_below
    }

    /// What the policy has noted.
    pub fn memo(&self) -> &Memo {
        &self.memo
    }

    /// The same tree with what `table` gives in the place of each table: for who knows more of
    /// tables than the tree does. Asked once per slice.
    ///
    /// # Panics
    /// A new table does not hold the keys of a slice.
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

    /// The level at `index`, made if it is missing.
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

    /// Asked many times for each edit, so written out.
    fn find(&self, id: RunId) -> Option<(LevelId, usize)> {
        if let Some(index) = self.memory.index_of(id) {
            return Some((LevelId::Memory, index));
        }
        for (number, level) in self.levels.iter().enumerate() {
            if let Some(index) = level.index_of(id) {
                return Some((LevelId::Disk(number), index));
            }
        }
        None
    }

    /// Keeps the counters of names above every name in use.
    pub(crate) fn count_names(&mut self) {
        let runs = self.runs().map(|(_, run)| run.id().0.saturating_add(1)).max();
        let tables = self.runs().flat_map(|(_, run)| run.slices().iter());
        let tables = tables.map(|slice| slice.table().id.0.saturating_add(1)).max();
        self.next_run = self.next_run.max(runs.unwrap_or(0));
        self.next_table = self.next_table.max(tables.unwrap_or(0));
    }
}
