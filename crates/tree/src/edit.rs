//! Edits: one atomic change of a tree, and the one function that applies it.

mod late;
mod tombstones;

use crate::broken::{PlanError, TreeError};
use crate::check::check_slices;
use crate::done::DoneReaders;
use crate::entry::SeqNo;
use crate::extent::Extent;
use crate::level::{Counters, Level};
use crate::memo::MemoChange;
use crate::plan::{Input, MergePlan, Mode, Place};
use crate::range::KeyRange;
use crate::range_deletes::Readers;
use crate::reads::Reads;
use crate::run::{KnotId, Run, RunId};
use crate::size::Size;
use crate::slice::{Slice, Table, TableId};
use crate::tree::{LEVELS_MAX, Tree};
use std::collections::BTreeMap;
use std::fmt;

/// The result of a plan, as the interpreter reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The output in key order: slices of new tables, and of old tables if pieces were reused or
    /// moved. Empty if all entries were dropped.
    pub slices: Vec<Slice>,
    /// Parts of runs that were rewritten although the plan does not take them, each with the slices
    /// that replace it, in key order. They belong to input runs or to the target. They are new edge
    /// pieces, or all of a run that has no keys to cut at.
    pub rewritten: Vec<(Input, Vec<Slice>)>,
    /// The inputs from memory.
    pub from_memory: Size,
    /// The inputs that were read from storage.
    pub read: Size,
    /// The entries that were written.
    pub written: Size,
    /// The entries that were reused without rewriting.
    pub reused: Size,
    /// Entries that the merge dropped: older versions, tombstones, cancelled pairs.
    pub entries_dropped: u64,
    /// Blocks read, written and reused.
    pub blocks: BlockCounts,
    /// The greatest sequence number of a tombstone that was dropped.
    pub dropped_below: SeqNo,
    /// Range deletes up to this sequence number hide no entry of new tables.
    pub deletes_applied: SeqNo,
    /// Empty room in the blocks that the output adds to its level, in logical bytes.
    pub room_added: u64,
    /// Empty room in the blocks of that level that the plan takes.
    pub room_taken: u64,
}

impl Outcome {
    /// Resets this to an empty outcome, and keeps the capacity of its lists.
    pub fn clear(&mut self) {
        let mut rewritten = std::mem::take(&mut self.rewritten);
        rewritten.clear();
        *self = Outcome { rewritten, ..Outcome::default() };
    }
}

/// Data blocks that a merge touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Blocks read from storage: blocks of inputs that were not reused, and neighbours that were
    /// rewritten. Blocks of memory do not count.
    pub read: u64,
    /// Written.
    pub written: u64,
    /// Blocks reused unchanged.
    pub reused: u64,
}

/// Where slices are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPlace {
    /// A new run, the newest of memory: a sealed memtable.
    Memory,
    /// A new run, the newest of a level on storage.
    Top(usize),
    /// A new run directly above the named run. This edit may remove the named run.
    Above(RunId),
    /// Into a run that exists, between its slices.
    Into,
}

/// Slices to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// The run that the slices form or join.
    pub run: RunId,
    /// Where.
    pub place: AddPlace,
    /// The knot of a new run.
    pub knot: Option<KnotId>,
    /// The slices, in key order, at least one.
    pub slices: Vec<Slice>,
}

impl Addition {
    /// Moves the slices out, and leaves none.
    fn take_slices(&mut self) -> Vec<Slice> {
        std::mem::take(&mut self.slices)
    }
}

/// One atomic change of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeEdit {
    /// Key ranges to cut out of runs. A run without slices is removed.
    pub remove: Vec<Input>,
    /// Slices added.
    pub add: Vec<Addition>,
    /// Memtables that left memory by this edit.
    pub flushes: u64,
    /// The contents of these memtables.
    pub flushed: Size,
    /// What the tree knows of its reads from now on, if it changes.
    pub reads: Option<Reads>,
    /// Counts to add, by level on storage.
    pub counters: Vec<(usize, Counters)>,
    /// The greatest sequence number of a tombstone dropped, within the hull of what is removed.
    pub dropped_below: SeqNo,
    /// Ranges beyond that hull in which tombstones up to a sequence number were dropped. An edit
    /// without its inputs from memory has them here.
    pub dropped: Vec<(KeyRange, SeqNo)>,
    /// Range deletes whose memtables left memory by this edit.
    pub range_deletes: Vec<(KeyRange, SeqNo)>,
    /// Ranges in which range deletes up to a sequence number are done with.
    pub forget: Vec<(KeyRange, SeqNo)>,
    /// Changes of the memo.
    pub memo: Vec<MemoChange>,
}

impl TreeEdit {
    /// Returns the edit that seals a memtable: a new run, the newest of memory.
    pub fn seal(run: RunId, memtable: Slice) -> TreeEdit {
        let mut edit = TreeEdit::default();
        edit.set_to_seal(run, memtable);
        edit
    }

    /// Turns this edit into the one that seals a memtable, and keeps the capacity of its lists.
    pub fn set_to_seal(&mut self, run: RunId, memtable: Slice) {
        self.clear();
        let slices = vec![memtable];
        self.add.push(Addition { run, place: AddPlace::Memory, knot: None, slices });
    }

    /// Returns the edit that applies the outcome of `plan` to `tree`. A new run gets the tree's
    /// next name.
    ///
    /// # Errors
    /// Fails if the plan names runs that the tree does not have, or if entries are missing: as many
    /// must be written, reused and dropped as were read.
    pub fn of_plan(
        tree: &Tree,
        plan: &MergePlan,
        mut outcome: Outcome,
    ) -> Result<TreeEdit, PlanError> {
        let mut edit = TreeEdit::default();
        let level = Extent::new(tree, plan)?.place_level()?;
        edit.set_to_plan(tree, plan, level, &mut outcome)?;
        Ok(edit)
    }

    /// Turns this edit into the result of [`of_plan`](TreeEdit::of_plan), and keeps the capacity of
    /// its lists. Moves the slices out of `outcome`. The plan must have been
    /// [checked](crate::check_plan); `level` is the level that receives its output.
    ///
    /// # Errors
    /// Fails as [`of_plan`](TreeEdit::of_plan) does, except for runs that the tree does not have.
    pub fn set_to_plan(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        level: usize,
        outcome: &mut Outcome,
    ) -> Result<(), PlanError> {
        self.clear();
        let entries_in = outcome.from_memory.entries + outcome.read.entries;
        let entries_out =
            outcome.written.entries + outcome.reused.entries + outcome.entries_dropped;
        if plan.mode == Mode::Merge && entries_in != entries_out {
            return Err(PlanError::NotConserved { entries_in, entries_out });
        }
        self.remove.extend_from_slice(&plan.inputs);
        self.counters.push((level, count(plan, outcome)));
        self.dropped_below = outcome.dropped_below;
        self.memo.extend_from_slice(&plan.memo);
        let memory = tree.memory.runs();
        for input in plan.inputs.iter().take_while(|_| !memory.is_empty()) {
            if let Some(run) = memory.iter().find(|run| run.id() == input.run) {
                self.flushes += u64::from(run.lies_within(&input.range));
                self.flushed += run.size_within(&input.range);
            }
        }
        if !outcome.slices.is_empty() {
            let mut slices = std::mem::take(&mut outcome.slices);
            if plan.mode == Mode::Merge && plan.makes_append() {
                date_append(tree, plan, &mut slices);
            }
            say_applied(tree, plan, outcome.deletes_applied, &mut slices);
            self.add.push(addition(tree, plan, slices)?);
        }
        for (mut part, slices) in outcome.rewritten.drain(..) {
            let run = part.run;
            if let Some(end) = &mut part.range.end
                && let Some((_, run)) = tree.run(run)
            {
                *end = run.next_cell(end);
            }
            if !plan.takes(run) && plan.place != Place::Into(run) {
                return Err(PlanError::UnknownRun { run });
            }
            let covered = |input: &&mut Input| input.run == run && part.range.covers(&input.range);
            match self.remove.iter_mut().find(covered) {
                Some(input) => input.range = part.range,
                None => self.remove.push(part),
            }
            if !slices.is_empty() {
                self.add.push(Addition { run, place: AddPlace::Into, knot: None, slices });
            }
        }
        Ok(())
    }

    /// Adds which range deletes are done with once this edit is applied to `tree`, to what the edit
    /// forgets.
    ///
    /// # Errors
    /// As [`apply`].
    pub fn forget_done(&mut self, tree: &Tree, readers: DoneReaders) -> Result<(), EditError> {
        if tree.range_deletes.is_empty() && self.range_deletes.is_empty() {
            return Ok(());
        }
        let taken = self.remove.iter().map(|input| &input.range);
        let all = taken.chain(self.range_deletes.iter().map(|(range, _)| range));
        let region = all.fold(KeyRange::new("", ""), |hull, range| hull.hull(range));
        let mut after = tree.clone();
        apply(&mut after, self)?;
        self.forget = after.range_deletes_done(&region, readers);
        Ok(())
    }

    /// Returns the hull of what is removed; all keys if nothing is.
    fn hull_taken(&self) -> KeyRange {
        let taken = self.remove.iter().map(|input| input.range.clone());
        taken.reduce(|hull, range| hull.hull(&range)).unwrap_or(KeyRange::ALL)
    }

    /// Returns the part of this edit that the manifest keeps. It leaves out changes of memory,
    /// which the write-ahead log restores, and says with each flush what `tree` knows of its reads.
    pub fn durable(&self, tree: &Tree) -> TreeEdit {
        let mut edit = self.clone();
        edit.remove.retain(|input| tree.memory.index_of(input.run).is_none());
        if edit.dropped_below > SeqNo(0) && edit.remove.len() < self.remove.len() {
            edit.dropped.push((self.hull_taken(), edit.dropped_below));
            edit.dropped_below = SeqNo(0);
        }
        edit.add.retain(|addition| addition.place != AddPlace::Memory);
        edit.reads = Some(tree.reads).filter(|reads| edit.flushes > 0 && reads.memtables > 0);
        edit
    }
}

/// Says of each append table when its file was begun: before the plan if it appends to it,
/// else now.
fn date_append(tree: &Tree, plan: &MergePlan, slices: &mut [Slice]) {
    let target = match plan.place {
        Place::Append(run) => tree.run(run).map(|(_, run)| run),
        _ => None,
    };
    for slice in slices {
        let id = slice.table().id;
        let before = target.map(|run| run.overlapping(slice.range()));
        let same = before.and_then(|all| all.into_iter().find(|slice| slice.table().id == id));
        let born = same.map_or(tree.flushes, |same| same.table().born);
        *slice = slice.clone().born_at(born);
    }
}

/// Says of each new table up to which sequence number range deletes hide nothing of it. A table
/// that the plan keeps in part says what the tree says of it now: since the plan began, range
/// deletes may have come [late](TreeEdit::add_late).
fn say_applied(tree: &Tree, plan: &MergePlan, deletes_applied: SeqNo, slices: &mut [Slice]) {
    if deletes_applied == SeqNo(0) && tree.range_deletes.is_empty() {
        return;
    }
    let target = match plan.place {
        Place::Into(run) | Place::Append(run) => Some(run),
        _ => None,
    };
    let runs = plan.inputs.iter().map(|input| input.run).chain(target);
    let runs = runs.filter_map(|run| tree.run(run)).flat_map(|(_, run)| run.slices());
    let old: BTreeMap<TableId, &Table> =
        runs.map(|slice| (slice.table().id, &**slice.table())).collect();
    for slice in slices {
        let deletes_applied = match old.get(&slice.table().id) {
            None => deletes_applied,
            Some(table) if table.root == slice.table().root => table.deletes_applied,
            // Of a new root of an old table nothing is known.
            Some(_) => continue,
        };
        *slice = slice.clone().with_deletes_applied(deletes_applied);
    }
}

fn addition(tree: &Tree, plan: &MergePlan, slices: Vec<Slice>) -> Result<Addition, PlanError> {
    let new = tree.next_run();
    let (run, place) = match plan.place {
        Place::Oldest => {
            let oldest = plan.inputs.last().ok_or(PlanError::NoInputs)?;
            (new, AddPlace::Above(oldest.run))
        }
        Place::NewRun(level) | Place::NewAppend(level) => (new, AddPlace::Top(level)),
        Place::Into(run) | Place::Append(run) => (run, AddPlace::Into),
    };
    Ok(Addition { run, place, knot: None, slices })
}

fn count(plan: &MergePlan, outcome: &Outcome) -> Counters {
    let mut counters = Counters {
        bytes_from_memory: outcome.from_memory.bytes,
        bytes_in: outcome.read.bytes,
        entries_in: outcome.from_memory.entries + outcome.read.entries,
        blocks_in: outcome.blocks.read,
        bytes_written: outcome.written.bytes,
        entries_written: outcome.written.entries,
        blocks_written: outcome.blocks.written,
        bytes_reused: outcome.reused.bytes,
        entries_reused: outcome.reused.entries,
        blocks_reused: outcome.blocks.reused,
        ..Counters::default()
    };
    counters.room_added = outcome.room_added;
    counters.room_taken = outcome.room_taken;
    counters.slack = plan.reuse.and_then(|reuse| reuse.slack_bytes).unwrap_or(0);
    let flush_alone = outcome.from_memory.bytes > 0 && outcome.read.bytes == 0;
    match plan.mode {
        Mode::Move => {
            counters.moves = 1;
            counters.bytes_moved = outcome.slices.iter().map(|slice| slice.size().bytes).sum();
        }
        Mode::Drop => {}
        Mode::Merge if plan.place == Place::Oldest && plan.inputs.len() == 1 => {
            counters.compactions = 1;
        }
        Mode::Merge if flush_alone && plan.inputs.len() == 1 => counters.flushes = 1,
        Mode::Merge => counters.merges = 1,
    }
    counters
}

/// Why an edit does not fit a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The edit names a run that the tree does not have.
    UnknownRun {
        /// The run.
        run: RunId,
    },
    /// The edit would add a run under a name that was already used.
    UsedRun {
        /// The run.
        run: RunId,
    },
    /// The edit names a level below the deepest that a tree can have.
    TooDeep {
        /// The level.
        level: usize,
    },
    /// The slices to add are not a legal run.
    BadRun(TreeError),
    /// The edit would add keys to a run where that run keeps some.
    Overlap {
        /// The run.
        run: RunId,
    },
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::UnknownRun { run } => write!(f, "the tree has no run {run}"),
            EditError::UsedRun { run } => {
                write!(f, "the name {run} is or was already used for a run")
            }
            EditError::TooDeep { level } => {
                write!(f, "level {level} is too deep: a tree has at most {LEVELS_MAX} levels")
            }
            EditError::BadRun(error) => error.fmt(f),
            EditError::Overlap { run } => {
                write!(f, "keys would be added to run {run} where it keeps others")
            }
        }
    }
}

impl std::error::Error for EditError {}

/// Applies `edit` to `tree`. No interpreter changes trees in any other way.
///
/// New runs are added first, so that they can be placed next to runs that this edit removes.
///
/// Does not check whether two slices show one key of a table, since that takes a look at every
/// slice. Whoever reads edits from elsewhere must call [`check_tree`](crate::check_tree) after the
/// last one.
///
/// # Errors
/// Fails if the edit does not fit. The tree is then unchanged.
pub fn apply(tree: &mut Tree, edit: &TreeEdit) -> Result<(), EditError> {
    edit.clone().apply_read_to(tree)
}

impl TreeEdit {
    /// Applies the edit, as [`apply`] does, for the last user of an edit of this tree. Moves its
    /// slices into the tree without a copy, and leaves it empty, with its capacity.
    ///
    /// # Errors
    /// As [`apply`]; the edit is then as it was.
    pub fn apply_to(&mut self, tree: &mut Tree) -> Result<(), EditError> {
        self.apply_read_to(tree)?;
        debug_assert!(!crate::check::is_due(tree) || crate::check_tree(tree) == Ok(()));
        Ok(())
    }

    /// Applies an edit that was read, as [`apply_to`](TreeEdit::apply_to) does. Does not assume
    /// that it was made of this tree, so the result can be a tree that
    /// [`check_tree`](crate::check_tree) refuses.
    ///
    /// # Errors
    /// As [`apply`]; the edit is then as it was.
    pub fn apply_read_to(&mut self, tree: &mut Tree) -> Result<(), EditError> {
        fits(tree, self)?;
        count_edit(tree, self);
        for addition in self.add.iter_mut().filter(|addition| addition.place != AddPlace::Into) {
            add_run(tree, addition);
        }
        replace(tree, self);
        for addition in self.add.iter_mut().filter(|addition| !addition.slices.is_empty()) {
            let (level, index) = tree.find_mut(addition.run).expect("checked by fits");
            level.change(index, |run| run.insert(addition.take_slices()));
        }
        self.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.remove.clear();
        self.add.clear();
        self.counters.clear();
        self.memo.clear();
        self.flushes = 0;
        self.flushed = Size::default();
        self.reads = None;
        self.dropped_below = SeqNo::default();
        self.dropped.clear();
        self.range_deletes.clear();
        self.forget.clear();
    }
}

/// Removes what the edit removes, and inserts slices into runs where it takes from them.
fn replace(tree: &mut Tree, edit: &mut TreeEdit) {
    for (at, input) in edit.remove.iter().enumerate() {
        // The edit may name a run twice: then it is already gone.
        let Some((level, index)) = tree.find_mut(input.run) else { continue };
        let is_added = |addition: &&mut Addition| {
            addition.place == AddPlace::Into && addition.run == input.run
        };
        let mut added = edit.add.iter_mut().filter(is_added).peekable();
        let is_target = added.peek().is_some();
        if !is_target && level.runs()[index].lies_within(&input.range) {
            level.remove(index);
            continue;
        }
        let is_last = !edit.remove[at + 1..].iter().any(|later| later.run == input.run);
        level.change(index, |run| {
            let is_inside =
                |addition: &&mut Addition| is_last && input.range.covers(&hull(&addition.slices));
            let inside = added.next_if(is_inside);
            run.replace(&input.range, inside.map(Addition::take_slices).unwrap_or_default());
            if is_last {
                added.for_each(|addition| run.insert(addition.take_slices()));
            }
        });
        if !is_target && level.runs()[index].slices().is_empty() {
            level.remove(index);
        }
    }
}

fn fits(tree: &Tree, edit: &TreeEdit) -> Result<(), EditError> {
    let known = |run| tree.run(run).map(drop).ok_or(EditError::UnknownRun { run });
    edit.remove.iter().try_for_each(|input| known(input.run))?;
    let deep = |level: &usize| *level >= LEVELS_MAX;
    if let Some(level) = edit.counters.iter().map(|(level, _)| *level).find(deep) {
        return Err(EditError::TooDeep { level });
    }
    for (index, addition) in edit.add.iter().enumerate() {
        check_slices(addition.run, &addition.slices).map_err(EditError::BadRun)?;
        let mut earlier = edit.add[..index].iter().filter(|other| other.run == addition.run);
        match addition.place {
            AddPlace::Into => {
                let hull = hull(&addition.slices);
                let shares = |other: &Addition| hull.overlaps(&self::hull(&other.slices));
                if earlier.any(shares) || still_holds_keys(tree, edit, addition.run, &hull)? {
                    return Err(EditError::Overlap { run: addition.run });
                }
            }
            _ if earlier.next().is_some() || addition.run.0 < tree.next_run => {
                return Err(EditError::UsedRun { run: addition.run });
            }
            AddPlace::Above(run) => known(run)?,
            AddPlace::Top(level) if deep(&level) => return Err(EditError::TooDeep { level }),
            AddPlace::Top(_) | AddPlace::Memory => {}
        }
    }
    Ok(())
}

/// Returns the least range that covers `slices`, which are in key order.
fn hull(slices: &[Slice]) -> KeyRange {
    match (slices.first(), slices.last()) {
        (Some(first), Some(last)) => {
            KeyRange { start: first.range().start.clone(), end: last.range().end.clone() }
        }
        _ => KeyRange::new("", ""),
    }
}

/// Returns true if `run` still holds keys within `range` after `edit` has removed its part.
fn still_holds_keys(
    tree: &Tree,
    edit: &TreeEdit,
    run: RunId,
    range: &KeyRange,
) -> Result<bool, EditError> {
    let removed = edit.remove.iter().filter(|input| input.run == run);
    if removed.clone().any(|input| input.range.covers(range)) {
        return Ok(false);
    }
    let (_, found) = tree.run(run).ok_or(EditError::UnknownRun { run })?;
    let mut kept = vec![range.clone()];
    for input in removed {
        kept = kept.iter().flat_map(|range| range.without(&input.range)).collect();
    }
    Ok(kept.iter().any(|range| !found.overlapping(range).is_empty()))
}

fn add_run(tree: &mut Tree, addition: &mut Addition) {
    let run = Run::new(addition.run, addition.take_slices()).in_knot(addition.knot);
    let (level, index): (&mut Level, usize) = match addition.place {
        AddPlace::Memory => (&mut tree.memory, 0),
        AddPlace::Top(level) => (tree.level_mut(level), 0),
        AddPlace::Above(below) => tree.find_mut(below).expect("checked by fits"),
        AddPlace::Into => unreachable!("joins a run that exists"),
    };
    level.insert(index, run);
}

fn count_edit(tree: &mut Tree, edit: &TreeEdit) {
    tree.flushes = tree.flushes.saturating_add(edit.flushes);
    tree.flushed = tree.flushed.saturating_add(edit.flushed);
    tree.reads = edit.reads.unwrap_or(tree.reads);
    tree.dropped.raise(&edit.hull_taken(), edit.dropped_below);
    for (range, seq) in &edit.dropped {
        tree.dropped.raise(range, *seq);
    }
    for (range, seq) in &edit.range_deletes {
        tree.range_deletes.delete_range(range, *seq, &Readers::ANY);
    }
    for (range, seq) in &edit.forget {
        tree.range_deletes.forget(range, *seq);
        tree.dropped.raise(range, *seq);
    }
    for (level, counters) in &edit.counters {
        tree.level_mut(*level).counters.add(counters);
    }
    for change in &edit.memo {
        tree.memo.change(change);
    }
    for addition in &edit.add {
        tree.next_run = tree.next_run.max(addition.run.0.saturating_add(1));
        let tables = addition.slices.iter().map(|slice| slice.table().id.0.saturating_add(1)).max();
        tree.next_table = tree.next_table.max(tables.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests;
