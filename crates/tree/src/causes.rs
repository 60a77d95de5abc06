//! Why a plan writes what it writes.
//!
//! [`PlanCauses`] is a pure function of a tree, a plan and its edit. Store and simulations have all
//! three at every merge, so both count alike.

use crate::broken::PlanError;
use crate::edit::TreeEdit;
use crate::extent::Extent;
use crate::level::Counters;
use crate::plan::{Input, MergePlan, Mode, Place};
use crate::tree::{LevelId, Tree};

/// A cause of bytes written, or of bytes not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Bytes that left memory: each is written for the first time.
    Flushed,
    /// Bytes on storage that merges and moves took to an older place.
    CarriedDown,
    /// Bytes of the run that an output joined or replaced. They were written again because newer
    /// bytes were merged into them.
    Overlap,
    /// Bytes that were written again without newer bytes: runs that were rewritten alone, and
    /// blocks next to an output that were joined with it.
    Compacted,
    /// Bytes of entries that merges took and did not write: overwritten, deleted or cancelled ones,
    /// and tombstones with nothing below them.
    Dropped,
    /// Bytes that were carried down by a move, which writes nothing.
    Moved,
    /// Bytes of blocks and tables that merges kept as they were.
    Reused,
}

impl Cause {
    /// All causes, in the order of reports.
    pub const ALL: [Cause; 7] = [
        Cause::Flushed,
        Cause::CarriedDown,
        Cause::Overlap,
        Cause::Compacted,
        Cause::Dropped,
        Cause::Moved,
        Cause::Reused,
    ];

    /// Returns the name of the cause in reports.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Flushed => "flushed",
            Cause::CarriedDown => "carried_down",
            Cause::Overlap => "overlap",
            Cause::Compacted => "compacted",
            Cause::Dropped => "dropped",
            Cause::Moved => "moved",
            Cause::Reused => "reused",
        }
    }

    /// Returns true if the cause is one of bytes *not* written, which count as negative.
    pub fn saves(self) -> bool {
        matches!(self, Cause::Dropped | Cause::Moved | Cause::Reused)
    }
}

/// Logical bytes by [`Cause`]. Bytes that were not written are negative, so that the sum is exactly
/// what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes([i64; Cause::ALL.len()]);

impl Causes {
    /// Returns the bytes of one cause.
    pub fn bytes(&self, cause: Cause) -> i64 {
        self.0[cause as usize]
    }

    /// Returns all causes with their bytes, in the order of reports.
    pub fn each(&self) -> impl Iterator<Item = (Cause, i64)> {
        Cause::ALL.into_iter().zip(self.0)
    }

    /// Returns the bytes written: the sum of all causes.
    pub fn written(&self) -> i64 {
        self.0.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Adds bytes to a cause.
    pub fn add_bytes(&mut self, cause: Cause, bytes: i64) {
        let sum = &mut self.0[cause as usize];
        *sum = sum.saturating_add(bytes);
    }

    /// Adds the bytes of `other`.
    pub fn add(&mut self, other: &Causes) {
        other.each().for_each(|(cause, bytes)| self.add_bytes(cause, bytes));
    }
}

/// What one plan took and wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanCauses {
    /// The level of the newest input.
    pub from: LevelId,
    /// The level on storage that received the output.
    pub to: usize,
    /// The number of runs that are older than the output.
    pub older_runs: usize,
    /// The bytes written, by cause.
    pub causes: Causes,
    /// The number of tombstones that were written.
    pub tombstones: u64,
}

impl PlanCauses {
    /// Returns why `plan` wrote what it wrote. `edit` is [its edit](TreeEdit::of_plan), and `tree`
    /// is the tree before that. The causes sum to the [`Counters::bytes_written`] of the edit.
    ///
    /// Where a plan cuts a table between two profile points, the bytes of its inputs are estimates.
    /// They are scaled so that the inputs on storage sum to the exact
    /// [`Counters::bytes_in`].
    ///
    /// # Errors
    /// Fails if the plan names a run that the tree does not have.
    pub fn of(tree: &Tree, plan: &MergePlan, edit: &TreeEdit) -> Result<PlanCauses, PlanError> {
        let extent = Extent::new(tree, plan)?;
        let newest = extent.inputs.first().ok_or(PlanError::NoInputs)?;
        let place = extent.place();
        let mut counters = Counters::default();
        edit.counters.iter().for_each(|(_, counts)| counters.add(counts));
        Ok(PlanCauses {
            from: newest.level(),
            to: extent.place_level()?,
            older_runs: tree.runs().enumerate().filter(|(index, _)| 2 * index + 1 > place).count(),
            causes: causes(tree, plan, edit, &counters),
            tombstones: tombstones_written(tree, edit, &counters),
        })
    }
}

fn causes(tree: &Tree, plan: &MergePlan, edit: &TreeEdit, counters: &Counters) -> Causes {
    let mut causes = Causes::default();
    if plan.mode == Mode::Move {
        causes.add_bytes(Cause::CarriedDown, signed(counters.bytes_moved));
        causes.add_bytes(Cause::Moved, -signed(counters.bytes_moved));
        return causes;
    }
    if plan.mode == Mode::Drop {
        return causes;
    }
    let mut taken = Taken::default();
    edit.remove.iter().for_each(|removed| taken.add(tree, plan, removed));
    taken.scale(counters.bytes_in);
    for (cause, bytes) in taken.0 {
        causes.add_bytes(cause, signed(bytes));
    }
    causes.add_bytes(Cause::Flushed, signed(counters.bytes_from_memory));
    let went_in = signed(counters.bytes_from_memory.saturating_add(counters.bytes_in));
    let came_out = signed(counters.bytes_written.saturating_add(counters.bytes_reused));
    causes.add_bytes(Cause::Dropped, came_out - went_in);
    causes.add_bytes(Cause::Reused, -signed(counters.bytes_reused));
    causes
}

/// Bytes that an edit takes from storage, by cause.
struct Taken([(Cause, u64); 3]);

impl Default for Taken {
    fn default() -> Taken {
        Taken([Cause::CarriedDown, Cause::Overlap, Cause::Compacted].map(|cause| (cause, 0)))
    }
}

impl Taken {
    fn add_bytes(&mut self, cause: Cause, bytes: u64) {
        self.0.iter_mut().filter(|(of, _)| *of == cause).for_each(|(_, sum)| *sum += bytes);
    }

    /// Adds `removed`, a part of a run that the edit of `plan` takes, if the run is on storage.
    fn add(&mut self, tree: &Tree, plan: &MergePlan, removed: &Input) {
        let Some((LevelId::Disk(_), run)) = tree.run(removed.run) else { return };
        let bytes = run.size_within(&removed.range).bytes;
        let inputs = plan.inputs.iter().filter(|input| input.run == removed.run);
        let covered = inputs.filter(|input| removed.range.covers(&input.range));
        let known: u64 = covered.map(|input| run.size_within(&input.range).bytes).sum();
        let inside = known.min(bytes);
        let is_target = match plan.place {
            Place::Oldest => plan.inputs.last().is_some_and(|oldest| oldest.run == removed.run),
            Place::Into(target) | Place::Append(target) => target == removed.run,
            Place::NewRun(_) | Place::NewAppend(_) => false,
        };
        let cause = match is_target {
            false => Cause::CarriedDown,
            true if plan.inputs.len() == 1 => Cause::Compacted,
            true => Cause::Overlap,
        };
        self.add_bytes(cause, inside);
        self.add_bytes(Cause::Compacted, bytes - inside);
    }

    /// Scales all bytes so that their sum is `total`.
    fn scale(&mut self, total: u64) {
        let sum: u64 = self.0.iter().map(|(_, bytes)| bytes).sum();
        let mut left = total;
        for (_, bytes) in &mut self.0 {
            let scaled = u128::from(*bytes) * u128::from(total) / u128::from(sum.max(1));
            *bytes = u64::try_from(scaled).unwrap_or(u64::MAX);
            left -= *bytes;
        }
        // What rounding has left over.
        if let Some((_, most)) = self.0.iter_mut().max_by_key(|(_, bytes)| *bytes) {
            *most += left;
        }
    }
}

/// Returns the number of tombstones in the tables that `edit` adds to `tree`.
fn tombstones_written(tree: &Tree, edit: &TreeEdit, counters: &Counters) -> u64 {
    if counters.bytes_written == 0 {
        return 0;
    }
    // Slices of tables that were there are kept blocks. They come from runs that the edit takes.
    let mut kept = Vec::new();
    if counters.bytes_reused > 0 {
        let runs = edit.remove.iter().filter_map(|input| Some((tree.run(input.run)?.1, input)));
        for (run, input) in runs {
            kept.extend(run.overlapping(&input.range).iter().map(|slice| slice.table().id));
        }
        kept.sort_unstable();
    }
    let slices = edit.add.iter().flat_map(|addition| &addition.slices);
    let new = slices.filter(|slice| kept.binary_search(&slice.table().id).is_err());
    new.map(|slice| slice.size().tombstones).sum()
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Size, apply};

    /// Returns why the plan wrote what it wrote, with an outcome of these bytes.
    fn causes_of(tree: &str, plan: &str, outcome: Outcome) -> (PlanCauses, Vec<i64>) {
        let (tree, plan): (Tree, MergePlan) = (tree.parse().unwrap(), plan.parse().unwrap());
        let edit = TreeEdit::of_plan(&tree, &plan, outcome).unwrap();
        let found = PlanCauses::of(&tree, &plan, &edit).unwrap();
        let written: u64 = edit.counters.iter().map(|(_, counts)| counts.bytes_written).sum();
        assert_eq!(found.causes.written(), written as i64);
        apply(&mut tree.clone(), &edit).unwrap();
        (found, found.causes.each().map(|(_, bytes)| bytes).collect())
    }

    fn outcome(from_memory: u64, read: u64, written: u64) -> Outcome {
        Outcome {
            from_memory: Size::of_bytes(from_memory),
            read: Size::of_bytes(read),
            written: Size::of_bytes(written),
            ..Outcome::default()
        }
    }

    const LEVELS: &str = "tree\nmem r9[t9:a..z 100B]\nL0 r8[t8:a..z 100B] r7[t7:a..z 90B]\n\
                          L1 r6[t6:a..m 300B, t5:m..z 400B]\nL2 r4[t4:a..z 5000B]";

    #[test]
    fn newer_runs_are_carried_down_and_the_run_they_join_is_overlap() {
        let plan = "merge r8 r7 r6 over a..m into r6";
        // Half of r8 and r7 are estimates. All three inputs came to 397 bytes, not 395.
        let (found, bytes) = causes_of(LEVELS, plan, outcome(0, 397, 380));
        assert_eq!((found.from, found.to, found.older_runs), (LevelId::Disk(0), 1, 1));
        assert_eq!(bytes, [0, 95, 302, 0, -17, 0, 0]);
    }

    #[test]
    fn a_flush_writes_what_leaves_memory_and_an_eager_merge_rewrites_besides() {
        let (found, bytes) = causes_of(LEVELS, "merge r9 into new run at L0", outcome(100, 0, 95));
        assert_eq!((found.from, found.to, found.older_runs), (LevelId::Memory, 0, 4));
        assert_eq!(bytes, [100, 0, 0, 0, -5, 0, 0]);

        let eager = "merge r9 r8 r7 in place";
        let (found, bytes) = causes_of(LEVELS, eager, outcome(100, 190, 250));
        assert_eq!((found.from, found.to, found.older_runs), (LevelId::Memory, 0, 2));
        assert_eq!(bytes, [100, 100, 90, 0, -40, 0, 0]);
    }

    #[test]
    fn a_run_rewritten_alone_is_compacted_and_a_new_run_overlaps_nothing() {
        let (_, bytes) = causes_of(LEVELS, "merge r6 in place", outcome(0, 700, 600));
        assert_eq!(bytes, [0, 0, 0, 700, -100, 0, 0]);
        let (found, bytes) =
            causes_of(LEVELS, "merge r8 r7 into new run at L1", outcome(0, 190, 190));
        assert_eq!((found.to, found.older_runs), (1, 2));
        assert_eq!(bytes, [0, 190, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_move_carries_bytes_down_without_writing_them() {
        let tree = "tree\nL0 r2[t2:a..c 100B]\nL1 r1[t1:d..z 700B]";
        let parsed: Tree = tree.parse().unwrap();
        let (_, run) = parsed.run(crate::RunId(2)).unwrap();
        let slices = run.clip(&crate::KeyRange::ALL).collect();
        let outcome = Outcome { slices, ..Outcome::default() };
        let (_, bytes) = causes_of(tree, "move r2 into r1", outcome);
        assert_eq!(bytes, [0, 100, 0, 0, 0, -100, 0]);
    }
}
