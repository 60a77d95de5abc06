//! Reports of experiments, which serialize as JSON.
//!
//! The names of the fields are stable, because programs read the output of the commands.

use crate::debt::Debt;
use crate::meter::Measured;
use crate::scans::{ScanCosts, Scans};
use lsmith::{Histogram, StoreStats};
use lsmith_sim::{Figures, Parts};
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures that both store and simulations report. [`Figures`] defines each and names its
/// source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Bytes of runs that are new after a flush, per byte flushed.
    pub write_cost_eager: f64,
    /// Bytes of every flush and every merge output, per byte flushed.
    pub write_cost_system: f64,
    /// Runs on storage after a flush, averaged over flushes. They are counted once merges have come
    /// to rest, and in a free run when the next memtable is sealed.
    pub read_cost_mean: f64,
    /// The same with all runs of level 0 counted as one. It tells something of policies that build
    /// levels; for a stack in level 0 it is 1.
    pub read_cost_mean_l0_one: f64,
    /// Runs and data blocks that a range read must look at after a flush, averaged over flushes. It
    /// has as many entries as the workload's range reads on average, or
    /// [`SCAN_ITEMS`](lsmith_sim::SCAN_ITEMS).
    pub scan_cost_mean: ScanCosts,
    /// Runs and data blocks that the range reads of the workload looked at, on average. `None`
    /// without range reads, and where only writes are simulated.
    pub scan_cost_measured: Option<ScanCosts>,
    /// Data blocks that a lookup of the workload read from files, because the cache did not hold
    /// them, on average. `None` without lookups, where only writes are simulated, and on a store
    /// that maps files.
    pub read_cost_uncached: Option<f64>,
    /// The same for a range read.
    pub scan_cost_uncached: Option<f64>,
    /// The most runs on storage after any flush.
    pub runs_max: u64,
    /// Runs on storage that are larger than half of the policy's largest merge, and stay; averaged
    /// over flushes. `read_cost_mean` counts them too.
    pub settled_runs_mean: f64,
    /// Logical bytes of the largest output of a merge.
    pub merge_bytes_max: u64,
    /// The most flushes in a row without a merge.
    pub flushes_unmerged_max: u64,
    /// Logical bytes of tables, sealed memtables and the output under way per live byte, at the
    /// worst moment. `None` if the store was not empty at the start.
    pub space_cost_peak: Option<f64>,
    /// The same at rest after a flush, when no output is under way, averaged over flushes; at
    /// least 1.
    pub space_cost_mean: Option<f64>,
    /// Data blocks written below memory per 10^6 logical bytes of write requests.
    pub write_cost_blocks: f64,
    /// Data blocks written below memory.
    pub blocks_written: u64,
    /// Data blocks that merges reused.
    pub blocks_reused: u64,
    /// Memtables sealed.
    pub sealed: u64,
    /// Memtables that left memory completely. Under a policy that counts in blocks: memtables that
    /// the writes would fill if each were sealed when full.
    pub flushes: u64,
    /// Merges, without flushes to a run of their own.
    pub merges: u64,
    /// Moves: plans that relabel slices and write nothing.
    pub moves: u64,
}

impl Costs {
    pub(crate) fn of_simulation(figures: &Figures) -> Costs {
        Costs {
            write_cost_eager: figures.write_cost_eager,
            write_cost_system: figures.write_cost_system,
            read_cost_mean: figures.read_cost_mean,
            read_cost_mean_l0_one: figures.read_cost_mean_l0_one,
            scan_cost_mean: figures.scan_cost_mean.into(),
            scan_cost_measured: figures.scan_cost_measured.map(ScanCosts::from),
            read_cost_uncached: figures.read_cost_uncached,
            scan_cost_uncached: figures.scan_cost_uncached,
            runs_max: figures.runs_max,
            settled_runs_mean: figures.settled_runs_mean,
            merge_bytes_max: figures.merge_bytes_max,
            flushes_unmerged_max: figures.flushes_unmerged_max,
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

    /// Converts figures. `live_known` is true if the store was empty at the start, so that live
    /// bytes are known.
    pub(crate) fn of_store(
        measured: &Measured,
        lookups: &Lookups,
        scans: &Scans,
        live_known: bool,
    ) -> Costs {
        let ScanCosts { runs, blocks } = measured.figures.scan_cost_mean.into();
        Costs {
            scan_cost_mean: ScanCosts { runs, blocks: blocks.filter(|_| live_known) },
            scan_cost_measured: scans.cost(),
            read_cost_uncached: lookups.uncached(),
            scan_cost_uncached: scans.uncached(),
            space_cost_peak: live_known.then_some(measured.figures.space_cost_peak),
            space_cost_mean: live_known.then_some(measured.figures.space_cost_mean),
            ..Costs::of_simulation(&measured.figures)
        }
    }
}

/// The parts of the write costs, in logical bytes (key + value + 8 per entry).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LogicalBytes {
    /// Left memory. Write costs are divided by this.
    pub flush: u64,
    /// Written by flushes to runs of their own.
    pub flush_written: u64,
    /// Read by merges straight from memory; `write_cost_system` counts them as flushed first.
    pub merge_memory: u64,
    /// Read by merges from storage.
    pub merge_read: u64,
    /// Written by merges.
    pub merge_written: u64,
    /// Reused by merges without rewriting.
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

/// The bytes read from and written to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PhysicalBytes {
    /// Keys and values that the user wrote. `write_cost_user` is divided by this.
    pub user: u64,
    /// Records of the write-ahead log, including writes still in memory.
    pub log: u64,
    /// Tables written from a memtable alone.
    pub flush: u64,
    /// Tables, and parts of tables, read by merges.
    pub merge_read: u64,
    /// Tables written by merges, including merges that read a memtable.
    pub merge_written: u64,
    /// Tables, and parts of tables, reused by merges. Their files do not change.
    pub reused: u64,
    /// Files written for moves: always 0, because moves write only to the manifest.
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

    /// Returns all bytes written to files.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.log + self.flush + self.merge_written + self.metadata
    }
}

/// Bytes by part, logical and physical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StoreBytes {
    /// Logical bytes, as policies count them.
    pub logical: LogicalBytes,
    /// Physical bytes.
    pub physical: PhysicalBytes,
}

/// Blocks that a lookup looks at, wherever they are: in the map of a file, in the cache, or read
/// from a file. So the figure does not depend on the cache. `None` if there was no such lookup.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReadCost {
    /// For present keys.
    pub hit: Option<f64>,
    /// For absent keys.
    pub miss: Option<f64>,
}

/// Counts of lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lookups {
    /// The number of keys looked up.
    pub gets: u64,
    /// The number of present keys among them.
    pub found: u64,
    /// Blocks looked at for present keys.
    pub blocks_found: u64,
    /// Blocks looked at for absent keys.
    pub blocks_absent: u64,
    /// Blocks of all of these that were in the map of a file. Whether the system had to read them
    /// is unknown.
    pub blocks_mapped: u64,
    /// Blocks of all of these that were in the cache. The rest was read from files.
    pub blocks_cached: u64,
    /// The number of tables that filters excluded.
    pub filter_negatives: u64,
}

impl Lookups {
    pub(crate) fn of(stats: &StoreStats) -> Lookups {
        Lookups {
            gets: stats.gets,
            found: stats.gets_found,
            blocks_found: stats.get_blocks_found,
            blocks_absent: stats.get_blocks_absent,
            blocks_mapped: stats.get_blocks_mapped,
            blocks_cached: stats.get_blocks_cached,
            filter_negatives: stats.filter_negatives,
        }
    }

    /// Returns the blocks per lookup.
    #[must_use]
    pub fn cost(&self) -> ReadCost {
        let per = |blocks: u64, lookups: u64| (lookups > 0).then(|| blocks as f64 / lookups as f64);
        ReadCost {
            hit: per(self.blocks_found, self.found),
            miss: per(self.blocks_absent, self.gets - self.found),
        }
    }

    /// Returns the blocks read from files per lookup. `None` if there was no lookup, and if files
    /// were mapped.
    #[must_use]
    pub fn uncached(&self) -> Option<f64> {
        let blocks = self.blocks_found + self.blocks_absent - self.blocks_cached;
        let is_known = self.gets > 0 && self.blocks_mapped == 0;
        is_known.then(|| blocks as f64 / self.gets as f64)
    }
}

/// A phase of a workload. YCSB has `load` and `run`, all others only `run`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// `load` or `run`.
    pub name: &'static str,
    /// Operations.
    pub ops: u64,
    /// Wall-clock seconds. In free mode without the merges of later flushes.
    pub seconds: f64,
    /// CPU seconds of the process in that time, user and system, merges included.
    pub cpu_seconds: f64,
    /// CPU seconds in that time of the threads that merge, or in lockstep of their work.
    pub merge_cpu_seconds: f64,
    /// Operations per second.
    pub ops_per_second: f64,
}

/// The percentiles of a histogram of the store. Values are nanoseconds if its name ends in `nanos`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// The number of values.
    pub count: u64,
    /// The mean of the values.
    pub mean: f64,
    /// The median, within 1/32; the other percentiles have the same precision.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The greatest value, exact.
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

/// How far a free run had come at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// Operations so far.
    pub ops: u64,
    /// Seconds so far.
    pub seconds: f64,
    /// Seconds for which writers were held back so far.
    pub held_back_seconds: f64,
}

impl Moment {
    /// Returns the moments of a course.
    pub(crate) fn all(moments: &[lsmith_sim::Moment]) -> Vec<Moment> {
        let of = |moment: &lsmith_sim::Moment| Moment {
            ops: moment.ops,
            seconds: moment.seconds,
            held_back_seconds: moment.held_back_seconds,
        };
        moments.iter().map(of).collect()
    }
}

/// The settings of a run on the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// The full spec of the policy.
    pub policy: String,
    /// The full spec of the workload.
    pub workload: String,
    /// The shares of the keyspaces of a group in the items of the workload, separated by commas.
    /// `None` without a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// `lockstep` or `free`.
    pub mode: &'static str,
    /// Logical bytes of a full memtable.
    pub memtable_bytes: u64,
    /// The sizes at which memtables are sealed, if not when they are full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_sizes: Option<String>,
    /// The codecs of tables, level by level; `none` if they are not compressed.
    pub compression: String,
    /// Bytes of the block cache.
    pub cache_bytes: u64,
    /// Threads that merge in a free run. In lockstep the writer merges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// The durability of a write when it returns.
    pub persist: &'static str,
}

/// The versions of the software that made a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Versions {
    /// The version of lsmith.
    pub lsmith: &'static str,
    /// The target operating system.
    pub os: &'static str,
    /// The target processor architecture.
    pub arch: &'static str,
}

impl Versions {
    /// Returns the versions of this build.
    pub const THIS: Versions = Versions {
        lsmith: env!("CARGO_PKG_VERSION"),
        os: std::env::consts::OS,
        arch: std::env::consts::ARCH,
    };
}

/// The report of a run on the real store. The figures cover all phases and all completed flushes.
/// The last active memtable stays in memory: its writes are in the log, and therefore in
/// `write_cost_user`, but in no other write cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineReport {
    /// `lockstep` or `free`: see [`Mode`](crate::Mode).
    pub mode: &'static str,
    /// The figures that simulations can predict.
    #[serde(flatten)]
    pub costs: Costs,
    /// As `space_cost_peak`, with the physical bytes of tables: what their files take on the
    /// device, parts that no slice shows included until they are freed. Can be below 1, because
    /// files hold common prefixes of keys once.
    pub space_cost_physical_peak: Option<f64>,
    /// As `space_cost_mean`, with the physical bytes of tables.
    pub space_cost_physical_mean: Option<f64>,
    /// All bytes written to files per byte of keys and values.
    pub write_cost_user: Option<f64>,
    /// Blocks that a lookup looks at.
    pub read_cost_measured: ReadCost,
    /// Operations.
    pub ops: u64,
    /// Wall-clock seconds from the first operation until the tree is at rest.
    pub seconds: f64,
    /// CPU seconds in that time, user and system, including the making of keys and values: of the
    /// whole process, or in lockstep of the thread that does all work.
    pub cpu_seconds: f64,
    /// Operations per second.
    pub ops_per_second: f64,
    /// The seconds for which back-pressure delayed writers.
    pub held_back_seconds: f64,
    /// What merges owed in a free run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debt: Option<Debt>,
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// How far a free run had come at moments that are evenly spread over its operations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<Moment>,
    /// The store's histograms by name, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histograms: Option<BTreeMap<&'static str, Percentiles>>,
    /// Bytes by part, logical and physical.
    pub bytes: StoreBytes,
    /// Counts of lookups.
    pub lookups: Lookups,
    /// Counts of range reads.
    pub range_reads: Scans,
    /// The seed of the operations and values.
    pub seed: u64,
    /// Versions.
    pub versions: Versions,
    /// Settings.
    pub settings: Settings,
}

/// The bytes of files that a simulation predicts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PhysicalCosts {
    /// Bytes of the log, up to the last sealed memtable, and of memory that is copied so that old
    /// logs can go.
    pub log: f64,
    /// Bytes of tables written from a memtable alone.
    pub flush: f64,
    /// Bytes of tables that merges wrote.
    pub merge_written: f64,
    /// Bytes of the manifest.
    pub metadata: f64,
    /// Bytes of log, tables and manifest per byte of keys and values.
    pub write_cost_user: f64,
    /// Bytes of tables at rest per logical byte of live entries, averaged over flushes.
    pub space_cost_physical_mean: f64,
}

/// The report of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SimulationReport {
    /// The figures.
    #[serde(flatten)]
    pub costs: Costs,
    /// Bytes by part, logical and physical.
    pub bytes: LogicalBytes,
    /// How far the write costs may be off, as a share of them
    /// ([`FluidWorkload::uncertainty`](lsmith_sim::FluidWorkload::uncertainty)). `None` unless the
    /// content is fluid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncertainty: Option<f64>,
    /// The bytes of files. `None` for unit content, and if [`FileSizes`](crate::FileSizes) are
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical: Option<PhysicalCosts>,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// The least `write_cost_system` of any policy that merges whole runs, with the same flushes and as
/// many runs on storage. A policy may be below it if it moves tables, if it merges parts of runs,
/// or if flushes drop deletes because nothing lies below them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Optimum {
    /// The most runs on storage after a flush.
    pub runs_max: u64,
    /// The least cost with at most `runs_max` runs.
    pub write_cost_system: f64,
    /// True if a schedule of merges of whole runs has this cost; otherwise the cost is a lower
    /// bound.
    pub is_exact: bool,
    /// (the policy's cost - the least) / the least; 0 if nothing was flushed.
    pub above: f64,
    /// The least with the same mean number of runs. `None` if it is unknown: if flushes of
    /// different sizes are too many, if it is not known which keys repeat, or if deletes leave so
    /// little that the mean is less than one run.
    pub at_mean_runs: Option<AtMean>,
    /// The least of merges of parts of runs with the same mean number of runs, if the caller
    /// [asked for it](crate::Least::with_key_ranges).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_parts: Option<OfParts>,
    /// True if it is known which keys each flush has. Otherwise no key is taken to be written
    /// twice, and a policy may be below the cost.
    pub knows_keys: bool,
}

/// The least `write_cost_system` if each of a few key ranges merges by itself. Ranges have equally
/// many keys. Runs are those with an entry in a range, mean over ranges and flushes. A policy that
/// cuts keys elsewhere may be below it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OfParts {
    /// The number of key ranges.
    pub key_ranges: usize,
    /// No schedule has a smaller cost.
    pub write_cost_system: f64,
    /// The cost of a schedule that was found.
    pub found: f64,
    /// (the policy's cost - `write_cost_system`) / `write_cost_system`.
    pub above: f64,
}

/// The least `write_cost_system` of any policy that merges whole runs, at a mean number of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtMean {
    /// The least cost.
    pub write_cost_system: f64,
    /// (the policy's cost - the least) / the least; 0 if nothing was flushed.
    pub above: f64,
}

impl Optimum {
    /// Returns the same optimum, compared with another cost.
    pub(crate) fn against(self, write_cost_system: f64) -> Optimum {
        let above = |least: f64| if least == 0.0 { 0.0 } else { write_cost_system / least - 1.0 };
        let at_mean = |it: AtMean| AtMean { above: above(it.write_cost_system), ..it };
        let at_mean_runs = self.at_mean_runs.map(at_mean);
        let of_parts = |it: OfParts| OfParts { above: above(it.write_cost_system), ..it };
        let of_parts = self.of_parts.map(of_parts);
        Optimum { above: above(self.write_cost_system), at_mean_runs, of_parts, ..self }
    }
}
