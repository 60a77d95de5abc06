//! The merge policy of a keyspace, as the store asks it.
//!
//! Policies come from anywhere. Whatever one does, no writer and nobody who waits for rest must
//! wait for ever, and no thread must be kept busy for nothing:
//!
//! * One that panics on a thread that merges is not asked any more until it is
//!   [forgiven](Policy::forgive): memory is flushed without it. On the thread of a caller, and in
//!   lockstep all are, the panic is the caller's. It is asked before or after what must happen in
//!   one step, so nothing is torn by that.
//! * A policy is a pure function. So one whose plan was refused is not asked for another before it
//!   would see something else.
//! * One whose plans lead back to where it was, again and again, while no memtable is flushed, has
//!   no more to say until something else has happened.
//! * Numbers that make no sense are made to.

use crate::threads::is_merging_thread;
use lsmith_policy::{Explanation, Load, MergePolicy, Needs};
use lsmith_spec::Spec;
use lsmith_storage::panics;
use lsmith_tree::{MergePlan, Tree, TreeView};
use rustc_hash::FxHasher;
use std::cell::{Cell, OnceCell, RefCell};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// No data block is larger: an entry has a block of its own, if nothing else.
const BLOCK_BYTES_MAX: u64 = 1 << 32;

/// More room than all blocks of a level have.
const SLACK_BYTES_MAX: u64 = 1 << 44;

/// A merge policy, and what has come of asking it.
#[derive(Debug)]
pub(crate) struct Policy {
    policy: Arc<dyn MergePolicy>,
    spec: Spec,
    needs: Needs,
    /// Whether writers merge, and nobody else.
    lockstep: bool,
    /// What it said when it panicked.
    panic: OnceCell<String>,
    /// Whether it is known to say pressures that are no numbers, and to make plans without end.
    is_odd: Cell<bool>,
    is_restless: Cell<bool>,
    /// What it saw when its plan was refused.
    refused: RefCell<Option<TreeView>>,
    course: Cell<Course>,
}

impl Policy {
    /// Asks `policy` from now on, of a store in `lockstep` or with threads. What it is like it is
    /// asked here, on the thread of a caller, for good.
    pub(crate) fn new(policy: Arc<dyn MergePolicy>, lockstep: bool) -> Policy {
        Policy {
            spec: policy.spec(),
            needs: policy.needs(),
            policy,
            lockstep,
            panic: OnceCell::new(),
            is_odd: Cell::new(false),
            is_restless: Cell::new(false),
            refused: RefCell::default(),
            course: Cell::default(),
        }
    }

    /// The spelling that builds it again.
    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Whether it counts in data blocks.
    pub(crate) fn wants_blocks(&self) -> bool {
        self.needs.blocks
    }

    /// Whether it looks at sequence numbers.
    pub(crate) fn wants_numbers(&self) -> bool {
        self.needs.sequence_numbers
    }

    /// Logical bytes at which the active memtable is sealed, at most what memory may hold.
    pub(crate) fn seal_bytes(&self, view: &TreeView) -> u64 {
        let said = self.ask(is_merging_thread(), |policy| policy.seal_bytes(view));
        said.unwrap_or(view.memtable_bytes).min(view.memtable_bytes)
    }

    /// How hard writers must be held back, from 0 to 1; 0 where it says what is no number.
    pub(crate) fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let said = self.ask(is_merging_thread(), |policy| policy.pressure(view, load));
        let said = said.unwrap_or(0.0);
        if !said.is_nan() {
            return said.clamp(0.0, 1.0);
        }
        if !self.is_odd.replace(true) {
            tracing::warn!(policy = %self.spec, "a merge policy says a pressure that is no number");
        }
        0.0
    }

    /// The next merge. Whoever waits for rest asks too, beside the threads that merge: all of them
    /// catch its panics.
    pub(crate) fn next_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if self.was_refused(view) || self.course.get().rests_at(&view.tree) {
            return None;
        }
        let mut plan = self.ask(!self.lockstep, |policy| policy.next_merge(view)).flatten()?;
        if let Some(reuse) = &mut plan.reuse {
            // They are added up, over all blocks and over all merges.
            reuse.full_bytes = reuse.full_bytes.min(BLOCK_BYTES_MAX);
            reuse.slack_bytes = reuse.slack_bytes.map(|slack| slack.min(SLACK_BYTES_MAX));
        }
        Some(plan)
    }

    /// What it would do next, and why. Its panics are the caller's.
    pub(crate) fn explain(&self, view: &TreeView) -> Explanation {
        self.policy.explain(view)
    }

    /// `None` from one that has panicked, or does now and the panic is to be caught.
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

    /// What it said when it panicked and somebody else caught it: it is not asked since then.
    pub(crate) fn panic(&self) -> Option<&str> {
        self.panic.get().map(String::as_str)
    }

    /// Asks it again.
    pub(crate) fn forgive(&mut self) {
        self.panic.take();
        self.refused.take();
        self.course.take();
    }

    /// Notes that what it said of `view` breaks a rule.
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

    /// Notes that a plan has led to `tree`.
    pub(crate) fn note_tree(&self, tree: &Tree) {
        let mut course = self.course.get();
        course.step(tree);
        if course.rest.is_some() && !self.is_restless.replace(true) {
            tracing::warn!(policy = %self.spec, "a merge policy makes plans without end");
        }
        self.course.set(course);
    }
}

/// How often plans may lead back to where the tree has been while no memtable is flushed. Once
/// is too often by the laws, and rest is what all wait for.
const RETURNS_MAX: u32 = 16;

/// Where plans have led since a memtable was flushed: whether in a circle. The tree is compared
/// with how it was at a mark, which is moved further and further ahead, so that sooner or later a
/// circle of any length begins at it.
#[derive(Clone, Copy, Debug, Default)]
struct Course {
    /// The memtables flushed before.
    flushes: u64,
    /// The shape of the tree at the mark.
    mark: u64,
    /// Plans since then.
    steps: u64,
    /// Plans after which the mark is moved.
    span: u64,
    returns: u32,
    /// The shape of the tree at which the policy has no more to say.
    rest: Option<u64>,
}

impl Course {
    fn step(&mut self, tree: &Tree) {
        let shape = shape_of(tree);
        if self.span == 0 || self.flushes != tree.flushes() || self.rest.is_some() {
            *self = Course { flushes: tree.flushes(), mark: shape, span: 1, ..Course::default() };
            return;
        }
        self.steps += 1;
        if shape == self.mark {
            self.returns += 1;
            self.steps = 0;
        } else if self.steps == self.span {
            (self.mark, self.steps) = (shape, 0);
            self.span *= 2;
        }
        self.rest = (self.returns > RETURNS_MAX).then_some(shape);
    }

    fn rests_at(&self, tree: &Tree) -> bool {
        self.rest.is_some_and(|shape| shape == shape_of(tree))
    }
}

/// A number for how many runs of what size a tree has in which levels. Names are left out, and so
/// is the memo: each plan can make new ones.
fn shape_of(tree: &Tree) -> u64 {
    let mut hasher = FxHasher::default();
    for (level, run) in tree.runs() {
        (level, run.size(), run.slices().len()).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        format!("tree\n{text}").parse().unwrap()
    }

    /// How many plans it takes to lead through `trees`, over and over, until that is enough.
    fn plans_until_rest(trees: &[&str]) -> Option<usize> {
        let trees: Vec<Tree> = trees.iter().map(|text| tree(text)).collect();
        let mut course = Course::default();
        (0..10_000).find(|plan| {
            course.step(&trees[plan % trees.len()]);
            course.rests_at(&trees[plan % trees.len()])
        })
    }

    #[test]
    fn a_circle_of_any_length_is_noticed() {
        let one = "L0 r1[t1:a..z 1MB]";
        assert_eq!(plans_until_rest(&[one]), Some(RETURNS_MAX as usize + 1));
        // Under other names it is the same.
        assert_eq!(plans_until_rest(&[one, "L0 r7[t9:a..z 1MB]"]), plans_until_rest(&[one]));
        for length in 2..40 {
            let trees: Vec<String> =
                (0..length).map(|level| format!("L{level} r1[t1:a..z 1MB]")).collect();
            let trees: Vec<&str> = trees.iter().map(String::as_str).collect();
            let plans = plans_until_rest(&trees).unwrap();
            assert!(plans < (RETURNS_MAX as usize + 8) * length, "{plans} for {length}");
        }
    }

    #[test]
    fn trees_that_never_come_again_are_no_circle() {
        let mut course = Course::default();
        for bytes in 1..1000 {
            let tree = tree(&format!("L0 r1[t1:a..z {bytes}kB]"));
            course.step(&tree);
            assert!(!course.rests_at(&tree));
        }
    }

    #[test]
    fn a_policy_is_asked_again_where_the_tree_is_another() {
        let (one, other) = (tree("L0 r1[t1:a..z 1MB]"), tree("L1 r1[t1:a..z 1MB]"));
        let mut course = Course::default();
        (0..=RETURNS_MAX + 1).for_each(|_| course.step(&one));
        assert!(course.rests_at(&one) && !course.rests_at(&other));
        course.step(&other);
        assert!(!course.rests_at(&other));
    }
}
