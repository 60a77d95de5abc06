//! Ahn et al., "Jungle", HotStorage 2019: what nodes add to the table of costs, `B_w` and `B_s`,
//! by formula and in the store.

use super::shuffle::shuffled;
use super::store::{builder, check_plans};
use super::unsynced::Unsynced;
use crate::form::*;
use anyhow::Context;
use lsmith::{DEFAULT_KEYSPACE, Keyspace, PersistMode, inspect};
use lsmith_lab::Scratch;
use lsmith_model::formulas::{AppendLevel, AppendNodes, IndexShare};
use lsmith_tree::logical_bytes;
use lsmith_workload::{Rng, fill_value};
use std::path::Path;

const KEY_BYTES: usize = 8;

/// Bytes of a key that the one in front of it does not have: one, or two, as keys are numbers.
const OWN_BYTES: f64 = 1.5;

/// Bytes of the head of an entry in a block.
const HEAD_BYTES: f64 = 3.0;

/// Bytes of values, with the keys of a store and the bytes of a table. Tables have a hundred
/// entries or more, and the last level has several times the tables of the one above.
const VALUES: [(usize, u64, u64); 3] =
    [(100, 150_000, 100_000), (1000, 60_000, 400_000), (10_000, 12_000, 1_000_000)];

/// Updates per key, in full and in quick measurements.
const ROUNDS: [u64; 2] = [8, 4];

const THRESHOLDS: [f64; 3] = [2.0, 3.0, 10.0];

/// How far a share may be off what the formula says.
const OFF_MAX: f64 = 0.1;

/// The panels, and what they show.
const PANELS: [(&str, &str); 2] = [
    ("written", "bytes of nodes per byte of entries written"),
    ("held", "bytes of nodes per byte of entries held"),
];

/// A store of append tables.
struct Planted {
    value_bytes: usize,
    keys: u64,
    table: u64,
    rounds: u64,
    threshold: f64,
}

/// What files held at several moments, added up.
#[derive(Debug, Default)]
struct Held {
    samples: f64,
    /// Bytes of nodes, and of keys and values, dead ones included.
    nodes: f64,
    entries: f64,
    /// Live logical bytes, and append tables, of each level.
    levels: Vec<[f64; 2]>,
    /// Keys and values of the last level that are dead.
    dead_of_last: f64,
}

/// What nodes add, as the formula and the store have it.
struct Found {
    predicted: IndexShare,
    measured: IndexShare,
}

impl Planted {
    fn all(shrink: u64, rounds: u64) -> Vec<Planted> {
        let one = |(value_bytes, keys, table): (usize, u64, u64), threshold| Planted {
            value_bytes,
            keys: keys / shrink,
            table: table / shrink,
            rounds,
            threshold,
        };
        VALUES.iter().flat_map(|value| THRESHOLDS.map(|c| one(*value, c))).collect()
    }

    /// Returns the bytes of an entry.
    fn entry(&self) -> f64 {
        (KEY_BYTES + self.value_bytes) as f64
    }

    /// Returns all keys in random order, and then the keys that are updated.
    fn ranks(&self) -> impl Iterator<Item = u64> {
        let keys = self.keys;
        let mut rng = Rng::new(3, 0);
        let order = shuffled(keys, &mut rng).into_iter().map(u64::from);
        order.chain((0..keys * self.rounds).map(move |_| rng.below(keys)))
    }

    /// Returns the formula for a store that held `held`.
    fn predicted(&self, held: &Held) -> IndexShare {
        let samples = held.samples.max(1.0);
        let entries = |logical: f64| self.entries_bytes(logical) / self.entry();
        let mean = |level: &[f64; 2]| AppendLevel {
            live: entries(level[0]) / samples,
            tables: level[1] / samples,
        };
        let levels: Vec<AppendLevel> = held.levels.iter().map(mean).collect();
        let live = held.levels.last().map_or(1.0, |level| level[0]);
        let dead = held.dead_of_last / self.entries_bytes(live).max(1.0);
        let file_bytes = self.table as f64 * (1.0 + dead);
        let nodes = AppendNodes::of_keys(KEY_BYTES as f64, OWN_BYTES, self.entry(), file_bytes);
        let table = self.table as f64 / logical_bytes(KEY_BYTES, self.value_bytes) as f64;
        nodes.share(table, &levels, self.threshold, dead)
    }

    /// Adds what the files of `keyspace` hold.
    fn add_held(
        &self,
        held: &mut Held,
        dir: &Path,
        keyspace: &Keyspace,
        env: &Unsynced,
    ) -> anyhow::Result<()> {
        let tree = keyspace.tree();
        held.levels.resize(held.levels.len().max(tree.levels().len()), [0.0; 2]);
        held.samples += 1.0;
        for (at, level) in tree.levels().iter().enumerate() {
            for slice in level.runs().iter().flat_map(|run| run.slices().iter()) {
                let path = dir.join(format!("{:06}.table", slice.table().id.0));
                let file = inspect::AppendFile::open(env, &path)?;
                let roots = file.roots().iter().filter(|root| root.end <= slice.table().root);
                let nodes: u64 =
                    roots.map(|root| root.footer.index.end - root.footer.index.start).sum();
                held.nodes += nodes as f64;
                let live = slice.size().bytes as f64;
                // What is not nodes is blocks, in which an entry has a head.
                let blocks = slice.table().root.saturating_sub(nodes) as f64;
                let entries = blocks * self.entry() / (self.entry() + HEAD_BYTES);
                held.entries += entries;
                held.levels[at] = [held.levels[at][0] + live, held.levels[at][1] + 1.0];
                if at + 1 == tree.levels().len() {
                    held.dead_of_last += (entries - self.entries_bytes(live)).max(0.0);
                }
            }
        }
        Ok(())
    }

    /// Returns the keys and values in so many logical bytes.
    fn entries_bytes(&self, logical: f64) -> f64 {
        logical * self.entry() / logical_bytes(KEY_BYTES, self.value_bytes) as f64
    }
}

impl Planted {
    fn work(&self) -> u64 {
        self.keys * (self.rounds + 1) * self.value_bytes as u64
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Found> {
        let dir = Scratch::new("lsmith-reproduce-")?;
        let env = Unsynced::default();
        let store = builder(dir.path(), env.clone())
            .policy(format!("jungle(c={})", self.threshold))
            .memtable_bytes(self.table)
            .persist(PersistMode::Buffer)
            .open()?;
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        let mut value = vec![0; self.value_bytes];
        let mut before = None;
        let mut held = Held::default();
        for (write, rank) in self.ranks().enumerate() {
            let write = write as u64;
            if write == self.keys * 2 {
                // All levels are as large as they will be.
                before = Some((store.stats(), written(&keyspace)));
            }
            if write >= self.keys * 2 && write.is_multiple_of(self.keys / 2) {
                self.add_held(&mut held, dir.path(), &keyspace, &env)?;
            }
            fill_value(write, &mut value);
            keyspace.put(rank.to_be_bytes(), &value)?;
            if write.is_multiple_of(1024) {
                ticker.tick(1024 * self.value_bytes as u64);
            }
        }
        let stats = store.stats();
        let (old, old_written) = before.context("too few writes")?;
        check_plans(&keyspace)?;
        let nodes = (stats.node_bytes - old.node_bytes) as f64;
        let entries = self.entries_bytes((written(&keyspace) - old_written) as f64);
        let measured = IndexShare { written: nodes / entries, held: held.nodes / held.entries };
        Ok(Found { predicted: self.predicted(&held), measured })
    }
}

/// Returns the logical bytes of entries that merges have written so far.
fn written(keyspace: &Keyspace) -> u64 {
    let tree = keyspace.tree();
    tree.levels().iter().map(|level| level.counters().bytes_written).sum()
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let [full, quick] = ROUNDS;
    let jobs = Planted::all(task.pick(task.effort.shrink.min(32), 1), task.pick(quick, full));
    let found = task.each("stores", &jobs, Planted::work, Planted::measure)?;
    let panels = PANELS.map(|(name, y)| {
        Panel::new(name, y, Axis::linear("compaction threshold c", ""), Axis::log(y, ""))
    });
    let mut figure = task.figure(panels);
    for (job, Found { predicted, measured }) in jobs.iter().zip(&found) {
        let shares = [(predicted.written, measured.written), (predicted.held, measured.held)];
        for ((panel, _), (predicted, measured)) in PANELS.iter().zip(shares) {
            let size = format!("values of {} bytes", job.value_bytes);
            figure.point(panel, &format!("{size}, formula"), job.threshold, predicted);
            figure.point(panel, &format!("{size}, store"), job.threshold, measured);
            let claim = format!("{panel}, {size}, c = {}: store over formula", job.threshold);
            figure.near(claim, 1.0, measured / predicted, OFF_MAX);
        }
    }
    figure.explain(
        ": store over formula",
        "append tables are taken to be alike. The fewer entries they have, the more they differ in \
         width, and the more of them a batch meets.",
    );
    figure.note(format!(
        "`jungle` on the real store with keys of 8 bytes: all keys are loaded in random order and \
         updated {} times at random. Nodes are counted from the second update of each key on. The \
         formula is told the number of append tables and of live entries of each level, and the \
         dead bytes of the last one, means of what the store had.",
        jobs.first().map_or(0, |job| job.rounds),
    ));
    Ok(figure)
}
