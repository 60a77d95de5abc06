//! Which part of a tree a plan reaches, in the order of age.

use crate::broken::PlanError;
use crate::level::Level;
use crate::plan::{MergePlan, Place};
use crate::range::KeyRange;
use crate::run::{Run, RunId};
use crate::tree::{LevelId, Tree};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// A run of a tree, with its position.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    pub(crate) run: &'a Arc<Run>,
    /// 0 in memory, `i + 1` in level `i`.
    depth: u32,
    index: u32,
}

impl Spot<'_> {
    pub(crate) fn level(&self) -> LevelId {
        match self.depth.checked_sub(1) {
            None => LevelId::Memory,
            Some(level) => LevelId::Disk(level as usize),
        }
    }

    /// Returns how many runs of the tree are newer.
    pub(crate) fn index(&self) -> usize {
        self.index as usize
    }

    /// Returns the position of the run in the order of age. Runs have odd positions, newest first;
    /// the gap above a run has the even position before it.
    pub(crate) fn age(&self) -> usize {
        2 * self.index() + 1
    }
}

/// Returns the runs at this [depth](Spot), newest first.
fn runs_at(tree: &Tree, depth: u32) -> Option<&[Arc<Run>]> {
    match depth.checked_sub(1) {
        None => Some(tree.memory().runs()),
        Some(level) => tree.levels().get(level as usize).map(Level::runs),
    }
}

/// Finds runs one after the other. If each is older than the one before, this is one walk down the
/// tree.
struct Walk<'a> {
    tree: &'a Tree,
    /// The depth that the walk has reached, as in [`Spot`].
    depth: u32,
    /// The number of runs above that depth.
    passed: u32,
}

impl<'a> Walk<'a> {
    fn new(tree: &'a Tree) -> Walk<'a> {
        Walk { tree, depth: 0, passed: 0 }
    }

    fn to(&mut self, run: RunId) -> Result<Spot<'a>, PlanError> {
        self.down_to(run)
            .or_else(|| {
                self.depth = 0;
                self.passed = 0;
                self.down_to(run)
            })
            .ok_or(PlanError::UnknownRun { run })
    }

    fn down_to(&mut self, id: RunId) -> Option<Spot<'a>> {
        let tree = self.tree;
        loop {
            let runs = runs_at(tree, self.depth)?;
            if let Some(at) = runs.iter().position(|run| run.id() == id) {
                let index = self.passed + at as u32;
                return Some(Spot { run: &runs[at], depth: self.depth, index });
            }
            self.depth += 1;
            self.passed += runs.len() as u32;
        }
    }
}

/// The runs that a plan names, found in a tree.
pub(crate) struct Extent<'a> {
    tree: &'a Tree,
    pub(crate) plan: &'a MergePlan,
    /// A spot for each input, in the order of the plan. Few inputs stay on the stack, since every
    /// plan is looked up several times.
    pub(crate) inputs: SmallVec<[Spot<'a>; 4]>,
    /// The run that the plan names as its place, or the oldest input if the output replaces that.
    pub(crate) anchor: Option<Spot<'a>>,
}

impl<'a> Extent<'a> {
    /// # Errors
    /// The plan has no inputs, or names a run that is not there.
    pub(crate) fn new(tree: &'a Tree, plan: &'a MergePlan) -> Result<Extent<'a>, PlanError> {
        let mut extent = Extent { tree, plan, inputs: SmallVec::new(), anchor: None };
        let mut walk = Walk::new(tree);
        for input in &plan.inputs {
            extent.inputs.push(walk.to(input.run)?);
        }
        let inputs = &extent.inputs;
        extent.anchor = match plan.place {
            Place::NewRun(_) | Place::NewAppend(_) if inputs.is_empty() => {
                return Err(PlanError::NoInputs);
            }
            Place::NewRun(_) | Place::NewAppend(_) => None,
            Place::Oldest => Some(*inputs.last().ok_or(PlanError::NoInputs)?),
            Place::Into(run) | Place::Append(run) => {
                match inputs.iter().rfind(|spot| spot.run.id() == run) {
                    Some(spot) => Some(*spot),
                    None => Some(walk.to(run)?),
                }
            }
        };
        Ok(extent)
    }

    /// Returns the position of the output in the order of [ages](Spot::age).
    pub(crate) fn place(&self) -> usize {
        match (self.plan.place, &self.anchor) {
            (Place::NewRun(level) | Place::NewAppend(level), _) => {
                let newer = self.tree.levels().iter().take(level).chain([self.tree.memory()]);
                2 * newer.map(|level| level.runs().len()).sum::<usize>()
            }
            (_, Some(anchor)) => anchor.age(),
            (_, None) => 0,
        }
    }

    /// Returns the level on storage that the output goes to.
    ///
    /// # Errors
    /// It would go to memory.
    pub(crate) fn place_level(&self) -> Result<usize, PlanError> {
        match (self.plan.place, &self.anchor) {
            (Place::NewRun(level) | Place::NewAppend(level), _) => Ok(level),
            (_, None) => Err(PlanError::NoInputs),
            (_, Some(anchor)) => match anchor.level() {
                LevelId::Disk(level) => Ok(level),
                LevelId::Memory => Err(PlanError::OutputInMemory { run: anchor.run.id() }),
            },
        }
    }

    /// Returns the ages from the newest input to the output, both included. If the plan takes from
    /// a knot or adds to one, all members of the knot are included.
    pub(crate) fn reach(&self) -> (usize, usize) {
        let place = self.place();
        let mut reach = (place, place);
        let mut widen = |at: usize| reach = (reach.0.min(at), reach.1.max(at));
        let target = match self.plan.place {
            Place::Into(_) | Place::Append(_) => self.anchor.as_ref(),
            _ => None,
        };
        for spot in self.inputs.iter().chain(target) {
            widen(spot.age());
            if let Some(knot) = spot.run.knot() {
                let all = self.tree.runs().enumerate();
                let members = all.filter(|(_, (_, run))| run.knot() == Some(knot));
                members.for_each(|(index, _)| widen(2 * index + 1));
            }
        }
        reach
    }

    /// Returns the runs with these indexes in the line of all runs, newest first.
    pub(crate) fn runs(&self, indexes: Range<usize>) -> impl Iterator<Item = &'a Arc<Run>> {
        let tree = self.tree;
        let mut depth = 0;
        let mut at = indexes.start;
        let mut left = indexes.len();
        std::iter::from_fn(move || {
            while left > 0 {
                let runs = runs_at(tree, depth)?;
                if let Some(run) = runs.get(at) {
                    at += 1;
                    left -= 1;
                    return Some(run);
                }
                at -= runs.len();
                depth += 1;
            }
            None
        })
    }
}

/// Returns true if `run` holds keys within `range` that `plan` does not take.
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
    /// Returns whether nothing older than the output of `plan` holds keys in its range, so that its
    /// tombstones have nothing left to hide and may go.
    ///
    /// # Errors
    /// The plan names a run that is not there.
    pub fn is_bottom_for(&self, plan: &MergePlan) -> Result<bool, PlanError> {
        let place = Extent::new(self, plan)?.place();
        let hull = plan.hull();
        let older = self.runs().enumerate().filter(|(index, _)| 2 * index + 1 >= place);
        Ok(!older.into_iter().any(|(_, (_, run))| holds_more(run, &hull, plan)))
    }
}
