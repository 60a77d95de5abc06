//! The command that has a store recorded.

use super::parse::{bytes, duration};
use clap::Args;
use lsmith::RecordOptions;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// The directory of the store
    ///
    /// Another process has it open, or opens it later.
    pub(crate) store: PathBuf,
    /// The folder for the recording
    ///
    /// It is made if it is missing. Each recording is a new file in it. `trace(FILE)` plays it.
    #[arg(required_unless_present = "stop")]
    pub(crate) folder: Option<PathBuf>,
    /// Of N keys one is recorded
    ///
    /// 1 to 2^20. A memtable should hold some hundreds of recorded entries at least.
    #[arg(long, default_value = "64", value_name = "N")]
    one_in: u32,
    /// The length at which it ends
    #[arg(long, default_value = "256MiB", value_name = "BYTES", value_parser = bytes)]
    bytes: u64,
    /// The time after which it ends
    ///
    /// Such as 10m or 36000s. Without it: when it is as long as `--bytes` says, or at `--stop`.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Leave out what is there now
    ///
    /// The store is then not read once at the beginning. A replay begins with an empty store.
    #[arg(long)]
    no_base: bool,
    /// End the recording
    #[arg(long, conflicts_with_all = ["folder", "one_in", "bytes", "time", "no_base"])]
    pub(crate) stop: bool,
}

impl RecordArgs {
    /// Returns how the store is recorded.
    pub(crate) fn options(&self) -> RecordOptions {
        RecordOptions {
            one_in: self.one_in,
            bytes_max: self.bytes,
            time_max: self.time,
            base: !self.no_base,
        }
    }
}
