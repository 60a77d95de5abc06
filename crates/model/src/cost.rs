//! The results of formulas: costs by part, and the mean tree that they follow from.

use crate::Popularity;

/// The input of a formula: the requests, and the settings of the store.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// How often each key is requested.
    pub popularity: &'a Popularity,
    /// Entries of mean size in a memtable.
    pub memtable: f64,
    /// Mean bytes of an entry. Parameters in bytes are divided by it.
    pub item_bytes: f64,
    /// The number of all requests, for costs that grow with it.
    pub requests: f64,
    /// The fraction of lookups for an absent key that a filter lets through; 1 without filters.
    pub false_positives: f64,
    /// The number of first requests that each write another key, before the popularity holds: a
    /// load phase. All keys of the popularity are among them.
    pub loaded: f64,
    /// The order in which keys are first requested.
    pub order: KeyOrder,
}

/// The order in which keys are first requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyOrder {
    /// No order: each run spreads over the whole key space.
    #[default]
    Random,
    /// Each new key is the greatest so far, and no key is requested twice: runs do not overlap.
    Ascending,
}

/// What a formula's write cost is, if it is not the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The policy writes at most as much.
    Upper,
    /// The policy writes at least as much.
    Lower,
}

/// A property of requests that a formula does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// How often each key is requested: the formula takes all requests to be for different keys.
    Popularity,
    /// The order of keys: the formula takes each run to spread over the whole key space.
    KeyOrder,
}

impl Bound {
    /// Returns the name in reports: `upper` or `lower`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upper => "upper",
            Self::Lower => "lower",
        }
    }
}

impl Ignored {
    /// Returns the name in reports: `popularity` or `key order`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Popularity => "popularity",
            Self::KeyOrder => "key order",
        }
    }
}

impl Setting<'_> {
    /// Returns the number of entries of a sealed memtable. The entry that fills it belongs to it,
    /// so it holds at least one, whatever the size of entries.
    pub fn sealed(&self) -> f64 {
        // A quotient such as 4194304 / 131072.00000000001 must not count as more.
        (self.memtable - 1e-6).ceil().max(1.0)
    }

    /// Returns the number of requests that fill a memtable: with newest versions, or with four
    /// times as many overwritten ones.
    pub fn memtable_requests(&self) -> f64 {
        self.popularity.inverse(self.sealed()).min(4.0 * self.sealed())
    }

    /// Returns the number of requests after which `flushes` memtables are full.
    pub fn requests_of_flushes(&self, flushes: f64) -> f64 {
        let of_load = self.loaded / self.sealed();
        let later = (flushes - of_load).max(0.0);
        let first = flushes.min(of_load) * self.sealed();
        // In a load without updates a memtable may take infinitely many requests.
        if later > 0.0 { first + later * self.memtable_requests() } else { first }
    }

    /// Returns the number of full memtables of all requests, at least one.
    pub fn full_memtables(&self) -> f64 {
        let of_load = self.loaded.min(self.requests) / self.sealed();
        let later = (self.requests - self.loaded).max(0.0) / self.memtable_requests();
        (of_load + later + 1e-9).floor().max(1.0)
    }

    /// Returns the expected size of a run with the newest entry of each key among the requests from
    /// `first` to `last`.
    ///
    /// # Derivation
    /// Let `l` of the requests belong to the load phase of `L` requests, and `u` follow it. The
    /// load writes `l` different keys, the others `unique(u)`. Keys are loaded in an order that has
    /// nothing to do with their popularity, so the share `l / L` of the latter is among the former.
    pub fn size_between(&self, first: f64, last: f64) -> f64 {
        let of_load = last.min(self.loaded) - first.min(self.loaded);
        let later = (last - self.loaded).max(0.0) - (first - self.loaded).max(0.0);
        if of_load <= 0.0 {
            return self.popularity.unique_counted(later);
        }
        of_load + self.popularity.unique_counted(later) * (1.0 - of_load / self.loaded)
    }

    /// Returns the live size after all requests.
    pub fn live(&self) -> f64 {
        self.size_between(0.0, self.requests).min(self.popularity.live().max(self.loaded)).max(1.0)
    }

    /// Returns the number of flushes of all requests, at least one.
    pub fn flushes(&self) -> f64 {
        (self.requests / self.memtable).max(1.0)
    }

    /// Returns the size of a full last level over the size of a memtable, at least 1.
    pub fn growth(&self) -> f64 {
        (self.popularity.live() / self.memtable).max(1.0)
    }
}

/// The name of the stage of the write-ahead log.
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
    /// The number of runs, mean over time.
    pub runs: f64,
    /// The size of all runs together, mean over time, in entries of mean size.
    pub size: f64,
}

/// The flushes of memtables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flushes {
    /// The size flushed per request: less than 1 if memory holds keys that are requested again.
    pub size: f64,
    /// The share of memtables that go straight into merges. No stage has their flushes.
    pub merged: f64,
}

/// The costs of a policy, by a formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The parts of the write cost, in the order in which data pass them. The log is the first.
    pub stages: Vec<Stage>,
    /// The flushes of memtables.
    pub flushes: Flushes,
    /// The mean tree, newest level first, without memory.
    pub levels: Vec<Level>,
    /// The worst-case read cost, if the source gives that instead of the mean tree.
    pub worst_reads: Option<ReadCosts>,
    /// The size of all runs over the live size, mean over time.
    pub space_cost: f64,
}

/// Read costs, in runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadCosts {
    /// Runs that a lookup must consider if no filter or hit ends it earlier.
    pub runs: f64,
    /// Runs that a lookup of an absent key reads, because their filters let it through.
    pub point_miss: f64,
    /// Runs that a lookup of a present key reads, if keys are looked up as often as they are
    /// written.
    pub point_hit: f64,
    /// Runs that a range read reads.
    pub range: f64,
}

impl Stage {
    pub(crate) fn new(name: impl Into<String>, writes: f64, reads: f64) -> Stage {
        Stage { name: name.into(), writes, reads }
    }

    /// Returns the stage of the write-ahead log, which takes every request once.
    pub(crate) fn log() -> Stage {
        Stage::new(LOG, 1.0, 0.0)
    }
}

impl Model {
    /// Returns a model. The costs of reads and of space follow from the mean tree.
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

    /// Takes away what merges of levels write: all tables are moved.
    pub(crate) fn move_all(&mut self) {
        for stage in self.stages.iter_mut().filter(|stage| stage.name.starts_with("level ")) {
            (stage.writes, stage.reads) = (0.0, 0.0);
        }
    }

    /// Returns the read costs in the setting that the model was evaluated in.
    pub fn reads(&self, setting: &Setting<'_>) -> ReadCosts {
        self.worst_reads.unwrap_or_else(|| ReadCosts::of_tree(setting, &self.levels))
    }

    /// Returns the data blocks that a range read of `items` entries looks at: one in each run, and
    /// the blocks that it passes over. Their share of all blocks is the share that its entries have
    /// of the live entries, at most all. Blocks have at most `block_bytes`, or one entry.
    pub fn scan_blocks(&self, setting: &Setting<'_>, items: f64, block_bytes: f64) -> f64 {
        let per_block = (block_bytes / setting.item_bytes).floor().max(1.0);
        let passed = items.min(setting.popularity.live()) * self.space_cost / per_block;
        self.reads(setting).range + passed
    }

    /// Returns `write_cost_user`: bytes written per byte of requests, including the log.
    pub fn write_cost_user(&self) -> f64 {
        self.stages.iter().map(|stage| stage.writes).sum()
    }

    /// Returns `write_cost_system`: the size of all flushes and all merge outputs, over the size
    /// flushed. A memtable that goes straight into a merge counts as flushed first.
    pub fn write_cost_system(&self) -> f64 {
        let tables = self.stages.iter().filter(|stage| stage.name != LOG);
        let written: f64 = tables.map(|stage| stage.writes).sum();
        let before = self.flushes.merged * self.flushes.size;
        // If memory holds all keys, nothing is ever flushed.
        if self.flushes.size == 0.0 { 0.0 } else { (written + before) / self.flushes.size }
    }

    /// Returns the bytes read by merges per byte of requests.
    pub fn merge_read_cost(&self) -> f64 {
        self.stages.iter().map(|stage| stage.reads).sum()
    }
}

impl Flushes {
    /// Returns the flushes of memtables of `requests` requests, each flushed as a run.
    pub(crate) fn of_memtables(setting: &Setting<'_>, requests: f64) -> Flushes {
        let size =
            if requests.is_finite() { setting.popularity.unique(requests) / requests } else { 0.0 };
        Flushes { size, merged: 0.0 }
    }

    /// Returns the flushes of memtables that hold no key twice.
    pub(crate) fn unshared() -> Flushes {
        Flushes { size: 1.0, merged: 0.0 }
    }

    /// Returns the same flushes. The share `merged` goes straight into merges.
    pub(crate) fn merged(self, merged: f64) -> Flushes {
        Flushes { merged, ..self }
    }
}

/// The number of runs of a level that are taken one by one by [`ReadCosts::of_tree`]. After each
/// further row of so many times `n` runs, one more is taken together.
const RUNS_APART: f64 = 256.0;

impl ReadCosts {
    /// Returns the worst read costs of `runs` runs. A present key is found in the oldest.
    pub(crate) fn worst(setting: &Setting<'_>, runs: f64) -> ReadCosts {
        let p = setting.false_positives;
        ReadCosts {
            runs,
            point_miss: p * runs,
            point_hit: 1.0 + p * (runs - 1.0).max(0.0),
            range: runs,
        }
    }

    /// Returns the read cost of a tree of levels.
    ///
    /// A lookup goes from the newest run to the oldest and ends at the first that holds the
    /// key.
    ///
    /// # Derivation
    /// Let the newest runs of a tree hold the last `r` requests. The next request adds
    /// `unique(r + 1) - unique(r)` keys. So that is the probability that it asks for a key that
    /// none of the last `r` asked for. Keys are looked up as often as they are written, so it is
    /// also the probability that a lookup must go on to the next run. A run without the key costs
    /// the fraction of lookups that its filter lets through. The run with the key costs 1.
    fn of_tree(setting: &Setting<'_>, levels: &[Level]) -> ReadCosts {
        let runs: f64 = levels.iter().map(|level| level.runs).sum();
        let popularity = setting.popularity;
        let fresh =
            |requests: f64| if requests.is_finite() { popularity.fresh(requests) } else { 0.0 };
        let mut considered = 0.0;
        let mut requests = 0.0;
        for level in levels.iter().filter(|level| level.runs > 0.0) {
            let per_run = popularity.inverse(level.size / level.runs);
            // A mean number of runs is taken as whole runs and a part of another. Of many runs,
            // some are taken together: as many as change the probability by little.
            let mut left = level.runs;
            let mut passed = 0.0;
            while left > 0.0 {
                let part = left.min(f64::max(1.0, (passed / RUNS_APART).floor()));
                let middle = (part - part.min(1.0)) / 2.0 * per_run;
                considered += part * fresh(requests + middle);
                requests += part * per_run;
                left -= part;
                passed += part;
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
