//! Code of applications that fails: policies, observers, operators, environments.

pub(crate) mod any_plan;
mod env;
mod failures;
mod policies;
