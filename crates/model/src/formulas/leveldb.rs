//! The LevelDB model, and what differs from it in the choice of what goes down.
//!
//! Source: Lim, Andersen, Kaminsky, "Towards Accurate and Fast Evaluation of Multi-Stage
//! Log-Structured Designs", FAST 2016: the model of LevelDB, and the one of RocksDB, which differs
//! in its interval.

use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// How a level that is full picks what goes down. It decides how long an entry stays in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Round and round in key order: what lies longest goes down next, and a level is thin where
    /// it was just compacted ([`Popularity::interval`](crate::Popularity::interval)).
    RoundRobin,
    /// Anywhere: each place of a level is as dense as any other.
    Random,
}

/// Levels that are compacted piece by piece, each piece with what it overlaps in the next level.
///
/// All sizes are numbers of entries of mean size.
#[derive(Clone, Debug, PartialEq)]
pub struct LeveledModel {
    /// Requests that a memtable takes.
    pub memtable: f64,
    /// Memtables that are merged from level 0 into level 1 together.
    pub level0_merged: f64,
    /// Memtables that stay in level 0, mean over time.
    pub level0_kept: f64,
    /// Sizes of the levels from 1 to the one before the last; the last holds every live key.
    pub sizes: Vec<f64>,
    /// How pieces are picked.
    pub sweep: Sweep,
    /// Of what a piece brings, how much more is rewritten in the next level since tables are not
    /// cut where pieces end. One table for each table that goes down: 1.
    pub false_overlap: f64,
}

impl LeveledModel {
    /// Sizes that begin with `level1` and grow by `ratio` as long as they are below `keys`.
    pub fn geometric(level1: f64, ratio: f64, keys: f64) -> Vec<f64> {
        let next = |size: &f64| Some(size * ratio);
        std::iter::successors(Some(level1), next).take_while(|&size| size < keys).collect()
    }

    /// Costs per request.
    ///
    /// Level 0 is merged into level 1 each `level0_merged` memtables. A piece of level `l` that
    /// goes down stands for all requests to its keys since the last piece of the same place went
    /// down: as many as the piece of level `l - 1` that brought the newest of it, and those in
    /// which level `l` is swept once. It is merged with what is there in level `l + 1`, and for
    /// each table that goes down one table's worth is rewritten beside it.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let popularity = setting.popularity;
        let (flush, mut interval) = (self.memtable, self.memtable * self.level0_merged);
        let flushed = popularity.unique(flush);
        let mut stages = vec![Stage::log(), Stage::new("memory -> 0", flushed / flush, 0.0)];
        let last = popularity.live();
        let mut levels = vec![Level { runs: self.level0_kept, size: flushed * self.level0_kept }];
        for (index, size) in self.sizes.iter().copied().chain([last]).enumerate() {
            let is_last = index == self.sizes.len();
            let inverse = if is_last { f64::INFINITY } else { popularity.inverse(size) };
            let (taken, beside) = match index {
                0 => (flushed * self.level0_merged, 0.0),
                _ => {
                    let taken = popularity.unique(interval);
                    (taken, self.false_overlap * taken)
                }
            };
            let merged = if is_last { last } else { popularity.unique(interval + inverse) };
            let name = match index {
                0 => "level 0 -> 1".to_owned(),
                _ => format!("level {index} -> {}", index + 1),
            };
            let reads = (taken + size + beside) / interval;
            stages.push(Stage::new(name, (merged + beside) / interval, reads));
            levels.push(Level { runs: 1.0, size });
            if !is_last {
                interval += match self.sweep {
                    Sweep::RoundRobin => popularity.interval(size),
                    Sweep::Random => inverse,
                };
            }
        }
        Model::new(setting, Flushes::of_memtables(setting, flush), stages, levels)
    }
}
