//! What a policy sees.

use crate::plan::MergePlan;
use crate::run::RunId;
use crate::tree::Tree;

/// A plan that keeps others out of its part of the tree: the rectangle from its newest input to
/// the place of its output, over the hull of its key ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The plan.
    pub plan: MergePlan,
    /// Under way, or blocked because it failed and its cause is not yet gone.
    pub state: ReservationState,
}

/// Why a plan is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationState {
    /// The plan is being carried out.
    UnderWay,
    /// The plan failed; it is not tried again until its cause is gone.
    Blocked,
}

/// All that a policy may know. One printable value: what can't be printed as text and parsed
/// back, a policy may not see. No clock, no free space, no physical sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeView {
    /// The tree.
    pub tree: Tree,
    /// Plans in flight and blocked plans, in the order in which they were made.
    pub reservations: Vec<Reservation>,
    /// Logical bytes that memory holds: one memtable, unless a policy seals at less.
    pub memtable_bytes: u64,
    /// Logical bytes of a full data block, for policies that count in blocks.
    pub block_bytes: u64,
}

/// Logical bytes of a full data block, where nothing else is said.
pub const BLOCK_BYTES_USUAL: u64 = 4096;

impl Default for TreeView {
    fn default() -> TreeView {
        TreeView::new(Tree::new(), 0)
    }
}

impl TreeView {
    /// A view of `tree` with nothing in flight.
    pub fn new(tree: Tree, memtable_bytes: u64) -> TreeView {
        let block_bytes = BLOCK_BYTES_USUAL;
        TreeView { tree, reservations: Vec::new(), memtable_bytes, block_bytes }
    }

    /// The policy's note called `name`, as it will be once all plans in flight have committed.
    pub fn memo(&self, name: &str) -> Option<&str> {
        let under_way = |r: &&Reservation| r.state == ReservationState::UnderWay;
        let mut changes =
            self.reservations.iter().filter(under_way).flat_map(|r| r.plan.memo.iter());
        match changes.rfind(|(changed, _)| changed == name) {
            Some((_, text)) => text.as_deref(),
            None => self.tree.memo().text(name),
        }
    }

    /// Whether `run` is an input or the target of a reserved plan.
    pub fn is_reserved(&self, run: RunId) -> bool {
        self.reservations.iter().any(|reservation| {
            let place = reservation.plan.place;
            reservation.plan.takes(run)
                || matches!(place, crate::Place::Into(target) | crate::Place::Append(target) if target == run)
        })
    }
}
