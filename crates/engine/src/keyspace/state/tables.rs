//! The open tables of a keyspace: which go, and what is given back of those that stay.

use super::KeyspaceState;
use crate::version::{Change, Shown, TableHandle, Version};
use lsmith_tree::{KeyRange, MergePlan, Place, Reason, TableId, check_plan};
use std::sync::Arc;

impl KeyspaceState {
    /// Lets the tree name `tables`.
    pub(crate) fn add_tables(&mut self, tables: Vec<Arc<TableHandle>>) {
        let named = |table: Arc<TableHandle>| (TableId(table.number()), table);
        self.tables.extend(tables.into_iter().map(named));
    }

    /// Bytes that the files of all tables take, parts that no slice shows included as long as they
    /// are not given back.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.tables.values().map(|table| table.held_bytes()).sum()
    }

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
