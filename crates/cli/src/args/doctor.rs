//! The command that reads the files of other stores.

use super::shared::TableArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The directory of a RocksDB, a LevelDB or a Pebble, or one LOG
    ///
    /// LOG, LOG.old*, MANIFEST-*, OPTIONS-*, CURRENT and marker.manifest.* are read, also if gzip
    /// or zstd has compressed them. Nothing is changed, and the database may be open.
    #[arg(value_name = "DIR-OR-LOG")]
    pub(crate) path: PathBuf,
    /// Also write a page to look at in a browser
    ///
    /// It has the costs of all settings, and the tree over time under the best ones.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}
