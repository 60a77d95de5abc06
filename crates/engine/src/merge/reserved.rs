//! A plan that was taken up, on its way through a merge and a commit.

use crate::keyspace::KeyspaceShared;
use lsmith_tree::{Input, KeyRange, MergePlan, Mode, Place, TableId, Tree};
use std::sync::Arc;

/// A plan that is being carried out.
pub(crate) struct ReservedPlan {
    pub(crate) keyspace: Arc<KeyspaceShared>,
    pub(crate) plan: MergePlan,
    /// Whether nothing older than the output holds keys of it.
    pub(crate) bottom: bool,
    /// Whether sequence numbers that no snapshot needs are not kept.
    pub(crate) forgets: bool,
    /// Whether a memtable is among the inputs.
    pub(crate) takes_memory: bool,
    /// Whether memory keeps writes that are older than some that the plan takes.
    pub(crate) keeps_older: bool,
    /// The table whose last parts are all that the plan is to write anew, if it is one of the
    /// engine's own.
    pub(crate) rewrites: Option<TableId>,
    /// Whether it is the plan of all runs that was asked for by hand.
    pub(crate) by_hand: bool,
    /// Logical bytes of a part in the mean, if it is committed part by part.
    pub(crate) part_bytes: Option<u64>,
}

impl ReservedPlan {
    /// Whether there may be a limit on how fast its output is written: on all but flushes.
    pub(super) fn is_limited(&self) -> bool {
        !self.takes_memory || self.plan.inputs.len() > 1
    }
}

impl ReservedPlan {
    /// Whether the plan can be committed part by part: it merges whole runs on storage into one.
    pub(crate) fn may_commit_by_part(&self, tree: &Tree) -> bool {
        let plan = &self.plan;
        let whole = |input: &Input| {
            input.range.is_all() && tree.run(input.run).is_some_and(|(_, run)| run.knot().is_none())
        };
        !self.takes_memory
            && self.rewrites.is_none()
            && plan.place == Place::Oldest
            && plan.mode == Mode::Merge
            && plan.reuse.is_none()
            && plan.inputs.len() > 1
            && plan.inputs.iter().all(whole)
    }

    /// The plan for the keys of `range` alone, of what `tree` holds of it; `None` where it holds
    /// nothing, or the run that takes the output in has gone.
    pub(crate) fn within(&self, range: &KeyRange, tree: &Tree) -> Option<MergePlan> {
        let target = self.plan.inputs.last()?.run;
        let target = match self.plan.place {
            Place::Into(run) => run,
            _ => target,
        };
        tree.run(target)?;
        let clipped = self.plan.inputs.iter().filter_map(|input| {
            let range = input.range.intersection(range);
            let (_, run) = tree.run(input.run)?;
            (!run.overlapping(&range).is_empty()).then_some(Input { run: input.run, range })
        });
        let inputs: Vec<Input> = clipped.collect();
        let plan = MergePlan { inputs, place: Place::Into(target), ..self.plan.clone() };
        (!plan.inputs.is_empty()).then_some(plan)
    }
}
