//! The commands that run or simulate policies.

use super::names::{CONTENTS, PAPER_FIGURES, POLICIES, WORKLOADS};
use super::parse::{count, duration, key_ranges, threads};
use super::shared::{
    CacheArgs, CompressionArgs, FlushSizesArgs, GroupArgs, MachineArgs, Memtable, TableArgs,
};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Policies, separated by `;`
    ///
    /// Such as 'tiered(ratio=4);leveled'. `classic` means all policies that do not count in blocks.
    /// `all` adds partial merges and block reuse, and takes several times as long.
    #[arg(long, default_value = "classic", value_name = "SPECS")]
    #[arg(value_parser = POLICIES, hide_possible_values = true)]
    pub(crate) policies: String,
    /// A workload; can be repeated
    ///
    /// Such as 'ycsb(a, records=100k, ops=200k)' or 'trace(FILE)'. `lsmith workloads` lists all.
    /// Without it: load(keys=200k, value=100B), with memtables of 256KiB.
    #[arg(long, value_name = "SPEC")]
    #[arg(value_parser = WORKLOADS, hide_possible_values = true)]
    pub(crate) workload: Vec<String>,
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
    #[command(flatten)]
    pub(crate) flush_sizes: FlushSizesArgs,
    #[command(flatten)]
    pub(crate) compression: CompressionArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    /// Also print the bytes of each part
    ///
    /// Also prints the blocks that lookups read. JSON always has both.
    #[arg(help_heading = "Output")]
    #[arg(long)]
    pub(crate) parts: bool,
    /// Also explain the columns
    ///
    /// Says below the table what each column counts.
    #[arg(help_heading = "Output")]
    #[arg(long)]
    pub(crate) explain_columns: bool,
    /// The parent directory of the stores
    ///
    /// Each store gets a new directory, which is removed afterwards. Without it: the directory for
    /// temporary files.
    #[arg(help_heading = "Store")]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Also let merges run beside writes
    ///
    /// Runs each policy once more in this way, and says how and why that differs from lockstep.
    #[arg(help_heading = "Store")]
    #[arg(long)]
    pub(crate) free: bool,
    /// Threads that merge in free runs
    ///
    /// 1 to 64. Writers write from one thread. Without it: 2.
    #[arg(help_heading = "Store")]
    #[arg(long, value_name = "N", value_parser = threads, requires = "free")]
    pub(crate) threads: Option<usize>,
    /// Stop writing in free runs after this time
    ///
    /// A time is such as 500ms, 10s or 2m. The run in lockstep and the simulations then play as
    /// many flushes.
    #[arg(help_heading = "Store")]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "free")]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Run each store N times
    ///
    /// Prints the least, the median and the most of what is measured. Policies then run one after
    /// the other, not on all cores at once.
    #[arg(help_heading = "Store")]
    #[arg(long, default_value = "1", value_name = "N", value_parser = count)]
    pub(crate) repeat: u64,
    /// Also write a page to look at
    ///
    /// The page is one file, to look at in a browser.
    #[arg(help_heading = "Output")]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also draw the frontier of the costs
    #[arg(help_heading = "Output")]
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The first policy, such as 'leveled(ratio=10)'
    #[arg(value_parser = POLICIES, hide_possible_values = true)]
    pub(crate) a: String,
    /// The second policy, such as 'tiered(ratio=4)'
    #[arg(value_parser = POLICIES, hide_possible_values = true)]
    pub(crate) b: String,
    /// The workload
    ///
    /// Such as 'churn(keys=100k, ops=400k, value=100B)'. `lsmith workloads` lists all.
    #[arg(long, value_name = "SPEC")]
    #[arg(value_parser = WORKLOADS, hide_possible_values = true)]
    pub(crate) workload: String,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The policy, such as 'binomial(k=4)'
    #[arg(long, value_name = "SPEC")]
    #[arg(value_parser = POLICIES, hide_possible_values = true)]
    pub(crate) policy: String,
    /// The number of memtables to flush
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) flushes: u64,
    /// unit, keyed or fluid
    ///
    /// The content of simulated tables: `unit` (only a size), `keyed` (the keys of a workload) or
    /// `fluid` (the expected sizes of a workload).
    #[arg(long, default_value = "unit", value_name = "CONTENT")]
    #[arg(value_parser = CONTENTS, hide_possible_values = true)]
    pub(crate) content: String,
    /// The workload for keyed and fluid content
    ///
    /// Without it: a load of 1 kB values in random order. `lsmith workloads` lists all.
    #[arg(long, value_name = "SPEC")]
    #[arg(value_parser = WORKLOADS, hide_possible_values = true)]
    pub(crate) workload: Option<String>,
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
    #[command(flatten)]
    pub(crate) flush_sizes: FlushSizesArgs,
    /// Bytes of a cache for reads; 0 is none
    ///
    /// The cache holds data blocks that lookups and range reads look at. Keyed content only.
    #[arg(long, value_name = "BYTES", value_parser = lsmith_spec::parse_bytes)]
    pub(crate) cache: Option<u64>,
    /// Also show the least of merges of parts
    ///
    /// 2 to 64 key ranges with equally many keys. Each range merges by itself. The least for
    /// merges of whole runs is shown anyway. Keyed content only, and at most 300 flushes.
    #[arg(long, value_name = "N", value_parser = key_ranges)]
    pub(crate) key_ranges: Option<usize>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Threads that merge in simulated time
    ///
    /// 1 to 64. Writers write from one thread. Without it: 2.
    #[arg(long, value_name = "N", value_parser = threads, requires = "machine")]
    pub(crate) threads: Option<usize>,
    /// Print each merge and the trees
    ///
    /// Each merge has its reason. The tree is printed after each flush. With `--json`, both are in
    /// the field `trace`.
    #[arg(help_heading = "Output")]
    #[arg(long)]
    pub(crate) trace: bool,
    /// Also write a page to look at
    ///
    /// The page is one file, to look at in a browser.
    #[arg(help_heading = "Output")]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The policy, such as 'leveled(ratio=8)'
    #[arg(long, value_name = "SPEC")]
    #[arg(value_parser = POLICIES, hide_possible_values = true)]
    pub(crate) policy: String,
    /// The workload, such as 'load(keys=1M)'
    ///
    /// `lsmith workloads` lists all.
    #[arg(long, value_name = "SPEC")]
    #[arg(value_parser = WORKLOADS, hide_possible_values = true)]
    pub(crate) workload: String,
    /// The directory of the store
    ///
    /// A new or empty directory gets a new store. An existing store is continued and keeps its
    /// memtable size.
    #[arg(help_heading = "Store")]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
    #[command(flatten)]
    pub(crate) flush_sizes: FlushSizesArgs,
    #[command(flatten)]
    pub(crate) compression: CompressionArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    /// Let merges run beside writes
    ///
    /// That is faster. By default each write waits until the tree is at rest.
    #[arg(help_heading = "Store")]
    #[arg(long)]
    pub(crate) free: bool,
    /// Threads that merge in free runs
    ///
    /// 1 to 64. Writers write from one thread. Without it: 2.
    #[arg(help_heading = "Store")]
    #[arg(long, value_name = "N", value_parser = threads, requires = "free")]
    pub(crate) threads: Option<usize>,
    /// Stop writing in free runs after this time
    ///
    /// A time is such as 500ms, 10s or 2m. Merges then come to rest.
    #[arg(help_heading = "Store")]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "free")]
    pub(crate) duration: Option<Duration>,
    /// Also print percentiles
    ///
    /// They are of the durations and sizes of operations and merges.
    #[arg(help_heading = "Output")]
    #[arg(long)]
    pub(crate) histograms: bool,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// The figure, such as thonangi-fig2
    ///
    /// Without it, or with `list`: all figures are listed.
    #[arg(value_parser = PAPER_FIGURES, hide_possible_values = true)]
    pub(crate) figure: Option<String>,
    /// A policy beside the paper's policies
    ///
    /// Such as 'tiered(ratio=6)'. It gets a curve of its own, and no claim is about it. May be
    /// given several times. `lsmith reproduce` says which figures take which policies.
    #[arg(long, value_name = "SPEC", requires = "figure")]
    #[arg(value_parser = POLICIES, hide_possible_values = true)]
    pub(crate) policy: Vec<String>,
    /// Measure fewer points
    ///
    /// The scale is smaller too. It takes less than a minute.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also draw the figure in a directory
    ///
    /// The file is FIGURE.svg, or FIGURE-a.svg and so on.
    #[arg(help_heading = "Output")]
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LawsArgs {
    /// The policy, such as 'tiered(ratio=3)'
    #[arg(value_name = "SPEC")]
    #[arg(value_parser = POLICIES, hide_possible_values = true)]
    pub(crate) policy: String,
}
