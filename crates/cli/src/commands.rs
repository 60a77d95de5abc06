//! One module per command.

mod calibrate;
mod compare;
mod db;
mod doctor;
mod explain;
mod laws;
mod model;
mod notes;
mod picture;
mod policies;
mod record;
mod reproduce;
mod run;
mod shell;
mod simulate;
mod tune;
mod watch;
mod workloads;

pub(crate) use calibrate::calibrate;
pub(crate) use compare::compare;
pub(crate) use db::db;
pub(crate) use doctor::doctor;
pub(crate) use explain::explain;
pub(crate) use laws::laws;
pub(crate) use model::model;
pub(crate) use policies::policies;
pub(crate) use record::record;
pub(crate) use reproduce::reproduce;
pub(crate) use run::run;
pub(crate) use shell::{completions, man};
pub(crate) use simulate::simulate;
pub(crate) use tune::tune;
pub(crate) use watch::watch;
pub(crate) use workloads::workloads;
