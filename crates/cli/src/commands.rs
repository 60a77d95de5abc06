//! One module per command.

mod compare;
mod db;
mod explain;
mod model;
mod policies;
mod reproduce;
mod run;
mod simulate;
mod tune;

pub(crate) use compare::compare;
pub(crate) use db::db;
pub(crate) use explain::explain;
pub(crate) use model::model;
pub(crate) use policies::policies;
pub(crate) use reproduce::reproduce;
pub(crate) use run::run;
pub(crate) use simulate::simulate;
pub(crate) use tune::tune;
