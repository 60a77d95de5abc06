//! The commands that compute costs and give advice.

use super::names::{POLICIES, WORKLOADS};
use super::parse::{bits, bytes, cost_max, count, distance, threads, weights};
use super::shared::{MachineArgs, Memtable, TableArgs};
use clap::{Args, ValueEnum};
use lsmith_lab::tune::Aim;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The formula, such as 'cola(ratio=3)'
    ///
    /// Without it, all formulas are listed.
    #[arg(long, value_name = "SPEC")]
    pub(crate) policy: Option<String>,
    /// Different keys among N requests
    ///
    /// Computes how many different keys N requests write, instead of a formula.
    #[arg(help_heading = "Instead of a formula")]
    #[arg(long, value_name = "N,...", value_parser = count, value_delimiter = ',',
          conflicts_with = "policy")]
    pub(crate) unique: Vec<u64>,
    /// Different keys in runs of N keys
    ///
    /// Computes how many different keys are in a merge of runs with N keys each, instead of a
    /// formula.
    #[arg(help_heading = "Instead of a formula")]
    #[arg(long, value_name = "N,...", value_parser = count, value_delimiter = ',',
          conflicts_with = "policy")]
    pub(crate) merge: Vec<u64>,
    /// Requests from sweep to sweep
    ///
    /// Computes the number of requests from one sweep of a level to the next, instead of a formula.
    /// The level has N keys, and is merged down piece by piece in key order.
    #[arg(help_heading = "Instead of a formula")]
    #[arg(long, value_name = "N,...", value_parser = count, value_delimiter = ',',
          conflicts_with = "policy")]
    pub(crate) interval: Vec<u64>,
    /// The number of distinct keys
    #[arg(long, default_value = "100M", value_name = "N", value_parser = count)]
    pub(crate) keys: u64,
    /// The Zipf skew of requests
    ///
    /// 0 to 1.6; with 0 all keys are equally likely.
    #[arg(long, default_value = "0", value_name = "S")]
    pub(crate) zipf: f64,
    /// Logical bytes of an entry
    ///
    /// An entry has the bytes of key and value, and 8 more.
    #[arg(long, default_value = "1000B", value_name = "BYTES", value_parser = bytes)]
    pub(crate) item: u64,
    #[command(flatten)]
    pub(crate) memtable: Memtable,
    /// The total number of requests
    ///
    /// Some costs grow with it. Without it: one per key.
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) requests: Option<u64>,
    /// Filter bits per key
    ///
    /// 0 to 64; 0 means no filter.
    #[arg(long, default_value = "10", value_name = "BITS", value_parser = bits)]
    pub(crate) filter_bits: f64,
    /// Entries of a range read
    ///
    /// The number of entries that a range read returns.
    #[arg(long, default_value = "50", value_name = "N", value_parser = count)]
    pub(crate) scan_items: u64,
    /// `hashed` or `sequential`
    ///
    /// The order of keys. In a sequential order each key is written once.
    #[arg(long, hide_possible_values = true, default_value = "hashed", value_name = "ORDER")]
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
    /// The workload
    ///
    /// Such as 'churn(keys=100M, ops=1G)'. `lsmith workloads` lists all.
    #[arg(long, value_name = "SPEC")]
    #[arg(value_parser = WORKLOADS, hide_possible_values = true)]
    pub(crate) workload: String,
    /// The most runs per lookup
    ///
    /// The greatest allowed number of runs that a lookup considers, averaged over time.
    #[arg(help_heading = "Limits")]
    #[arg(long, value_name = "RUNS", value_parser = cost_max)]
    pub(crate) read_cost_max: Option<f64>,
    /// The most blocks per range read
    ///
    /// The greatest allowed number of data blocks that a range read looks at, averaged over time.
    #[arg(help_heading = "Limits")]
    #[arg(long, value_name = "BLOCKS", value_parser = cost_max)]
    pub(crate) scan_cost_max: Option<f64>,
    /// The most bytes per live byte
    ///
    /// The greatest allowed number of bytes stored per live byte, averaged over time.
    #[arg(help_heading = "Limits")]
    #[arg(long, value_name = "RATIO", value_parser = cost_max)]
    pub(crate) space_cost_max: Option<f64>,
    /// The most bytes that a merge writes
    ///
    /// Logical bytes of the largest output of a merge. Policies that take a largest merge are tried
    /// with this one.
    #[arg(help_heading = "Limits")]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) longest_merge: Option<u64>,
    /// Bytes of memory
    ///
    /// It is for memtables, filters and fence pointers. Without it: enough for `--memtable` and 10
    /// filter bits per entry.
    #[arg(help_heading = "Limits")]
    #[arg(long, value_name = "BYTES", value_parser = bytes, conflicts_with = "bytes")]
    pub(crate) memory: Option<u64>,
    /// How far workloads may drift
    ///
    /// Choose the policy with the least worst-case cost over workloads within this distance, in
    /// nats, 0 to 100. The distance covers both the mix of operations and the popularity of keys.
    #[arg(help_heading = "What is best")]
    #[arg(long, value_name = "NATS", value_parser = distance)]
    pub(crate) drift: Option<f64>,
    /// What the choice is to be good at
    ///
    /// 'balanced', 'fewest-bytes', 'lowest-latency', 'least-space', or with `--machine` 'fastest':
    /// the most operations per second in simulated time. Or what one percent less is
    /// worth, such as 'write=2,read=1,space=0.5': of bytes written, of the work of a lookup, of
    /// bytes held. Without `scan=`, lookups and range reads share the weight of reads as they are
    /// in the workload. Without this option: 'fewest-bytes' with a limit, 'balanced' without one.
    #[arg(help_heading = "What is best")]
    #[arg(long, value_name = "WEIGHTS", value_parser = weights)]
    pub(crate) weights: Option<Aim>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Threads that merge in simulated time
    ///
    /// 1 to 64. Writers write from one thread. Without it: 2.
    #[arg(long, value_name = "N", value_parser = threads, requires = "machine")]
    pub(crate) threads: Option<usize>,
    /// A policy to hold against the best
    ///
    /// Such as 'leveled(ratio=10)'.
    #[arg(long, value_name = "SPEC")]
    #[arg(value_parser = POLICIES, hide_possible_values = true)]
    pub(crate) compare_to: Option<String>,
    /// A policy to try; can be repeated
    ///
    /// Such as 'leveled(l0=1)'. Parameters that it leaves out are varied over the values that the
    /// policy takes, and the answer says how it fared. Policies that a program has registered are
    /// always tried.
    #[arg(long, value_name = "SPEC")]
    #[arg(value_parser = POLICIES, hide_possible_values = true)]
    pub(crate) policy: Vec<String>,
    /// The user's bytes per second
    ///
    /// It gives bytes a day and the years of an SSD.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) rate: Option<u64>,
    /// Bytes an SSD can take
    ///
    /// The bytes that may be written to the SSD in its life.
    #[arg(long, value_name = "BYTES", default_value = "600000GB", value_parser = bytes)]
    pub(crate) endurance: u64,
    /// Simulate every policy
    ///
    /// Simulates all writes, and says how far the best choice is from the best of all. That takes
    /// minutes for a million writes.
    #[arg(help_heading = "Checks")]
    #[arg(long)]
    pub(crate) check: bool,
    /// Run the choice on the real store
    ///
    /// Runs the best, the default and the named policy on the real store at a smaller scale, and
    /// prints the prediction errors.
    #[arg(help_heading = "Checks")]
    #[arg(long)]
    pub(crate) verify: bool,
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
    pub(crate) memtable: Memtable,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}
