//! Tests of the command from outside: arguments in; standard output, standard error and exit code
//! out.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "commands are tested on files"
)]
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

mod bad_input;
mod bytes;
mod changes;
mod command;
mod copies;
mod damage;
mod db;
mod doctor;
mod explain;
mod keyspaces;
mod lab;
mod lists;
mod media;
mod model;
mod own_policy;
mod pages;
mod public_traces;
mod readme;
mod reproduce;
mod signals;
mod tables;
mod tune;
mod watch;
