//! The `lsmith` command: parses arguments, calls the lab or the store, prints the result.
//!
//! The command measures and predicts the write, read and space amplification of merge policies
//! (compaction strategies), and works on stores.
//!
//! Exit codes: 0 done, 1 failed, 2 invalid arguments, 128 + N ended by signal N. A failure is one
//! line on standard error. After a command that succeeded, warnings of the store are lines there.
//!
//! [`main`] is the whole command with the policies of a [`Registry`](policy::Registry). So a
//! program of a few lines is `lsmith` with a policy of its own: `docs/policies.md` has one. The
//! libraries that such a program needs are modules here.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "commands read files, and time what they run"
)]

mod args;
mod bars;
mod commands;
mod completing;
mod failure;
mod files;
mod layout;
mod log;
mod output;
mod page;
mod signals;
mod specs;
mod table;
mod text;

pub use lsmith_lab as lab;
pub use lsmith_policy as policy;
pub use lsmith_spec as spec;
pub use lsmith_tree as tree;

use args::{Cli, Command};
use std::process::ExitCode;

/// Runs the command that the arguments of the process name. Specs can name the policies of
/// `registry`.
pub fn main(registry: policy::Registry) -> ExitCode {
    specs::set_registry(registry);
    let cli = match Cli::of_process() {
        Ok(cli) => cli,
        Err(error) => return failure::report_parsing(&error),
    };
    layout::set_layout(cli.command.tables().layout());
    let warnings = log::begin();
    if let Err(error) = signals::begin(&cli.command) {
        return failure::report(&error);
    }
    let done = match &cli.command {
        Command::Compare(args) => commands::compare(args, cli.json),
        Command::Explain(args) => commands::explain(args, cli.json),
        Command::Simulate(args) => commands::simulate(args, cli.json),
        Command::Model(args) => commands::model(args, cli.json),
        Command::Tune(args) => commands::tune(args, cli.json),
        Command::Calibrate(args) => commands::calibrate(args, cli.json),
        Command::Doctor(args) => commands::doctor(args, cli.json),
        Command::Run(args) => commands::run(args, cli.json),
        Command::Record(args) => commands::record(args, cli.json),
        Command::Reproduce(args) => commands::reproduce(args, cli.json),
        Command::Policies => commands::policies(cli.json),
        Command::Workloads => commands::workloads(cli.json),
        Command::Laws(args) => commands::laws(args, cli.json),
        Command::Db(args) => commands::db(args, cli.json),
        Command::Watch(args) => commands::watch(args, cli.json),
        Command::Completions(args) => commands::completions(args, cli.json),
        Command::Man(args) => commands::man(args, cli.json),
    };
    signals::wait_if_ending();
    match done {
        Ok(()) => {
            warnings.print();
            ExitCode::SUCCESS
        }
        Err(error) => failure::report(&error),
    }
}
