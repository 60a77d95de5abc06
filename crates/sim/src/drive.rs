//! The loop that drives a policy: ask for a plan, check it, carry it out, apply its edit, until no
//! plan is left.

use crate::SimError;
use lsmith_policy::MergePolicy;
use lsmith_tree::{
    EditError, Input, MergePlan, Mode, Outcome, PlanError, Reservation, ReservationState, Slice,
    Table, TableId, Tree, TreeEdit, TreeView, check_plan,
};
use std::sync::Arc;

/// The number of plans in a row after which a policy counts as one that never rests.
const PLANS_MAX: u64 = 100_000;

/// The content of tables in one kind of simulation. It answers the one question in which
/// interpreters differ: what is the outcome of this merge?
pub trait Content {
    /// True if moves are carried out and counted as merges.
    const MOVES_ARE_MERGES: bool;

    /// Carries out `plan`, which was checked against `tree`, and writes the result to `outcome`,
    /// which is empty. New tables get names from the tree's next name on, in key order.
    ///
    /// # Errors
    /// Fails with [`SimError::BadPlan`] if the plan breaks a rule after all.
    fn carry_out(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        outcome: &mut Outcome,
    ) -> Result<(), SimError>;

    /// Returns a plan that [drops](Mode::Drop) what no reader sees any more, if there is one. It
    /// comes before the plans of the policy.
    fn unread(&self, _view: &TreeView) -> Option<MergePlan> {
        None
    }

    /// Adds to the edit of `plan` what the content knows beside tables: range deletes that leave
    /// memory, and range deletes that are done.
    ///
    /// # Errors
    /// Fails if the edit does not fit the tree.
    fn complete(
        &mut self,
        _tree: &Tree,
        _plan: &MergePlan,
        _edit: &mut TreeEdit,
    ) -> Result<(), EditError> {
        Ok(())
    }

    /// Notes that the tree is about to have this table. The table also says when its file was begun
    /// and how old its tombstones are, which [`carry_out`](Content::carry_out) did not.
    fn adopt(&mut self, _table: &Arc<Table>) {}

    /// Notes that the tree is at rest. The content may then remove tables that the tree no longer
    /// has.
    fn rest(&mut self, tree: &Tree);
}

/// An event of a [`Drive`], in the order in which it happens.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A memtable was sealed and added to the tree.
    Sealed {
        /// The tree, with the memtable.
        tree: &'a Tree,
        /// Logical bytes of all write requests so far. 0 in unit content.
        requested_bytes: u64,
    },
    /// The edit of a plan or of a flush is about to be applied.
    Merge {
        /// The tree before the edit.
        tree: &'a Tree,
        /// The plan.
        plan: &'a MergePlan,
        /// The edit.
        edit: &'a TreeEdit,
    },
    /// No plan is left. Memory is empty, except for what a policy that counts in blocks leaves
    /// there.
    Rest {
        /// The tree.
        tree: &'a Tree,
    },
    /// A memtable was flushed, and the tree is at rest. Under a policy that counts in blocks, the
    /// writes have filled another memtable, as [`FullMemtables`](crate::FullMemtables) counts them.
    /// Only whole simulations report it.
    Flushed {
        /// The tree.
        tree: &'a Tree,
    },
}

/// A plan under way, and what will come of it.
#[derive(Debug)]
pub(crate) struct UnderWay {
    pub(crate) plan: MergePlan,
    pub(crate) outcome: Outcome,
    /// The number of slices that come out, without tables that the merge keeps.
    pub(crate) new_slices: usize,
}

/// Called with each [`Event`].
pub type Observer<'a> = dyn FnMut(Event<'_>) + 'a;

/// A tree with its policy and content, in lockstep: after each sealed memtable, plans are carried
/// out until the tree is at rest.
#[derive(Clone, Debug)]
pub struct Drive<C> {
    view: TreeView,
    policy: Arc<dyn MergePolicy>,
    content: C,
    /// Reused for the outcome and the edit of each plan.
    outcome: Outcome,
    edit: TreeEdit,
    requested_bytes: u64,
}

impl<C: Content> Drive<C> {
    /// Returns a drive of an empty tree.
    pub fn new(policy: Arc<dyn MergePolicy>, content: C, memtable_bytes: u64) -> Drive<C> {
        let view = TreeView::new(Tree::new(), memtable_bytes);
        let (outcome, edit) = (Outcome::default(), TreeEdit::default());
        Drive { view, policy, content, outcome, edit, requested_bytes: 0 }
    }

    /// Returns the view that the policy sees.
    pub fn view(&self) -> &TreeView {
        &self.view
    }

    /// Returns the tree.
    pub fn tree(&self) -> &Tree {
        &self.view.tree
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Arc<dyn MergePolicy> {
        &self.policy
    }

    /// Replaces the policy. The new one is first asked at the next [`settle`](Drive::settle) or
    /// [`flush`](Drive::flush).
    pub fn set_policy(&mut self, policy: Arc<dyn MergePolicy>) {
        self.policy = policy;
    }

    /// Returns the content.
    pub fn content(&self) -> &C {
        &self.content
    }

    /// Returns the content, so that the caller can add the next memtable to it.
    pub fn content_mut(&mut self) -> &mut C {
        &mut self.content
    }

    /// Returns the tree, and the content so that it can be asked about that tree.
    pub(crate) fn tree_and_content(&mut self) -> (&Tree, &mut C) {
        (&self.view.tree, &mut self.content)
    }

    /// Returns the tree, and drops everything else.
    pub fn into_tree(self) -> Tree {
        self.view.tree
    }

    /// Adds a sealed memtable, whose table must have the tree's next name, and settles.
    ///
    /// # Errors
    /// Fails as [`settle`](Drive::settle) does.
    pub fn flush(&mut self, memtable: Slice, observe: &mut Observer<'_>) -> Result<(), SimError> {
        self.seal(memtable, observe)?;
        self.settle(observe)
    }

    /// Adds a sealed memtable, whose table must have the tree's next name.
    pub(crate) fn seal(
        &mut self,
        memtable: Slice,
        observe: &mut Observer<'_>,
    ) -> Result<(), SimError> {
        let tree = &mut self.view.tree;
        self.edit.set_to_seal(tree.next_run(), memtable);
        self.edit.apply_to(tree)?;
        observe(Event::Sealed { tree, requested_bytes: self.requested_bytes });
        Ok(())
    }

    /// Tells the tree how often it was read while the memtable was filled that is about to be
    /// sealed: lookups that found a value, that found none, and range reads.
    pub(crate) fn note_reads(&mut self, [found, absent, scans]: [u64; 3]) -> Result<(), SimError> {
        let tree = &mut self.view.tree;
        self.edit.reads = Some(tree.reads().with_memtable(found, absent, scans));
        Ok(self.edit.apply_to(tree)?)
    }

    /// Sets the logical bytes of all write requests so far, for [`Event::Sealed`].
    pub(crate) fn set_requested_bytes(&mut self, bytes: u64) {
        self.requested_bytes = bytes;
    }

    /// Sets the capacity of a memtable that the policy sees.
    pub fn set_memtable_bytes(&mut self, bytes: u64) {
        self.view.memtable_bytes = bytes;
    }

    /// Sets the logical bytes of a full block that the policy sees.
    pub fn set_block_bytes(&mut self, bytes: u64) {
        self.view.block_bytes = bytes;
    }

    /// Replaces everything in memory by `memory`, whose table must have the tree's next name, and
    /// settles. `None` if all entries of memory have cancelled each other out.
    ///
    /// # Errors
    /// Fails as [`settle`](Drive::settle) does.
    pub fn replace_memory(
        &mut self,
        memory: Option<Slice>,
        observe: &mut Observer<'_>,
    ) -> Result<(), SimError> {
        self.set_memory(memory)?;
        let tree = &self.view.tree;
        observe(Event::Sealed { tree, requested_bytes: self.requested_bytes });
        self.settle(observe)
    }

    /// Replaces everything in memory by `memory`, whose table must have the tree's next name.
    pub(crate) fn set_memory(&mut self, memory: Option<Slice>) -> Result<(), SimError> {
        let tree = &mut self.view.tree;
        let run = tree.next_run();
        let seal = |memory| TreeEdit::seal(run, memory);
        let mut edit = memory.map_or_else(TreeEdit::default, seal);
        edit.remove = tree.memory().runs().iter().map(|run| Input::all(run.id())).collect();
        Ok(edit.apply_to(tree)?)
    }

    /// Carries out the plans of the policy until there are none. Flushes memory if the policy has
    /// no plan, except under a policy that counts in blocks.
    ///
    /// # Errors
    /// Fails if a plan is illegal, or if the policy never rests. The tree is then as the plans
    /// before left it.
    pub fn settle(&mut self, observe: &mut Observer<'_>) -> Result<(), SimError> {
        for _ in 0..PLANS_MAX {
            if let Some(mut plan) = self.propose() {
                let level =
                    check_plan(&self.view, &plan).map_err(|rule| self.illegal(&plan, rule))?;
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
        if C::MOVES_ARE_MERGES && plan.mode == Mode::Move {
            plan.mode = Mode::Merge;
        }
        let mut outcome = std::mem::take(&mut self.outcome);
        outcome.clear();
        // Nothing comes out of a drop.
        if plan.mode != Mode::Drop {
            self.content.carry_out(&self.view.tree, plan, &mut outcome)?;
        }
        self.commit(plan, level, &mut outcome, observe)?;
        self.outcome = outcome;
        Ok(())
    }

    /// Turns the outcome of `plan` into an edit, and applies it.
    fn commit(
        &mut self,
        plan: &MergePlan,
        level: usize,
        outcome: &mut Outcome,
        observe: &mut Observer<'_>,
    ) -> Result<(), SimError> {
        let tree = &self.view.tree;
        let made = self.edit.set_to_plan(tree, plan, level, outcome);
        made.map_err(|rule| self.illegal(plan, rule))?;
        let is_dated = self.policy.needs().tombstone_ages;
        if is_dated {
            self.edit.date_tombstones(tree);
        }
        self.content.complete(tree, plan, &mut self.edit)?;
        if plan.makes_append() || is_dated {
            let slices = self.edit.add.iter().flat_map(|addition| &addition.slices);
            slices.for_each(|slice| self.content.adopt(slice.table()));
        }
        observe(Event::Merge { tree, plan, edit: &self.edit });
        self.edit.apply_to(&mut self.view.tree)?;
        Ok(())
    }

    /// Returns the next plan: one that drops what no reader sees any more, or the policy's.
    pub(crate) fn propose(&self) -> Option<MergePlan> {
        self.content.unread(&self.view).or_else(|| self.policy.next_merge(&self.view))
    }

    /// Reserves `plan`, and works out what comes of it. The tree stays as it is until the plan
    /// [ends](Drive::end).
    ///
    /// # Errors
    /// Fails if the plan is illegal.
    pub(crate) fn begin(&mut self, mut plan: MergePlan) -> Result<UnderWay, SimError> {
        check_plan(&self.view, &plan).map_err(|rule| self.illegal(&plan, rule))?;
        if C::MOVES_ARE_MERGES && plan.mode == Mode::Move {
            plan.mode = Mode::Merge;
        }
        let mut outcome = Outcome::default();
        if plan.mode != Mode::Drop {
            self.content.carry_out(&self.view.tree, &plan, &mut outcome)?;
        }
        let first = self.view.tree.next_table();
        let rewritten = outcome.rewritten.iter().flat_map(|(_, slices)| slices);
        let used = outcome.slices.iter().chain(rewritten).map(|slice| slice.table().id.0 + 1);
        self.view.tree.skip_tables_below(TableId(used.max().unwrap_or(0)));
        let state = ReservationState::UnderWay;
        self.view.reservations.push(Reservation { plan: plan.clone(), state });
        // Only merges without rules of reuse keep whole tables, and no append tables.
        let may_keep = plan.mode == Mode::Merge && plan.reuse.is_none() && !plan.makes_append();
        let is_new = |slice: &&Slice| !may_keep || slice.table().id >= first;
        let new_slices = outcome.slices.iter().filter(is_new).count();
        Ok(UnderWay { plan, outcome, new_slices })
    }

    /// Applies what came of a plan. Returns false if the tree no longer allows the plan, whose
    /// outcome is then lost.
    ///
    /// # Errors
    /// Fails if the outcome does not fit the plan.
    pub(crate) fn end(
        &mut self,
        UnderWay { plan, mut outcome, .. }: UnderWay,
        observe: &mut Observer<'_>,
    ) -> Result<bool, SimError> {
        let reservations = &mut self.view.reservations;
        if let Some(own) = reservations.iter().position(|reservation| reservation.plan == plan) {
            reservations.remove(own);
        }
        let Ok(level) = check_plan(&self.view, &plan) else { return Ok(false) };
        self.commit(&plan, level, &mut outcome, observe)?;
        Ok(true)
    }

    /// Notes that no plan is left or under way.
    pub(crate) fn rest(&mut self) {
        self.content.rest(&self.view.tree);
    }

    /// Returns the plan that flushes the oldest memtable, unless the policy keeps memory.
    pub(crate) fn flush_left(&self) -> Option<MergePlan> {
        if self.policy.needs().blocks { None } else { MergePlan::flush(&self.view.tree) }
    }

    fn illegal(&self, plan: &MergePlan, rule: PlanError) -> SimError {
        SimError::IllegalPlan { policy: self.policy.spec(), plan: Box::new(plan.clone()), rule }
    }
}
