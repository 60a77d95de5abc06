//! The rules: what a legal tree is, and what a legal plan is.
//!
//! Correctness never depends on a policy. [`check_plan`] accepts a plan only if carrying it out
//! cannot change what a reader sees.

use crate::entry::SeqNo;
use crate::extent::{Extent, Spot, holds_more};
use crate::plan::{MergePlan, Mode, Place, Reuse};
use crate::range::{KeyRange, cmp_ends};
use crate::run::{Run, RunId};
use crate::slice::{Slice, TableId};
use crate::tree::{LEVELS_MAX, LevelId, Tree};
use crate::view::TreeView;
use std::fmt;
use std::sync::Arc;

/// The most slices of a run. Plans that would add to a run with this many are refused.
pub const SLICES_MAX: usize = 1 << 20;

/// What is wrong with a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeError {
    /// Two slices of a run are out of order or share a key.
    Disorder {
        /// The run.
        run: RunId,
        /// The index of the second slice of the two.
        slice: usize,
    },
    /// A slice has an empty range.
    BadSlice {
        /// The run.
        run: RunId,
        /// The index of the slice.
        slice: usize,
    },
    /// A table's profile is not ascending, or leaves its range or size.
    BadProfile {
        /// The table.
        table: TableId,
    },
    /// A key of a table is visible through two slices.
    SeenTwice {
        /// The table.
        table: TableId,
    },
    /// Two runs share a name.
    SameName {
        /// The name.
        run: RunId,
    },
    /// A run has no slices.
    EmptyRun {
        /// The run.
        run: RunId,
    },
    /// A run or table has a name that would be given again.
    NameAhead {
        /// The run.
        run: RunId,
    },
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeError::Disorder { run, slice } => {
                write!(f, "slice {slice} of run {run} overlaps or precedes the one before it")
            }
            TreeError::BadSlice { run, slice } => {
                write!(f, "slice {slice} of run {run} is empty")
            }
            TreeError::BadProfile { table } => write!(f, "the profile of {table} does not ascend"),
            TreeError::SeenTwice { table } => write!(f, "two slices of {table} share a key"),
            TreeError::SameName { run } => write!(f, "two runs have the name {run}"),
            TreeError::EmptyRun { run } => write!(f, "run {run} has no slices"),
            TreeError::NameAhead { run } => {
                write!(f, "run {run} or one of its tables has a name that is not in use yet")
            }
        }
    }
}

impl std::error::Error for TreeError {}

/// Checks every rule that a tree must keep. The slices of a run are in key order, disjoint, and
/// within their tables. Every key of a table is visible through one slice at most. Names are used
/// once.
///
/// # Errors
/// Fails with the first rule that is broken.
pub fn check_tree(tree: &Tree) -> Result<(), TreeError> {
    let mut names = Vec::new();
    let mut seen: Vec<(TableId, &KeyRange)> = Vec::new();
    for (_, run) in tree.runs() {
        check_slices(run.id(), run.slices())?;
        names.push(run.id());
        seen.extend(run.slices().iter().map(|slice| (slice.table().id, slice.range())));
        let ahead = |id: TableId| id.0 >= tree.next_table;
        if run.id().0 >= tree.next_run || run.slices().iter().any(|s| ahead(s.table().id)) {
            return Err(TreeError::NameAhead { run: run.id() });
        }
    }
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(TreeError::SameName { run: pair[0] });
    }
    seen.sort_unstable_by(|left, right| (left.0, &left.1.start).cmp(&(right.0, &right.1.start)));
    let twice =
        |pair: &&[(TableId, &KeyRange)]| pair[0].0 == pair[1].0 && pair[0].1.overlaps(pair[1].1);
    match seen.windows(2).find(twice) {
        Some(pair) => Err(TreeError::SeenTwice { table: pair[0].0 }),
        None => Ok(()),
    }
}

/// Checks what a run can be made of.
pub(crate) fn check_slices<'a>(
    run: RunId,
    slices: impl IntoIterator<Item = &'a Slice>,
) -> Result<(), TreeError> {
    let ordered = |left: &KeyRange, right: &KeyRange| {
        left.lies_below(&right.start) && cmp_ends(&left.end, &right.end).is_lt()
    };
    let mut before: Option<&Slice> = None;
    for (index, slice) in slices.into_iter().enumerate() {
        // Slices know: a look at the table of each is a look at another place of memory. They
        // never reach outside.
        if slice.range().is_empty() {
            return Err(TreeError::BadSlice { run, slice: index });
        }
        if !slice.has_order() {
            return Err(TreeError::BadProfile { table: slice.table().id });
        }
        if before.is_some_and(|before| !ordered(before.range(), slice.range())) {
            return Err(TreeError::Disorder { run, slice: index });
        }
        before = Some(slice);
    }
    before.map(drop).ok_or(TreeError::EmptyRun { run })
}

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The plan has no inputs.
    NoInputs,
    /// The tree has no run of that name.
    UnknownRun {
        /// The run.
        run: RunId,
    },
    /// An input takes nothing: its run has no keys in its range.
    EmptyInput {
        /// The run.
        run: RunId,
    },
    /// A run is named twice, or the inputs are not given newest first.
    InputOrder {
        /// The run.
        run: RunId,
    },
    /// Age: the plan passes over a run that holds keys it takes from newer or older runs.
    SkipsRun {
        /// The run that must be taken too, over all the keys of the plan.
        run: RunId,
    },
    /// The target run keeps keys within the hull of the output.
    Straddles {
        /// The target.
        run: RunId,
    },
    /// The output would be placed in memory.
    OutputInMemory {
        /// The run named as neighbour.
        run: RunId,
    },
    /// The level is deeper than a tree can be.
    TooDeep {
        /// The level.
        level: usize,
    },
    /// A drop takes from memory or from several runs, or it takes entries that no range delete
    /// hides and that lie over older ones of their keys.
    CannotDrop {
        /// The run.
        run: RunId,
    },
    /// A policy that is not one that drops data would drop some.
    MayNotDrop {
        /// The run.
        run: RunId,
    },
    /// A cut, overlap or reuse size of zero bytes.
    ZeroBytes,
    /// The keys at which the output is cut do not ascend.
    CutOrder,
    /// The output is cut at keys, but the plan keeps blocks.
    CutsBlocks,
    /// The plan keeps blocks, but its output are append-only tables, which have none.
    KeepsBlocksOfTrees,
    /// A move would relabel slices from memory, or slices that share keys.
    CannotMove {
        /// The run.
        run: RunId,
    },
    /// Only an append-only table that is one whole slice, and taken whole, may be appended to, and
    /// only what is newer.
    CannotAppend {
        /// The run.
        run: RunId,
    },
    /// The plan takes some members of a knot and leaves another.
    TearsKnot {
        /// The member left out.
        run: RunId,
    },
    /// The plan reaches into a part of the tree that another plan has reserved.
    Reserved {
        /// The index of the reservation in the view.
        reservation: usize,
    },
    /// The target run has as many slices as a run may have.
    TooManySlices {
        /// The run.
        run: RunId,
    },
    /// Conservation: entries went missing or came from nowhere.
    NotConserved {
        /// Entries of all inputs.
        entries_in: u64,
        /// Entries written, taken over and dropped by the merge rules.
        entries_out: u64,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::NoInputs => f.write_str("the plan has no inputs"),
            PlanError::UnknownRun { run } => write!(f, "the tree has no run {run}"),
            PlanError::EmptyInput { run } => write!(f, "run {run} has no keys in the range taken"),
            PlanError::InputOrder { run } => {
                write!(f, "input {run} is named twice or is newer than the input before it")
            }
            PlanError::SkipsRun { run } => {
                write!(
                    f,
                    "run {run} lies between an input and the output, and holds keys of the input"
                )
            }
            PlanError::Straddles { run } => {
                write!(f, "run {run} takes the output in, and would keep keys within its key range")
            }
            PlanError::OutputInMemory { run } => {
                write!(f, "the output would be placed in memory, beside run {run}")
            }
            PlanError::TooDeep { level } => {
                write!(f, "level {level} is too deep: a tree has at most {LEVELS_MAX} levels")
            }
            PlanError::ZeroBytes => f.write_str("the plan has a cut or reuse size of 0 bytes"),
            PlanError::CutOrder => f.write_str("the keys at which the output is cut do not ascend"),
            PlanError::CutsBlocks => {
                f.write_str("the output is cut at keys, and the plan keeps blocks")
            }
            PlanError::KeepsBlocksOfTrees => {
                f.write_str("the plan keeps blocks, and its output are append-only tables")
            }
            PlanError::CannotMove { run } => {
                write!(
                    f,
                    "slices of run {run} are in memory, or share keys with other moved slices"
                )
            }
            PlanError::CannotDrop { run } => {
                write!(f, "run {run} is in memory or over older keys: it cannot be dropped alone")
            }
            PlanError::MayNotDrop { run } => {
                write!(f, "run {run} would be dropped by a policy that does not say that it drops")
            }
            PlanError::CannotAppend { run } => {
                write!(
                    f,
                    "run {run} has a table that is not append-only or not taken whole, or is newer \
                     than an input, so nothing can be appended"
                )
            }
            PlanError::TearsKnot { run } => {
                write!(f, "run {run} is in a knot with an input, and keeps keys of the input")
            }
            PlanError::Reserved { reservation } => {
                write!(f, "the plan conflicts with reservation {reservation}")
            }
            PlanError::TooManySlices { run } => {
                write!(f, "run {run} has {SLICES_MAX} slices or more")
            }
            PlanError::NotConserved { entries_in, entries_out } => {
                write!(f, "{entries_in} entries were read, but {entries_out} written or dropped")
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// Checks that carrying out `plan` cannot change what any reader sees, except that a
/// [drop](Mode::Drop) takes entries away, and that the plan conflicts with no reservation. Returns
/// the level on storage that receives the output.
///
/// Plans are checked when they are made and again when they commit.
///
/// # Errors
/// Fails with the first rule that the plan breaks.
pub fn check_plan(view: &TreeView, plan: &MergePlan) -> Result<usize, PlanError> {
    let extent = Extent::new(&view.tree, plan)?;
    check_inputs(&extent)?;
    let level = extent.place_level()?;
    if level >= LEVELS_MAX {
        return Err(PlanError::TooDeep { level });
    }
    let no_bytes = |reuse: Reuse| reuse.piece_bytes == 0 || reuse.full_bytes == 0;
    if plan.cut_bytes == Some(0) || plan.reuse.is_some_and(no_bytes) {
        return Err(PlanError::ZeroBytes);
    }
    check_cuts(plan)?;
    check_age(&extent)?;
    check_place(&extent)?;
    match plan.mode {
        Mode::Merge => {}
        Mode::Move => check_move(&extent)?,
        Mode::Drop => check_drop(&view.tree, &extent)?,
    }
    check_reservations(view, &extent)?;
    Ok(level)
}

impl TreeView {
    /// Returns true if no reservation covers any part of the tree that `plan` reaches. A policy
    /// asks this before it proposes a plan.
    pub fn is_free_for(&self, plan: &MergePlan) -> bool {
        self.reservations.is_empty()
            || Extent::new(&self.tree, plan)
                .is_ok_and(|extent| check_reservations(self, &extent).is_ok())
    }
}

fn check_cuts(plan: &MergePlan) -> Result<(), PlanError> {
    if plan.cuts.overlap.is_some_and(|overlap| overlap.bytes == 0) {
        return Err(PlanError::ZeroBytes);
    }
    if !plan.cuts.keys.is_sorted_by(|left, right| left < right) {
        return Err(PlanError::CutOrder);
    }
    match plan.reuse {
        Some(_) if plan.makes_trees() => Err(PlanError::KeepsBlocksOfTrees),
        Some(_) if !plan.cuts.is_empty() => Err(PlanError::CutsBlocks),
        _ => Ok(()),
    }
}

fn check_inputs(extent: &Extent<'_>) -> Result<(), PlanError> {
    let mut newer = 0;
    for (input, spot) in extent.plan.inputs.iter().zip(&extent.inputs) {
        if spot.age() <= newer {
            return Err(PlanError::InputOrder { run: input.run });
        }
        newer = spot.age();
        if spot.run.overlapping(&input.range).is_empty() {
            return Err(PlanError::EmptyInput { run: input.run });
        }
    }
    Ok(())
}

/// Checks that every run between an input and the place of the output gives up the keys that the
/// input gives up.
fn check_age(extent: &Extent<'_>) -> Result<(), PlanError> {
    let plan = extent.plan;
    let place = extent.place();
    if takes_whole_runs(extent, place) {
        return Ok(());
    }
    for (input, spot) in plan.inputs.iter().zip(&extent.inputs) {
        let at = spot.age();
        let (newest, oldest) = if at < place { (at + 1, place) } else { (place, at - 1) };
        for run in extent.runs(newest / 2..oldest.div_ceil(2).max(newest / 2)) {
            if run.id() != input.run && holds_more(run, &input.range, plan) {
                return Err(PlanError::SkipsRun { run: run.id() });
            }
        }
        let knot = spot.run.knot();
        let members = || extent.runs(0..usize::MAX).filter(|run| run.knot() == knot);
        let torn = |member: &&Arc<Run>| holds_more(member, &input.range, plan);
        if knot.is_some()
            && let Some(run) = members().find(torn)
        {
            return Err(PlanError::TearsKnot { run: run.id() });
        }
    }
    Ok(())
}

/// Returns true if the plan takes all keys of all runs that it reaches, and none of them is in a
/// knot. Such a plan skips nothing.
fn takes_whole_runs(extent: &Extent<'_>, place: usize) -> bool {
    let inputs = &extent.inputs;
    let (Some(newest), Some(oldest)) = (inputs.first(), inputs.last()) else { return false };
    let reached = (place / 2).min(newest.index())..place.div_ceil(2).max(oldest.index() + 1);
    // The inputs are in order and within the reach: so they are all of it.
    reached.len() == inputs.len()
        && extent.plan.inputs.iter().all(|input| input.range.is_all())
        && inputs.iter().all(|spot| spot.run.knot().is_none())
}

fn check_place(extent: &Extent<'_>) -> Result<(), PlanError> {
    let plan = extent.plan;
    match (plan.place, extent.anchor) {
        (Place::Into(_) | Place::Append(_), Some(target)) => {
            // What is appended hides what the trees have.
            let is_older = |spot: &Spot<'_>| spot.age() > target.age();
            if plan.appends_to().is_some() && extent.inputs.iter().any(is_older) {
                return Err(PlanError::CannotAppend { run: target.run.id() });
            }
            check_target(target.run, plan)
        }
        _ => Ok(()),
    }
}

/// Checks that the run that takes the output in keeps nothing where the output will be.
fn check_target(target: &Run, plan: &MergePlan) -> Result<(), PlanError> {
    let run = target.id();
    let hull = plan.hull();
    if holds_more(target, &hull, plan) {
        return Err(PlanError::Straddles { run });
    }
    if target.slices().len() >= SLICES_MAX {
        return Err(PlanError::TooManySlices { run });
    }
    let whole = |slice: &Slice| slice.is_tree() && hull.covers(slice.range());
    match plan.appends_to() {
        Some(_) if !target.overlapping(&hull).iter().all(whole) => {
            Err(PlanError::CannotAppend { run })
        }
        _ => Ok(()),
    }
}

fn check_move(extent: &Extent<'_>) -> Result<(), PlanError> {
    let mut moved: Vec<(RunId, KeyRange)> = Vec::new();
    let appends = matches!(extent.plan.place, Place::Append(_));
    for (input, spot) in extent.plan.inputs.iter().zip(&extent.inputs) {
        if appends || spot.level() == LevelId::Memory {
            return Err(PlanError::CannotMove { run: input.run });
        }
        moved.extend(spot.run.clip(&input.range).map(|slice| (input.run, slice.range().clone())));
    }
    moved.sort_unstable_by(|left, right| {
        left.1.start.cmp(&right.1.start).then_with(|| cmp_ends(&left.1.end, &right.1.end))
    });
    match moved.windows(2).find(|pair| pair[0].1.overlaps(&pair[1].1)) {
        Some(pair) => Err(PlanError::CannotMove { run: pair[1].0 }),
        None => Ok(()),
    }
}

/// Checks that a drop takes from one run on storage, and that range deletes hide what it takes or
/// that nothing lies under it.
fn check_drop(tree: &Tree, extent: &Extent<'_>) -> Result<(), PlanError> {
    let plan = extent.plan;
    let first = plan.inputs.first().ok_or(PlanError::NoInputs)?;
    let refused = Err(PlanError::CannotDrop { run: first.run });
    let [input] = &plan.inputs[..] else { return refused };
    let is_on_storage = extent.inputs[0].level() != LevelId::Memory;
    let is_safe = plan.is_hidden(tree, SeqNo::MAX) || tree.is_bottom_for(plan)?;
    if plan.place == Place::Into(input.run) && is_on_storage && is_safe { Ok(()) } else { refused }
}

fn check_reservations(view: &TreeView, extent: &Extent<'_>) -> Result<(), PlanError> {
    if view.reservations.is_empty() {
        return Ok(());
    }
    let (newest, oldest) = extent.reach();
    let plan = extent.plan;
    let hull = extent.plan.hull();
    for (index, other) in view.reservations.iter().enumerate() {
        // A reservation of runs that no longer exist reserves nothing.
        let Ok(reserved) = Extent::new(&view.tree, &other.plan) else { continue };
        let (from, end) = reserved.reach();
        let meets = from <= oldest && newest <= end && hull.overlaps(&other.plan.hull());
        if meets || takes_neighbour(plan, &other.plan) || takes_neighbour(&other.plan, plan) {
            return Err(PlanError::Reserved { reservation: index });
        }
    }
    Ok(())
}

/// Returns true if `plan` could remove the run that `other` names as its place without taking from
/// it. The output of `other` would then have no place.
fn takes_neighbour(plan: &MergePlan, other: &MergePlan) -> bool {
    match other.place {
        Place::Into(run) | Place::Append(run) => !other.takes(run) && plan.takes(run),
        Place::Oldest | Place::NewRun(_) | Place::NewTrees(_) => false,
    }
}

#[cfg(test)]
mod tests;
