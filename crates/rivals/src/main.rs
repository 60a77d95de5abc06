//! Runs lsmith and its rivals side by side: the same work, the same settings, one store after
//! another in processes of their own, in turns, so that a noisy machine treats all alike.
//!
//! * `args`: what can be asked. `parent`: the turns. `child`: one store's chain of phases.
//! * `stores`: one file for each store, behind the trait [`stores::Store`].
//! * `phases`: what is done to a store: names, and one file for each kind of work.
//! * `accuracy`: LevelDB and RocksDB beside the formulas of their designs.
//! * `data`: keys and values. `meter`: CPU time, bytes, memory. `report`: rows and ratios.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "rivals run on files, and are timed"
)]

mod accuracy;
mod args;
mod child;
mod data;
mod limit;
mod meter;
mod parent;
mod phases;
mod report;
mod stores;

use args::Command;
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let done = match (&args.command, args.child.clone()) {
        (Some(Command::Accuracy(accuracy)), _) => accuracy::run(accuracy),
        (None, Some(store)) => child::run(&args, &store),
        (None, None) => parent::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
