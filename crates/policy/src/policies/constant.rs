//! AsterixDB's old default: merge everything when there are too many runs.

use super::{K, K_RANGE};
use crate::{Eager, Largest, MergePolicy, PolicyInfo, Shape, Stack};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::sync::Arc;

/// Leaves runs alone as long as there are at most `k`. Past that, merges all runs into one.
///
/// Source: Mao et al., section 2 ("Constant", AsterixDB before version 0.9.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    k: u64,
    eager: Eager,
    largest: Largest,
}

impl Constant {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "constant",
        source: "Mao et al., VLDB Journal 2021, section 2; AsterixDB before 0.9.4",
        summary: "past k runs, merges all runs into one",
        params: &[K, Eager::PARAM, Largest::PARAM],
        build: |params| Ok(Arc::new(Constant::read(params)?)),
    };

    /// Returns the policy that leaves at most `k` runs, from 1 to 64. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `k` is out of range.
    pub fn new(k: u64) -> Result<Constant, SpecError> {
        Constant::INFO.read(&Spec::bare(Constant::INFO.name).with("k", k), Constant::read)
    }

    fn read(params: &Params<'_>) -> Result<Constant, SpecError> {
        Ok(Constant {
            k: params.count("k", 5, K_RANGE)?,
            eager: Eager::read(params)?,
            largest: Largest::read(params)?,
        })
    }
}

impl MergePolicy for Constant {
    fn spec(&self) -> Spec {
        self.largest.write(self.eager.write(Spec::bare("constant").with("k", self.k)))
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if Stack::len_max(view) <= self.k {
            return None;
        }
        let stack = Stack::up_to(view, self.largest);
        if stack.len() as u64 <= self.k {
            return None;
        }
        let reason = Reason::new("{} runs, {} allowed", [stack.len() as u64, self.k, 0]);
        stack.merge(0, stack.len(), self.eager, reason)
    }

    fn shape(&self) -> Shape {
        self.largest.shape(self.k)
    }

    fn largest_merge(&self) -> Option<u64> {
        self.largest.bytes()
    }
}
