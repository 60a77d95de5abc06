//! The loop that drives a policy: ask, judge, carry out, apply, until there is nothing to do.

use crate::SimError;
use lsmith_policy::MergePolicy;
use lsmith_tree::{
    Input, MergePlan, Mode, Outcome, PlanError, Slice, Tree, TreeEdit, TreeView, check_plan,
};
use std::sync::Arc;

/// Plans in a row after which a policy counts as one that never comes to rest.
const PLANS_MAX: u64 = 100_000;

/// What tables hold, in the eyes of one kind of simulation. It answers the one question in which
/// interpreters differ: this merge was asked for; what came out?
pub trait Content {
    /// Whether a move is carried out and counted as a merge.
    const MOVES_ARE_MERGES: bool;

    /// Puts what comes out of `plan`, which has been checked against `tree`, into `outcome`, which
    /// is empty. New tables are named from the tree's next name on, in key order.
    ///
    /// # Errors
    /// [`SimError::Unsupported`] for plans of a kind that this content can't carry out.
    fn carry_out(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        outcome: &mut Outcome,
    ) -> Result<(), SimError>;

    /// The tree is at rest: whatever belongs to tables that it no longer has can go.
    fn rest(&mut self, tree: &Tree);
}

/// What an observer of a [`Drive`] is told, in the order in which it happens.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A memtable has been sealed and has joined the tree.
    Sealed {
        /// The tree with it.
        tree: &'a Tree,
    },
    /// A plan of the policy, or a flush, is about to be applied.
    Merge {
        /// The tree before.
        tree: &'a Tree,
        /// The plan as it was carried out.
        plan: &'a MergePlan,
        /// The change that it comes to.
        edit: &'a TreeEdit,
    },
    /// There is nothing left to do, and memory is empty but for what a policy that wants blocks
    /// leaves there.
    Rest {
        /// The tree.
        tree: &'a Tree,
    },
}

/// Called with each [`Event`].
pub type Observer<'a> = dyn FnMut(Event<'_>) + 'a;

/// A tree, its policy and its content, in lockstep: each sealed memtable is followed by all plans
/// that the policy has, until the tree is at rest.
#[derive(Clone, Debug)]
pub struct Drive<C> {
    view: TreeView,
    policy: Arc<dyn MergePolicy>,
    content: C,
    /// Room for what comes out of plans, and for the edits, one after the other.
    outcome: Outcome,
    edit: TreeEdit,
}

impl<C: Content> Drive<C> {
    /// Drives an empty tree.
    pub fn new(policy: Arc<dyn MergePolicy>, content: C, memtable_bytes: u64) -> Drive<C> {
        let view = TreeView::new(Tree::new(), memtable_bytes);
        Drive { view, policy, content, outcome: Outcome::default(), edit: TreeEdit::default() }
    }

    /// What the policy sees.
    pub fn view(&self) -> &TreeView {
        &self.view
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.view.tree
    }

    /// The policy.
    pub fn policy(&self) -> &Arc<dyn MergePolicy> {
        &self.policy
    }

    /// Hands the tree over to another policy, which is first asked at the next
    /// [`settle`](Drive::settle) or [`flush`](Drive::flush).
    pub fn set_policy(&mut self, policy: Arc<dyn MergePolicy>) {
        self.policy = policy;
    }

    /// The content.
    pub fn content(&self) -> &C {
        &self.content
    }

    /// The content, to put in what the next memtable holds.
    pub fn content_mut(&mut self) -> &mut C {
        &mut self.content
    }

    /// The tree, for its last reader.
    pub fn into_tree(self) -> Tree {
        self.view.tree
    }

    /// Adds a sealed memtable, whose table has the tree's next name, and settles.
    ///
    /// # Errors
    /// As [`settle`](Drive::settle).
    pub fn flush(&mut self, memtable: Slice, observe: &mut Observer<'_>) -> Result<(), SimError> {
        let tree = &mut self.view.tree;
        self.edit.set_to_seal(tree.next_run(), memtable);
        self.edit.apply_to(tree)?;
        observe(Event::Sealed { tree });
        self.settle(observe)
    }

    /// Sets what the policy is told that a full block holds, in logical bytes.
    pub fn set_block_bytes(&mut self, bytes: u64) {
        self.view.block_bytes = bytes;
    }

    /// Puts `memory`, whose table has the tree's next name, in the place of all that is in memory,
    /// and settles: memory folded into one run, or nothing where all of it has cancelled.
    ///
    /// # Errors
    /// As [`settle`](Drive::settle).
    pub fn replace_memory(
        &mut self,
        memory: Option<Slice>,
        observe: &mut Observer<'_>,
    ) -> Result<(), SimError> {
        let tree = &mut self.view.tree;
        let run = tree.next_run();
        let seal = |memory| TreeEdit::seal(run, memory);
        let mut edit = memory.map_or_else(TreeEdit::default, seal);
        edit.remove = tree.memory().runs().iter().map(|run| Input::all(run.id())).collect();
        edit.apply_to(tree)?;
        observe(Event::Sealed { tree });
        self.settle(observe)
    }

    /// Carries out what the policy says, and where it says nothing flushes what is in memory,
    /// until there is nothing left to do. Under policies that want blocks, what they leave in
    /// memory stays there.
    ///
    /// # Errors
    /// A plan is illegal or not supported by the content, or the policy never comes to rest. The
    /// tree is then as the plans before left it.
    pub fn settle(&mut self, observe: &mut Observer<'_>) -> Result<(), SimError> {
        for _ in 0..PLANS_MAX {
            if let Some(mut plan) = self.policy.next_merge(&self.view) {
                let level = check_plan(&self.view, &plan);
                let level = level.map_err(|rule| self.illegal(&plan, rule))?;
                self.carry_out(&mut plan, level, observe)?;
            } else if let Some(mut flush) = self.flush_left() {
                self.carry_out(&mut flush, 0, observe)?;
            } else {
                self.content.rest(&self.view.tree);
                observe(Event::Rest { tree: &self.view.tree });
                return Ok(());
            }
        }
        Err(SimError::Restless { policy: self.policy.spec(), plans: PLANS_MAX })
    }

    fn carry_out(
        &mut self,
        plan: &mut MergePlan,
        level: usize,
        observe: &mut Observer<'_>,
    ) -> Result<(), SimError> {
        if C::MOVES_ARE_MERGES {
            plan.mode = Mode::Merge;
        }
        let tree = &self.view.tree;
        self.outcome.clear();
        self.content.carry_out(tree, plan, &mut self.outcome)?;
        let made = self.edit.set_to_plan(tree, plan, level, &mut self.outcome);
        made.map_err(|rule| self.illegal(plan, rule))?;
        observe(Event::Merge { tree, plan, edit: &self.edit });
        self.edit.apply_to(&mut self.view.tree)?;
        Ok(())
    }

    fn flush_left(&self) -> Option<MergePlan> {
        if self.policy.needs().blocks { None } else { MergePlan::flush(&self.view.tree) }
    }

    fn illegal(&self, plan: &MergePlan, rule: PlanError) -> SimError {
        SimError::IllegalPlan { policy: self.policy.spec(), plan: Box::new(plan.clone()), rule }
    }
}
