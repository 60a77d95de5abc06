//! The merge policy of a keyspace, guarded against its bugs.
//!
//! Users may write policies. Whatever a policy does, writers and callers that wait for rest must
//! not wait for ever, and threads must not work for nothing:
//!
//! * A policy that panics on a thread that merges is not asked again until
//!   [`forgive`](Policy::forgive). Memory is then flushed without it. On the thread of a caller,
//!   and in lockstep every thread is one, the panic goes up to the caller. The store asks policies
//!   before or after steps that must be done as a whole, so a panic interrupts none.
//! * A policy is a pure function. So a policy whose plan was refused is not asked again for the
//!   same view.
//! * A policy whose plans lead to the same tree again and again, while no memtable is flushed,
//!   makes no more plans for that tree.
//! * Numbers that are out of range are clamped.

use super::course::PlanCourse;
use crate::threads::is_merging_thread;
use crate::version::CountedReads;
use lsmith_policy::{Explanation, Load, MergePolicy, Needs};
use lsmith_spec::Spec;
use lsmith_storage::panics;
use lsmith_tree::{MergePlan, Mode, PlanError, Tree, TreeView};
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

/// No data block has more bytes than this, not even one that holds a single large entry.
const BLOCK_BYTES_MAX: u64 = 1 << 32;

/// A bound on the slack of a level in bytes: more than the room in all its blocks.
const SLACK_BYTES_MAX: u64 = 1 << 44;

/// A merge policy, and the faults that it has shown so far.
#[derive(Debug)]
pub(crate) struct Policy {
    policy: Arc<dyn MergePolicy>,
    spec: Spec,
    needs: Needs,
    /// Where reads are counted, if the policy needs that.
    counted: Option<Arc<CountedReads>>,
    /// True if writers merge themselves.
    lockstep: bool,
    /// The message of its panic, if one was caught.
    panic: OnceCell<String>,
    /// True after the warning that it returned a pressure that is not a number.
    warned_of_pressure: Cell<bool>,
    /// True after the warning that it makes plans without end.
    warned_of_circle: Cell<bool>,
    /// The view for which its plan was refused.
    refused: RefCell<Option<TreeView>>,
    course: Cell<PlanCourse>,
}

impl Policy {
    /// Guards `policy`, for a store in `lockstep` or with threads. Asks for its constants once,
    /// here, on the thread of a caller.
    pub(crate) fn new(policy: Arc<dyn MergePolicy>, lockstep: bool) -> Policy {
        Policy {
            spec: policy.spec(),
            counted: policy.needs().reads.then(Arc::default),
            needs: policy.needs(),
            policy,
            lockstep,
            panic: OnceCell::new(),
            warned_of_pressure: Cell::new(false),
            warned_of_circle: Cell::new(false),
            refused: RefCell::default(),
            course: Cell::default(),
        }
    }

    /// Returns the spec that builds the policy again.
    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns true if the policy counts in data blocks.
    pub(crate) fn wants_blocks(&self) -> bool {
        self.needs.blocks
    }

    /// Returns true if the policy appends to append tables.
    pub(crate) fn appends(&self) -> bool {
        self.needs.appends
    }

    /// Returns where reads are counted, if the policy needs that.
    pub(crate) fn counted(&self) -> Option<&Arc<CountedReads>> {
        self.counted.as_ref()
    }

    /// Returns true if the policy looks at how old tombstones are.
    pub(crate) fn wants_tombstone_ages(&self) -> bool {
        self.needs.tombstone_ages
    }

    /// Returns true if the policy looks at sequence numbers.
    pub(crate) fn wants_seqs(&self) -> bool {
        self.needs.sequence_numbers
    }

    /// Returns true if merges may keep tables.
    pub(crate) fn lets_tables_stay(&self) -> bool {
        self.needs.lets_tables_stay()
    }

    /// Fails if `plan` drops data, and the policy is not one that does.
    pub(crate) fn check_drop(&self, plan: &MergePlan) -> Result<(), PlanError> {
        match plan.inputs.first() {
            Some(input) if plan.mode == Mode::Drop && !self.needs.drops => {
                Err(PlanError::MayNotDrop { run: input.run })
            }
            _ => Ok(()),
        }
    }

    /// Returns the logical bytes at which the active memtable is sealed, at most the keyspace's
    /// memtable size, which is also the answer for a policy that has panicked.
    pub(crate) fn seal_bytes(&self, view: &TreeView) -> u64 {
        let answer = self.ask(is_merging_thread(), |policy| policy.seal_bytes(view));
        answer.unwrap_or(view.memtable_bytes).min(view.memtable_bytes)
    }

    /// Returns the pressure on writers, from 0 to 1. Returns 0 if the policy's answer is not a
    /// number, and for a policy that has panicked.
    pub(crate) fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let answer = self.ask(is_merging_thread(), |policy| policy.pressure(view, load));
        let pressure = answer.unwrap_or(0.0);
        if !pressure.is_nan() {
            return pressure.clamp(0.0, 1.0);
        }
        if !self.warned_of_pressure.replace(true) {
            tracing::warn!(policy = %self.spec, "the pressure of a merge policy is not a number");
        }
        0.0
    }

    /// Returns the policy's next merge, if any. Catches its panics on all threads unless the store
    /// is in lockstep, because callers that wait for rest ask here too.
    pub(crate) fn next_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if self.was_refused(view) || self.course.get().rests_at(&view.tree) {
            return None;
        }
        let mut plan = self.ask(!self.lockstep, |policy| policy.next_merge(view)).flatten()?;
        if let Some(reuse) = &mut plan.reuse {
            // These numbers are added up, over all blocks and over all merges.
            reuse.full_bytes = reuse.full_bytes.min(BLOCK_BYTES_MAX);
            reuse.slack_bytes = reuse.slack_bytes.map(|slack| slack.min(SLACK_BYTES_MAX));
        }
        Some(plan)
    }

    /// Returns what the policy would do next, and why. Does not catch its panics.
    pub(crate) fn explain(&self, view: &TreeView) -> Explanation {
        self.policy.explain(view)
    }

    /// Returns the policy's answer to `ask`. Returns `None` if the policy has panicked before, and
    /// if it panics now and `catches` is true.
    fn ask<T>(&self, catches: bool, ask: impl FnOnce(&dyn MergePolicy) -> T) -> Option<T> {
        if self.panic.get().is_some() {
            return None;
        }
        if !catches {
            return Some(ask(&*self.policy));
        }
        let asked = panics::catch(|| ask(&*self.policy));
        let note = |panic: panics::Panic| {
            tracing::error!(policy = %self.spec, %panic, "a merge policy panicked");
            self.panic.get_or_init(|| panic.to_string());
        };
        asked.map_err(note).ok()
    }

    /// Returns the message of a panic that was caught, after which the policy is not asked again.
    pub(crate) fn panic(&self) -> Option<&str> {
        self.panic.get().map(String::as_str)
    }

    /// Forgets all faults, so that the policy is asked again.
    pub(crate) fn forgive(&mut self) {
        self.panic.take();
        self.refused.take();
        self.course.take();
    }

    /// Records that the policy's plan for `view` was refused, because it breaks a rule.
    pub(crate) fn refuse(&self, view: &TreeView) {
        self.refused.replace(Some(view.clone()));
    }

    fn was_refused(&self, view: &TreeView) -> bool {
        let mut refused = self.refused.borrow_mut();
        let is_same = refused.as_ref().is_some_and(|then| then == view);
        if !is_same {
            *refused = None;
        }
        is_same
    }

    /// Records that a plan has led to `tree`.
    pub(crate) fn note_tree(&self, tree: &Tree) {
        let mut course = self.course.get();
        course.step(tree);
        if course.is_circle() && !self.warned_of_circle.replace(true) {
            tracing::warn!(policy = %self.spec, "a merge policy makes plans without end");
        }
        self.course.set(course);
    }
}
