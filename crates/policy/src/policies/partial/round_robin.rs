//! RR: windows in turn.

use super::{PIECE, Partial, RATE, RATIO, REUSE, SLICES_MAX, Take};
use crate::{Load, MergePolicy, PolicyInfo, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use std::sync::Arc;

/// Merges the `rate * K_i` blocks that follow, in key order, those that went down last.
///
/// Source: Thonangi & Yang, ICDE 2017, section III-B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundRobin(Partial);

impl RoundRobin {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "rr",
        source: "Thonangi & Yang, ICDE 2017, section III-B",
        summary: "merges the next window of an overfull level, in key order, into the next level",
        params: &[RATIO, RATE, REUSE, PIECE, SLICES_MAX],
        build: |params| Ok(Arc::new(RoundRobin(Partial::read(params)?))),
    };
}

impl MergePolicy for RoundRobin {
    fn spec(&self) -> Spec {
        self.0.write("rr")
    }

    fn next_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.0.next_merge(view, |_| Take::Next)
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
