//! Views: what a policy sees.

use crate::plan::MergePlan;
use crate::run::RunId;
use crate::tree::Tree;

/// A plan that keeps other plans out of its part of the tree: the rectangle from its newest input
/// to its output, over the hull of its key ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The plan.
    pub plan: MergePlan,
    /// Whether the plan is being carried out, or has failed.
    pub state: ReservationState,
}

/// Why a plan is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationState {
    /// The plan is being carried out.
    UnderWay,
    /// The plan failed. It is not tried again until its cause is gone.
    Blocked,
}

/// Everything that a policy may know, as one printable value. It holds only what can be printed as
/// text and parsed back: no clock, no free space, no physical sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeView {
    /// The tree.
    pub tree: Tree,
    /// Plans under way and blocked plans, in the order in which they were made.
    pub reservations: Vec<Reservation>,
    /// Logical bytes of memory. That is one memtable, unless a policy seals memtables earlier.
    pub memtable_bytes: u64,
    /// Logical bytes of a full data block, for policies that count in blocks.
    pub block_bytes: u64,
}

/// Logical bytes of a full data block by default.
pub const BLOCK_BYTES_USUAL: u64 = 4096;

impl Default for TreeView {
    fn default() -> TreeView {
        TreeView::new(Tree::new(), 0)
    }
}

impl TreeView {
    /// Returns a view of `tree` without reservations.
    pub fn new(tree: Tree, memtable_bytes: u64) -> TreeView {
        let block_bytes = BLOCK_BYTES_USUAL;
        TreeView { tree, reservations: Vec::new(), memtable_bytes, block_bytes }
    }

    /// Returns the policy's note called `name`, as it will be after all plans under way have
    /// committed.
    pub fn memo(&self, name: &str) -> Option<&str> {
        let under_way = |r: &&Reservation| r.state == ReservationState::UnderWay;
        let mut changes =
            self.reservations.iter().filter(under_way).flat_map(|r| r.plan.memo.iter());
        match changes.rfind(|(changed, _)| changed == name) {
            Some((_, text)) => text.as_deref(),
            None => self.tree.memo().text(name),
        }
    }

    /// Returns true if `run` is an input or the target of a reserved plan.
    pub fn is_reserved(&self, run: RunId) -> bool {
        self.reservations.iter().any(|reservation| {
            let place = reservation.plan.place;
            reservation.plan.takes(run)
                || matches!(place, crate::Place::Into(target) | crate::Place::Append(target) if target == run)
        })
    }
}
