//! Which plan a merging thread takes next. The store, simulations of time and the law of
//! [free runs](crate::laws::Law::Free) share it.

use crate::Eager;
use crate::back_pressure::WAITING_MEMTABLES_MAX;
use lsmith_tree::{MergePlan, TreeView};

/// The plans that a merging thread carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Any plan.
    All,
    /// Plans that take a memtable, and short ones if no memtable waits. So memtables never wait for
    /// a long merge.
    Memory,
}

impl Duty {
    /// Returns the duty of the thread with this index, of `threads`: the last of several is kept
    /// for memtables.
    #[must_use]
    pub fn of(index: usize, threads: usize) -> Duty {
        if index > 0 && index + 1 == threads { Duty::Memory } else { Duty::All }
    }
}

/// What a merging thread knows when it looks for a plan.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// What the policy saw.
    pub view: &'a TreeView,
    /// The duty of the thread.
    pub duty: Duty,
    /// Sealed memtables that wait, as for the [pressure](crate::Load::waiting_memtables).
    pub waiting_memtables: usize,
    /// True if the policy says itself what comes before a flush. A memtable of append tables that
    /// became a run of its own would cost a merge with its whole level.
    pub has_turns: bool,
}

impl Turn<'_> {
    /// Returns the plan that the thread takes: `proposed`, which the policy or the store has made,
    /// or what `flush` returns, which takes the oldest memtable. `plan` returns the plan of either.
    pub fn plan<P>(
        &self,
        proposed: Option<P>,
        plan: impl Fn(&P) -> &MergePlan,
        flush: impl FnOnce() -> Option<P>,
    ) -> Option<P> {
        let ours = proposed.filter(|proposed| self.is_ours(plan(proposed)));
        if self.has_turns {
            return ours;
        }
        // So many memtables stop writers. With one thread, plans that take no memtable must not
        // come first again and again.
        let is_flush_urgent = self.waiting_memtables >= WAITING_MEMTABLES_MAX
            && ours.as_ref().is_some_and(|ours| !self.takes_memory(plan(ours)));
        if is_flush_urgent { flush().or(ours) } else { ours.or_else(flush) }
    }

    fn is_ours(&self, plan: &MergePlan) -> bool {
        self.duty == Duty::All
            || self.takes_memory(plan)
            || self.waiting_memtables == 0 && self.is_short(plan)
    }

    fn takes_memory(&self, plan: &MergePlan) -> bool {
        self.view.tree.memory().runs().iter().any(|run| plan.takes(run.id()))
    }

    /// Returns true if the inputs of `plan` hold at most as many bytes as the inputs of an eager
    /// merge. A memtable that is sealed meanwhile then waits no longer than for an eager merge.
    fn is_short(&self, plan: &MergePlan) -> bool {
        let bytes_max = (Eager::FACTOR + 1).saturating_mul(self.view.memtable_bytes);
        plan.size_taken(&self.view.tree).bytes <= bytes_max
    }
}
