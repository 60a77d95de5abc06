//! What each command does.

mod compare;
mod db;
mod policies;
mod run;
mod simulate;

pub(crate) use compare::compare;
pub(crate) use db::db;
pub(crate) use policies::policies;
pub(crate) use run::run;
pub(crate) use simulate::simulate;
