//! When plans may drop tables unread, and which expired tables they drop.

use crate::check::check_plan;
use crate::entry::SeqNo;
use crate::plan::{MergePlan, Mode, Reason};
use crate::range::KeyRange;
use crate::run::Run;
use crate::size::Size;
use crate::slice::Slice;
use crate::tree::Tree;
use crate::view::TreeView;
use std::sync::Arc;

impl MergePlan {
    /// Returns the greatest sequence number of the tables that the plan takes from; 0 if they have
    /// none.
    pub fn newest_taken(&self, tree: &Tree) -> SeqNo {
        let runs = self.taken_from(tree).flat_map(|(run, range)| run.overlapping(range));
        runs.map(|slice| slice.table().seq_max).max().unwrap_or_default()
    }

    /// Returns the size of what the plan takes.
    pub fn size_taken(&self, tree: &Tree) -> Size {
        self.taken_from(tree).map(|(run, range)| run.size_within(range)).sum()
    }

    fn taken_from<'a>(
        &'a self,
        tree: &'a Tree,
    ) -> impl Iterator<Item = (&'a Arc<Run>, &'a KeyRange)> {
        self.inputs.iter().filter_map(|input| Some((tree.run(input.run)?.1, &input.range)))
    }

    /// Returns true if the plan drops what readers at `oldest` or later may not lose: entries that
    /// are newer, or some that hide older ones of their keys from them.
    pub fn drops_too_early(&self, tree: &Tree, oldest: SeqNo) -> bool {
        let leaves_none =
            || self.is_hidden(tree, oldest) || tree.is_bottom_for(self).unwrap_or(false);
        self.mode == Mode::Drop && (self.newest_taken(tree) > oldest || !leaves_none())
    }

    /// Returns true if range deletes hide all that the plan takes from readers at `at`.
    pub fn is_hidden(&self, tree: &Tree, at: SeqNo) -> bool {
        self.inputs.iter().all(|input| {
            tree.run(input.run).is_some_and(|(_, run)| tree.hides(run, &input.range, at))
        })
    }

    /// Returns a plan that [drops](crate::Mode::Drop) a slice on storage whose entries have all
    /// expired when the clock shows `now`. Returns `None` if there is none, or if the plan is not
    /// legal now.
    ///
    /// An expired entry goes on hiding older ones of its key, so the oldest table of a key goes
    /// first. Entries that are newer than `oldest`, which the oldest reader sees, stay: a
    /// transaction must find that its keys were written.
    pub fn expire(view: &TreeView, now: u64, oldest: SeqNo) -> Option<MergePlan> {
        let has_expired = |slice: &&Slice| {
            let table = slice.table();
            (1..=now).contains(&table.expires) && table.seq_max <= oldest
        };
        view.tree.disk_runs().find_map(|run| {
            run.slices().iter().filter(has_expired).find_map(|slice| {
                let reason = Reason::new("this part of run {} has expired", [run.id().0, 0, 0]);
                let plan = MergePlan::drop(run.id(), slice.range().clone(), reason);
                check_plan(view, &plan).is_ok().then_some(plan)
            })
        })
    }
}

impl Tree {
    /// Returns true if range deletes hide all that `run` has in `range` from readers at `at`.
    fn hides(&self, run: &Run, range: &KeyRange, at: SeqNo) -> bool {
        run.overlapping(range).iter().all(|slice| {
            let taken = slice.range().intersection(range);
            self.erased().shown(&taken, slice.table().seq_max, at).is_empty()
        })
    }
}
