//! The arguments of the command line.

mod advice;
mod calibrate;
mod doctor;
#[cfg(test)]
mod documented;
mod examples;
mod experiments;
mod names;
mod parse;
mod record;
mod shared;
mod shell;
mod stores;

pub(crate) use advice::{ModelArgs, ModelOrder, TuneArgs};
pub(crate) use calibrate::CalibrateArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use examples::command;
pub(crate) use experiments::{
    CompareArgs, ExplainArgs, LawsArgs, ReproduceArgs, RunArgs, SimulateArgs,
};
pub(crate) use record::RecordArgs;
pub(crate) use shared::TableArgs;
pub(crate) use shell::{CompletionsArgs, ManArgs};
pub(crate) use stores::{
    DbArgs, DbCommand, DumpArgs, ExportArgs, RangeArgs, ScanArgs, TreeArgs, WatchArgs,
};

use clap::{FromArgMatches, Parser, Subcommand};

/// An LSM key-value store with a choice of merge policies (compaction strategies), and a lab that
/// predicts the write, read and space amplification of each policy.
#[derive(Debug, Parser)]
#[command(name = "lsmith", version, propagate_version = true, arg_required_else_help = true)]
#[command(max_term_width = 80)]
pub(crate) struct Cli {
    /// Print one JSON object
    ///
    /// Nothing else is on standard output.
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare policies on the real store
    ///
    /// Runs a workload on the real store under each policy and compares it with predictions. The
    /// columns `write`, `read` and `space` are write, read and space amplification. A policy is a
    /// compaction strategy, and a merge is a compaction.
    Compare(CompareArgs),
    /// Say why one policy writes less than another
    ///
    /// The answer is by level and cause, under a workload.
    Explain(ExplainArgs),
    /// Simulate a policy without a disk
    ///
    /// Prints the write, read and space amplification that the policy (compaction strategy)
    /// causes, as its write, read and space cost.
    Simulate(SimulateArgs),
    /// Compute the costs of a policy by formula
    Model(ModelArgs),
    /// Find the best policy for a workload
    ///
    /// Finds its parameters too. Looks for the policy (compaction strategy) of least write
    /// amplification, within limits on read and space amplification, or of least weighted sum.
    Tune(TuneArgs),
    /// Measure what work costs on this machine
    ///
    /// Takes two minutes. Other work at the same time makes the result wrong. `--machine` of
    /// `compare` and `simulate` takes what it prints, to predict time.
    Calibrate(CalibrateArgs),
    /// Say what the compactions of a RocksDB cost
    ///
    /// And which settings would cost less. Reads its LOG, MANIFEST and OPTIONS, and changes
    /// nothing. Prints what was flushed and compacted, the write amplification of both, and the
    /// nearest policy of lsmith. Then it plays the flushes again with other settings, and says what
    /// to put into OPTIONS.
    Doctor(DoctorArgs),
    /// Run a workload and keep the store
    ///
    /// The store is the real one, under one policy. Prints the write, read and space amplification
    /// that the policy (compaction strategy) causes, as its write, read and space cost.
    Run(RunArgs),
    /// Record what a live store does
    ///
    /// The process that has the store open records its reads and writes of some keys in a file,
    /// which the workload 'trace(FILE)' plays under any merge policy.
    Record(RecordArgs),
    /// Measure a figure of a paper again
    ///
    /// The paper's claims are checked.
    Reproduce(ReproduceArgs),
    /// List every policy
    ///
    /// A policy is a compaction strategy. Prints its parameters, defaults and source.
    Policies,
    /// List every workload
    ///
    /// Prints parameters, units, defaults and an example of each, and the format of traces.
    Workloads,
    /// Check a policy against the laws of merge policies
    ///
    /// Every policy must keep them.
    Laws(LawsArgs),
    /// Read, change, check or repair a store
    Db(DbArgs),
    /// Show the trees of a live store
    ///
    /// Rates are shown too, again and again. It takes no lock.
    Watch(WatchArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Write manual pages, one per command
    Man(ManArgs),
}

impl Cli {
    /// Returns the arguments of the process.
    pub(crate) fn of_process() -> Result<Cli, clap::Error> {
        let mut command = command();
        let matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

impl Command {
    /// Returns how the command prints its tables.
    pub(crate) fn tables(&self) -> TableArgs {
        match self {
            Command::Compare(args) => args.tables,
            Command::Simulate(args) => args.tables,
            Command::Model(args) => args.tables,
            Command::Tune(args) => args.tables,
            Command::Doctor(args) => args.tables,
            Command::Run(args) => args.tables,
            Command::Reproduce(args) => args.tables,
            Command::Watch(args) => args.tables,
            Command::Db(args) => match &args.command {
                DbCommand::Stats(tables)
                | DbCommand::Keyspaces(tables)
                | DbCommand::List(tables) => *tables,
                DbCommand::Tree(args) => args.tables,
                _ => TableArgs::default(),
            },
            _ => TableArgs::default(),
        }
    }
}
