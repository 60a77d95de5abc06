//! The command that measures this machine.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// The parent directory of the stores
    ///
    /// On the device that the stores to predict are on. Each store gets a new directory, which is
    /// removed afterwards. Without it: the directory for temporary files.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The file to write the machine to
    ///
    /// Without it: standard output.
    #[arg(help_heading = "Output")]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
