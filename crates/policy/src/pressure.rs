//! Back-pressure on writers, from 0 (none) to 1 (writes stop), by what merges are behind.

use lsmith_tree::TreeView;

/// What a policy may know for [`pressure`](crate::MergePolicy::pressure) alone.
/// [`next_merge`](crate::MergePolicy::next_merge) never sees it, so that the store and the
/// simulations make the same decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Sealed memtables that wait to be flushed or merged.
    pub waiting_memtables: usize,
    /// Logical bytes of the memtables that were sealed since the tree was last at rest, each at
    /// most a full memtable. In lockstep that is one memtable, and so it says how far the tree is
    /// from one in lockstep, whatever the policy bounds. It is 0 if the tree has not been at rest
    /// since it got this policy, or since data came in by other ways: merges of such data can take
    /// hours.
    pub owed_bytes: u64,
}

/// Returns the back-pressure of a tree with `runs` runs of `allowed`. It rises from 0 at the bound
/// to 1 at twice the bound plus four.
pub(crate) fn pressure_of_runs(view: &TreeView, runs: usize, allowed: u64, load: &Load) -> f64 {
    let excess = (runs as f64 - allowed as f64).max(0.0) / (allowed as f64 + 4.0);
    excess.max(pressure_of_load(view, load)).min(1.0)
}

/// What is left of a writer's freedom, 1 less the pressure, with each run that waits to be merged
/// into levels. So the delay of a write grows three- to sixfold with each run. A store finds the
/// speed of its merges within a few runs, whatever the device.
const FREEDOM_PER_RUN: f64 = 0.3;

/// Runs that wait to be merged into levels at which writers stop. They wrote less than a megabyte
/// per second before.
const WAITING_RUNS_MAX: f64 = 5.0;

/// Returns the back-pressure of `runs` runs that wait to be merged into levels.
///
/// Levels are merged in small steps, so merges have work as long as one run waits. More runs that
/// wait make lookups dearer and nothing faster. A stack is merged in large steps, during which
/// writers need more room: see [`pressure_of_runs`].
pub(crate) fn pressure_of_waiting_runs(runs: f64) -> f64 {
    if runs >= WAITING_RUNS_MAX { 1.0 } else { 1.0 - FREEDOM_PER_RUN.powf(runs.max(0.0)) }
}

/// Returns the back-pressure of a tree whose merges are `behind` by so many bytes, of `allowed`:
/// bytes over the limit of a level, dead bytes, or any others that lockstep would not leave. As
/// many as are allowed weigh as much as a [run that waits](pressure_of_waiting_runs).
///
/// A policy takes the greatest of this and of its other pressures, and at most
/// [`Shape::PRESSURE_OF_LEFTOVERS_MAX`](crate::Shape) of it if merges can be behind for other
/// reasons than writes.
pub(crate) fn pressure_of_bytes(behind: u64, allowed: u64) -> f64 {
    pressure_of_waiting_runs(behind as f64 / allowed.max(1) as f64)
}

/// What is left of a writer's freedom, 1 less the pressure, with each memtable that is written
/// before the merges of the one before it are done.
const FREEDOM_PER_MEMTABLE: f64 = 0.1;

/// The highest pressure of memtables by which merges are behind. It slows writers to a crawl, and
/// does not stop them.
const PRESSURE_OF_MEMTABLES_MAX: f64 = 0.999;

/// Returns the back-pressure of merges that are behind by so many memtables.
pub(crate) fn pressure_of_memtables(behind: f64) -> f64 {
    (1.0 - FREEDOM_PER_MEMTABLE.powf(behind.max(0.0))).min(PRESSURE_OF_MEMTABLES_MAX)
}

/// Returns the back-pressure of waiting memtables, and of all that was written since the tree was
/// last at rest. One waiting memtable is normal, and so are the merges of one memtable.
pub(crate) fn pressure_of_load(view: &TreeView, load: &Load) -> f64 {
    let waiting = load.waiting_memtables.saturating_sub(1) as f64 / 3.0;
    let owed = load.owed_bytes as f64 / view.memtable_bytes.max(1) as f64 - 1.0;
    waiting.min(1.0).max(pressure_of_memtables(owed))
}
