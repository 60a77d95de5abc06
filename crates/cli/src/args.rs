//! The arguments of the command line.

use crate::failure::bad_argument;
use clap::{Args, Parser, Subcommand, ValueEnum};
use lsmith::env::RealEnv;
use lsmith_lab::Options;
use lsmith_lab::tune::Weights;
use lsmith_policy::{MergePolicy, check_group_policy};
use lsmith_workload::Workload;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An LSM key-value store with a choice of merge policies, and a lab that predicts what each policy
/// costs.
#[derive(Debug, Parser)]
#[command(name = "lsmith", version, propagate_version = true, arg_required_else_help = false)]
#[command(max_term_width = 80)]
pub(crate) struct Cli {
    /// Print exactly one JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a workload on the real store under each policy and compare it with predictions
    Compare(CompareArgs),
    /// Say why one policy writes less than another under a workload
    Explain(ExplainArgs),
    /// Simulate a policy without a disk
    Simulate(SimulateArgs),
    /// Compute the costs of a policy by formula
    Model(ModelArgs),
    /// Find the best policy and parameters for a workload
    Tune(TuneArgs),
    /// Run a workload on the real store under one policy and keep the store
    Run(RunArgs),
    /// Measure a figure of a paper again and check the paper's claims
    Reproduce(ReproduceArgs),
    /// List every policy with its parameters, defaults and source
    Policies,
    /// List every workload with its parameters, units, defaults and an example, and the format of
    /// traces
    Workloads,
    /// Check a policy against the laws of merge policies
    Laws(LawsArgs),
    /// Read, change, check or repair a store
    Db(DbArgs),
    /// Show the trees of a live store, with rates, again and again; takes no lock
    Watch(WatchArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Write manual pages, one per command
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Policies separated by `;`, such as 'tiered(ratio=4);leveled'. `classic` means all policies
    /// that do not count in blocks; `all` adds partial merges and block reuse, and takes several
    /// times as long
    #[arg(long, default_value = "classic", value_name = "SPECS")]
    pub(crate) policies: String,
    /// A workload, such as 'ycsb(a, records=100k, ops=200k)' or 'trace(FILE)'; can be repeated
    /// [default: load(keys=400k, value=1000B, order=hashed)]
    #[arg(long, value_name = "SPEC")]
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

impl Command {
    /// Returns how the command prints its tables.
    pub(crate) fn tables(&self) -> TableArgs {
        match self {
            Command::Compare(args) => args.tables,
            Command::Simulate(args) => args.tables,
            Command::Model(args) => args.tables,
            Command::Tune(args) => args.tables,
            Command::Run(args) => args.tables,
            Command::Reproduce(args) => args.tables,
            Command::Watch(args) => args.tables,
            Command::Db(args) => match &args.command {
                DbCommand::Stats(tables) | DbCommand::Keyspaces(tables) => *tables,
                DbCommand::Tree(args) => args.tables,
                _ => TableArgs::default(),
            },
            _ => TableArgs::default(),
        }
    }
}

/// How tables are printed. By default they have as many columns as fit the terminal, or as many as
/// the variable `COLUMNS` says; all columns if there is neither.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct TableArgs {
    /// Print all columns of tables, however narrow the terminal is
    #[arg(long)]
    pub(crate) wide: bool,
    /// Print the tables alone, as comma-separated values with all columns and digits
    #[arg(long, conflicts_with_all = ["json", "wide"])]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The directory of the store
    pub(crate) dir: PathBuf,
    /// Print one picture and end; `--json` does that too
    #[arg(long)]
    pub(crate) once: bool,
    /// Seconds between two pictures, 0.1 to 3600
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) interval: Duration,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// Print a row per run, with a key of the notation
    #[arg(long)]
    pub(crate) short: bool,
    /// Print the graph of the tables: row by row, each table below the newer ones that share keys
    #[arg(long, conflicts_with = "short")]
    pub(crate) graph: bool,
    /// Print that graph in the language of Graphviz
    #[arg(long, conflicts_with_all = ["short", "graph"])]
    pub(crate) dot: bool,
    /// Draw that graph into this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["short", "graph", "dot"])]
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
pub(crate) struct Memtable {
    /// Logical bytes (key + value + 8 per entry) at which a memtable is sealed
    #[arg(long = "memtable", default_value = "4MiB", value_name = "BYTES")]
    #[arg(value_parser = memtable_bytes)]
    pub(crate) bytes: u64,
}

#[derive(Debug, Args)]
pub(crate) struct FlushSizesArgs {
    /// The logical bytes at which memtables are sealed before they are full: 'file(NAME)' with a
    /// size per line, such as 3MiB, or 'lognormal(mean=0.25, sigma=0.5)' with a mean that is a
    /// share of a full memtable. Not for policies that count in blocks [default: constant, all
    /// memtables are full]
    #[arg(long = "flush-sizes", value_name = "SPEC")]
    pub(crate) sizes: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct GroupArgs {
    /// Write a group of keyspaces that merge together. Each has a share of the items of the
    /// workload, for example '1,0.2,0.05'. Not for scans, nor for policies that take windows of
    /// keys; simulations need keyed content
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
    /// The codec of the store's tables: `none`, `lz4`, `zstd`, or a list with one codec per level,
    /// such as 'none,zstd(level=9)'. Values compress if the workload says so, as in
    /// 'load(compressible=0.5)' [default: none]
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
    /// Bytes of a cache for the data blocks that lookups and range reads look at; 0 for no cache.
    /// The store then reads files by calls [default: the store maps files into memory]
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
pub(crate) struct ModelArgs {
    /// The formula, such as 'leveldb' or 'cola(ratio=3)' [default: list all]
    #[arg(long, value_name = "SPEC")]
    pub(crate) policy: Option<String>,
    /// Instead of a formula: the number of different keys among so many requests
    #[arg(long, value_name = "N,...", value_parser = count, value_delimiter = ',',
          conflicts_with = "policy")]
    pub(crate) unique: Vec<u64>,
    /// Instead of a formula: the number of different keys in a merge of runs with so many keys
    #[arg(long, value_name = "N,...", value_parser = count, value_delimiter = ',',
          conflicts_with = "policy")]
    pub(crate) merge: Vec<u64>,
    /// Instead of a formula: the number of requests from one sweep of a level to the next, where
    /// the level has so many keys and is merged down piece by piece in key order
    #[arg(long, value_name = "N,...", value_parser = count, value_delimiter = ',',
          conflicts_with = "policy")]
    pub(crate) interval: Vec<u64>,
    /// The number of distinct keys
    #[arg(long, default_value = "100M", value_name = "N", value_parser = count)]
    pub(crate) keys: u64,
    /// The Zipf skew of requests over keys, 0 to 1.6; with 0 all keys are equally likely
    #[arg(long, default_value = "0", value_name = "S")]
    pub(crate) zipf: f64,
    /// Logical bytes of an entry (key + value + 8)
    #[arg(long, default_value = "1000B", value_name = "BYTES", value_parser = bytes)]
    pub(crate) item: u64,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
    /// The total number of requests, for costs that grow with it [default: one per key]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) requests: Option<u64>,
    /// Filter bits per key, 0 to 64; 0 means no filter
    #[arg(long, default_value = "10", value_name = "BITS", value_parser = bits)]
    pub(crate) filter_bits: f64,
    /// The number of entries that a range read returns
    #[arg(long, default_value = "50", value_name = "N", value_parser = count)]
    pub(crate) scan_items: u64,
    /// The order of keys: hashed, or sequential, in which each key is written once
    #[arg(long, default_value = "hashed", value_name = "ORDER")]
    pub(crate) order: ModelOrder,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelOrder {
    Hashed,
    Sequential,
}

#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// The workload, such as 'churn(keys=100M, ops=1G)'
    #[arg(long, value_name = "SPEC")]
    pub(crate) workload: String,
    /// The greatest allowed number of runs that a lookup considers, averaged over time
    #[arg(long, value_name = "RUNS", value_parser = cost_max)]
    pub(crate) read_cost_max: Option<f64>,
    /// The greatest allowed number of data blocks that a range read looks at, averaged over time
    #[arg(long, value_name = "BLOCKS", value_parser = cost_max)]
    pub(crate) scan_cost_max: Option<f64>,
    /// The greatest allowed number of bytes stored per live byte, averaged over time
    #[arg(long, value_name = "RATIO", value_parser = cost_max)]
    pub(crate) space_cost_max: Option<f64>,
    /// Bytes of memory for memtables, filters and fence pointers [default: enough for `--memtable`
    /// and 10 filter bits per entry]
    #[arg(long, value_name = "BYTES", value_parser = bytes, conflicts_with = "bytes")]
    pub(crate) memory: Option<u64>,
    /// Choose the policy with the least worst-case cost over workloads within this distance, in
    /// nats, 0 to 100. The distance covers both the mix of operations and the popularity of keys
    #[arg(long, value_name = "NATS", value_parser = distance)]
    pub(crate) drift: Option<f64>,
    /// What one percent less is worth: of bytes written, of runs per lookup, of bytes held. Such as
    /// 'write=2,read=1,space=0.5'. Without `scan=`, lookups and range reads share the weight of
    /// reads as they are in the workload [default: with a limit only writes count, without one
    /// writes, reads and space alike]
    #[arg(long, value_name = "WEIGHTS", value_parser = weights)]
    pub(crate) weights: Option<Weights>,
    /// A policy to hold against the best one, such as 'leveled(ratio=10)'
    #[arg(long, value_name = "SPEC")]
    pub(crate) compare_to: Option<String>,
    /// The user's bytes per second, for bytes a day and the years of an SSD
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) rate: Option<u64>,
    /// The bytes that may be written to the SSD in its life
    #[arg(long, value_name = "BYTES", default_value = "600000GB", value_parser = bytes)]
    pub(crate) endurance: u64,
    /// Simulate every policy on all writes, and say how far the best choice is from the best of
    /// all; takes minutes for a million writes
    #[arg(long)]
    pub(crate) check: bool,
    /// Run the best, the default and the named policy on the real store at a smaller scale, and
    /// print the prediction errors
    #[arg(long)]
    pub(crate) verify: bool,
    /// Also write a page to this file, to look at in a browser
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also draw the frontier of the costs into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
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

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory that receives the pages; it is created if missing
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Keys and values are used byte for byte. Printable UTF-8 is printed \
unchanged. In any other key or value, backslashes and unprintable bytes are printed as \\xNN.")]
pub(crate) struct DbArgs {
    /// The directory of the store
    pub(crate) dir: PathBuf,
    /// The keyspace
    #[arg(long, global = true, default_value = lsmith::DEFAULT_KEYSPACE, value_name = "NAME")]
    pub(crate) keyspace: String,
    /// The codec of a keyspace that this command creates: `none`, `lz4`, `zstd`, or a list with one
    /// codec per level [default: none]
    #[arg(long, global = true, value_name = "CODECS")]
    pub(crate) compression: Option<String>,
    /// The group of a keyspace that this command creates. Keyspaces of a group share a tree, so
    /// that they merge together. One that exists must be in this group
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// A keyspace that this command creates keeps sequence numbers, so that it can ingest tables
    /// with numbers of their own. One that exists must keep them
    #[arg(long, global = true)]
    pub(crate) keep_numbers: bool,
    #[command(subcommand)]
    pub(crate) command: DbCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Print the value of a key
    Get {
        #[arg(allow_hyphen_values = true)]
        key: OsString,
    },
    /// Set the value of a key; creates the store and the keyspace if they are missing
    Put {
        #[arg(allow_hyphen_values = true)]
        key: OsString,
        #[arg(allow_hyphen_values = true)]
        value: OsString,
    },
    /// Remove a key
    Delete {
        #[arg(allow_hyphen_values = true)]
        key: OsString,
    },
    /// Print entries in key order, a tab between key and value
    Scan(ScanArgs),
    /// Ingest tables, such as `export` writes, all or none; or put each line `key<TAB>value` of
    /// text files, or of standard input for `-`. Creates the store and the keyspace if missing
    #[command(after_help = "A file is a table if its name ends with .table, or if it ends as a \
table does.")]
    Ingest {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Take tables over by a second name (a hard link) instead of copying them. Then nobody may
        /// change them any more
        #[arg(long)]
        link: bool,
        /// Take tables with sequence numbers even if deleted keys could come back: those with an
        /// entry older than a deletion that a merge has dropped
        #[arg(long)]
        allow_resurrect: bool,
    },
    /// Write entries to a table, for another store to ingest
    Export(ExportArgs),
    /// Bulk load the lines `key<TAB>value` of a file, or of standard input for `-`, straight into
    /// tables, all or none. Keys must ascend. Creates the store and the keyspace if missing
    Load { file: PathBuf },
    /// Merge the whole keyspace into one run
    Compact,
    /// Print the statistics of the keyspace
    Stats(TableArgs),
    /// Print the statistics of all keyspaces, one keyspace per line
    Keyspaces(TableArgs),
    /// Print the tree as text, or as a table of its runs
    #[command(after_help = TREE_NOTATION)]
    Tree(TreeArgs),
    /// Print why the store wrote what it wrote: what merges took and wrote, by level
    Why,
    /// Write a page about the store: the trees of its keyspaces and what merges wrote
    Report {
        /// The file of the page, to look at in a browser
        #[arg(long, value_name = "FILE")]
        html: PathBuf,
    },
    /// Check every file and exit with 1 if one is damaged. Also print the log parts that an opening
    /// leaves out after power loss, and the files that do not belong to the store
    Verify,
    /// Print one file of the store as text, without opening the store. Damaged places are printed
    /// in file order; the exit code is then 1
    Dump(DumpArgs),
    /// Copy all readable entries of a damaged store into a new store, and print the losses. The
    /// damaged store is not changed
    Repair {
        /// The directory of the new store; it must be empty or missing
        to: PathBuf,
    },
    /// Print the merge policy and its next plan, or set the policy
    Policy {
        /// The new policy; without it, the current policy is printed
        spec: Option<String>,
    },
    /// Print the codecs of tables, or set the codecs of new tables
    Compression {
        /// A codec, or a list of codecs for the levels, such as `none,lz4,zstd(level=9)`
        codecs: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// The file: a table, log, copy of memory (`.spill`), manifest or CURRENT. A path, or a name in
    /// the directory of the store
    pub(crate) file: PathBuf,
    /// Print values, not only their lengths
    #[arg(long)]
    pub(crate) values: bool,
    /// Print at most N items: the entries of a table or a copy of memory, the writes of a log, or
    /// the records of a manifest. 0 prints an outline. The whole file is checked anyway
    /// [default: all]
    #[arg(long, visible_alias = "entries", value_name = "N")]
    #[arg(value_parser = lsmith_spec::parse_count)]
    pub(crate) limit: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The file that is written; it must not exist
    pub(crate) file: PathBuf,
    /// Also write sequence numbers and deletions, so that the table goes where its age puts it. The
    /// keyspace must keep numbers
    #[arg(long)]
    pub(crate) numbers: bool,
    #[command(flatten)]
    pub(crate) range: RangeArgs,
}

/// A range of keys.
#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// The first key, inclusive [default: the first key of the keyspace]
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) from: Option<OsString>,
    /// The end key, exclusive [default: no end]
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) to: Option<OsString>,
    /// Only keys with this prefix
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["from", "to"])]
    pub(crate) prefix: Option<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Print in descending key order
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Print at most N entries [default: all]
    #[arg(long, value_name = "N", value_parser = lsmith_spec::parse_count)]
    pub(crate) limit: Option<u64>,
}

/// The notation of trees.
const TREE_NOTATION: &str = "\
L0 r4[t7:a..k of a..z 1MiB 900e 20d s5..9] is a run of level 0:
  r4          the number of the run; the newest run of a level comes first
  t7          the number of a table, and of its file
  a..k        the keys of the slice, from a up to, not including, k
  of a..z     the keys of the whole table, if the slice is a part of it
  1MiB        logical bytes: keys, values and 8 per entry
  900e 20d    entries, and those of them that delete a key
  s5..9       sequence numbers
#5 is the key whose eight bytes are the number 5.";

/// Parses the seconds between two pictures.
fn seconds(text: &str) -> Result<Duration, String> {
    let parsed = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    let seconds = parsed.ok_or_else(|| "expected a number from 0.1 to 3600".to_owned())?;
    Ok(Duration::from_secs_f64(seconds))
}

/// Parses a size greater than 0.
fn bytes(text: &str) -> Result<u64, String> {
    match lsmith_spec::parse_bytes(text) {
        Ok(0) => Err("expected at least 1B".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses the bytes of a memtable, which are bounded as in a store.
fn memtable_bytes(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        bytes if bytes > 1 << 40 => Err(format!("`{text}` is too large: expected at most 1024GiB")),
        bytes => Ok(bytes),
    }
}

/// Parses filter bits per key, 0 to 64.
fn bits(text: &str) -> Result<f64, String> {
    let bits = text.parse().ok().filter(|bits| (0.0..=64.0).contains(bits));
    bits.ok_or_else(|| "expected a number from 0 to 64".to_owned())
}

/// Parses weights, such as `write=1,read=0.5`. What is not named has no weight.
fn weights(text: &str) -> Result<Weights, String> {
    let mut weights = Weights { write: 0.0, read: 0.0, scan: None, space: 0.0 };
    for part in text.split(',') {
        let Some((name, value)) = part.split_once('=') else {
            return Err(format!("expected `name=number`, found `{part}`"));
        };
        let value = value.trim().parse().ok().filter(|value: &f64| (0.0..=1000.0).contains(value));
        let Some(value) = value else {
            return Err(format!("expected a number from 0 to 1000 in `{part}`"));
        };
        match name.trim() {
            "write" => weights.write = value,
            "read" => weights.read = value,
            "scan" => weights.scan = Some(value),
            "space" => weights.space = value,
            other => {
                let names = "expected `write`, `read`, `scan` or `space`";
                return Err(format!("{names}, found `{other}`"));
            }
        }
    }
    let scan = weights.scan.unwrap_or_default();
    if weights.write + weights.read + scan + weights.space == 0.0 {
        return Err("expected a weight above 0".to_owned());
    }
    Ok(weights)
}

/// Parses a limit on a cost, greater than 0.
fn cost_max(text: &str) -> Result<f64, String> {
    let cost = text.parse().ok().filter(|cost: &f64| cost.is_finite() && *cost > 0.0);
    cost.ok_or_else(|| "expected a number above 0".to_owned())
}

/// Parses the distance that a workload may drift, 0 to 100 nats.
fn distance(text: &str) -> Result<f64, String> {
    let distance = text.parse().ok().filter(|distance| (0.0..=100.0).contains(distance));
    distance.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

/// Parses a number of merging threads, 1 to 64.
fn threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| (1..=64).contains(threads));
    threads.ok_or_else(|| "expected a whole number from 1 to 64".to_owned())
}

/// Parses a time greater than 0, of a day at most.
fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0)];
    let parsed = units.iter().find_map(|(unit, seconds)| {
        Some(text.strip_suffix(unit)?.trim().parse::<f64>().ok()? * seconds)
    });
    let seconds = parsed.filter(|seconds| *seconds > 0.0 && *seconds <= 86_400.0);
    let duration = seconds.map(Duration::from_secs_f64);
    duration.ok_or_else(|| "expected a time such as 500ms, 10s or 2m, of a day at most".to_owned())
}

/// Parses a count greater than 0.
fn count(text: &str) -> Result<u64, String> {
    match lsmith_spec::parse_count(text) {
        Ok(0) => Err("expected at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}
