//! The open tables of a keyspace: removes obsolete ones, and frees unused parts of others.

use super::KeyspaceState;
use crate::version::{ShownRanges, TableHandle, Version};
use lsmith_tree::{KeyRange, MergePlan, Place, Reason, Slice, TableId, TreeEdit, check_plan};
use std::sync::Arc;

impl KeyspaceState {
    /// Adds `tables`, so that the tree may name them.
    pub(crate) fn add_tables(&mut self, tables: Vec<Arc<TableHandle>>) {
        let named = |table: Arc<TableHandle>| (TableId(table.file_id()), table);
        self.tables.extend(tables.into_iter().map(named));
    }

    /// Returns the bytes that the files of all tables, and of their values, take on the device.
    /// Counts parts that no slice shows until they are freed.
    pub(crate) fn table_bytes(&self) -> u64 {
        let tables: u64 = self.tables.values().map(|table| table.held_bytes()).sum();
        tables + self.value_totals().file_bytes
    }

    /// Frees the parts of all tables that `now`, the newest version, does not need.
    pub(crate) fn reclaim(&self, now: &Version) {
        self.reclaim_of(now.shown(|_| true));
    }

    fn reclaim_of(&self, shown: ShownRanges) {
        for (table, ranges) in shown.values() {
            self.reclaim.add(table, table.show_only(ranges));
        }
        self.reclaim.collect();
    }

    /// Removes tables that `edit` has left without a slice, and frees the parts of other tables
    /// that it has made superfluous. `edit` led from version `before` to `now`.
    pub(crate) fn let_go(&mut self, before: &Version, edit: &TreeEdit, now: &Version) {
        let touched = before.touched(edit);
        // The closure runs for every slice of the version. For most slices the low bits of the
        // table's id rule it out without a lookup.
        let mut low_bits = [false; 4096];
        touched.iter().for_each(|id| low_bits[id.0 as usize % low_bits.len()] = true);
        let shown =
            now.shown(|id| low_bits[id.0 as usize % low_bits.len()] && touched.contains(&id));
        // A slice without keys to show keeps its table too, because the tree names it.
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

    /// Returns a plan that rewrites the slices of a table because less than `share` of it is
    /// needed, and the table. Returns `None` if the environment can punch holes, which frees space
    /// without a rewrite.
    pub(crate) fn rewrite(&self, share: f64) -> Option<(MergePlan, TableId)> {
        if !self.reclaim.is_unable() {
            return None;
        }
        let tables = self.tables.values().filter(|table| table.live_share() < share);
        let small: Vec<TableId> = tables.map(|table| TableId(table.file_id())).collect();
        if small.is_empty() {
            return None;
        }
        self.rewrite_one("little of table {} is needed", |id| small.contains(&id))
    }

    /// Returns a legal plan that rewrites the slices of a `wanted` table in one run, for `reason`,
    /// and the table.
    pub(super) fn rewrite_one(
        &self,
        reason: &'static str,
        wanted: impl Fn(TableId) -> bool,
    ) -> Option<(MergePlan, TableId)> {
        self.view.tree.disk_runs().find_map(|run| {
            let slices = run.slices().iter();
            let of = |id: TableId| slices.clone().filter(move |slice| slice.table().id == id);
            let mut found = slices.clone().map(|slice| slice.table().id).filter(|id| wanted(*id));
            found.find_map(|id| {
                let hull = |hull: KeyRange, slice: &Slice| hull.hull(slice.range());
                let range = of(id).fold(KeyRange::new("", ""), hull);
                let reason = Reason::new(reason, [id.0, 0, 0]);
                let mut plan = MergePlan::merge([run.id()], Place::Into(run.id()), reason);
                plan.inputs[0].range = range;
                check_plan(&self.view, &plan).is_ok().then_some((plan, id))
            })
        })
    }
}
