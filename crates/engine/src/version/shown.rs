//! The parts of tables that the slices of a version show.

use super::{TableHandle, Version};
use lsmith_tree::{KeyRange, TableId, TreeEdit};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The key ranges that slices show of each table, in key order.
pub(crate) type ShownRanges = FxHashMap<TableId, (Arc<TableHandle>, Vec<KeyRange>)>;

impl Version {
    /// Returns the key ranges that slices show of the tables for which `wanted` returns true.
    pub(crate) fn shown(&self, wanted: impl Fn(TableId) -> bool) -> ShownRanges {
        let mut shown = ShownRanges::default();
        for slice in self.runs.iter().flat_map(|run| run.slices_of(&wanted)) {
            let new = || (Arc::clone(slice.table()), Vec::new());
            shown.entry(slice.id()).or_insert_with(new).1.push(slice.range().clone());
        }
        // The slices of one run are in key order, but several runs may show the same table.
        for (_, ranges) in shown.values_mut() {
            if !ranges.is_sorted_by(|left, right| left.start <= right.start) {
                ranges.sort_unstable_by(|left, right| left.start.cmp(&right.start));
            }
        }
        shown
    }

    /// Returns the tables of the slices that `edit`, which follows this version, removes or cuts.
    pub(crate) fn touched(&self, edit: &TreeEdit) -> FxHashSet<TableId> {
        let mut tables = FxHashSet::default();
        for run in &self.runs {
            let removed = edit.remove.iter().filter(|input| input.run == run.run().id());
            for range in removed.map(|input| &input.range) {
                tables.extend(run.run().overlapping(range).iter().map(|slice| slice.table().id));
            }
        }
        tables
    }
}
