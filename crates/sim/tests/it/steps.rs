//! A policy that records its views and plans, and requests that match the present keys.

use lsmith_policy::{Explanation, Load, MergePolicy, Needs, Shape};
use lsmith_spec::{Spec, random};
use lsmith_tree::{EntryKind, MergePlan, TreeView};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// The view and the plan of a policy.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) view: TreeView,
    pub(crate) plan: Option<MergePlan>,
}

/// Another policy, watched.
#[derive(Debug)]
pub(crate) struct Watched {
    inner: Arc<dyn MergePolicy>,
    steps: Mutex<Vec<Step>>,
}

impl Watched {
    pub(crate) fn new(inner: Arc<dyn MergePolicy>) -> Arc<Watched> {
        Arc::new(Watched { inner, steps: Mutex::default() })
    }

    /// Returns all steps since the last call.
    pub(crate) fn take(&self) -> Vec<Step> {
        std::mem::take(&mut *self.steps.lock().expect("nobody panicked with it"))
    }
}

impl MergePolicy for Watched {
    fn spec(&self) -> Spec {
        self.inner.spec()
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let plan = self.inner.next_merge(view);
        let step = Step { view: view.clone(), plan: plan.clone() };
        self.steps.lock().expect("nobody panicked with it").push(step);
        plan
    }

    fn seal_bytes(&self, view: &TreeView) -> u64 {
        self.inner.seal_bytes(view)
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }

    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        self.inner.pressure(view, load)
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn explain(&self, view: &TreeView) -> Explanation {
        self.inner.explain(view)
    }
}

/// Numbers that look random and are the same every time.
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (((random::next(&mut self.0) >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// The keys that are present. Makes requests that keep the promises of their kinds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Present(pub(crate) BTreeSet<u32>);

impl Present {
    /// Inserts the first key from `key` on that is absent.
    pub(crate) fn insert(&mut self, mut key: u32) -> (EntryKind, u32) {
        while !self.0.insert(key) {
            key = key.wrapping_add(1);
        }
        (EntryKind::Insert, key)
    }

    /// Removes the first present key from `key` on, or the least present key if there is none from
    /// there on. Inserts `key` if no key is present.
    pub(crate) fn remove(&mut self, key: u32) -> (EntryKind, u32) {
        let Some(&found) = self.0.range(key..).next().or_else(|| self.0.first()) else {
            return self.insert(key);
        };
        self.0.remove(&found);
        (EntryKind::Remove, found)
    }
}
