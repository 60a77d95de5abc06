//! What slices show of tables.

use super::{Change, Core, TableHandle, Version};
use lsmith_tree::{KeyRange, MergePlan, Place, Reason, TableId, check_plan};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Parts of tables that slices show, in key order.
type Shown = FxHashMap<TableId, (Arc<TableHandle>, Vec<KeyRange>)>;

impl Version {
    /// What slices show of the tables for which `wanted` says true.
    pub(crate) fn shown(&self, wanted: impl Fn(TableId) -> bool) -> Shown {
        let mut shown = Shown::default();
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
    fn touched(&self, change: Change<'_>) -> FxHashSet<TableId> {
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

impl Core {
    /// Gives back what `now`, the newest version, does not need of all tables.
    pub(crate) fn reclaim(&self, now: &Version) {
        self.reclaim_of(now.shown(|_| true));
    }

    fn reclaim_of(&self, shown: Shown) {
        for (table, ranges) in shown.values() {
            self.reclaim.add(table, table.show_only(ranges));
        }
        self.reclaim.collect();
    }

    /// Lets go of tables that `change` has left without any slice, and gives back what it has left
    /// unneeded of others. `before` was the newest version, `now` is.
    pub(crate) fn let_go(&mut self, before: &Version, change: Change<'_>, now: &Version) {
        let touched = before.touched(change);
        // Asked of every slice that there is: of most the last digits of their table say enough.
        let mut digits = [false; 4096];
        touched.iter().for_each(|id| digits[id.0 as usize % digits.len()] = true);
        let shown = now.shown(|id| digits[id.0 as usize % digits.len()] && touched.contains(&id));
        // A slice that shows nothing keeps its table, as the tree names it.
        let named = |id: TableId| {
            let mut runs = now.runs.iter().filter(|run| !run.shows_all());
            runs.any(|run| run.run().slices().iter().any(|slice| slice.table().id == id))
        };
        for id in touched.iter().filter(|id| !shown.contains_key(id) && !named(**id)) {
            if let Some(table) = self.tables.remove(id) {
                table.retire();
            }
        }
        self.reclaim_of(shown);
    }

    /// A plan that rewrites what is left of a table that is needed for less than `share`, where
    /// its space cannot be given back otherwise; and the table.
    pub(crate) fn rewrite(&self, share: f64) -> Option<(MergePlan, TableId)> {
        if !self.reclaim.is_unable() {
            return None;
        }
        let small = self.tables.values().filter(|table| table.live_share() < share);
        let small: Vec<TableId> = small.map(|table| TableId(table.number())).collect();
        if small.is_empty() {
            return None;
        }
        self.view.tree.disk_runs().find_map(|run| {
            let slices = run.slices().iter();
            let of = |id: TableId| slices.clone().filter(move |slice| slice.table().id == id);
            let id = slices.clone().map(|slice| slice.table().id).find(|id| small.contains(id))?;
            let range = of(id).fold(KeyRange::new("", ""), |hull, slice| hull.hull(slice.range()));
            let reason = Reason::new("little of table {} is needed", [id.0, 0, 0]);
            let mut plan = MergePlan::merge([run.id()], Place::Into(run.id()), reason);
            plan.inputs[0].range = range;
            check_plan(&self.view, &plan).is_ok().then_some((plan, id))
        })
    }
}
