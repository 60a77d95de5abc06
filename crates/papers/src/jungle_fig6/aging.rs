//! A store that ages: all records are loaded, and then updated.

use super::nodes::NodeMeter;
use crate::shuffle::shuffled;
use anyhow::Context;
use lsmith_lab::Ticker;
use lsmith_policy::Registry;
use lsmith_sim::{KeyedSim, Parts};
use lsmith_spec::format_bytes;
use lsmith_tree::{EntryKind, Tree, logical_bytes};
use lsmith_workload::Rng;

/// The paper's store: records, bytes of keys and values, and updates per record.
const KEYS: u64 = 20_000_000;
pub(crate) const KEY_BYTES: usize = 8;
pub(crate) const VALUE_BYTES: usize = 1024;
pub(crate) const ROUNDS: u64 = 20;
/// Bytes of a table, and of level 0 on storage.
pub(super) const TABLE_BYTES: u64 = 64_000_000;
const LEVEL0_BYTES: u64 = 256_000_000;

/// The thresholds of the paper, and the one that others have simulated.
pub(crate) const THRESHOLDS: [f64; 4] = [2.0, 3.0, 5.0, 10.0];

pub(crate) const LEVELING: &str = "leveling";
pub(crate) const TIERING: &str = "tiering";
pub(crate) const JUNGLE: &str = "jungle";
/// Jungle, without the bytes of nodes.
pub(super) const JUNGLE_ENTRIES: &str = "jungle, entries alone";

/// A policy on the paper's store, which is smaller by a factor.
#[derive(Clone, Debug)]
pub(crate) struct Aging {
    pub(crate) curve: &'static str,
    /// The threshold, for Jungle.
    pub(crate) threshold: Option<f64>,
    pub(crate) spec: String,
    pub(crate) shrink: u64,
    /// Updates per record.
    pub(crate) rounds: u64,
    /// The share of updates that go to the first tenth of the keys. The others go to any key.
    pub(crate) hot: f64,
}

/// What came out, after all records were loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aged {
    /// Bytes of entries written to storage per byte of updates.
    pub(crate) write: f64,
    /// The same of the nodes of append tables.
    pub(super) nodes: f64,
    /// Bytes held per live byte, at rest after each flush.
    pub(crate) space_mean: f64,
    pub(super) space_least: f64,
    pub(super) space_most: f64,
}

impl Aging {
    pub(crate) fn all(shrink: u64, rounds: u64) -> Vec<Aging> {
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

    pub(crate) fn keys(&self) -> u64 {
        KEYS / self.shrink
    }

    /// Returns the ranks of all keys in random order, and then the ranks that are updated.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = u32> {
        let keys = self.keys();
        let mut rng = Rng::new(1, 0);
        let order = shuffled(keys, &mut rng);
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

impl Aging {
    pub(crate) fn work(&self) -> u64 {
        self.keys() * (self.rounds + 1)
    }

    /// Simulates the store key by key.
    pub(crate) fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Aged> {
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
