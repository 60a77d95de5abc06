//! The `lsmith` command: parses what is asked for, has the lab or the store do it, prints what came
//! of it.
//!
//! Exit codes: 0 done, 1 failed, 2 asked for wrongly. A failure is one line on standard error;
//! warnings of the store are lines there once a command is done that has not failed.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "commands read files, and time what they run"
)]

mod args;
mod bars;
mod commands;
mod failure;
mod log;
mod output;
mod specs;
mod table;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return failure::of_parsing(&error),
    };
    let warnings = log::begin();
    let done = match &cli.command {
        Command::Compare(args) => commands::compare(args, cli.json),
        Command::Simulate(args) => commands::simulate(args, cli.json),
        Command::Model(args) => commands::model(args, cli.json),
        Command::Tune(args) => commands::tune(args, cli.json),
        Command::Run(args) => commands::run(args, cli.json),
        Command::Reproduce(args) => commands::reproduce(args, cli.json),
        Command::Policies => commands::policies(cli.json),
        Command::Db(args) => commands::db(args, cli.json),
    };
    match done {
        Ok(()) => {
            warnings.tell();
            ExitCode::SUCCESS
        }
        Err(error) => failure::report(&error),
    }
}
