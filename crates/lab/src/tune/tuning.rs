//! What is to be tuned.

use super::limits::Limits;
use crate::jobs::SharedProgress;
use lsmith_policy::Registry;
use lsmith_workload::Workload;

/// A search for the best policy and parameters.
#[derive(Clone, Copy)]
pub struct Tuning<'a> {
    /// The policies that are tried.
    pub registry: &'a Registry,
    /// The workload.
    pub workload: &'a Workload,
    /// The limits on a choice.
    pub limits: &'a Limits,
    /// Receives the progress.
    pub progress: &'a SharedProgress,
}
