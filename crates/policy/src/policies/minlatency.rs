//! MinLatency: the static policy with the least worst-case write cost for a bounded depth.

use super::{K, K_RANGE};
use crate::tables::stack_depth;
use crate::{Eager, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::sync::Arc;

/// After the t-th flush, leaves one run more than node t has smaller ancestors in a certain search
/// tree: the tree of least depth that holds t and keeps every stack depth below `k`.
///
/// Source: Mao et al., section 2; Mathieu, Rajaraman, Young, Yousefi, "Competitive data-structure
/// dynamization", SODA 2021.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinLatency {
    rule: Static,
}

impl MinLatency {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "minlatency",
        source: "Mao et al., VLDB Journal 2021, section 2; Mathieu et al., SODA 2021",
        summary: "merges by flush count: least worst-case write cost with at most k runs, lazily",
        params: &[K, Static::COUNT, Eager::PARAM],
        build: |params| Ok(Arc::new(MinLatency { rule: Static::read(params)? })),
    };

    /// Returns how many runs to leave after flush `t`, counted from 1: `B(m', k, t)`, where `m'` is
    /// the least m with `C(m + k, m) > t`.
    pub fn runs_after(k: u64, t: u64) -> u64 {
        stack_depth(k, t)
    }
}

impl MergePolicy for MinLatency {
    fn spec(&self) -> Spec {
        self.rule.write("minlatency")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.rule.choose_merge(view, MinLatency::runs_after)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: self.rule.k }
    }
}

/// The part that both static policies share. The number of flushes alone determines how many runs
/// to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Static {
    pub(super) k: u64,
    by_size: bool,
    eager: Eager,
}

impl Static {
    pub(super) const COUNT: ParamInfo = ParamInfo {
        name: "count",
        default: "flushes",
        meaning: "what counts as the number of flushes: flushes (all since the tree began), size \
                  (the total size over the mean flush, for update-heavy use)",
    };

    pub(super) fn read(params: &Params<'_>) -> Result<Static, SpecError> {
        let by_size = params.choice("count", "flushes", &["flushes", "size"])? == "size";
        Ok(Static { k: params.count("k", 5, K_RANGE)?, by_size, eager: Eager::read(params)? })
    }

    pub(super) fn write(self, name: &str) -> Spec {
        let spec = Spec::bare(name).with("k", self.k);
        self.eager.write(if self.by_size { spec.with("count", "size") } else { spec })
    }

    /// Merges the newest runs so that `runs_after(k, t)` are left.
    pub(super) fn choose_merge(
        self,
        view: &TreeView,
        runs_after: fn(u64, u64) -> u64,
    ) -> Option<MergePlan> {
        let flushes =
            if self.by_size { Stack::of(view).flushes_by_size() } else { Stack::flushes_of(view) };
        // A tree from elsewhere can have runs before its first flush.
        let leave = runs_after(self.k, flushes.clamp(1, 1 << 62)).max(1);
        if Stack::len_max(view) <= leave {
            return None;
        }
        let stack = Stack::of(view);
        let runs = stack.len() as u64;
        let newest = (runs + 1).checked_sub(leave).filter(|newest| *newest > 1)?;
        let reason = Reason::new("flush {} leaves {} runs of {}", [flushes, leave, runs]);
        stack.merge(0, newest as usize, self.eager, reason)
    }
}
