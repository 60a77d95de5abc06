//! Errors of simulations.

use lsmith_spec::Spec;
use lsmith_tree::{EditError, MergePlan, PlanError};
use lsmith_workload::WorkloadError;
use std::fmt;

/// Why a simulation ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimError {
    /// The policy proposed an illegal plan.
    IllegalPlan {
        /// The policy.
        policy: Spec,
        /// The plan.
        plan: Box<MergePlan>,
        /// The rule.
        rule: PlanError,
    },
    /// The policy never rested, although nothing more was written.
    Restless {
        /// The policy.
        policy: Spec,
        /// The number of plans that were carried out.
        plans: u64,
    },
    /// A plan that passed its check cannot be applied to its tree.
    BadPlan {
        /// The plan.
        plan: Box<MergePlan>,
        /// The rule that it breaks.
        rule: PlanError,
    },
    /// The number of different keys among the writes of this workload, or in its blocks, is unknown
    /// to fluid content.
    NotFluid {
        /// The workload.
        workload: Spec,
        /// What is missing.
        what: &'static str,
    },
    /// The policy takes windows of keys, and unit content has no keys.
    NoKeys {
        /// The policy.
        policy: Spec,
    },
    /// A memtable holds too few entries for expected sizes.
    FewEntries {
        /// The policy.
        policy: Spec,
        /// Mean logical bytes of an entry.
        entry_bytes: u64,
        /// The least logical bytes of a memtable that holds enough entries.
        memtable_bytes_min: u64,
    },
    /// An edit does not fit the tree. This is the fault of the interpreter, not of the policy.
    Edit(EditError),
    /// The operations end early.
    Workload(WorkloadError),
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::IllegalPlan { policy, plan, rule } => {
                write!(f, "policy {policy} proposed an illegal plan: {rule}: {plan}")
            }
            SimError::Restless { policy, plans } => {
                write!(f, "policy {policy} did not come to rest within {plans} plans")
            }
            SimError::NotFluid { workload, what } => {
                write!(f, "no expected sizes for {workload}: {what}")
            }
            SimError::NoKeys { policy } => {
                write!(f, "{policy} takes windows of keys, which unit content does not have")
            }
            SimError::FewEntries { policy, entry_bytes, memtable_bytes_min } => write!(
                f,
                "entries of {entry_bytes} bytes are too large for expected sizes under {policy}: \
                 expected memtables of at least {memtable_bytes_min} bytes"
            ),
            SimError::BadPlan { plan, rule } => write!(f, "{rule}: {plan}"),
            SimError::Edit(error) => error.fmt(f),
            SimError::Workload(error) => error.fmt(f),
        }
    }
}

// A wrapped error is printed as this error, so it is not also its source.
impl std::error::Error for SimError {}

impl From<EditError> for SimError {
    fn from(error: EditError) -> SimError {
        SimError::Edit(error)
    }
}

impl From<WorkloadError> for SimError {
    fn from(error: WorkloadError) -> SimError {
        SimError::Workload(error)
    }
}
