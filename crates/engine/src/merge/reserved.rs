//! A reserved plan, on its way through a merge and a commit.

use crate::keyspace::KeyspaceShared;
use lsmith_tree::{
    Input, KeptTables, KeyRange, LevelId, MergePlan, Mode, Place, RunId, TableId, Tree,
};
use std::sync::Arc;

/// A reserved plan, with all facts that the merge and the commit need.
pub(crate) struct ReservedPlan {
    pub(crate) keyspace: Arc<KeyspaceShared>,
    pub(crate) plan: MergePlan,
    /// True if no entry older than the output has one of its keys.
    pub(crate) bottom: bool,
    /// True if the merge drops sequence numbers that no snapshot needs.
    pub(crate) forgets: bool,
    /// True if a memtable is among the inputs.
    pub(crate) takes_memory: bool,
    /// True if memory keeps writes that are older than some that the plan takes.
    pub(crate) keeps_older: bool,
    /// For a plan that the engine itself made: the table whose remaining slices it rewrites. It
    /// keeps all other slices.
    pub(crate) rewrites: Option<TableId>,
    /// True if the merge may keep tables as they are: the policy made the plan, and does not mind.
    pub(crate) may_keep: bool,
    /// The tables that it keeps, once that is known.
    pub(crate) kept: KeptTables,
    /// True if the plan merges all runs because the user requested that.
    pub(crate) by_hand: bool,
    /// The number of [arrivals](crate::keyspace::KeyspaceState::arrivals) when it was reserved.
    pub(crate) arrivals: u64,
    /// The mean logical bytes of a part, if the plan commits part by part.
    pub(crate) part_bytes: Option<u64>,
}

impl ReservedPlan {
    /// Returns `plan`, made on behalf of a caller and of runs on storage alone, in the tree `tree`
    /// of `keyspace` with `arrivals`. It commits as a whole and keeps sequence numbers.
    pub(crate) fn of_caller(
        keyspace: &Arc<KeyspaceShared>,
        plan: MergePlan,
        tree: &Tree,
        arrivals: u64,
    ) -> ReservedPlan {
        ReservedPlan {
            keyspace: Arc::clone(keyspace),
            bottom: tree.is_bottom_for(&plan).expect("the plan was checked"),
            forgets: false,
            takes_memory: false,
            keeps_older: false,
            rewrites: None,
            may_keep: false,
            kept: KeptTables::default(),
            by_hand: false,
            part_bytes: None,
            arrivals,
            plan,
        }
    }

    /// Returns the level on storage that receives the output.
    pub(super) fn output_level(&self, tree: &Tree) -> usize {
        let of = |run: RunId| match tree.run(run) {
            Some((LevelId::Disk(level), _)) => level,
            Some((LevelId::Memory, _)) | None => 0,
        };
        match self.plan.place {
            Place::NewRun(level) | Place::NewAppend(level) => level,
            Place::Into(run) | Place::Append(run) => of(run),
            Place::Oldest => self.plan.inputs.last().map_or(0, |input| of(input.run)),
        }
    }

    /// Returns true if the limit on write speed applies to the output: always, except for flushes.
    pub(super) fn is_limited(&self) -> bool {
        !self.takes_memory || self.plan.inputs.len() > 1
    }
}

impl ReservedPlan {
    /// Returns true if the plan can commit part by part: it merges whole runs on storage into one,
    /// and none of them is in a knot. The plan of a group cannot: after a crash between two parts,
    /// runs of its keyspaces would cover different writes.
    pub(crate) fn may_commit_by_part(&self, tree: &Tree) -> bool {
        let plan = &self.plan;
        let whole = |input: &Input| {
            input.range.is_all() && tree.run(input.run).is_some_and(|(_, run)| run.knot().is_none())
        };
        !self.takes_memory
            && self.keyspace.members.is_none()
            && self.rewrites.is_none()
            && plan.place == Place::Oldest
            && plan.mode == Mode::Merge
            && plan.reuse.is_none()
            && plan.inputs.len() > 1
            && plan.inputs.iter().all(whole)
    }

    /// Returns the plan restricted to the keys of `range`, and to inputs that `tree` still holds.
    /// Returns `None` if no input is left, or if the run that takes the output in has gone.
    pub(crate) fn within(&self, range: &KeyRange, tree: &Tree) -> Option<MergePlan> {
        let oldest = self.plan.inputs.last()?.run;
        let target = match self.plan.place {
            Place::Into(run) => run,
            _ => oldest,
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
