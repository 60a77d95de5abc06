//! TestMixed: partial merges above full ones.

use super::{PIECE, Partial, RATE, RATIO, REUSE, SLICES_MAX, Take};
use crate::{Load, MergePolicy, PolicyInfo, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use std::sync::Arc;

/// Merges the best window of memory into level 1, and all of every level below: the experiment
/// that leads to `mixed`.
///
/// Source: Thonangi & Yang, ICDE 2017, section IV-A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestMixed(Partial);

impl TestMixed {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "test_mixed",
        source: "Thonangi & Yang, ICDE 2017, section IV-A",
        summary: "choose_best from memory into level 1, full below",
        params: &[RATIO, RATE, REUSE, PIECE, SLICES_MAX],
        build: |params| Ok(Arc::new(TestMixed(Partial::read(params)?))),
    };
}

impl MergePolicy for TestMixed {
    fn spec(&self) -> Spec {
        self.0.write("test_mixed")
    }

    fn next_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.0.next_merge(view, |level| if level == 0 { Take::Best } else { Take::All })
    }

    fn seal_bytes(&self, view: &TreeView) -> u64 {
        Partial::seal_bytes(view, self.0.rate)
    }

    fn wants_blocks(&self) -> bool {
        true
    }

    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        self.0.pressure(view, load)
    }

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}
