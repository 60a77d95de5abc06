//! Ahn et al., "Jungle: towards dynamically adjustable key-value store by combining LSM-tree and
//! copy-on-write B+-tree", HotStorage 2019: figure 6, bytes written and held by leveling, tiering
//! and Jungle, and lookups in what they leave.

mod claims;
mod nodes;
mod store;

use self::nodes::NodeMeter;
use self::store::Reading;
pub(super) use self::store::{READ_SECONDS, builder, write};
use super::{Effort, Figure, FigureInfo, Panel};
use anyhow::Context;
use lsmith_lab::plot::Axis;
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all};
use lsmith_policy::Registry;
use lsmith_sim::{KeyedSim, Parts};
use lsmith_spec::format_bytes;
use lsmith_tree::{EntryKind, Tree, logical_bytes};
use lsmith_workload::Rng;

/// The paper's store: records, bytes of keys and values, and updates per record.
const KEYS: u64 = 20_000_000;
pub(super) const KEY_BYTES: usize = 8;
pub(super) const VALUE_BYTES: usize = 1024;
pub(super) const ROUNDS: u64 = 20;
/// Bytes of a table, and of level 0 on storage.
const TABLE_BYTES: u64 = 64_000_000;
const LEVEL0_BYTES: u64 = 256_000_000;

/// The factor by which the full measurement is smaller than the paper's.
const SHRINK: u64 = 8;

/// The same for the real store, and the most in quick measurements: memtables still have records.
const SHRINK_STORE: u64 = 256;
pub(super) const SHRINK_STORE_MAX: u64 = 4096;

/// Updates per record in quick measurements of the store: at any scale it makes as many merges.
const ROUNDS_QUICK: u64 = 4;

/// The thresholds of the paper, and the one that others have simulated.
pub(super) const THRESHOLDS: [f64; 4] = [2.0, 3.0, 5.0, 10.0];

pub(super) const LEVELING: &str = "leveling";
pub(super) const TIERING: &str = "tiering";
pub(super) const JUNGLE: &str = "jungle";
/// Jungle, without the bytes of nodes.
const JUNGLE_ENTRIES: &str = "jungle, entries alone";

/// A policy on the paper's store, which is smaller by a factor.
#[derive(Clone, Debug)]
pub(super) struct Aging {
    pub(super) curve: &'static str,
    /// The threshold, for Jungle.
    pub(super) threshold: Option<f64>,
    pub(super) spec: String,
    pub(super) shrink: u64,
    /// Updates per record.
    pub(super) rounds: u64,
    /// The share of updates that go to the first tenth of the keys. The others go to any key.
    pub(super) hot: f64,
}

/// What came out, after all records were loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aged {
    /// Bytes of entries written to storage per byte of updates.
    pub(super) write: f64,
    /// The same of the nodes of trees.
    nodes: f64,
    /// Bytes held per live byte, at rest after each flush.
    pub(super) space_mean: f64,
    space_least: f64,
    space_most: f64,
}

impl Aging {
    pub(super) fn all(shrink: u64, rounds: u64) -> Vec<Aging> {
        let bytes = |bytes: u64| format_bytes(bytes / shrink);
        let leveled = format!(
            "leveldb(l0=1, level1={}, ratio=10, table={})",
            bytes(LEVEL0_BYTES),
            bytes(TABLE_BYTES)
        );
        let new =
            |curve, threshold, spec| Aging { curve, threshold, spec, shrink, rounds, hot: 0.0 };
        let mut all =
            vec![new(LEVELING, None, leveled), new(TIERING, None, "tiered(ratio=10)".to_owned())];
        let jungle = |c: f64| new(JUNGLE, Some(c), format!("jungle(c={c}, ratio=10)"));
        all.extend(THRESHOLDS.map(jungle));
        all
    }

    pub(super) fn keys(&self) -> u64 {
        KEYS / self.shrink
    }

    /// Returns the ranks of all keys in random order, and then the ranks that are updated.
    pub(super) fn ranks(&self) -> impl Iterator<Item = u32> {
        let keys = self.keys();
        let mut order: Vec<u32> = (0..keys as u32).collect();
        let mut rng = Rng::new(1, 0);
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let hot = self.hot;
        let updated = (0..keys * self.rounds).map(move |_| {
            // No number is drawn for updates that go to any key.
            let is_hot = hot > 0.0 && rng.unit() < hot;
            rng.below(if is_hot { keys / 10 } else { keys }) as u32
        });
        order.into_iter().chain(updated)
    }
}

/// Returns the bytes that flushes and merges wrote to storage.
fn written(parts: &Parts) -> u64 {
    parts.flush_written_bytes + parts.merge_written_bytes
}

/// Returns the bytes that files of `tree` hold.
fn held(tree: &Tree) -> u64 {
    let dead: u64 = tree.disk_runs().map(|run| run.dead_bytes()).sum();
    tree.disk_bytes() + dead
}

impl Job for Aging {
    type Output = Aged;

    fn work(&self) -> u64 {
        self.keys() * (self.rounds + 1)
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Aged> {
        let policy = Registry::builtin().build(&self.spec)?;
        let mut sim = KeyedSim::new(&policy, TABLE_BYTES / self.shrink);
        let bytes = logical_bytes(KEY_BYTES, VALUE_BYTES);
        let keys = self.keys();
        let mut loaded = Parts::default();
        let mut nodes = NodeMeter::default();
        let mut nodes_loaded = 0;
        let mut spaces: Vec<f64> = Vec::new();
        for (write, rank) in self.ranks().enumerate() {
            let write = write as u64;
            sim.write(EntryKind::Put, rank, bytes as u32);
            if !sim.is_full() {
                continue;
            }
            let before = sim.flushes();
            let live = (write + 1).min(keys) * bytes;
            sim.flush(live, &mut |event| nodes.observe(event))
                .with_context(|| self.spec.clone())?;
            ticker.tick((sim.flushes() - before) * TABLE_BYTES / self.shrink / bytes);
            if write < keys {
                loaded = sim.figures().parts;
                nodes_loaded = nodes.written();
            } else {
                spaces.push(held(sim.tree()) as f64 / live as f64);
            }
        }
        let parts = sim.figures().parts;
        let updated = (parts.flush_bytes - loaded.flush_bytes).max(1);
        Ok(Aged {
            write: (written(&parts) - written(&loaded)) as f64 / updated as f64,
            nodes: (nodes.written() - nodes_loaded) as f64 / updated as f64,
            space_mean: spaces.iter().sum::<f64>() / spaces.len().max(1) as f64,
            space_least: spaces.iter().copied().fold(f64::INFINITY, f64::min),
            space_most: spaces.iter().copied().fold(0.0, f64::max),
        })
    }
}

/// Measures the figure.
pub(super) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let smaller = if effort.is_quick { effort.shrink } else { 1 };
    let mut figure = Figure::empty(info.name, info.title, panels());
    let shrink = SHRINK * smaller;
    simulated(&mut figure, &Aging::all(shrink, ROUNDS), progress)?;
    let smaller = smaller.div_ceil(4);
    let shrink = (SHRINK_STORE * smaller).min(SHRINK_STORE_MAX);
    let rounds = if effort.is_quick { ROUNDS_QUICK } else { ROUNDS };
    let jobs: Vec<Reading> = Aging::all(shrink, rounds).into_iter().map(Reading).collect();
    stored(&mut figure, &jobs, progress)?;
    claims::judge(&mut figure);
    Ok(figure)
}

fn panels() -> Vec<Panel> {
    let panel = |name: &str, title: &str, y: &str, unit: &str| Panel {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::linear("compaction threshold c", ""),
        y: Axis::linear(y, unit),
    };
    const WRITTEN: &str = "bytes written per byte of updates";
    vec![
        panel("write", "writes", WRITTEN, ""),
        panel("space", "space", "bytes held per live byte, mean", ""),
        panel("space range", "space, least and most", "bytes held per live byte", ""),
        panel("store write", "writes of the store, with nodes", WRITTEN, ""),
        panel("store space", "space of the store", "bytes held per live byte, mean", ""),
        panel("lookups", "lookups of the aged store", "lookups per second", ""),
        panel("latency", "lookups, p50 and p99", "microseconds", ""),
        panel("device reads", "reads of the device", "reads per lookup", ""),
    ]
}

/// Returns where a job has points: leveling and tiering do not depend on the threshold.
fn places(job: &Aging) -> Vec<f64> {
    job.threshold.map_or(THRESHOLDS.to_vec(), |c| vec![c])
}

/// Adds what keyed simulations find.
fn simulated(figure: &mut Figure, jobs: &[Aging], progress: &SharedProgress) -> anyhow::Result<()> {
    let found = measure_all("keyed simulation", jobs, progress)?;
    for (job, aged) in jobs.iter().zip(&found) {
        for x in places(job) {
            figure.point("write", job.curve, x, aged.write + aged.nodes);
            if job.curve == JUNGLE {
                figure.point("write", JUNGLE_ENTRIES, x, aged.write);
            }
            figure.point("space", job.curve, x, aged.space_mean);
            for (edge, space) in [("least", aged.space_least), ("most", aged.space_most)] {
                figure.point("space range", &format!("{}, {edge}", job.curve), x, space);
            }
        }
    }
    let Some(job) = jobs.first() else { return Ok(()) };
    figure.note(format!(
        "`write` and `space`: a keyed simulation at 1/{} of the paper's scale: {} records of {} \
         bytes, loaded in random order, then updated {ROUNDS} times each on average, at random. \
         Memory, tables and level 0 are smaller by the same factor. The paper does not give the \
         size of memory, which decides what tiering writes; here it holds one table. Nodes of \
         trees are counted as the policy counts them, and filters are not.",
        job.shrink,
        job.keys(),
        logical_bytes(KEY_BYTES, VALUE_BYTES),
    ));
    Ok(())
}

/// Adds what the store does.
fn stored(figure: &mut Figure, jobs: &[Reading], progress: &SharedProgress) -> anyhow::Result<()> {
    let found = measure_all("stores", jobs, progress)?;
    for (Reading(job), read) in jobs.iter().zip(&found) {
        for x in places(job) {
            figure.point("store write", job.curve, x, read.write);
            figure.point("store space", job.curve, x, read.space);
            figure.point("lookups", job.curve, x, read.lookups);
            figure.point("device reads", job.curve, x, read.device_reads);
            for (part, seconds) in [("p50", read.p50), ("p99", read.p99), ("CPU", read.cpu)] {
                figure.point("latency", &format!("{}, {part}", job.curve), x, seconds * 1e6);
            }
        }
    }
    let Some(Reading(job)) = jobs.first() else { return Ok(()) };
    figure.note(format!(
        "The other panels: the store in lockstep at 1/{} of the paper's scale, {} records, each \
         updated {} times on average, files with nodes and filters. Then each record is looked up \
         once on average, at random, by one \
         reader, after as many lookups that fill the cache. Files are not mapped, and the cache \
         holds a tenth of the data. A lookup takes its CPU time, and {} microseconds for each \
         read of the device.",
        job.shrink,
        job.keys(),
        job.rounds,
        READ_SECONDS * 1e6,
    ));
    Ok(())
}
