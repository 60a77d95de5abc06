//! Plans that drop tables of which all entries have expired.

use crate::check::check_plan;
use crate::entry::SeqNo;
use crate::plan::{MergePlan, Reason};
use crate::slice::Slice;
use crate::tree::Tree;
use crate::view::TreeView;

impl MergePlan {
    /// Returns the greatest sequence number of the tables that the plan takes from; 0 if they have
    /// none.
    pub fn newest_taken(&self, tree: &Tree) -> SeqNo {
        let runs = self.inputs.iter().filter_map(|input| {
            let (_, run) = tree.run(input.run)?;
            Some(run.overlapping(&input.range))
        });
        runs.flatten().map(|slice| slice.table().seq_max).max().unwrap_or_default()
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
                let reason =
                    Reason::new("the entries of {} have expired", [slice.table().id.0, 0, 0]);
                let plan = MergePlan::drop(run.id(), slice.range().clone(), reason);
                check_plan(view, &plan).is_ok().then_some(plan)
            })
        })
    }
}
