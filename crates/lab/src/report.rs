//! What experiments report, ready to be printed as JSON.
//!
//! The names of the fields are a contract with whoever reads the output of the commands.

use crate::meter::Measured;
use lsmith::{Histogram, StoreStats};
use lsmith_model::optimum::least_of_sizes;
use lsmith_sim::{Figures, Parts};
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures that store and simulations can both give. See [`Figures`] for what each means and
/// where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Bytes of runs that exist after a flush and did not before, over bytes flushed.
    pub write_cost_eager: f64,
    /// Every flush written once, plus every merge output, over bytes flushed.
    pub write_cost_system: f64,
    /// Runs on storage after a flush, mean over flushes.
    pub read_cost_mean: f64,
    /// The same with all runs of level 0 counted as one.
    pub read_cost_mean_l0_one: f64,
    /// Most runs on storage after any flush.
    pub runs_max: u64,
    /// Tables and outputs under way over live bytes, at the worst moment. Of a store the tables
    /// count with their files' bytes, of a simulation with their logical bytes; live bytes are
    /// logical. `None` where nobody knows what was live before.
    pub space_cost_peak: Option<f64>,
    /// The worst moment of each flush, averaged over flushes.
    pub space_cost_mean: Option<f64>,
    /// Data blocks written below memory per 10^6 logical bytes of writing requests.
    pub write_cost_blocks: f64,
    /// Data blocks written below memory.
    pub blocks_written: u64,
    /// Data blocks that merges kept as they were.
    pub blocks_reused: u64,
    /// Memtables sealed.
    pub sealed: u64,
    /// Memtables that left memory as a whole.
    pub flushes: u64,
    /// Merges, flushes to a run of their own not included.
    pub merges: u64,
    /// Moves: merges that relabel and write nothing.
    pub moves: u64,
}

impl Costs {
    pub(crate) fn of_simulation(figures: &Figures) -> Costs {
        Costs {
            write_cost_eager: figures.write_cost_eager,
            write_cost_system: figures.write_cost_system,
            read_cost_mean: figures.read_cost_mean,
            read_cost_mean_l0_one: figures.read_cost_mean_l0_one,
            runs_max: figures.runs_max,
            space_cost_peak: Some(figures.space_cost_peak),
            space_cost_mean: Some(figures.space_cost_mean),
            write_cost_blocks: figures.write_cost_blocks,
            blocks_written: figures.parts.blocks_written,
            blocks_reused: figures.parts.blocks_reused,
            sealed: figures.parts.sealed,
            flushes: figures.parts.flushes,
            merges: figures.parts.merges,
            moves: figures.parts.moves,
        }
    }

    /// `live_known`: whether the store was empty at the start, so that live bytes are known.
    pub(crate) fn of_store(measured: &Measured, live_known: bool) -> Costs {
        Costs {
            space_cost_peak: live_known.then_some(measured.space_cost_peak),
            space_cost_mean: live_known.then_some(measured.space_cost_mean),
            ..Costs::of_simulation(&measured.figures)
        }
    }
}

/// What the write costs are made of, in logical bytes: key, value and 8 per entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LogicalBytes {
    /// Memtables that left memory: what write costs are divided by.
    pub flush: u64,
    /// Written by flushes to runs of their own.
    pub flush_written: u64,
    /// Taken by merges straight from memory; counts as flushed first in `write_cost_system`.
    pub merge_memory: u64,
    /// Read by merges from storage.
    pub merge_read: u64,
    /// Written by merges.
    pub merge_written: u64,
    /// Taken over by merges without rewriting.
    pub reused: u64,
    /// Moved.
    pub moved: u64,
}

impl LogicalBytes {
    pub(crate) fn of(parts: &Parts) -> LogicalBytes {
        LogicalBytes {
            flush: parts.flush_bytes,
            flush_written: parts.flush_written_bytes,
            merge_memory: parts.merge_memory_bytes,
            merge_read: parts.merge_read_bytes,
            merge_written: parts.merge_written_bytes,
            reused: parts.reused_bytes,
            moved: parts.moved_bytes,
        }
    }
}

/// What was really read from and written to files, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PhysicalBytes {
    /// Keys and values that the user wrote: what `write_cost_user` is divided by.
    pub user: u64,
    /// Records of the write-ahead log, those of writes still in memory included.
    pub log: u64,
    /// Tables written from a memtable alone.
    pub flush: u64,
    /// Tables, and parts of tables, read by merges.
    pub merge_read: u64,
    /// Tables written by merges, those that took in a memtable included.
    pub merge_written: u64,
    /// Tables, and parts of tables, taken over by merges: files stay as they are.
    pub reused: u64,
    /// Files written for moves: none, only the manifest notes them.
    pub moved: u64,
    /// Records of the manifest.
    pub metadata: u64,
}

impl PhysicalBytes {
    pub(crate) fn of(stats: &StoreStats) -> PhysicalBytes {
        PhysicalBytes {
            user: stats.user_bytes,
            log: stats.wal_bytes,
            flush: stats.flush_bytes,
            merge_read: stats.merge_bytes_read,
            merge_written: stats.merge_bytes_written,
            reused: 0,
            moved: 0,
            metadata: stats.manifest_bytes,
        }
    }

    /// All bytes written to files.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.log + self.flush + self.merge_written + self.metadata
    }
}

/// Bytes by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StoreBytes {
    /// As policies see them.
    pub logical: LogicalBytes,
    /// As files see them.
    pub physical: PhysicalBytes,
}

/// Blocks read from files per lookup; `None` where there was no such lookup. Blocks found in the
/// cache are not among them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReadCost {
    /// Of keys that were present.
    pub hit: Option<f64>,
    /// Of keys that were absent.
    pub miss: Option<f64>,
}

/// Lookups, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lookups {
    /// Keys looked up.
    pub gets: u64,
    /// Found present.
    pub found: u64,
    /// Blocks read from files for present keys.
    pub blocks_read_found: u64,
    /// Blocks read from files for absent keys.
    pub blocks_read_absent: u64,
    /// Blocks found in the cache.
    pub blocks_cached: u64,
    /// Tables that a filter ruled out.
    pub filter_negatives: u64,
}

impl Lookups {
    pub(crate) fn of(stats: &StoreStats) -> Lookups {
        Lookups {
            gets: stats.gets,
            found: stats.gets_found,
            blocks_read_found: stats.get_blocks_read_found,
            blocks_read_absent: stats.get_blocks_read_absent,
            blocks_cached: stats.get_blocks_cached,
            filter_negatives: stats.filter_negatives,
        }
    }

    /// Blocks read per lookup.
    #[must_use]
    pub fn cost(&self) -> ReadCost {
        let per = |blocks: u64, lookups: u64| (lookups > 0).then(|| blocks as f64 / lookups as f64);
        ReadCost {
            hit: per(self.blocks_read_found, self.found),
            miss: per(self.blocks_read_absent, self.gets - self.found),
        }
    }
}

/// A phase of a workload: `load` and `run` of YCSB, `run` alone of all others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// `load` or `run`.
    pub name: &'static str,
    /// Operations.
    pub ops: u64,
    /// Seconds by the clock on the wall, merges of later flushes not included in free mode.
    pub seconds: f64,
    /// Operations per second.
    pub ops_per_second: f64,
}

/// What a histogram of the store comes to: nanoseconds where its name ends in `nanos`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// How many values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The median, within one part in 32, as the others.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 999th of thousand.
    pub p999: u64,
    /// The greatest, exactly.
    pub max: u64,
}

impl Percentiles {
    pub(crate) fn of(histogram: &Histogram) -> Percentiles {
        Percentiles {
            count: histogram.count(),
            mean: histogram.mean(),
            p50: histogram.quantile(0.5),
            p99: histogram.quantile(0.99),
            p999: histogram.quantile(0.999),
            max: histogram.max(),
        }
    }
}

/// What decides a run on the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// The policy, spelled out.
    pub policy: String,
    /// The workload, spelled out.
    pub workload: String,
    /// `lockstep` or `free`.
    pub mode: &'static str,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// Bytes of the block cache.
    pub cache_bytes: u64,
    /// How far a write has got when it returns.
    pub persist: &'static str,
}

/// Versions of what made a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Versions {
    /// Of lsmith.
    pub lsmith: &'static str,
    /// The operating system that it was built for.
    pub os: &'static str,
    /// The processor that it was built for.
    pub arch: &'static str,
}

impl Versions {
    /// Those of this build.
    pub const THIS: Versions = Versions {
        lsmith: env!("CARGO_PKG_VERSION"),
        os: std::env::consts::OS,
        arch: std::env::consts::ARCH,
    };
}

/// What a run on the real store came to. All figures cover all phases, and all flushes that were
/// completed: the memtable that is active at the end stays in memory. Its writes are in the log,
/// and so in `write_cost_user`, but in no other write cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineReport {
    /// `lockstep` or `free`: see [`Mode`](crate::Mode).
    pub mode: &'static str,
    /// What simulations can predict.
    #[serde(flatten)]
    pub costs: Costs,
    /// All bytes written to files over user bytes.
    pub write_cost_user: Option<f64>,
    /// Blocks read from files per lookup.
    pub read_cost_measured: ReadCost,
    /// Operations.
    pub ops: u64,
    /// Seconds by the clock on the wall, from the first operation until merges have come to rest.
    pub seconds: f64,
    /// CPU seconds of the whole process, user and system, in that time: making keys and values is
    /// in them.
    pub cpu_seconds: f64,
    /// Operations per second.
    pub ops_per_second: f64,
    /// Seconds for which writers were held back.
    pub held_back_seconds: f64,
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// What the store has counted of each operation, by name, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histograms: Option<BTreeMap<&'static str, Percentiles>>,
    /// Bytes by part.
    pub bytes: StoreBytes,
    /// Lookups, counted.
    pub lookups: Lookups,
    /// The seed of the operations and values.
    pub seed: u64,
    /// Versions.
    pub versions: Versions,
    /// Settings.
    pub settings: Settings,
}

/// What a simulation of a workload came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SimulationReport {
    /// The figures.
    #[serde(flatten)]
    pub costs: Costs,
    /// Bytes by part.
    pub bytes: LogicalBytes,
    /// Seconds by the clock on the wall.
    pub seconds: f64,
}

/// The least `write_cost_system` that any policy could have with as many flushes of the same sizes
/// and at most as many runs on storage, if no key were written twice. Where keys are, merges write
/// less than they take and a policy may stay below.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Optimum {
    /// Most runs on storage after a flush.
    pub runs_max: u64,
    /// The least cost.
    pub write_cost_system: f64,
    /// Whether a schedule of merges exists that costs just this; else it is a bound from below.
    pub is_exact: bool,
    /// (the policy's cost - the least) / the least.
    pub above: f64,
}

impl Optimum {
    /// For flushes of `flush_bytes` each, in order, under a policy that had the costs and most runs
    /// given.
    pub(crate) fn of(write_cost_system: f64, runs_max: u64, flush_bytes: &[u64]) -> Optimum {
        let least = least_of_sizes(flush_bytes, runs_max);
        let flushed: u64 = flush_bytes.iter().sum();
        let least_cost = if flushed == 0 { 0.0 } else { 1.0 + least.merged / flushed as f64 };
        let above = if flushed == 0 { 0.0 } else { write_cost_system / least_cost - 1.0 };
        let is_exact = least.is_exact;
        Optimum { runs_max, write_cost_system: least_cost, is_exact, above }
    }

    /// The same bound against another cost.
    pub(crate) fn against(self, write_cost_system: f64) -> Optimum {
        Optimum { above: write_cost_system / self.write_cost_system - 1.0, ..self }
    }
}
