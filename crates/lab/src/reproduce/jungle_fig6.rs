//! Ahn et al., "Jungle: towards dynamically adjustable key-value store by combining LSM-tree and
//! copy-on-write B+-tree", HotStorage 2019: figure 6, bytes written and held by leveling, tiering
//! and Jungle.

use super::{
    Axis, Claim, Effort, Figure, FigureInfo, Job, Panel, SharedProgress, Ticker, measure_all,
};
use anyhow::Context;
use lsmith_policy::Registry;
use lsmith_sim::{KeyedSim, Parts};
use lsmith_spec::format_bytes;
use lsmith_tree::{EntryKind, Tree, logical_bytes};
use lsmith_workload::Rng;

/// The paper's store: records, bytes of keys and values, and updates per record.
const KEYS: u64 = 20_000_000;
const KEY_BYTES: usize = 8;
const VALUE_BYTES: usize = 1024;
const ROUNDS: u64 = 20;
/// Bytes of a table, and of level 0 on storage.
const TABLE_BYTES: u64 = 64_000_000;
const LEVEL0_BYTES: u64 = 256_000_000;

/// The factor by which the full measurement is smaller than the paper's.
const SHRINK: u64 = 8;

/// The thresholds of the paper, and the one that others have simulated.
const THRESHOLDS: [f64; 4] = [2.0, 3.0, 5.0, 10.0];

const LEVELING: &str = "leveling";
const TIERING: &str = "tiering";
const JUNGLE: &str = "jungle";

/// What was found by another simulation of the paper's store, at its scale.
const FOUND_ELSEWHERE: &str = "(another simulation)";

/// A policy on the paper's store, which is smaller by a factor.
#[derive(Clone, Debug)]
pub(super) struct Aging {
    pub(super) curve: &'static str,
    /// The threshold, for Jungle.
    pub(super) threshold: Option<f64>,
    pub(super) spec: String,
    pub(super) shrink: u64,
    /// The share of updates that go to the first tenth of the keys. The others go to any key.
    pub(super) hot: f64,
}

/// What came out, after all records were loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aged {
    /// Bytes written to storage per byte of updates.
    pub(super) write: f64,
    /// Bytes held per live byte, at rest after each flush.
    pub(super) space_mean: f64,
    space_least: f64,
    space_most: f64,
}

impl Aging {
    fn all(shrink: u64) -> Vec<Aging> {
        let bytes = |bytes: u64| format_bytes(bytes / shrink);
        let leveled = format!(
            "leveldb(l0=1, level1={}, ratio=10, table={})",
            bytes(LEVEL0_BYTES),
            bytes(TABLE_BYTES)
        );
        let new = |curve, threshold, spec| Aging { curve, threshold, spec, shrink, hot: 0.0 };
        let mut all =
            vec![new(LEVELING, None, leveled), new(TIERING, None, "tiered(ratio=10)".to_owned())];
        let jungle = |c: f64| new(JUNGLE, Some(c), format!("jungle(c={c}, ratio=10)"));
        all.extend(THRESHOLDS.map(jungle));
        all
    }

    pub(super) fn keys(&self) -> u64 {
        KEYS / self.shrink
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
        self.keys() * (ROUNDS + 1)
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Aged> {
        let policy = Registry::builtin().build(&self.spec)?;
        let mut sim = KeyedSim::new(&policy, TABLE_BYTES / self.shrink);
        let bytes = logical_bytes(KEY_BYTES, VALUE_BYTES);
        let keys = self.keys();
        let mut order: Vec<u32> = (0..keys as u32).collect();
        let mut rng = Rng::new(1, 0);
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let mut loaded = Parts::default();
        let mut spaces: Vec<f64> = Vec::new();
        for write in 0..keys * (ROUNDS + 1) {
            let rank = match order.get(write as usize) {
                Some(rank) => *rank,
                None if rng.unit() < self.hot => rng.below(keys / 10) as u32,
                None => rng.below(keys) as u32,
            };
            sim.write(EntryKind::Put, rank, bytes as u32);
            if !sim.is_full() {
                continue;
            }
            let before = sim.flushes();
            let live = (write + 1).min(keys) * bytes;
            sim.flush(live, &mut |_| {}).with_context(|| self.spec.clone())?;
            ticker.tick((sim.flushes() - before) * TABLE_BYTES / self.shrink / bytes);
            if write < keys {
                loaded = sim.figures().parts;
            } else {
                spaces.push(held(sim.tree()) as f64 / live as f64);
            }
        }
        let parts = sim.figures().parts;
        let updated = (parts.flush_bytes - loaded.flush_bytes).max(1);
        Ok(Aged {
            write: (written(&parts) - written(&loaded)) as f64 / updated as f64,
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
    let shrink = SHRINK * if effort.is_quick { effort.shrink } else { 1 };
    let jobs = Aging::all(shrink);
    let found = measure_all("keyed simulation", &jobs, progress)?;
    let threshold = || Axis::linear("compaction threshold c", "");
    let panel = |name: &str, title: &str, y: Axis| Panel {
        name: name.to_owned(),
        title: title.to_owned(),
        x: threshold(),
        y,
    };
    let panels = vec![
        panel("write", "writes", Axis::linear("bytes written per byte of updates", "")),
        panel("space", "space", Axis::linear("bytes held per live byte, mean", "")),
        panel("space range", "space, least and most", Axis::linear("bytes held per live byte", "")),
    ];
    let mut figure = Figure::empty(info.name, info.title, panels);
    for (job, aged) in jobs.iter().zip(&found) {
        let xs = job.threshold.map_or(THRESHOLDS.to_vec(), |c| vec![c]);
        for x in xs {
            figure.point("write", job.curve, x, aged.write);
            figure.point("space", job.curve, x, aged.space_mean);
            for (edge, space) in [("least", aged.space_least), ("most", aged.space_most)] {
                figure.point("space range", &format!("{}, {edge}", job.curve), x, space);
            }
        }
    }
    claims(&mut figure);
    figure.note(format!(
        "A keyed simulation at 1/{shrink} of the paper's scale: {} records of {} bytes, loaded in \
         random order, then updated {ROUNDS} times each on average, at random. Memory, tables and \
         level 0 are smaller by the same factor. The paper does not give the size of memory, which \
         decides what tiering writes; here it holds one table.",
        KEYS / shrink,
        logical_bytes(KEY_BYTES, VALUE_BYTES),
    ));
    figure.explain(
        "jungle(c=5) over tiering",
        "at a small scale trees have few entries, and more of them are split.",
    );
    figure.explain(
        "space of tiering",
        "it depends on the size of memory, which the paper does not give: 3.5 to 4.2 with a \
         quarter to four times of it. Keys are uniform, so that runs share few keys until they \
         are merged.",
    );
    figure.explain(
        "leveling: writes (another",
        "one difference is known: there, each flush rewrites level 0; here, memtables are a level \
         of their own above it.",
    );
    figure.note("Nodes and filters are not counted, and reads are not measured.");
    Ok(figure)
}

fn claims(figure: &mut Figure) {
    let y = |figure: &Figure, panel: &str, curve: &str, c: f64| figure.y(panel, curve, c);
    let write = |figure: &Figure, curve: &str, c: f64| y(figure, "write", curve, c);
    let over = |figure: &Figure, [(above, c), (below, d)]: [(&str, f64); 2]| {
        Some(write(figure, above, c)? / write(figure, below, d)?)
    };
    let (leveling, tiering) = ((LEVELING, 2.0), (TIERING, 2.0));
    let jungle = |c: f64| (JUNGLE, c);
    let found = over(figure, [tiering, leveling]);
    figure.claim(found.map(|part| Claim::near("tiering writes over leveling", 0.25, part, 0.08)));
    let found = over(figure, [jungle(10.0), tiering]);
    figure.claim(found.map(|part| Claim::near("jungle(c=10) over tiering", 1.0, part, 0.2)));
    let found = over(figure, [leveling, jungle(2.0)]);
    figure.claim(found.map(|part| Claim::at_least("leveling over jungle(c=2)", part, 3.0)));
    let found = over(figure, [jungle(5.0), tiering]);
    figure.claim(found.map(|part| Claim::at_most("jungle(c=5) over tiering", part, 1.0)));
    for (curve, paper, tolerance) in [(LEVELING, 1.2, 0.1), (TIERING, 3.24, 0.4)] {
        let found = y(figure, "space", curve, 2.0);
        let claim = format!("space of {curve}, mean");
        figure.claim(found.map(|space| Claim::near(claim, paper, space, tolerance)));
    }
    let spread = |figure: &Figure, curve: &str, c: f64| {
        let edge = |edge: &str| y(figure, "space range", &format!("{curve}, {edge}"), c);
        Some(edge("most")? - edge("least")?)
    };
    let tighter = spread(figure, JUNGLE, 3.0).zip(spread(figure, TIERING, 3.0));
    figure.claim(tighter.map(|(jungle, tiering)| {
        let claim = "space of jungle(c=3), most less least, over that of tiering (tighter)";
        Claim::at_most(claim, jungle / tiering, 1.0)
    }));
    for (panel, what, curve, c, elsewhere, tolerance) in [
        ("write", "writes", LEVELING, 3.0, 18.2, 0.9),
        ("write", "writes without nodes", JUNGLE, 3.0, 3.24, 0.16),
        ("space", "space", LEVELING, 3.0, 1.14, 0.05),
        ("space", "space", JUNGLE, 3.0, 2.12, 0.1),
    ] {
        let found = y(figure, panel, curve, c);
        let name = if curve == JUNGLE { "jungle(c=3)" } else { curve };
        let claim = format!("{name}: {what} {FOUND_ELSEWHERE}");
        figure.claim(found.map(|found| Claim::near(claim, elsewhere, found, tolerance)));
    }
}
