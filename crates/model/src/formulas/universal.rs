//! Universal compaction, on expected sizes.

use crate::Popularity;
use crate::cost::{Flushes, Level, Model, Setting, Stage};
use std::collections::BTreeMap;

/// RocksDB's universal compaction, stopped by total size: when there are too many runs, several of
/// the newest are merged.
///
/// There is no closed formula, because the rules depend on sizes. So the rules are simulated with
/// the expected size of every merge. At the start one run holds every key.
///
/// Source: the rules of RocksDB; Lim et al., FAST 2016, for simulating them on expected sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UniversalModel {
    /// Requests per memtable.
    pub memtable: f64,
    /// The number of runs that triggers a merge.
    pub trigger: usize,
    /// A run joins the merge of all newer runs if it is larger than them by at most this, in
    /// percent.
    pub size_ratio: f64,
    /// All runs are merged if all others together exceed this percentage of the oldest.
    pub space_percent_max: f64,
    /// The number of simulated requests.
    pub requests: f64,
}

/// A run: the number of memtables that it was made of, and its size. The initial run with every key
/// does not count as memtables.
#[derive(Clone, Copy, Debug)]
struct Run {
    memtables: Option<u64>,
    size: f64,
}

/// Sizes by number of memtables, cached because most merges repeat.
struct Sizes<'a> {
    popularity: &'a Popularity,
    memtable: f64,
    known: BTreeMap<u64, f64>,
}

impl Sizes<'_> {
    fn merged(&mut self, runs: &[Run]) -> Run {
        let memtables: Option<u64> = runs.iter().map(|run| run.memtables).sum();
        let size = memtables.map_or(self.popularity.live(), |memtables| {
            let size = || self.popularity.unique(memtables as f64 * self.memtable);
            *self.known.entry(memtables).or_insert_with(size)
        });
        Run { memtables, size }
    }
}

impl UniversalModel {
    /// The greatest number of flushes that a formula should ask for: some seconds.
    pub const FLUSHES_MAX: f64 = 4e6;

    /// Returns the costs per request.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let popularity = setting.popularity;
        let last = popularity.live();
        // Newest first.
        let mut runs = vec![Run { memtables: None, size: last }];
        let mut sizes = Sizes { popularity, memtable: self.memtable, known: BTreeMap::new() };
        let flushed = popularity.unique(self.memtable);
        let flushes = (self.requests / self.memtable).ceil().max(1.0);
        let mut written = 0.0;
        let mut read = 0.0;
        let mut counts = 0.0;
        let mut upper = 0.0;
        for _ in 0..flushes as u64 {
            runs.insert(0, Run { memtables: Some(1), size: flushed });
            while runs.len() >= self.trigger {
                let Some((from, end)) = self.choose(&runs) else { break };
                read += runs[from..end].iter().map(|run| run.size).sum::<f64>();
                let merged = sizes.merged(&runs[from..end]);
                written += merged.size;
                runs.splice(from..end, [merged]);
            }
            counts += (runs.len() - 1) as f64;
            upper += runs[..runs.len() - 1].iter().map(|run| run.size).sum::<f64>();
        }
        let requests = flushes * self.memtable;
        let stages = vec![
            Stage::log(),
            Stage::new("memory -> runs", flushed / self.memtable, 0.0),
            Stage::new("merges of runs", written / requests, read / requests),
        ];
        let levels = vec![
            Level { runs: counts / flushes, size: upper / flushes },
            Level { runs: 1.0, size: last },
        ];
        Model::new(setting, Flushes::of_memtables(setting, self.memtable), stages, levels)
    }

    /// Returns the runs to merge: all if the newer ones take too much space; else the newest series
    /// in which each run is hardly larger than all newer ones together; else the newest surplus.
    fn choose(&self, runs: &[Run]) -> Option<(usize, usize)> {
        let (oldest, newer) = runs.split_last()?;
        let newer_size: f64 = newer.iter().map(|run| run.size).sum();
        if newer_size / oldest.size > self.space_percent_max / 100.0 {
            return Some((0, runs.len()));
        }
        for from in 0..runs.len() {
            let mut sum = runs[from].size;
            let mut end = from + 1;
            while end < runs.len() && sum * (1.0 + self.size_ratio / 100.0) >= runs[end].size {
                sum += runs[end].size;
                end += 1;
            }
            if end - from >= 2 {
                return Some((from, end));
            }
        }
        let excess = runs.len() - self.trigger;
        (excess >= 2).then_some((0, excess))
    }
}
