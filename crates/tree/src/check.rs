//! The rules: what a legal tree is, and what a legal plan is.
//!
//! Correctness never depends on a policy. [`check_plan`] accepts a plan only if carrying it out
//! cannot change what a reader sees.

use crate::broken::{PlanError, SLICES_MAX, TreeError};
use crate::entry::SeqNo;
use crate::extent::{Extent, Spot, holds_more};
use crate::level::SLICES_FEW;
use crate::plan::{MergePlan, Mode, Place, Reuse};
use crate::range::{KeyRange, cmp_ends};
use crate::run::{Run, RunId};
use crate::slice::{Slice, TableId};
use crate::tree::{LEVELS_MAX, LevelId, Tree};
use crate::view::TreeView;
use std::sync::Arc;

/// Returns true if debug assertions check `tree` after this edit. A check looks at every slice, and
/// an edit at few. So a large tree is checked after some of its edits only.
pub(crate) fn is_due(tree: &Tree) -> bool {
    let slices: usize = tree.runs().map(|(_, run)| run.slices().len()).sum();
    let names = tree.next_run.saturating_add(tree.next_table);
    names.is_multiple_of((slices / SLICES_FEW + 1) as u64)
}

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
        Some(_) if plan.makes_append() => Err(PlanError::KeepsBlocksOfAppend),
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
    let whole = |slice: &Slice| slice.is_append() && hull.covers(slice.range());
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
        Place::Oldest | Place::NewRun(_) | Place::NewAppend(_) => false,
    }
}

#[cfg(test)]
mod tests;
