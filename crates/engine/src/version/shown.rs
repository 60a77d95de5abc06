//! What slices show of tables.

use super::{Core, OpenRun, TableHandle, Version};
use lsmith_tree::{KeyRange, MergePlan, Place, Reason, TableId, check_plan};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Parts of tables that slices show, in key order.
type Shown = FxHashMap<TableId, (Arc<TableHandle>, Vec<KeyRange>)>;

impl Version {
    /// What slices show of the tables for which `wanted` says true.
    pub(crate) fn shown(&self, wanted: impl Fn(TableId) -> bool) -> Shown {
        let mut shown = Shown::default();
        for slice in self.runs.iter().flat_map(|run| run.slices()) {
            let id = TableId(slice.table().number());
            if wanted(id) {
                let new = || (Arc::clone(slice.table()), Vec::new());
                shown.entry(id).or_insert_with(new).1.push(slice.range().clone());
            }
        }
        // Slices of one run are in order; those of several are not.
        for (_, ranges) in shown.values_mut() {
            ranges.sort_unstable_by(|left, right| left.start.cmp(&right.start));
        }
        shown
    }
}

impl Core {
    /// Gives back what `now`, the newest version, does not need of tables that `before` needed
    /// more of; all tables where there is no version before.
    pub(crate) fn reclaim_after(&self, before: Option<&Version>, now: &Version) {
        let unchanged = |run: &Arc<OpenRun>| now.runs.iter().any(|same| Arc::ptr_eq(same, run));
        let changed = before.into_iter().flat_map(|version| &version.runs);
        let changed: FxHashMap<TableId, ()> = changed
            .filter(|run| !unchanged(run))
            .flat_map(|run| run.tables().map(|table| (TableId(table.number()), ())))
            .collect();
        let all = before.is_none();
        for (table, ranges) in now.shown(|id| all || changed.contains_key(&id)).values() {
            self.reclaim.add(table, table.show_only(ranges));
        }
        self.reclaim.collect();
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
