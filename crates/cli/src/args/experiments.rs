//! The commands that run or simulate policies.

use super::parse::{count, duration, memtable_bytes, threads};
use super::shared::{CacheArgs, CompressionArgs, FlushSizesArgs, GroupArgs, Memtable, TableArgs};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Policies separated by `;`, such as 'tiered(ratio=4);leveled'. `classic` means all policies
    /// that do not count in blocks; `all` adds partial merges and block reuse, and takes several
    /// times as long
    #[arg(long, default_value = "classic", value_name = "SPECS")]
    pub(crate) policies: String,
    /// A workload, such as 'ycsb(a, records=100k, ops=200k)' or 'trace(FILE)'; can be repeated
    /// [default: load(keys=200k, value=100B)]
    #[arg(long, value_name = "SPEC")]
    pub(crate) workload: Vec<String>,
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    /// Logical bytes (key + value + 8 per entry) at which a memtable is sealed [default: 4MiB, and
    /// 256KiB for the default workload]
    #[arg(long = "memtable", value_name = "BYTES", value_parser = memtable_bytes)]
    pub(crate) memtable_bytes: Option<u64>,
    #[command(flatten)]
    pub(crate) flush_sizes: FlushSizesArgs,
    #[command(flatten)]
    pub(crate) compression: CompressionArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    /// Also print the bytes of each part and the blocks that lookups read; JSON always has them
    #[arg(long)]
    pub(crate) parts: bool,
    /// The parent directory of the stores; each store gets a new directory, which is removed
    /// afterwards [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Also run each policy with merges in parallel with writes, and say how and why that differs
    /// from lockstep
    #[arg(long)]
    pub(crate) free: bool,
    /// Threads that merge in free runs, 1 to 64. Writers write from one thread [default: 2]
    #[arg(long, value_name = "N", value_parser = threads, requires = "free")]
    pub(crate) threads: Option<usize>,
    /// Stop writing in free runs after this time, such as 500ms, 10s or 2m. The run in lockstep
    /// and the simulations then play as many flushes
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "free")]
    pub(crate) duration: Option<Duration>,
    /// Run each store N times, and print the least, the median and the most of what is measured
    #[arg(long, default_value = "1", value_name = "N", value_parser = count)]
    pub(crate) repeat: u64,
    /// Also write a page to this file, to look at in a browser
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also draw the frontier of the costs into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The first policy, such as 'leveled(ratio=10)'
    pub(crate) a: String,
    /// The second policy, such as 'tiered(ratio=4)'
    pub(crate) b: String,
    /// The workload, such as 'churn(keys=100k, ops=400k, value=100B)'
    #[arg(long, value_name = "SPEC")]
    pub(crate) workload: String,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The policy, such as 'binomial(k=4)'
    #[arg(long, value_name = "SPEC")]
    pub(crate) policy: String,
    /// The number of memtables to flush
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) flushes: u64,
    /// The content of simulated tables: `unit` (only a size), `keyed` (the keys of a workload) or
    /// `fluid` (the expected sizes of a workload)
    #[arg(long, default_value = "unit", value_name = "CONTENT")]
    pub(crate) content: String,
    /// The workload for keyed and fluid content [default: a load of 1 kB values in random order]
    #[arg(long, value_name = "SPEC")]
    pub(crate) workload: Option<String>,
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
    #[command(flatten)]
    pub(crate) flush_sizes: FlushSizesArgs,
    /// Bytes of a cache for the data blocks that lookups and range reads look at; 0 for no cache.
    /// Keyed content only
    #[arg(long, value_name = "BYTES", value_parser = lsmith_spec::parse_bytes)]
    pub(crate) cache: Option<u64>,
    /// Print each merge with its reason, and the tree after each flush; with `--json`, as the
    /// field `trace`
    #[arg(long)]
    pub(crate) trace: bool,
    /// Also write a page to this file, to look at in a browser
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The policy, such as 'leveled(ratio=8)'
    #[arg(long, value_name = "SPEC")]
    pub(crate) policy: String,
    /// The workload, such as 'load(keys=1M)'
    #[arg(long, value_name = "SPEC")]
    pub(crate) workload: String,
    /// The directory of the store. A new or empty directory gets a new store; an existing store is
    /// continued and keeps its memtable size
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
    /// Run merges in parallel with writes, which is faster. By default each write waits until the
    /// tree is at rest
    #[arg(long)]
    pub(crate) free: bool,
    /// Threads that merge in free runs, 1 to 64. Writers write from one thread [default: 2]
    #[arg(long, value_name = "N", value_parser = threads, requires = "free")]
    pub(crate) threads: Option<usize>,
    /// Stop writing in free runs after this time, such as 500ms, 10s or 2m. Merges then come to
    /// rest
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "free")]
    pub(crate) duration: Option<Duration>,
    /// Also print percentiles of the durations and sizes of operations and merges
    #[arg(long)]
    pub(crate) histograms: bool,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// The figure, such as thonangi-fig2, or `list` [default: list]
    pub(crate) figure: Option<String>,
    /// Measure fewer points at a smaller scale; takes less than a minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also draw the figure into this directory, as FIGURE.svg, or as FIGURE-a.svg and so on
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LawsArgs {
    /// The policy, such as 'tiered(ratio=3)'
    #[arg(value_name = "SPEC")]
    pub(crate) policy: String,
}
