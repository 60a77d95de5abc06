//! Tests of the service.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests have files and clocks, and may panic"
)]

mod chaos;
mod cluster;
mod command;
mod conformance;
mod history;
mod load;
mod outage;
mod power;
mod proxy;
