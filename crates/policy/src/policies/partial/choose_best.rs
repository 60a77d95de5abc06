//! ChooseBest: the window that overlaps least.

use super::{PIECE, Partial, RATE, RATIO, REUSE, SLICES_MAX, Take};
use crate::{Load, MergePolicy, PolicyInfo, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use std::sync::Arc;

/// Merges the `rate * K_i` neighbouring blocks that overlap the fewest blocks below: no merge
/// writes more than `rate * (1/ratio + 1) * K_(i+1)` blocks, plus one.
///
/// Source: Thonangi & Yang, ICDE 2017, section III-C.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChooseBest(Partial);

impl ChooseBest {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "choose_best",
        source: "Thonangi & Yang, ICDE 2017, section III-C",
        summary: "merges the window of a full level that overlaps the fewest blocks of the next",
        params: &[RATIO, RATE, REUSE, PIECE, SLICES_MAX],
        build: |params| Ok(Arc::new(ChooseBest(Partial::read(params)?))),
    };
}

impl MergePolicy for ChooseBest {
    fn spec(&self) -> Spec {
        self.0.write("choose_best")
    }

    fn next_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.0.next_merge(view, |_| Take::Best)
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
