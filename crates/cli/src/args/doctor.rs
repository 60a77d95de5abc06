//! The command that reads the files of other stores.

use super::shared::TableArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The directory of a RocksDB or a LevelDB, or one LOG
    ///
    /// LOG, LOG.old*, MANIFEST-*, OPTIONS-* and CURRENT are read, also if gzip or zstd has
    /// compressed them. Nothing is changed, and the database may be open.
    #[arg(value_name = "DIR-OR-LOG")]
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}
