//! Options of a repair.

use crate::rules::CombineOperators;
use lsmith_policy::Registry;
use lsmith_storage::env::{Env, RealEnv};
use std::sync::Arc;

/// Options of [`repair`](crate::repair).
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// The environment of both stores. Default: the operating system's files.
    pub env: Arc<dyn Env>,
    /// The merge policies that keyspaces may have. A keyspace with another policy gets
    /// [`DEFAULT_POLICY`](crate::DEFAULT_POLICY). Default: the built-in policies.
    pub registry: Registry,
    /// The combine operators that keyspaces may have. Default: [`Counter`](crate::Counter) only.
    pub operators: CombineOperators,
}

impl Default for RepairOptions {
    fn default() -> RepairOptions {
        RepairOptions {
            env: Arc::new(RealEnv::new()),
            registry: Registry::builtin(),
            operators: CombineOperators::default(),
        }
    }
}
