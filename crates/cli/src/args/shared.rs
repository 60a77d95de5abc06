//! Options that several commands share.

use super::parse::memtable_bytes;
use crate::failure::bad_argument;
use crate::layout::Layout;
use clap::Args;
use lsmith::env::RealEnv;
use lsmith_lab::Options;
use lsmith_policy::{MergePolicy, check_group_policy};
use lsmith_workload::{Recorded, Workload};
use std::sync::Arc;

/// How tables are printed. By default they have as many columns as fit the terminal, or as many as
/// the variable `COLUMNS` says; all columns if there is neither.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct TableArgs {
    /// Print all columns
    ///
    /// They are printed however narrow the terminal is.
    #[arg(help_heading = "Output")]
    #[arg(long)]
    pub(crate) wide: bool,
    /// Print only tables, as CSV
    ///
    /// Commas separate the values. All columns and digits are there.
    #[arg(help_heading = "Output")]
    #[arg(long, conflicts_with_all = ["json", "wide"])]
    pub(crate) csv: bool,
}

impl TableArgs {
    /// Returns the layout that the arguments ask for, if they ask for one.
    pub(crate) fn layout(&self) -> Option<Layout> {
        match self {
            TableArgs { csv: true, .. } => Some(Layout::Csv),
            TableArgs { wide: true, .. } => Some(Layout::Wide),
            TableArgs { .. } => None,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Memtable {
    /// Bytes of a memtable
    ///
    /// Logical bytes (key + value + 8 per entry) at which a memtable is sealed. Without it: 4MiB;
    /// for a recording, the store's memtable times the share of the keys that were recorded.
    #[arg(long = "memtable", value_name = "BYTES", value_parser = memtable_bytes)]
    bytes: Option<u64>,
}

impl Memtable {
    /// Returns the size that is asked for, if one is.
    pub(crate) fn given(&self) -> Option<u64> {
        self.bytes
    }

    /// Returns the size of a memtable where there is no workload.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.unwrap_or_else(|| Options::default().memtable_bytes)
    }

    /// Returns the size of a memtable for `workload`.
    pub(crate) fn of(&self, workload: &Workload) -> u64 {
        let recorded = workload.recorded().map(Recorded::memtable_share_bytes);
        self.bytes.or(recorded).unwrap_or_else(|| self.bytes())
    }
}

#[derive(Debug, Args)]
pub(crate) struct FlushSizesArgs {
    /// Sizes of memtables that are not full
    ///
    /// The logical bytes at which memtables are sealed before they are full: 'file(NAME)' with a
    /// size per line, such as 3MiB, or 'lognormal(mean=0.25, sigma=0.5)' with a mean that is a
    /// share of a full memtable. Not for policies that count in blocks. Without it: constant, all
    /// memtables are full.
    #[arg(long = "flush-sizes", value_name = "SPEC")]
    pub(crate) sizes: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct GroupArgs {
    /// Write a group of keyspaces
    ///
    /// They merge together. Each has a share of the items of the workload, for example
    /// '1,0.2,0.05'. Not for scans, nor for policies that take windows of keys; simulations need
    /// keyed content.
    #[arg(long = "group", value_name = "SHARES", value_delimiter = ',')]
    pub(crate) shares: Vec<f64>,
}

impl GroupArgs {
    /// Returns the workload of the group, or the same workload without a group. Fails if the
    /// workload is not one for a group.
    pub(crate) fn applied_to(&self, workload: Workload) -> anyhow::Result<Workload> {
        match &self.shares[..] {
            [] => Ok(workload),
            shares => workload.in_group(shares).map_err(bad_argument),
        }
    }

    /// Fails if there is a group and `policy` does not merge whole runs.
    pub(crate) fn check(&self, policy: &dyn MergePolicy) -> anyhow::Result<()> {
        if self.shares.is_empty() {
            Ok(())
        } else {
            check_group_policy(policy).map_err(bad_argument)
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CompressionArgs {
    /// The codec of the store's tables
    ///
    /// `none`, `lz4`, `zstd`, or a list with one codec per level, such as 'none,zstd(level=9)'.
    /// Values compress if the workload says so, as in 'load(compressible=0.5)'. Without it: none.
    #[arg(help_heading = "Store")]
    #[arg(long = "compression", value_name = "CODECS")]
    pub(crate) codecs: Option<String>,
}

impl CompressionArgs {
    /// Returns the codecs. Fails if one does not exist.
    pub(crate) fn checked(&self) -> anyhow::Result<Option<String>> {
        if let Some(codecs) = &self.codecs {
            lsmith::check_compression(codecs).map_err(crate::failure::bad_argument)?;
        }
        Ok(self.codecs.clone())
    }
}

#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// Bytes of a cache for reads; 0 is none
    ///
    /// The cache holds data blocks that lookups and range reads look at. The store then reads files
    /// by calls. Without it, the store maps files into memory.
    #[arg(help_heading = "Store")]
    #[arg(long = "cache", value_name = "BYTES", value_parser = lsmith_spec::parse_bytes)]
    pub(crate) size: Option<u64>,
}

impl CacheArgs {
    /// Returns the same options with this cache.
    pub(crate) fn added_to(&self, options: Options) -> Options {
        let Some(cache_bytes) = self.size else { return options };
        Options { env: Arc::new(RealEnv::default().unmapped()), cache_bytes, ..options }
    }
}

#[derive(Debug, Args)]
pub(crate) struct MachineArgs {
    /// Also predict time on this machine
    ///
    /// What `lsmith calibrate` prints, or a file that has it. A free run is then simulated in time:
    /// operations per second, CPU, and how long writers are held back.
    #[arg(long = "machine", value_name = "SPEC-OR-FILE")]
    pub(crate) machine: Option<String>,
}
