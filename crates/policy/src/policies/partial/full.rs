//! Full: the classic merge of whole levels.

use super::{PIECE, Partial, RATIO, REUSE, SLICES_MAX, Take};
use crate::{Load, MergePolicy, PolicyInfo, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use std::sync::Arc;

/// Merges all of an overfull level into the next; an overfull bottom level becomes the next one.
///
/// Source: Thonangi & Yang, ICDE 2017, section III-A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Full(Partial);

impl Full {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "full",
        source: "Thonangi & Yang, ICDE 2017, section III-A",
        summary: "merges all of an overfull level into the next, in blocks",
        params: &[RATIO, REUSE, PIECE, SLICES_MAX],
        build: |params| Ok(Arc::new(Full(Partial::read(params)?))),
    };
}

impl MergePolicy for Full {
    fn spec(&self) -> Spec {
        self.0.write("full")
    }

    fn next_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.0.next_merge(view, |_| Take::All)
    }

    fn seal_bytes(&self, view: &TreeView) -> u64 {
        Partial::seal_bytes(view, 1.0)
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
