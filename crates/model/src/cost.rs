//! What a formula gives: costs by part, and the mean tree that they come from.

use crate::Popularity;

/// What a store is given to do, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// How often each key is requested.
    pub popularity: &'a Popularity,
    /// Entries of mean size that a memtable holds.
    pub memtable: f64,
    /// Mean bytes of an entry: what parameters in bytes are divided by.
    pub item_bytes: f64,
    /// Requests in all, for costs that grow with them.
    pub requests: f64,
    /// Share of lookups that a filter lets through for a key that its run does not hold; 1
    /// without filters.
    pub false_positives: f64,
}

impl Setting<'_> {
    /// Requests that a memtable of the store takes until it is sealed: as many as fill it with
    /// newest versions, but at most four times what it holds.
    pub fn memtable_requests(&self) -> f64 {
        self.popularity.inverse(self.memtable).min(4.0 * self.memtable)
    }

    /// Flushes that all requests make, at least one.
    pub fn flushes(&self) -> f64 {
        (self.requests / self.memtable).max(1.0)
    }

    /// The size of a full last level over that of a memtable, at least 1.
    pub fn growth(&self) -> f64 {
        (self.popularity.live() / self.memtable).max(1.0)
    }
}

/// The name of the stage that the write-ahead log is.
const LOG: &str = "log";

/// A part of the write cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// What is written, for example `level 1 -> 2`.
    pub name: String,
    /// Size written per request.
    pub writes: f64,
    /// Size read per request.
    pub reads: f64,
}

/// Runs of one age class.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// How many there are, mean over time.
    pub runs: f64,
    /// Size of all together, mean over time, in entries of mean size.
    pub size: f64,
}

/// What leaves memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flushes {
    /// Its size per request: less than 1 as far as memory holds keys that are requested again.
    pub size: f64,
    /// Whether it is merged with older data straight out of memory, so that no stage is a flush.
    pub are_merged: bool,
}

/// What a policy costs, by a formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The parts of the write cost, in the order in which data pass them; the log first.
    pub stages: Vec<Stage>,
    /// What leaves memory.
    pub flushes: Flushes,
    /// The mean tree, newest level first. Memory is not part of it.
    pub levels: Vec<Level>,
    /// What reads cost at worst, where the source says so instead of the mean tree.
    pub worst_reads: Option<ReadCosts>,
    /// Size of all runs over the size of what is live, mean over time.
    pub space_cost: f64,
}

/// What reads cost, in runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadCosts {
    /// Runs that a lookup must consider, if no filter and no hit ends it earlier.
    pub runs: f64,
    /// Runs that a lookup looks into for a key that is absent: those that filters let through.
    pub point_miss: f64,
    /// Runs that a lookup looks into for a key that is present, where keys are looked up as often
    /// as they are written.
    pub point_hit: f64,
    /// Runs that a range read looks into.
    pub range: f64,
}

impl Stage {
    pub(crate) fn new(name: impl Into<String>, writes: f64, reads: f64) -> Stage {
        Stage { name: name.into(), writes, reads }
    }

    /// The write-ahead log: every request once.
    pub(crate) fn log() -> Stage {
        Stage::new(LOG, 1.0, 0.0)
    }
}

impl Model {
    /// Costs of reads and of space follow from the mean tree.
    pub(crate) fn new(
        setting: &Setting<'_>,
        flushes: Flushes,
        stages: Vec<Stage>,
        levels: Vec<Level>,
    ) -> Model {
        let size: f64 = levels.iter().map(|level| level.size).sum();
        let space_cost = size / setting.popularity.live();
        Model { stages, flushes, levels, worst_reads: None, space_cost }
    }

    /// What reads cost in the setting that the model was evaluated in.
    pub fn reads(&self, setting: &Setting<'_>) -> ReadCosts {
        self.worst_reads.unwrap_or_else(|| ReadCosts::of_tree(setting, &self.levels))
    }

    /// `write_cost_user`: bytes written per byte of requests, log included.
    pub fn write_cost_user(&self) -> f64 {
        self.stages.iter().map(|stage| stage.writes).sum()
    }

    /// `write_cost_system`: every flush once, plus every merge output, over what is flushed. What
    /// is merged straight out of memory counts as flushed first.
    pub fn write_cost_system(&self) -> f64 {
        let tables = self.stages.iter().filter(|stage| stage.name != LOG);
        let written: f64 = tables.map(|stage| stage.writes).sum();
        let before = if self.flushes.are_merged { self.flushes.size } else { 0.0 };
        // Nothing ever leaves memory where it holds all keys.
        if self.flushes.size == 0.0 { 0.0 } else { (written + before) / self.flushes.size }
    }

    /// Bytes read by merges per byte of requests.
    pub fn merge_read_cost(&self) -> f64 {
        self.stages.iter().map(|stage| stage.reads).sum()
    }
}

impl Flushes {
    /// Memtables of so many requests, each flushed as a run.
    pub(crate) fn of_memtables(setting: &Setting<'_>, requests: f64) -> Flushes {
        let size =
            if requests.is_finite() { setting.popularity.unique(requests) / requests } else { 0.0 };
        Flushes { size, are_merged: false }
    }

    /// No memtable holds a key twice.
    pub(crate) fn unshared() -> Flushes {
        Flushes { size: 1.0, are_merged: false }
    }

    pub(crate) fn merged(self) -> Flushes {
        Flushes { are_merged: true, ..self }
    }
}

impl ReadCosts {
    /// Of so many runs; a present key is found in the oldest.
    pub(crate) fn worst(setting: &Setting<'_>, runs: f64) -> ReadCosts {
        let p = setting.false_positives;
        ReadCosts {
            runs,
            point_miss: p * runs,
            point_hit: 1.0 + p * (runs - 1.0).max(0.0),
            range: runs,
        }
    }

    /// A lookup goes from the newest run to the oldest and ends at the first that holds the key.
    ///
    /// # Derivation
    /// The newest runs of a tree stand together for the last `r` requests. A request is for a
    /// key that none of those asked for with probability `unique(r + 1) - unique(r)`: that is
    /// what the next request adds. So it is also the probability that a lookup, keys being looked
    /// up as often as written, must go on to the next run. A run that it comes to and that doesn't
    /// hold the key costs the share that the filter lets through; the one that holds it costs 1.
    fn of_tree(setting: &Setting<'_>, levels: &[Level]) -> ReadCosts {
        let runs: f64 = levels.iter().map(|level| level.runs).sum();
        let popularity = setting.popularity;
        let fresh =
            |requests: f64| if requests.is_finite() { popularity.fresh(requests) } else { 0.0 };
        let (mut considered, mut requests) = (0.0, 0.0);
        for level in levels.iter().filter(|level| level.runs > 0.0) {
            let per_run = popularity.inverse(level.size / level.runs);
            // Runs of a mean that is not whole are taken as steps of which the last is a part.
            let mut left = level.runs;
            while left > 0.0 {
                let part = left.min(1.0);
                considered += part * fresh(requests);
                requests += part * per_run;
                left -= 1.0;
                if requests.is_infinite() {
                    break;
                }
            }
        }
        let p = setting.false_positives;
        ReadCosts {
            runs,
            point_miss: p * runs,
            point_hit: 1.0 + p * (considered - 1.0).max(0.0),
            range: runs,
        }
    }
}
