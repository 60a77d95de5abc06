//! The `lsmith` command: parses arguments, calls the lab or the store, prints the result.
//!
//! Exit codes: 0 done, 1 failed, 2 invalid arguments. A failure is one line on standard error.
//! After a command that succeeded, warnings of the store are lines there.
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
        Err(error) => return failure::report_parsing(&error),
    };
    let warnings = log::begin();
    let done = match &cli.command {
        Command::Compare(args) => commands::compare(args, cli.json),
        Command::Explain(args) => commands::explain(args, cli.json),
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
            warnings.print();
            ExitCode::SUCCESS
        }
        Err(error) => failure::report(&error),
    }
}
