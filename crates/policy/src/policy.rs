//! The trait that every merge policy implements.

use crate::pressure::{Load, pressure_of_load, pressure_of_runs, pressure_of_waiting_runs};
use crate::untie;
use lsmith_spec::Spec;
use lsmith_tree::{Level, LevelId, MergePlan, TreeView};
use std::fmt::Debug;

/// Decides what is merged when.
///
/// # Laws
/// * Pure: the same view gives the same plan.
/// * Total: any legal tree gets an answer without panic, whatever policy built the tree.
/// * Rest: without further writes, plans end.
/// * Progress: after a change of policy, the tree is within the new policy's own bound on runs once
///   its bytes and one ratio of new data have been merged.
/// * Reservations: a plan does not conflict with any reservation in the view.
///
/// [`laws`](crate::laws) checks them.
#[doc(alias("compaction strategy", "compaction picker"))]
pub trait MergePolicy: Debug + Send + Sync {
    /// Returns the spec that builds this policy again.
    fn spec(&self) -> Spec;

    /// Returns the next merge of a tree without knots, or `None` if no merge is due.
    ///
    /// This is the method that a policy implements. Callers use
    /// [`next_merge`](MergePolicy::next_merge).
    ///
    /// It runs on the path of every flush. So it should look at each run once at most, or at each
    /// slice once if the policy looks inside runs.
    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan>;

    /// Returns the next merge, or `None` if no merge is due.
    ///
    /// The caller asks again until there is no plan. It reserves each plan in the next view. If
    /// there is no plan and a sealed memtable waits, the caller flushes that memtable as a run of
    /// its own.
    ///
    /// If the tree has [knots](lsmith_tree::KnotId), this unties them first, so that
    /// [`choose_merge`](MergePolicy::choose_merge) never sees a knot.
    fn next_merge(&self, view: &TreeView) -> Option<MergePlan> {
        untie(view).unwrap_or_else(|| self.choose_merge(view))
    }

    /// Returns the logical bytes at which the active memtable is sealed, given the tree as it is
    /// now. A policy that leaves a part of memory unmerged returns less than a full memtable.
    fn seal_bytes(&self, view: &TreeView) -> u64 {
        view.memtable_bytes
    }

    /// Returns what the policy needs from tables besides key ranges and sizes. The answer must
    /// always be the same.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns the back-pressure on writers, from 0 (none) to 1 (writes stop).
    ///
    /// By default, this is how far the number of runs exceeds what [`shape`](MergePolicy::shape)
    /// allows, how many sealed memtables wait, or how much was written since the tree was last at
    /// rest, whichever is most. The number of runs counts the whole stack, or the fullest level, or
    /// level 0 if the levels below have one run each.
    ///
    /// The pressure of a tree at rest is 0. At a pressure of 1 there must be a plan. A policy that
    /// ignores [`Load::owed_bytes`] does not keep the law [`Free`](crate::laws::Law::Free), unless
    /// its pressure speaks of all that it bounds by other means.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        self.shape().pressure(view, load)
    }

    /// Returns the outline of the trees that this policy builds.
    fn shape(&self) -> Shape;

    /// Returns the most input bytes of a merge, if the policy bounds them. Runs of more than half
    /// of that are settled: they stay as they are.
    fn largest_merge(&self) -> Option<u64> {
        None
    }

    /// Returns the plan of [`next_merge`](MergePolicy::next_merge) with its reasons and the
    /// alternatives that were considered.
    fn explain(&self, view: &TreeView) -> Explanation {
        Explanation { plan: self.next_merge(view), ..Explanation::default() }
    }
}

/// What a policy needs from tables besides key ranges and sizes. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The policy counts in data blocks. Every table has a profile point at every block border
    /// ([`TreeView::block_bytes`]). Memory is one run, and plans take key ranges of it.
    pub blocks: bool,
    /// The policy takes windows of keys out of runs. Sizes alone do not say what such a merge
    /// costs, so that unit simulations refuse the policy.
    pub windows: bool,
    /// The policy reads sequence numbers, such as [`Table::seq_max`](lsmith_tree::Table::seq_max).
    /// Merges keep them all. If no policy needs them, merges drop sequence numbers that no snapshot
    /// needs, and tables become smaller.
    pub sequence_numbers: bool,
    /// The policy compares sizes that are equal if all memtables are, so that single bytes decide.
    /// Simulations that know only expected sizes say that they are less certain.
    pub exact_sizes: bool,
    /// The policy appends to append tables, one by one. Simulations that know only expected
    /// sizes say that they are less certain. A store does not flush a memtable as a run of its own
    /// while another plan is under way, because that run would be merged with its whole level: the
    /// policy says what comes before a flush.
    pub appends: bool,
    /// The policy [drops](lsmith_tree::Mode::Drop) data. A store refuses such plans of any other
    /// policy.
    pub drops: bool,
    /// The policy reads how often the tree is [read](lsmith_tree::Tree::reads). If no policy needs
    /// it, that is not counted. Simulations that know no reads refuse the policy.
    pub reads: bool,
    /// The policy reads how [old](lsmith_tree::Table::oldest_tombstone) tombstones are.
    pub tombstone_ages: bool,
}

impl Needs {
    /// Returns true if merges may [keep tables](lsmith_tree::KeptTables) under the policy. A policy
    /// that counts in blocks says itself what is kept. Of tables with all their sequence numbers
    /// nobody knows whether a merge has older versions of their keys to drop.
    pub fn lets_tables_stay(self) -> bool {
        !self.blocks && !self.sequence_numbers
    }

    /// Data blocks and nothing else.
    pub const BLOCKS: Needs = Needs {
        blocks: true,
        windows: true,
        sequence_numbers: false,
        exact_sizes: false,
        appends: false,
        drops: false,
        reads: false,
        tombstone_ages: false,
    };
}

/// A memtable is sealed when all writes that it took come to this many times the bytes at which it
/// is sealed, overwritten ones included. This bounds the write-ahead log that one memtable keeps
/// alive.
const OVERWRITE_FACTOR: u64 = 4;

/// Returns true if a memtable should be sealed, given the policy's
/// [`seal_bytes`](MergePolicy::seal_bytes). `live_bytes` are the logical bytes of the newest
/// versions of its keys, `written_bytes` count all writes that it took.
///
/// The store and the simulations both call this, so that they seal at the same write.
#[must_use]
pub fn is_memtable_full(seal_bytes: u64, live_bytes: u64, written_bytes: u64) -> bool {
    live_bytes >= seal_bytes || live_bytes > 0 && written_bytes >= written_bytes_max(seal_bytes)
}

/// Returns the bytes of all writes at which a memtable is full, however few of them are live.
#[must_use]
pub fn written_bytes_max(seal_bytes: u64) -> u64 {
    OVERWRITE_FACTOR.saturating_mul(seal_bytes)
}

/// The outline of the trees that a policy builds. Formulas use it, and simulations that count sizes
/// only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Nothing bounds the runs: every flush stays one, or a largest merge leaves runs for good.
    Unmerged,
    /// A stack of at most `runs_max` runs, which are merged whole.
    Stack {
        /// The most runs on storage.
        runs_max: u64,
    },
    /// Levels of fewer than `ratio` runs. A full level becomes one run of the next.
    Tiered {
        /// Runs of a level that become one run of the next.
        ratio: u64,
    },
    /// Levels of one run each below level 0. Tables move down one by one.
    Leveled {
        /// Size of a level over the size of the level above.
        ratio: f64,
        /// Runs allowed in level 0.
        level0_runs: u64,
    },
}

impl Shape {
    /// The highest pressure by merges that recent writes did not cause, such as merges of a tree
    /// that another policy has left. They can take hours, so they slow writers and do not stop
    /// them.
    pub(crate) const PRESSURE_OF_LEFTOVERS_MAX: f64 = 0.9;

    /// Runs of level 0 with more memtables than this were not flushed there.
    pub(crate) const FLUSHED_MEMTABLES_MAX: u64 = 4;

    /// Returns the back-pressure on writers of a tree that should have this shape.
    pub(crate) fn pressure(self, view: &TreeView, load: &Load) -> f64 {
        match self {
            Shape::Unmerged => pressure_of_load(view, load),
            Shape::Stack { runs_max } => {
                pressure_of_runs(view, view.tree.disk_run_count(), runs_max, load)
            }
            Shape::Tiered { ratio } => {
                let run_counts = view.tree.levels().iter().map(|level: &Level| level.runs().len());
                pressure_of_runs(view, run_counts.max().unwrap_or(0), ratio, load)
            }
            Shape::Leveled { level0_runs, .. } => {
                let runs = view.tree.runs_at(LevelId::Disk(0));
                let flushed_max = view.memtable_bytes.saturating_mul(Shape::FLUSHED_MEMTABLES_MAX);
                let flushed = runs.iter().filter(|run| run.bytes() <= flushed_max).count();
                let pressure =
                    |runs: usize| pressure_of_waiting_runs(runs as f64 - level0_runs as f64);
                let all = pressure(runs.len()).min(Shape::PRESSURE_OF_LEFTOVERS_MAX);
                all.max(pressure(flushed)).max(pressure_of_load(view, load))
            }
        }
    }
}

/// A decision with its reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The plan, with its reason; `None` if no merge is due.
    pub plan: Option<MergePlan>,
    /// Other plans that were considered, best first, each with the reason why it was not chosen.
    pub runners_up: Vec<(MergePlan, String)>,
    /// What the policy has learned and is learning, one line each.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::is_memtable_full;

    #[test]
    fn a_memtable_is_full_of_newest_versions_or_of_overwritten_ones() {
        assert!(!is_memtable_full(100, 99, 399));
        assert!(is_memtable_full(100, 100, 100));
        assert!(is_memtable_full(100, 1, 400));
        // There would be nothing to flush.
        assert!(!is_memtable_full(100, 0, 1000));
    }
}
