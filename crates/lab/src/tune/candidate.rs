//! Candidates: policies that may be chosen.

use super::trial::TrialCosts;
use lsmith_policy::MergePolicy;
use lsmith_spec::Spec;
use std::sync::Arc;

/// A policy, and its costs on the largest sample so far.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) spec: Spec,
    pub(super) policy: Arc<dyn MergePolicy>,
    /// The step after which the costs are known; 0 for the smallest sample.
    pub(super) step: usize,
    /// `None` if the policy was given up.
    pub(super) costs: Option<TrialCosts>,
    /// True if an earlier candidate has merged the same on a sample. It then stands for both.
    pub(super) is_double: bool,
}
