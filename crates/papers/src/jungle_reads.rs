//! Reads of the store of figure 6 of Ahn et al., "Jungle", HotStorage 2019, and why they differ: at
//! several moments of its aging, with an empty cache and a warm one, and with filters that err as
//! often as the paper's.

mod ranges;

use self::ranges::{Blocks, ITEMS};
use super::jungle_fig6::{
    Aging, JUNGLE, LEVELING, Lookups, READ_SECONDS, SHRINK_STORE_MAX, THRESHOLDS, TIERING, builder,
    look_up, warm, write,
};
use super::numbers;
use super::store::check_plans;
use super::unsynced::ReadCount;
use crate::form::*;
use anyhow::bail;
use lsmith::{DEFAULT_KEYSPACE, Keyspace};
use lsmith_lab::Scratch;
use lsmith_tree::KeyRange;
use lsmith_workload::Rng;
use std::path::Path;
use std::sync::Arc;

/// The factor by which the full measurement is smaller than the paper's.
const SHRINK: u64 = 512;

/// Updates per record. Levels are full before the first of them.
const ROUNDS: u64 = 4;

/// Updates per record of a quick measurement. A memtable is a fixed part of the data, so that a
/// smaller scale saves no files and little time.
const ROUNDS_QUICK: u64 = 1;

/// The threshold of Jungle in a quick measurement.
const THRESHOLD_QUICK: f64 = 3.0;

/// The share of all updates after which keys are read.
const MOMENTS: [f64; 3] = [0.0, 0.5, 1.0];

/// Lookups with an empty cache are the keys over this.
const COLD_PART: u64 = 10;

/// Leveling whose tables are append tables: none may have dead bytes.
const LEVELING_OF_APPENDS: &str = "leveling of append tables, jungle(c=1)";

/// How large filters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filters {
    /// The store's own: 10 bits per key on average, more in small runs.
    Usual,
    /// As many bits in all runs, so many that they err as often as the paper's, 1.7 %.
    OfPaper,
}

/// Bits per key with which filters err about as often as the paper's: sorted tables, then append
/// tables, whose filters have room for half as many keys again. Small filters are rounded up.
const BITS_OF_PAPER: [u8; 2] = [8, 5];

/// A store that is looked at while it ages.
#[derive(Clone, Debug)]
struct Looking {
    aging: Aging,
    filters: Filters,
}

/// What was found at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    cold: Lookups,
    warm: Lookups,
    /// The share of the runs without the key that filters let pass.
    erring: f64,
    ranges: Blocks,
}

impl Moment {
    /// Returns the runs that a lookup of a present key reads in vain.
    fn errors(&self) -> f64 {
        self.warm.ruled_out * self.erring / (1.0 - self.erring)
    }

    /// Returns the runs that it considers, with the one that has the key.
    fn considered(&self) -> f64 {
        self.warm.ruled_out + self.errors() + 1.0
    }
}

impl Looking {
    fn all(shrink: u64, is_quick: bool) -> Vec<Looking> {
        let mut agings = Aging::all(shrink, if is_quick { ROUNDS_QUICK } else { ROUNDS });
        if is_quick {
            agings.retain(|aging| aging.threshold.is_none_or(|c| c == THRESHOLD_QUICK));
        }
        let of_appends = Aging {
            curve: LEVELING_OF_APPENDS,
            threshold: None,
            spec: "jungle(c=1, ratio=10)".to_owned(),
            ..agings[0].clone()
        };
        agings.insert(1, of_appends);
        let with = |filters| move |aging: &Aging| Looking { aging: aging.clone(), filters };
        // What the store's own filters gain is seen where most runs are.
        let tiering = agings.iter().filter(|aging| aging.curve == TIERING && !is_quick);
        let usual = tiering.map(with(Filters::Usual));
        agings.iter().map(with(Filters::OfPaper)).chain(usual).collect()
    }

    /// Returns the name of the curve.
    fn name(&self) -> String {
        match self.aging.threshold {
            Some(c) => jungle(c),
            None => self.aging.curve.to_owned(),
        }
    }

    fn open(&self, dir: &Path, reads: &Arc<ReadCount>) -> anyhow::Result<Keyspace> {
        let builder = builder(&self.aging, dir, reads);
        let builder = match self.filters {
            Filters::Usual => builder,
            Filters::OfPaper => {
                let has_appends = self.aging.spec.starts_with(JUNGLE);
                let bits = BITS_OF_PAPER[usize::from(has_appends)];
                builder.filter_bits(bits).filters_by_size(false)
            }
        };
        Ok(builder.open()?.keyspace(DEFAULT_KEYSPACE)?)
    }

    fn look(&self, dir: &Path, reads: &Arc<ReadCount>, rng: &mut Rng) -> anyhow::Result<Moment> {
        let keys = self.aging.keys();
        // The cache is empty after this.
        let space = self.open(dir, reads)?;
        let cold = look_up(&space, keys, keys / COLD_PART, reads, rng)?;
        warm(&space, keys, rng)?;
        let warm = look_up(&space, keys, keys, reads, rng)?;
        let tree = space.tree();
        let before = space.store().stats();
        let mut runs = 0;
        for _ in 0..keys {
            // It lies behind the key of a record, and before the next one.
            let key = [&rng.below(keys).to_be_bytes()[..], &[1]].concat();
            let range = KeyRange::inclusive(&key, &key);
            runs += tree.disk_runs().filter(|run| !run.overlapping(&range).is_empty()).count();
            if space.get(&key)?.is_some() {
                bail!("a key that was never written was found");
            }
        }
        let ruled_out = space.store().stats().filter_negatives - before.filter_negatives;
        let runs = runs as f64;
        let erring = (1.0 - ruled_out as f64 / runs.max(1.0)).max(0.0);
        let ranges = ranges::read(&space, keys, dir, rng)?;
        Ok(Moment { cold, warm, erring, ranges })
    }
}

fn jungle(c: f64) -> String {
    format!("{JUNGLE}(c={c})")
}

impl Looking {
    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Vec<Moment>> {
        let dir = Scratch::new("lsmith-reproduce-")?;
        let reads = Arc::new(ReadCount::default());
        let keys = self.aging.keys();
        let updates = keys * self.aging.rounds;
        let mut ranks = self.aging.ranks();
        let mut rng = Rng::new(2, 0);
        let mut moments = Vec::new();
        let mut written = 0;
        for moment in MOMENTS {
            let upto = keys + (updates as f64 * moment) as u64;
            let space = self.open(dir.path(), &reads)?;
            write(&space, ranks.by_ref().take((upto - written) as usize), ticker)?;
            written = upto;
            check_plans(&space)?;
            drop(space);
            moments.push(self.look(dir.path(), &reads, &mut rng)?);
        }
        Ok(moments)
    }
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let shrink = (SHRINK * task.effort.shrink).min(SHRINK_STORE_MAX);
    let jobs = Looking::all(shrink, task.effort.is_quick);
    let found = task.each("stores", &jobs, |looking| looking.aging.work(), Looking::measure)?;
    let mut figure = task.figure(panels(task.effort.is_quick));
    for (job, moments) in jobs.iter().zip(&found) {
        for (at, moment) in MOMENTS.iter().zip(moments) {
            add(&mut figure, job, 100.0 * at, moment);
        }
        if job.filters == Filters::OfPaper && job.aging.curve != TIERING {
            add_ranges(&mut figure, job, &moments[1..]);
        }
    }
    judge(&mut figure);
    let usual = if task.effort.is_quick {
        String::new()
    } else {
        format!(
            " Panels whose names end with `{USUAL}` have the store's own, 10 bits per key on \
             average and more in small runs."
        )
    };
    figure.note(format!(
        "The store of `jungle-fig6` in lockstep, at 1/{shrink} of the paper's scale: {} records, \
         updates per record: {}. The filters have as many bits per key in all runs, {} in sorted \
         tables and {} in append tables, so that they err about as often as the paper's, 1.7 %.{} \
         At each moment the store is opened anew, so that its cache is empty. The first lookups, \
         one for ten records, are the cold ones. The warm ones, one per record, come after as many \
         that are not counted. Keys are random. The cache holds a tenth of the data, and files are \
         not mapped. A lookup takes its CPU time, and {} microseconds for each read of the device. \
         Claims are about means of all moments but the first.",
        jobs.first().map_or(0, |job| job.aging.keys()),
        jobs.first().map_or(0, |job| job.aging.rounds),
        BITS_OF_PAPER[0],
        BITS_OF_PAPER[1],
        usual,
        READ_SECONDS * 1e6,
    ));
    figure.note(format!(
        "Ranges: {} reads of each length at each moment, from random keys. The formula is told the \
         live entries, batches, nodes and leaves of each append table.",
        ranges::READS,
    ));
    Ok(figure)
}

/// Returns the mean of a curve, without the moment after the load.
fn mean(figure: &Figure, panel: &str, curve: &str) -> Option<f64> {
    numbers::mean(figure.curve(panel, curve).filter(|(at, _)| *at > 0.0).map(|(_, y)| y))
}

fn judge(figure: &mut Figure) {
    let over = |figure: &Figure, panel: &str, [above, below]: [&str; 2]| {
        numbers::over(mean(figure, panel, above), mean(figure, panel, below))
    };
    let found = mean(figure, "erring", LEVELING);
    figure.near("runs that filters let pass, %", 1.7, found, 0.3);
    let found = over(figure, "lookups", [TIERING, LEVELING]);
    figure.near("lookups per second of tiering over leveling (30 % fewer)", 0.7, found, 0.1);
    let found = over(figure, "latency", [TIERING, LEVELING]);
    figure.near("p99 of tiering over leveling (three times)", 3.0, found, 0.6);
    for c in THRESHOLDS {
        for below in [LEVELING, LEVELING_OF_APPENDS] {
            let found = over(figure, "lookups", [&jungle(c), below]);
            let claim = format!("lookups per second of jungle(c={c}) over {below} (no slower)");
            figure.at_least(claim, found, 0.98);
        }
        let found = over(figure, "latency", [&jungle(c), TIERING]);
        figure.near(format!("p99 of jungle(c={c}) over tiering (a third)"), 0.33, found, 0.1);
    }
    explain(figure);
}

/// Gives the reasons for differences.
fn explain(figure: &mut Figure) {
    figure.explain(
        "of tiering over leveling (30 % fewer)",
        "what filters let pass is mostly in small runs, whose blocks are in the cache. With an \
         empty cache tiering loses twice as much.",
    );
    figure.explain(
        "(three times)",
        "leveling reads twice for more than one lookup in a hundred, and tiering two or three \
         times.",
    );
    figure.explain("(a third)", "the p99 of tiering is two or three reads of the device.");
    figure.explain(
        "over leveling (no slower)",
        "an append table has nodes besides the block with the value. They are read if they are not \
         in the cache, and take a step each if they are.",
    );
}

/// Adds the blocks of range reads, means of `moments`.
fn add_ranges(figure: &mut Figure, job: &Looking, moments: &[Moment]) {
    let name = job.name();
    for (at, items) in ITEMS.into_iter().enumerate() {
        let mean = |of: fn(&Blocks) -> [f64; ITEMS.len()]| {
            moments.iter().map(|moment| of(&moment.ranges)[at]).sum::<f64>() / moments.len() as f64
        };
        let (predicted, counted) = (mean(|found| found.predicted), mean(|found| found.counted));
        figure.point(RANGES, &format!("{name}, formula"), items as f64, predicted);
        figure.point(RANGES, &format!("{name}, store"), items as f64, counted);
        let claim = format!("{name}, ranges of {items}: blocks of the store over the formula's");
        figure.near(claim, 1.0, counted / predicted, OFF_MAX);
    }
}

/// The panel of range reads.
const RANGES: &str = "ranges";

/// How far the formula of range reads may be off.
const OFF_MAX: f64 = 0.1;

const PANELS: [(&str, &str, &str); 12] = [
    ("runs", "runs that a lookup considers, with the one that has the key", "runs"),
    ("errors", "runs that a lookup reads in vain", "runs"),
    ("erring", "runs without the key that filters let pass", "%"),
    ("blocks", "blocks that a lookup looks at", "blocks"),
    ("cold", "reads of the device, with an empty cache", "reads per lookup"),
    ("warm", "reads of the device", "reads per lookup"),
    ("warm p99", "reads of the device, p99", "reads"),
    ("lookups", "lookups", "lookups per second"),
    ("latency", "lookups, p99", "microseconds"),
    ("cold lookups", "lookups with an empty cache", "lookups per second"),
    ("cold latency", "lookups with an empty cache, p99", "microseconds"),
    ("CPU", "CPU time of a lookup", "microseconds"),
];

/// What the names of panels with the store's own filters end with.
const USUAL: &str = ", 10 bits";

fn panels(is_quick: bool) -> Vec<Panel> {
    let of = |(name, title, y): &(&str, &str, &str), suffix: &str| {
        Panel::new(
            format!("{name}{suffix}"),
            format!("{title}{suffix}"),
            Axis::linear("updates made", "%"),
            Axis::linear(y, ""),
        )
    };
    let ranges = Panel::new(
        RANGES,
        "blocks of a range read, nodes included",
        Axis::log("entries of a range read", ""),
        Axis::log("blocks", ""),
    );
    let kinds = if is_quick { &[""][..] } else { &["", USUAL] };
    let all = kinds.iter().flat_map(|end| PANELS.iter().map(move |panel| of(panel, end)));
    all.chain([ranges]).collect()
}

fn add(figure: &mut Figure, job: &Looking, x: f64, found: &Moment) {
    let Moment { cold, warm, .. } = found;
    let values = [
        found.considered(),
        found.errors(),
        found.erring * 100.0,
        warm.blocks,
        cold.device,
        warm.device,
        warm.device_p99,
        warm.rate,
        warm.p99 * 1e6,
        cold.rate,
        cold.p99 * 1e6,
        warm.cpu * 1e6,
    ];
    let suffix = if job.filters == Filters::Usual { USUAL } else { "" };
    for ((name, ..), value) in PANELS.iter().zip(values) {
        figure.point(&format!("{name}{suffix}"), &job.name(), x, value);
    }
}
