//! Binomial: as MinLatency, with fewer runs while the tree is small.

use super::K;
use super::minlatency::{Schedule, Static};
use crate::tables::{CENTRAL_SUMS, least_above, pascal, stack_depth};
use crate::{Eager, Largest, MergePolicy, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, TreeView};
use std::sync::Arc;

/// After the t-th flush, leaves as many runs as a balanced search tree says: about log2(t)/2 as
/// long as that is less than `k` (up to about 4^k flushes), and at most `k` after that.
///
/// Source: Mao et al., section 2; Mathieu et al., SODA 2021.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binomial {
    rule: Static,
}

impl Binomial {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "binomial",
        source: "Mao et al., VLDB Journal 2021, section 2; Mathieu et al., SODA 2021",
        summary: "merges by flush count: as minlatency, with fewer runs while the tree is small",
        params: &[K, Static::COUNT, Eager::PARAM, Largest::PARAM],
        build: |params| Ok(Arc::new(Binomial::read(params)?)),
    };

    /// Returns the policy that leaves at most `k` runs, from 1 to 64. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `k` is out of range.
    pub fn new(k: u64) -> Result<Binomial, SpecError> {
        Binomial::INFO.read(&Spec::bare(Binomial::INFO.name).with("k", k), Binomial::read)
    }

    fn read(params: &Params<'_>) -> Result<Binomial, SpecError> {
        Ok(Binomial { rule: Static::read(params)? })
    }

    /// Returns how many runs to leave after flush `t`, counted from 1. That is
    /// `1 + B(m', min(m', k) - 1, t - T(m' - 1) - 1)`, where `T(m)` is the sum of
    /// `C(j + min(j, k) - 1, j)` over j = 1..m, and `m'` is the least m with `T(m) >= t`.
    pub fn runs_after(k: u64, t: u64) -> u64 {
        let sums = &CENTRAL_SUMS[..k as usize];
        let m = sums.partition_point(|sum| *sum < t);
        if m < sums.len() {
            return 1 + stack_depth(m as u64 - 1, t - sums[m - 1] - 1);
        }
        // From j = k on, the terms lie on one diagonal of Pascal's triangle. The sum of that
        // diagonal up to j = m is C(m + k, k).
        let base = pascal(k - 1, k) - sums[m - 1];
        let m = least_above(k, t + base - 1);
        1 + stack_depth(k - 1, t + base - pascal(m - 1, k) - 1)
    }

    /// Returns the flush after which one run is left, for the `phase`-th time, counted from 0:
    /// `T(phase) + 1`.
    fn phase_start(k: u64, phase: u64) -> u64 {
        let sums = &CENTRAL_SUMS[..k as usize];
        match sums.get(phase as usize) {
            Some(sum) => sum.saturating_add(1),
            None => (pascal(phase, k) - pascal(k - 1, k)).saturating_add(sums[k as usize - 1] + 1),
        }
    }
}

impl MergePolicy for Binomial {
    fn spec(&self) -> Spec {
        self.rule.write("binomial")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let schedule =
            Schedule { runs_after: Binomial::runs_after, phase_start: Binomial::phase_start };
        self.rule.choose_merge(view, schedule)
    }

    fn shape(&self) -> Shape {
        self.rule.largest.shape(self.rule.k)
    }

    fn largest_merge(&self) -> Option<u64> {
        self.rule.largest.bytes()
    }
}
