//! Why a simulation ends early.

use lsmith_spec::Spec;
use lsmith_tree::{EditError, MergePlan, PlanError};
use lsmith_workload::WorkloadError;
use std::fmt;

/// Why a simulation ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimError {
    /// The policy proposed a plan that breaks a rule.
    IllegalPlan {
        /// The policy.
        policy: Spec,
        /// What it proposed.
        plan: Box<MergePlan>,
        /// The rule.
        rule: PlanError,
    },
    /// The policy never came to rest, though nothing more was written.
    Restless {
        /// The policy.
        policy: Spec,
        /// Plans that were carried out before giving up.
        plans: u64,
    },
    /// The content does not know how to carry out such a plan.
    Unsupported {
        /// The plan.
        plan: Box<MergePlan>,
        /// What is missing.
        what: &'static str,
    },
    /// A plan can't be carried out on its tree, though it was checked.
    BadPlan {
        /// The plan.
        plan: Box<MergePlan>,
        /// The rule that it breaks.
        rule: PlanError,
    },
    /// Fluid content needs to know how many keys any stretch of writes comes to, and of this
    /// workload, or of its blocks, it does not.
    NotFluid {
        /// The workload.
        workload: Spec,
        /// What is missing.
        what: &'static str,
    },
    /// An edit does not fit the tree: the fault of whoever made the edit, not of the policy.
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
            SimError::Unsupported { plan, what } => write!(f, "{what}: {plan}"),
            SimError::NotFluid { workload, what } => {
                write!(f, "no expected sizes for {workload}: {what}")
            }
            SimError::BadPlan { plan, rule } => write!(f, "{rule}: {plan}"),
            SimError::Edit(error) => error.fmt(f),
            SimError::Workload(error) => error.fmt(f),
        }
    }
}

// What is wrapped is shown as this error's own text, so it is not also its source.
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
