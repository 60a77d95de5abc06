//! Bigtable's default policy.

use super::{K, K_RANGE};
use crate::{Eager, Largest, MergePolicy, PolicyInfo, Shape, Stack};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::sync::Arc;

/// Leaves runs alone as long as there are at most `k`. Past that, merges the new run with the
/// fewest older runs such that each run is then larger than all newer runs together.
///
/// Source: Mao et al., "Comparison and evaluation of state-of-the-art LSM merge policies", section
/// 2; the rule is Bigtable's (Chang et al.), in the form of Mathieu et al.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bigtable {
    k: u64,
    eager: Eager,
    largest: Largest,
}

impl Bigtable {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "bigtable",
        source: "Mao et al., VLDB Journal 2021, section 2; Chang et al., OSDI 2006",
        summary: "past k runs, merges the newest so that each run exceeds all newer ones together",
        params: &[K, Eager::PARAM, Largest::PARAM],
        build: |params| Ok(Arc::new(Bigtable::read(params)?)),
    };

    /// Returns the policy that leaves at most `k` runs, from 1 to 64. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `k` is out of range.
    pub fn new(k: u64) -> Result<Bigtable, SpecError> {
        Bigtable::INFO.read(&Spec::bare(Bigtable::INFO.name).with("k", k), Bigtable::read)
    }

    fn read(params: &Params<'_>) -> Result<Bigtable, SpecError> {
        Ok(Bigtable {
            k: params.count("k", 5, K_RANGE)?,
            eager: Eager::read(params)?,
            largest: Largest::read(params)?,
        })
    }

    /// Returns how many of the newest runs to merge: the least count, at least two, such that each
    /// run is then larger than all newer runs together.
    fn newest_to_merge(stack: &Stack) -> usize {
        let runs = stack.runs();
        let mut newest = 2.min(runs.len());
        let mut above: u64 = runs[..newest].iter().map(|run| run.bytes).sum();
        for (index, run) in runs.iter().enumerate().skip(newest) {
            if run.bytes <= above {
                newest = index + 1;
            }
            above += run.bytes;
        }
        newest
    }
}

impl MergePolicy for Bigtable {
    fn spec(&self) -> Spec {
        self.largest.write(self.eager.write(Spec::bare("bigtable").with("k", self.k)))
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if Stack::len_max(view) <= self.k {
            return None;
        }
        let stack = Stack::up_to(view, self.largest);
        if stack.len() as u64 <= self.k {
            return None;
        }
        let newest = Bigtable::newest_to_merge(&stack);
        let numbers = [stack.len() as u64, self.k, newest as u64];
        let reason =
            Reason::new("{} runs, {} allowed; {} newest restore the order of sizes", numbers);
        stack.merge(0, newest, self.eager, reason)
    }

    fn shape(&self) -> Shape {
        self.largest.shape(self.k)
    }

    fn largest_merge(&self) -> Option<u64> {
        self.largest.bytes()
    }
}
