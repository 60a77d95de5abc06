//! What slices show of tables.

use super::{Change, TableHandle, Version};
use lsmith_tree::{KeyRange, TableId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Parts of tables that slices show, in key order.
pub(crate) type ShownRanges = FxHashMap<TableId, (Arc<TableHandle>, Vec<KeyRange>)>;

impl Version {
    /// What slices show of the tables for which `wanted` says true.
    pub(crate) fn shown(&self, wanted: impl Fn(TableId) -> bool) -> ShownRanges {
        let mut shown = ShownRanges::default();
        for slice in self.runs.iter().flat_map(|run| run.slices_of(&wanted)) {
            let new = || (Arc::clone(slice.table()), Vec::new());
            shown.entry(slice.id()).or_insert_with(new).1.push(slice.range().clone());
        }
        // Slices of one run are in order; those of several are not.
        for (_, ranges) in shown.values_mut() {
            if !ranges.is_sorted_by(|left, right| left.start <= right.start) {
                ranges.sort_unstable_by(|left, right| left.start.cmp(&right.start));
            }
        }
        shown
    }

    /// The tables of slices that `change`, the next thing to happen, takes away or cuts.
    pub(crate) fn touched(&self, change: Change<'_>) -> FxHashSet<TableId> {
        let mut tables = FxHashSet::default();
        for run in &self.runs {
            let removed = change.edit.remove.iter().filter(|input| input.run == run.run().id());
            for range in removed.map(|input| &input.range) {
                tables.extend(run.run().overlapping(range).iter().map(|slice| slice.table().id));
            }
        }
        tables
    }
}
