//! Keyed content: what lies in each table, entry by entry.

use super::entry::{Entry, merge};
use super::table::{cut, size, table, within};
use crate::{Content, SimError};
use lsmith_tree::{
    KeyRange, LevelId, MergePlan, Mode, Outcome, Place, Run, Slice, Table, TableId, Tree,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sorted entries of every table, memtables included.
///
/// Merges follow the rules of the store: versions of a key come to their net effect, tombstones
/// go where nothing lies beneath the merge, and tables are cut between keys. Nobody holds a
/// snapshot. Keys in trees and plans are [ranks](super::rank_key).
#[derive(Clone, Debug, Default)]
pub struct KeyedContent {
    tables: BTreeMap<TableId, Held>,
}

/// A table for as long as somebody knows it.
#[derive(Clone, Debug)]
struct Held {
    table: Arc<Table>,
    entries: Vec<Entry>,
}

impl KeyedContent {
    /// A new table of `entries`, at least one, in key order.
    pub(super) fn add(&mut self, id: TableId, mut entries: Vec<Entry>) -> Slice {
        entries.shrink_to_fit();
        let table = Arc::new(table(id, &entries));
        self.tables.insert(id, Held { table: Arc::clone(&table), entries });
        Slice::whole(table)
    }

    /// The entries that are visible through `slice`.
    fn entries(&self, slice: &Slice) -> &[Entry] {
        let entries = &self.tables[&slice.table().id].entries;
        &entries[within(entries, slice.range())]
    }

    /// Every live key of `tree` by rank, with the logical bytes of its newest version: what a scan
    /// of everything would find.
    pub fn live(&self, tree: &Tree) -> Vec<(u64, u64)> {
        let mut entries = Vec::new();
        for (_, run) in tree.runs() {
            self.copy(run, &KeyRange::ALL, &mut entries);
        }
        merge(&mut entries, true);
        entries.iter().map(|entry| (u64::from(entry.rank), u64::from(entry.bytes))).collect()
    }

    fn copy(&self, run: &Run, range: &KeyRange, entries: &mut Vec<Entry>) {
        for slice in run.clip(range) {
            entries.extend_from_slice(self.entries(&slice));
        }
    }

    fn merge(&mut self, tree: &Tree, plan: &MergePlan) -> Result<Outcome, SimError> {
        let illegal = |rule| SimError::BadPlan { plan: Box::new(plan.clone()), rule };
        let mut outcome = Outcome::default();
        let mut entries = Vec::new();
        for (level, run, range) in inputs(tree, plan) {
            let from = entries.len();
            self.copy(run, range, &mut entries);
            match level {
                LevelId::Memory => outcome.from_memory += size(&entries[from..]),
                LevelId::Disk(_) => outcome.read += size(&entries[from..]),
            }
        }
        let dropped = merge(&mut entries, tree.is_bottom_for(plan).map_err(illegal)?);
        outcome.entries_dropped = dropped.entries;
        outcome.dropped_below = dropped.below;
        outcome.written = size(&entries);
        let ids = (tree.next_table().0..).map(TableId);
        let tables = cut(entries, plan.cut_bytes).into_iter();
        outcome.slices = ids.zip(tables).map(|(id, entries)| self.add(id, entries)).collect();
        Ok(outcome)
    }
}

/// The inputs of a plan, newest first.
fn inputs<'a>(
    tree: &'a Tree,
    plan: &'a MergePlan,
) -> impl Iterator<Item = (LevelId, &'a Arc<Run>, &'a KeyRange)> {
    plan.inputs.iter().filter_map(|input| {
        let (level, run) = tree.run(input.run)?;
        Some((level, run, &input.range))
    })
}

impl Content for KeyedContent {
    const MOVES_ARE_MERGES: bool = false;

    fn carry_out(&mut self, tree: &Tree, plan: &MergePlan) -> Result<Outcome, SimError> {
        if matches!(plan.place, Place::Append(_)) {
            let what = "keyed content knows no append tables";
            return Err(SimError::Unsupported { plan: Box::new(plan.clone()), what });
        }
        match plan.mode {
            Mode::Merge => self.merge(tree, plan),
            Mode::Move => {
                let clips = inputs(tree, plan).flat_map(|(_, run, range)| run.clip(range));
                let mut slices: Vec<Slice> = clips.collect();
                slices.sort_by(|left, right| left.range().start.cmp(&right.range().start));
                Ok(Outcome { slices, ..Outcome::default() })
            }
        }
    }

    fn rest(&mut self, _: &Tree) {
        // The tree, or whoever copied it, holds a reference to each table that it knows.
        self.tables.retain(|_, held| Arc::strong_count(&held.table) > 1);
    }
}
