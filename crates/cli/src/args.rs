//! What can be written on the command line.

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// An LSM key-value store whose merge policy is a value you choose, and a lab that says what the
/// choice will cost.
#[derive(Debug, Parser)]
#[command(name = "lsmith", version, propagate_version = true, arg_required_else_help = false)]
pub(crate) struct Cli {
    /// Print exactly one JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a workload on the real store under each policy, beside what simulations predict
    Compare(CompareArgs),
    /// Simulate a policy without a disk
    Simulate(SimulateArgs),
    /// Say by formula what a policy costs
    Model(ModelArgs),
    /// Find the best policy and parameters for a workload
    Tune(TuneArgs),
    /// Run a workload on the real store under one policy; the store stays
    Run(RunArgs),
    /// Measure a figure of a paper anew, and judge what the paper says of it
    Reproduce(ReproduceArgs),
    /// List every policy with its parameters, defaults and source
    Policies,
    /// Look into a store, or work on it
    Db(DbArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Policies separated by `;`, such as 'tiered(ratio=4);leveled', or `classic`, or `all`, which
    /// has partial merges and reuse of blocks as well and takes several times as long
    #[arg(long, default_value = "classic", value_name = "SPECS")]
    pub(crate) policies: String,
    /// A workload, such as 'ycsb(a, records=100k, ops=200k)' or 'trace(FILE)'; can be repeated
    #[arg(long, value_name = "SPEC")]
    pub(crate) workload: Vec<String>,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
    /// Print bytes by part, and what lookups have read, as well
    #[arg(long, conflicts_with = "json")]
    pub(crate) parts: bool,
    /// Where stores are made, each in a fresh directory that is removed afterwards [default: the
    /// directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Memtable {
    /// Logical bytes (key + value + 8 per entry) at which a memtable is sealed
    #[arg(long = "memtable", default_value = "4MiB", value_name = "BYTES", value_parser = bytes)]
    pub(crate) bytes: u64,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The policy, such as 'binomial(k=4)'
    #[arg(long, value_name = "SPEC")]
    pub(crate) policy: String,
    /// How many memtables are flushed
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) flushes: u64,
    /// What tables hold: `unit` (a size and nothing else), `keyed` (the keys of a workload) or
    /// `fluid` (expected sizes of a workload)
    #[arg(long, default_value = "unit", value_name = "CONTENT")]
    pub(crate) content: String,
    /// The workload of keyed and fluid content [default: a load of 1 kB records in random order]
    #[arg(long, value_name = "SPEC")]
    pub(crate) workload: Option<String>,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
    /// Print the tree after each flush
    #[arg(long, conflicts_with = "json")]
    pub(crate) trace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The formula, such as 'leveldb' or 'cola(ratio=3)' [default: list all]
    #[arg(long, value_name = "SPEC")]
    pub(crate) policy: Option<String>,
    /// How many keys there are
    #[arg(long, default_value = "100M", value_name = "N", value_parser = count)]
    pub(crate) keys: u64,
    /// Skew of requests over keys, 0 to 1.6; 0 for all keys equally often
    #[arg(long, default_value = "0", value_name = "S")]
    pub(crate) zipf: f64,
    /// Logical bytes of an entry
    #[arg(long, default_value = "1000B", value_name = "BYTES", value_parser = bytes)]
    pub(crate) item: u64,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
    /// Requests in all, for costs that grow with them [default: one per key]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) requests: Option<u64>,
    /// Bits of filter per key; 0 for none
    #[arg(long, default_value = "10", value_name = "BITS", value_parser = bits)]
    pub(crate) filter_bits: f64,
}

#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// The workload, such as 'churn(keys=100M, ops=1G)'
    #[arg(long, value_name = "SPEC")]
    pub(crate) workload: String,
    /// Most runs that a lookup must consider, mean over time
    #[arg(long, value_name = "RUNS", value_parser = cost_max)]
    pub(crate) read_cost_max: Option<f64>,
    /// Most bytes held per live byte, mean over time
    #[arg(long, value_name = "RATIO", value_parser = cost_max)]
    pub(crate) space_cost_max: Option<f64>,
    /// Memory for memtables, filters and fence pointers [default: what `--memtable` and 10 bits per
    /// entry take]
    #[arg(long, value_name = "BYTES", value_parser = bytes, conflicts_with = "bytes")]
    pub(crate) memory: Option<u64>,
    /// Choose what costs least in the worst case over workloads within this distance in nats, of
    /// the mix of operations and of the popularity of keys together
    #[arg(long, value_name = "NATS", value_parser = distance)]
    pub(crate) drift: Option<f64>,
    /// Run the best and the default on the real store, smaller, and say how far predictions are off
    #[arg(long)]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The policy, such as 'leveled(ratio=8)'
    #[arg(long, value_name = "SPEC")]
    pub(crate) policy: String,
    /// The workload, such as 'load(keys=1M)'
    #[arg(long, value_name = "SPEC")]
    pub(crate) workload: String,
    /// A new or empty directory; or one with a store, which is then gone on with, with memtables
    /// as it has them
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
    /// Let merges run beside the writes, for speed, instead of having each write wait until the
    /// tree has come to rest
    #[arg(long)]
    pub(crate) free: bool,
    /// Print how long operations and merges took, and how much they touched, as percentiles
    #[arg(long)]
    pub(crate) histograms: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// The figure, such as thonangi-fig2, or `list` [default: list]
    pub(crate) figure: Option<String>,
    /// Fewer points at a smaller scale: less than a minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// Draw the figure as well, into FIGURE.svg, or FIGURE-a.svg and so on, in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Keys and values are taken byte for byte. They are printed as they are \
where they are printable UTF-8; else all bytes that are not, and backslashes, are printed as \
\\xNN.")]
pub(crate) struct DbArgs {
    /// The directory of the store
    pub(crate) dir: PathBuf,
    /// The keyspace
    #[arg(long, global = true, default_value = lsmith::DEFAULT_KEYSPACE, value_name = "NAME")]
    pub(crate) keyspace: String,
    /// How tables are compressed of a keyspace that is made: `none`, `lz4`, `zstd`, or a list of
    /// these for its levels [default: none]
    #[arg(long, global = true, value_name = "CODECS")]
    pub(crate) compression: Option<String>,
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
    /// Give a key a value; makes the store and the keyspace where they are missing
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
    /// Put the lines `key<TAB>value` of a file, or of standard input for `-`; makes the store and
    /// the keyspace where they are missing
    Ingest { file: PathBuf },
    /// Load the lines `key<TAB>value` of a file, or of standard input for `-`, in ascending order
    /// of keys, straight into tables: all or nothing; makes the store and the keyspace where they
    /// are missing
    Load { file: PathBuf },
    /// Merge everything into one run
    Compact,
    /// Print what the keyspace looks like
    Stats,
    /// Print what every keyspace looks like, one a line
    Keyspaces,
    /// Print the tree as text
    Tree,
    /// Look for damage in every file, exit 1 if there is any; tell as well what opening the store
    /// leaves out after power loss, and which files are not the store's
    Verify,
    /// Print one file of the store as text, without opening the store. Damage is printed where it
    /// is found, and the exit code is 1
    Dump(DumpArgs),
    /// Save what can be read of a damaged store into a new one, and print what could not be saved.
    /// The damaged store is not changed
    Repair {
        /// The directory of the new store: an empty one, or one to be made
        to: PathBuf,
    },
    /// Print the merge policy and what it would do next, or set it
    Policy {
        /// The policy to set
        spec: Option<String>,
    },
    /// Print how tables are compressed, or have new ones compressed otherwise
    Compression {
        /// A codec, or a list of codecs for the levels, such as `none,lz4,zstd(level=9)`
        codecs: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// A table, log, copy of memory (`.spill`), manifest or CURRENT: its name in the directory of
    /// the store, or a path
    pub(crate) file: PathBuf,
    /// Print values too, not only how long they are
    #[arg(long)]
    pub(crate) values: bool,
    /// Print at most N items: the entries of a table or a copy of memory, the writes of a log, the
    /// records of a manifest. 0 prints an outline. The whole file is checked all the same
    #[arg(long, visible_alias = "entries", value_name = "N")]
    #[arg(value_parser = lsmith_spec::parse_count)]
    pub(crate) limit: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    /// The first key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) from: Option<OsString>,
    /// The key before which to stop
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) to: Option<OsString>,
    /// Only keys that begin so
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["from", "to"])]
    pub(crate) prefix: Option<OsString>,
    /// From the last key to the first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// At most so many entries
    #[arg(long, value_name = "N", value_parser = lsmith_spec::parse_count)]
    pub(crate) limit: Option<u64>,
}

/// A size that is not 0.
fn bytes(text: &str) -> Result<u64, String> {
    match lsmith_spec::parse_bytes(text) {
        Ok(0) => Err("expected at least 1B".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// Bits per key, 0 for none.
fn bits(text: &str) -> Result<f64, String> {
    let bits = text.parse().ok().filter(|bits| (0.0..=64.0).contains(bits));
    bits.ok_or_else(|| "expected a number from 0 to 64".to_owned())
}

/// A limit on a cost, which is never below 0.
fn cost_max(text: &str) -> Result<f64, String> {
    let cost = text.parse().ok().filter(|cost: &f64| cost.is_finite() && *cost > 0.0);
    cost.ok_or_else(|| "expected a number above 0".to_owned())
}

/// How far a workload may drift.
fn distance(text: &str) -> Result<f64, String> {
    let distance = text.parse().ok().filter(|distance| (0.0..=100.0).contains(distance));
    distance.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

/// A count that is not 0.
fn count(text: &str) -> Result<u64, String> {
    match lsmith_spec::parse_count(text) {
        Ok(0) => Err("expected at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}
