//! Never merge: the baseline.

use crate::{MergePolicy, PolicyInfo, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use std::sync::Arc;

/// Every flush stays a run of its own. Writes least and reads most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct None;

impl None {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "none",
        source: "baseline",
        summary: "never merges: every flush stays a run",
        params: &[],
        build: |_| Ok(Arc::new(None)),
    };
}

impl MergePolicy for None {
    fn spec(&self) -> Spec {
        Spec::bare("none")
    }

    fn choose_merge(&self, _: &TreeView) -> Option<MergePlan> {
        Option::None
    }

    /// Returns no plan for a tree with knots either: this policy never merges.
    fn next_merge(&self, _: &TreeView) -> Option<MergePlan> {
        Option::None
    }

    fn shape(&self) -> Shape {
        Shape::Unmerged
    }
}
