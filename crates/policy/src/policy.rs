//! The trait that every merge policy implements.

use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use std::fmt::Debug;

/// Decides what is merged when.
///
/// # Laws
/// * Pure: the same view gives the same plan.
/// * Total: any legal tree, left by any other policy, gets an answer without panic.
/// * Rest: with no more writes, plans end.
/// * Progress: after a switch the tree is within the policy's own bound on runs once its bytes
///   plus one ratio of new data have been merged.
/// * Reservations: a plan stays clear of every reservation in the view.
///
/// [`laws`](crate::laws) checks them.
pub trait MergePolicy: Debug + Send + Sync {
    /// The spelling that builds this policy again.
    fn spec(&self) -> Spec;

    /// The next merge, if there is one to make now. The caller asks again until there is none;
    /// each plan given is reserved in the next view. With no plan and a sealed memtable waiting,
    /// the caller flushes that memtable as a run of its own.
    ///
    /// Asked on the path of every flush: it should cost no more than a look at each run, or for a
    /// policy that looks inside runs, at each slice.
    fn next_merge(&self, view: &TreeView) -> Option<MergePlan>;

    /// Logical bytes at which the active memtable is sealed, with the tree as it is now. Policies
    /// that leave a part of memory where it is seal when what is left of it is full.
    fn seal_bytes(&self, view: &TreeView) -> u64 {
        view.memtable_bytes
    }

    /// Whether the policy counts in data blocks: profiles must then have a point at every border of
    /// a block ([`TreeView::block_bytes`]), and memory must be one run.
    fn wants_blocks(&self) -> bool {
        false
    }

    /// Whether the policy looks at sequence numbers, such as
    /// [`Table::seq_max`](lsmith_tree::Table::seq_max). Where none does, merges forget those that
    /// no snapshot needs, and tables become smaller.
    fn wants_numbers(&self) -> bool {
        false
    }

    /// How hard writers must be held back, from 0 (not at all) to 1 (stopped): how far the tree is
    /// behind what the policy wants it to be.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64;

    /// The parameters that formulas need.
    fn shape(&self) -> Shape;

    /// What [`next_merge`](MergePolicy::next_merge) says and why, with what else was considered.
    fn explain(&self, view: &TreeView) -> Explanation {
        Explanation { plan: self.next_merge(view), ..Explanation::default() }
    }
}

/// The bytes of all writes that a memtable takes, those overwritten since included, over the bytes
/// at which it is sealed: at most this, so that the write-ahead log that it holds on to is bounded.
const OVERWRITE_FACTOR: u64 = 4;

/// Whether a memtable is to be sealed of which the policy said
/// [`seal_bytes`](MergePolicy::seal_bytes): `live_bytes` are the logical bytes of its newest
/// versions, `written_bytes` those of all writes that it took.
///
/// A rule of its own, so that the store and simulations seal at the same write.
#[must_use]
pub fn is_memtable_full(seal_bytes: u64, live_bytes: u64, written_bytes: u64) -> bool {
    live_bytes >= seal_bytes || live_bytes > 0 && written_bytes >= written_bytes_max(seal_bytes)
}

/// The bytes of all writes at which a memtable is full however little of them is left.
#[must_use]
pub fn written_bytes_max(seal_bytes: u64) -> u64 {
    OVERWRITE_FACTOR.saturating_mul(seal_bytes)
}

/// What a policy may know for [`pressure`](MergePolicy::pressure) alone. It never reaches
/// [`next_merge`](MergePolicy::next_merge), so that store and simulations take the same decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Bytes free on the device, where that is known.
    pub free_bytes: Option<u64>,
    /// Sealed memtables that wait to be flushed or merged.
    pub waiting_memtables: usize,
}

/// The outline of the trees that a policy builds, for formulas and for simulations that count by
/// size alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Every flush stays a run.
    Unmerged,
    /// A stack of at most `runs_max` runs, merged whole.
    Stack {
        /// Most runs on storage.
        runs_max: u64,
    },
    /// Levels of fewer than `ratio` runs; a full level becomes one run of the next.
    Tiered {
        /// Runs of a level that make one run of the next.
        ratio: u64,
    },
    /// Levels of one run each below level 0; tables move down one by one.
    Leveled {
        /// Size of a level over the size of the level above.
        ratio: f64,
        /// Runs allowed in level 0.
        level0_runs: u64,
    },
}

/// A decision with its grounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The plan, with its reason; `None` for rest.
    pub plan: Option<MergePlan>,
    /// Plans that were considered, best first, each with why it lost.
    pub runners_up: Vec<(MergePlan, String)>,
    /// What the policy has learned, and what it is learning; a line each.
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
