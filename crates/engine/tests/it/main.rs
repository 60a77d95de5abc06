//! Tests of the store through its public API.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the store is tested on files, with threads"
)]
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

mod frame;

mod append_tables;
mod combine;
mod copies;
mod crash;
mod damage;
mod disk;
mod encryption;
mod expiry;
mod hostile;
mod ingest;
mod keyspaces;
mod logs;
mod memory;
mod merges;
mod opening;
mod range_deletes;
mod readers;
mod reads;
mod repair;
mod store;
mod tables;
mod transactions;
mod values;

use lsmith_fuzz::dice;
