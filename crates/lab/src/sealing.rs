//! Seals memtables at given sizes.

use lsmith_policy::{Explanation, Load, MergePolicy, Needs, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use lsmith_workload::FlushSizes;
use std::sync::Arc;

/// A policy whose memtables are sealed at given sizes. All else is up to the policy.
///
/// Every interpreter asks the policy when to seal. So the same sizes hold in the store and in
/// simulations.
#[derive(Debug)]
struct Sealing {
    policy: Arc<dyn MergePolicy>,
    sizes: Arc<FlushSizes>,
}

/// Returns `policy` with memtables that are sealed at `sizes`. A policy that counts in blocks stays
/// as it is: it decides itself what is sealed.
#[must_use]
pub fn sealing(policy: Arc<dyn MergePolicy>, sizes: &Arc<FlushSizes>) -> Arc<dyn MergePolicy> {
    if sizes.is_constant() || policy.needs().blocks {
        return policy;
    }
    Arc::new(Sealing { policy, sizes: Arc::clone(sizes) })
}

impl MergePolicy for Sealing {
    fn spec(&self) -> Spec {
        self.policy.spec()
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.policy.choose_merge(view)
    }

    fn next_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.policy.next_merge(view)
    }

    fn seal_bytes(&self, view: &TreeView) -> u64 {
        // Memtables are sealed in order: first the flushed ones, then the waiting ones.
        let sealed = view.tree.flushes() + view.tree.memory().runs().len() as u64;
        self.sizes.bytes(sealed, view.memtable_bytes)
    }

    fn needs(&self) -> Needs {
        self.policy.needs()
    }

    fn largest_merge(&self) -> Option<u64> {
        self.policy.largest_merge()
    }

    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        self.policy.pressure(view, load)
    }

    fn shape(&self) -> Shape {
        self.policy.shape()
    }

    fn explain(&self, view: &TreeView) -> Explanation {
        self.policy.explain(view)
    }
}
