//! How old tombstones are.

use super::TreeEdit;
use crate::plan::Input;
use crate::run::Run;
use crate::slice::Table;
use crate::tree::{LevelId, Tree};
use std::sync::Arc;

impl TreeEdit {
    /// Says of each new table of the edit when its oldest tombstone may have come to `tree`, to
    /// which the edit is about to be applied: when the oldest tombstone came that the edit takes
    /// within the range of the table. For policies that need it.
    pub fn date_tombstones(&mut self, tree: &Tree) {
        let mut dated: Vec<Arc<Table>> = Vec::new();
        for slice in self.add.iter_mut().flat_map(|addition| &mut addition.slices) {
            let table = slice.table();
            let known = dated.iter().find(|dated| dated.id == table.id);
            let table = match known {
                Some(known) => Arc::clone(known),
                None => match oldest_tombstone(tree, &self.remove, table) {
                    Some(oldest_tombstone) => {
                        Arc::new(Table { oldest_tombstone, ..Table::clone(table) })
                    }
                    None => continue,
                },
            };
            *slice = slice.clone().of_table(Arc::clone(&table));
            if known.is_none() {
                dated.push(table);
            }
        }
    }
}

/// Returns when the oldest tombstone of `table` came or earlier, if it has any and is not a part of
/// what is `taken`.
fn oldest_tombstone(tree: &Tree, taken: &[Input], table: &Table) -> Option<u64> {
    if table.size.tombstones == 0 {
        return None;
    }
    let taken = taken.iter().filter(|input| input.range.overlaps(&table.range));
    let runs = taken.filter_map(|input| tree.run(input.run));
    let is_kept = |run: &Run| {
        let old = run.overlapping(&table.range);
        old.iter().any(|old| (old.table().id, old.table().root) == (table.id, table.root))
    };
    if runs.clone().any(|(_, run)| is_kept(run)) {
        return None;
    }
    let oldest = runs.filter_map(|(level, run)| match level {
        // A memtable does not count its tombstones. It is the next flush.
        LevelId::Memory => Some(tree.flushes.saturating_add(1)),
        LevelId::Disk(_) => {
            let parts = run.overlapping(&table.range);
            let parts = parts.iter().filter(|part| part.table().size.tombstones > 0);
            // If nothing is known of a table, it may be as old as the tree.
            parts.map(|part| part.table().oldest_tombstone.max(1)).min()
        }
    });
    oldest.min()
}
