//! The tree as one stack of runs, for policies that ignore levels.

use crate::{ParamInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::{Level, MergePlan, Place, Reason, ReservationState, Run, RunId, TreeView};
use smallvec::SmallVec;
use std::sync::Arc;

/// What happens to a memtable that a stack policy wants to merge with older runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eager {
    /// The memtable goes straight into the merge if the other inputs have at most [`Eager::FACTOR`]
    /// times its bytes. Otherwise it is flushed as a run of its own first.
    Auto,
    /// The memtable always goes straight into the merge. Writers may have to wait for a whole
    /// merge.
    Always,
    /// The memtable is always flushed first.
    Never,
}

impl Eager {
    /// The most bytes of the other inputs of an eager merge, per byte of the memtable.
    pub const FACTOR: u64 = 4;

    /// The parameter `eager`, for lists of parameters.
    pub const PARAM: ParamInfo = ParamInfo {
        name: "eager",
        default: "auto",
        meaning: "whether a memtable goes straight into a merge: auto (if the rest is at most 4 \
                  times as large), always (may stop writers for a whole merge), never",
    };

    /// Reads the parameter `eager`.
    ///
    /// # Errors
    /// Fails if the value is not one of the three.
    pub fn read(params: &Params<'_>) -> Result<Eager, SpecError> {
        Ok(match params.choice("eager", "auto", &["auto", "always", "never"])? {
            "always" => Eager::Always,
            "never" => Eager::Never,
            _ => Eager::Auto,
        })
    }

    /// Returns `spec` with this parameter added, unless it has its default.
    pub fn write(self, spec: Spec) -> Spec {
        match self {
            Eager::Auto => spec,
            Eager::Always => spec.with("eager", "always"),
            Eager::Never => spec.with("eager", "never"),
        }
    }

    /// Returns true if a memtable goes straight into a merge. `bytes` are the sizes of all inputs,
    /// newest first; the first is the memtable.
    pub(crate) fn takes(self, mut bytes: impl Iterator<Item = u64>) -> bool {
        match self {
            Eager::Auto => {
                let memtable_bytes = bytes.next().unwrap_or(0);
                bytes.sum::<u64>() <= Eager::FACTOR.saturating_mul(memtable_bytes)
            }
            Eager::Always => true,
            Eager::Never => false,
        }
    }

    /// Returns true if a memtable goes straight into a merge whose inputs have so many times its
    /// bytes, the memtable included.
    pub(crate) fn takes_of(self, memtables: f64) -> bool {
        match self {
            Eager::Auto => memtables <= 1.0 + Eager::FACTOR as f64,
            Eager::Always => true,
            Eager::Never => false,
        }
    }
}

/// The largest merge of a stack policy. No merge has more input bytes. A run of more than half of
/// it is settled: it stays as it is, and so do all runs that are older.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Largest(Option<u64>);

impl Largest {
    /// The parameter `largest`, for lists of parameters.
    pub const PARAM: ParamInfo = ParamInfo {
        name: "largest",
        default: "none",
        meaning: "most input bytes of a merge; runs of more than half of it stay as they are",
    };

    /// Returns the largest merge of `bytes`.
    pub(crate) fn of(bytes: u64) -> Largest {
        Largest(Some(bytes))
    }

    /// Reads the parameter `largest`.
    ///
    /// # Errors
    /// Fails if the value is not a size.
    pub fn read(params: &Params<'_>) -> Result<Largest, SpecError> {
        Ok(Largest(params.bytes_if_given("largest", 1..=u64::MAX)?))
    }

    /// Returns `spec` with this parameter added, unless merges are not bounded.
    pub fn write(self, spec: Spec) -> Spec {
        match self.0 {
            Some(bytes) => spec.with("largest", format_bytes(bytes)),
            None => spec,
        }
    }

    /// Returns the most input bytes of a merge, if they are bounded.
    pub fn bytes(self) -> Option<u64> {
        self.0
    }

    /// Returns true if a run of `bytes` stays as it is.
    pub fn settles(self, bytes: u64) -> bool {
        self.0.is_some_and(|largest| bytes > largest / 2)
    }

    /// Returns the shape of a stack with at most `runs_max` runs that are not settled.
    pub fn shape(self, runs_max: u64) -> Shape {
        match self.0 {
            Some(_) => Shape::Unmerged,
            None => Shape::Stack { runs_max },
        }
    }
}

/// A run as a stack policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackRun {
    /// The name of the run; the newest one if several are being merged into one.
    pub id: RunId,
    /// Logical bytes.
    pub bytes: u64,
    /// True if a reservation includes the run.
    pub busy: bool,
}

impl StackRun {
    fn of(run: &Run, busy: bool) -> StackRun {
        StackRun { id: run.id(), bytes: run.bytes(), busy }
    }
}

/// The whole tree as one stack of runs, newest first, whatever levels they are in.
///
/// The oldest sealed memtable counts as the newest run, as if it had just been flushed. Runs that
/// are being merged into one count as one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Few runs stay off the heap, because every flush reads a stack.
    runs: SmallVec<[StackRun; 12]>,
    has_memtable: bool,
    flushes: u64,
    flushed_bytes: u64,
    /// Bytes of a flush, mean over all flushes of the tree; 0 before the first.
    mean_flush_bytes: f64,
    largest: Largest,
}

impl Stack {
    /// Returns the stack of the tree of `view`.
    #[inline]
    pub fn of(view: &TreeView) -> Stack {
        let tree = &view.tree;
        let (arriving, leaving) = arriving(view);
        let mut runs = SmallVec::new();
        for level in std::iter::once(arriving).chain(tree.levels().iter().map(Level::runs)) {
            if view.reservations.is_empty() {
                runs.extend(level.iter().map(|run| StackRun::of(run, false)))
            } else {
                push_in_groups(view, level, &mut runs)
            }
        }
        // A view may come from a text that anybody wrote.
        let arriving_bytes = arriving.iter().map(|run| run.bytes()).fold(0, u64::saturating_add);
        let flushes = tree.flushes().saturating_add(arriving.len() as u64);
        let flushed_bytes = tree.flushed().bytes.saturating_add(arriving_bytes);
        Stack {
            runs,
            has_memtable: leaving == 0 && !arriving.is_empty(),
            flushes,
            flushed_bytes,
            mean_flush_bytes: flushed_bytes as f64 / flushes.max(1) as f64,
            largest: Largest::default(),
        }
    }

    /// Returns the runs of that stack that are newer than all settled ones. Their number of flushes
    /// is taken from their size, as if the tree had begun with them.
    pub fn up_to(view: &TreeView, largest: Largest) -> Stack {
        let stack = Stack::of(view);
        let settled = stack.runs.iter().position(|run| largest.settles(run.bytes));
        stack.newest(settled, largest)
    }

    /// Returns the newest runs of that stack that fit into one merge together, in the same way.
    pub(crate) fn fitting(view: &TreeView, largest: Largest) -> Stack {
        let stack = Stack::of(view);
        let sums = stack.runs.iter().scan(0_u64, |sum, run| {
            *sum = sum.saturating_add(run.bytes);
            Some(*sum)
        });
        let fits = |sum: u64| largest.bytes().is_none_or(|largest| sum <= largest);
        let too_large = sums.enumerate().find(|(_, sum)| !fits(*sum));
        let end = too_large.map(|(index, _)| index);
        stack.newest(end, largest)
    }

    /// Leaves out the runs from index `end` on.
    fn newest(mut self, end: Option<usize>, largest: Largest) -> Stack {
        self.largest = largest;
        if largest.bytes().is_none() {
            return self;
        }
        self.runs.truncate(end.unwrap_or(self.runs.len()));
        self.has_memtable &= !self.is_empty();
        self.flushes = self.flushes_by_size();
        self.flushed_bytes = self.runs.iter().map(|run| run.bytes).fold(0, u64::saturating_add);
        self
    }

    /// Returns the [`flushes`](Stack::flushes) of the stack without reading its runs.
    pub(crate) fn flushes_of(view: &TreeView) -> u64 {
        view.tree.flushes().saturating_add(arriving(view).0.len() as u64)
    }

    /// Returns an upper bound of the number of runs without reading them.
    pub(crate) fn len_max(view: &TreeView) -> u64 {
        (view.tree.memory().runs().len() + view.tree.disk_run_count()) as u64
    }

    /// Returns what `choose` plans for the stack as it was before the newest memtable came, or else
    /// what it plans now. For policies that go by the number of flushes: writers may be ahead, and
    /// then the plan of one flush must not be forgotten over the next one. In lockstep there is no
    /// such plan.
    pub(crate) fn in_turn(
        &self,
        choose: impl Fn(&Stack) -> Option<MergePlan>,
    ) -> Option<MergePlan> {
        let before = || {
            let (newest, runs) = self.runs.split_first().filter(|_| self.has_memtable)?;
            choose(&Stack {
                runs: runs.into(),
                has_memtable: false,
                flushes: self.flushes.saturating_sub(1),
                flushed_bytes: self.flushed_bytes.saturating_sub(newest.bytes),
                mean_flush_bytes: self.mean_flush_bytes,
                largest: self.largest,
            })
        };
        before().or_else(|| choose(self))
    }

    /// Returns the runs, newest first.
    pub fn runs(&self) -> &[StackRun] {
        &self.runs
    }

    /// Returns an upper bound of the number of runs without reading them.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns true if there are no runs.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the number of flushes since the tree was created. A memtable on the stack counts as
    /// flushed.
    pub fn flushes(&self) -> u64 {
        self.flushes
    }

    /// Returns the logical bytes of all flushes since the tree was created. A memtable on the stack
    /// counts as flushed.
    pub(crate) fn flushed_bytes(&self) -> u64 {
        self.flushed_bytes
    }

    /// Returns the bytes of a flush, mean over all flushes of the tree, if there was one.
    pub(crate) fn mean_flush_bytes(&self) -> Option<f64> {
        Some(self.mean_flush_bytes).filter(|bytes| *bytes > 0.0)
    }

    /// Returns the size of the stack as a number of flushes of mean size. If updates and deletes
    /// have removed data, that is less than [`flushes`](Stack::flushes).
    pub fn flushes_by_size(&self) -> u64 {
        if self.flushed_bytes == 0 {
            return self.flushes;
        }
        let bytes: u128 = self.runs.iter().map(|run| u128::from(run.bytes)).sum();
        let flushed = u128::from(self.flushed_bytes);
        let flushes = (bytes * u128::from(self.flushes) + flushed / 2) / flushed;
        u64::try_from(flushes).unwrap_or(u64::MAX).max(1)
    }

    /// Returns the plan that merges the runs from index `from` up to, not including, `end`. Leaves
    /// out the oldest of them that would make it larger than the largest merge. Returns `None` if a
    /// run is busy, if a memtable among them must be flushed first, or if there are fewer than two
    /// runs.
    pub fn merge(
        &self,
        from: usize,
        end: usize,
        eager: Eager,
        reason: Reason,
    ) -> Option<MergePlan> {
        let end = self.end_within_largest(from, end);
        let window = self.runs.get(from..end).filter(|window| window.len() > 1)?;
        if window.iter().any(|run| run.busy) {
            return None;
        }
        let has_memtable = self.has_memtable && from == 0;
        if has_memtable && !eager.takes(window.iter().map(|run| run.bytes)) {
            return None;
        }
        Some(MergePlan::merge(window.iter().map(|run| run.id), Place::Oldest, reason))
    }

    /// Returns the end of the longest part of a window, from its newest run on, that may be merged.
    /// It has two runs at least, since none of them is settled.
    fn end_within_largest(&self, from: usize, end: usize) -> usize {
        let (Some(largest), Some(window)) = (self.largest.bytes(), self.runs.get(from..end)) else {
            return end;
        };
        let sums = window.iter().scan(0_u64, |sum, run| {
            *sum = sum.saturating_add(run.bytes);
            Some(*sum)
        });
        from + sums.take_while(|sum| *sum <= largest).count()
    }
}

/// Returns the memtables that count as runs, newest first, and how many of them are being flushed
/// or merged.
///
/// Memtables leave memory oldest first. Memtables that a plan under way takes are counted. Of the
/// others only the oldest is counted, and only if no plan takes another one.
fn arriving(view: &TreeView) -> (&[Arc<Run>], usize) {
    let memory = view.tree.memory().runs();
    let leaving = memory.iter().rev().take_while(|run| view.is_reserved(run.id())).count();
    (&memory[memory.len() - leaving.max(1).min(memory.len())..], leaving)
}

/// Adds the runs of a level. Runs that are being merged with their newer neighbour are added to
/// that neighbour.
fn push_in_groups(view: &TreeView, level: &[Arc<Run>], runs: &mut SmallVec<[StackRun; 12]>) {
    for run in level {
        let merging = under_way(view, run.id());
        match runs.last_mut() {
            Some(last) if merging.is_some() && merging == under_way(view, last.id) => {
                last.bytes += run.bytes();
            }
            _ => runs.push(StackRun::of(run, view.is_reserved(run.id()))),
        }
    }
}

/// Returns the index of the reservation under way that takes `run`.
fn under_way(view: &TreeView, run: RunId) -> Option<usize> {
    view.reservations.iter().position(|reservation| {
        reservation.state == ReservationState::UnderWay && reservation.plan.takes(run)
    })
}
