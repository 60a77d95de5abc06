//! Where a plan reaches in the order of age.

use crate::check::PlanError;
use crate::plan::{MergePlan, Place};
use crate::range::KeyRange;
use crate::run::{Run, RunId};
use crate::tree::{LevelId, Tree};
use std::sync::Arc;

/// The runs of a tree in one line, newest first, so that age is a number: the run at index `i`
/// stands at `2i + 1`, the gap above it at `2i`.
pub(crate) struct AgeLine<'a> {
    pub(crate) runs: Vec<(LevelId, &'a Arc<Run>)>,
}

impl<'a> AgeLine<'a> {
    pub(crate) fn new(tree: &'a Tree) -> AgeLine<'a> {
        let mut runs = Vec::with_capacity(tree.memory().runs().len() + tree.disk_run_count());
        runs.extend(tree.memory().runs().iter().map(|run| (LevelId::Memory, run)));
        for (index, level) in tree.levels().iter().enumerate() {
            runs.extend(level.runs().iter().map(|run| (LevelId::Disk(index), run)));
        }
        AgeLine { runs }
    }

    pub(crate) fn index(&self, run: RunId) -> Option<usize> {
        self.runs.iter().position(|(_, other)| other.id() == run)
    }

    pub(crate) fn of_run(&self, run: RunId) -> Result<usize, PlanError> {
        Ok(2 * self.index(run).ok_or(PlanError::UnknownRun { run })? + 1)
    }

    /// Where the output of `plan` will stand.
    pub(crate) fn of_place(&self, plan: &MergePlan) -> Result<usize, PlanError> {
        let oldest = || plan.inputs.last().ok_or(PlanError::NoInputs);
        match plan.place {
            Place::Oldest | Place::Nowhere => self.of_run(oldest()?.run),
            Place::Above(run) => Ok(self.of_run(run)? - 1),
            Place::Into(run) | Place::Append(run) => self.of_run(run),
            Place::NewRun(level) => {
                let deeper = |(at, _): &(LevelId, _)| *at >= LevelId::Disk(level);
                Ok(2 * self.runs.iter().position(deeper).unwrap_or(self.runs.len()))
            }
        }
    }

    /// From the newest input to the place of the output, both included, and over all members of
    /// the knots that the plan takes from or adds to: they stand or fall together.
    pub(crate) fn of_plan(&self, plan: &MergePlan) -> Result<(usize, usize), PlanError> {
        let place = self.of_place(plan)?;
        let mut reach = (place, place);
        let mut widen = |at: usize| reach = (reach.0.min(at), reach.1.max(at));
        let target = match plan.place {
            Place::Into(run) | Place::Append(run) => Some(run),
            _ => None,
        };
        for run in plan.inputs.iter().map(|input| input.run).chain(target) {
            let at = self.of_run(run)?;
            widen(at);
            if let Some(knot) = self.runs[at / 2].1.knot() {
                let members = self.runs.iter().enumerate();
                let members = members.filter(|(_, (_, run))| run.knot() == Some(knot));
                members.for_each(|(index, _)| widen(2 * index + 1));
            }
        }
        Ok(reach)
    }
}

/// The level on storage that the output of `plan` goes to.
pub(crate) fn place_level(tree: &Tree, plan: &MergePlan) -> Result<usize, PlanError> {
    let run = match plan.place {
        Place::NewRun(level) => return Ok(level),
        Place::Above(run) | Place::Into(run) | Place::Append(run) => run,
        Place::Oldest | Place::Nowhere => plan.inputs.last().ok_or(PlanError::NoInputs)?.run,
    };
    match tree.run(run) {
        Some((LevelId::Disk(level), _)) => Ok(level),
        Some((LevelId::Memory, _)) => Err(PlanError::OutputInMemory { run }),
        None => Err(PlanError::UnknownRun { run }),
    }
}

/// Whether `run` holds keys within `range` that `plan` does not take.
pub(crate) fn holds_more(run: &Run, range: &KeyRange, plan: &MergePlan) -> bool {
    match plan.inputs.iter().find(|input| input.run == run.id()) {
        None => !run.overlapping(range).is_empty(),
        Some(input) if input.range.covers(range) => false,
        Some(input) => {
            range.without(&input.range).iter().any(|rest| !run.overlapping(rest).is_empty())
        }
    }
}

impl Tree {
    /// Whether nothing older than the output of `plan` holds keys in its range, so that its
    /// tombstones have nothing left to hide and may go.
    ///
    /// # Errors
    /// The plan names a run that is not there.
    pub fn is_bottom_for(&self, plan: &MergePlan) -> Result<bool, PlanError> {
        let line = AgeLine::new(self);
        let place = line.of_place(plan)?;
        let hull = plan.hull();
        let older = line.runs.iter().enumerate().filter(|(index, _)| 2 * index + 1 >= place);
        Ok(!older.into_iter().any(|(_, (_, run))| holds_more(run, &hull, plan)))
    }
}
