//! A schedule of whole-run merges, carried out on expected sizes.

use crate::Popularity;
use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// How often the space is looked at.
const SAMPLES: u64 = 64;

/// A merge of neighbouring runs into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMerge {
    /// How many runs are newer than those that are merged.
    pub newer: usize,
    /// How many runs are merged.
    pub runs: usize,
}

/// Costs of merges that are known in advance, where keys may be shared: for each flush in turn
/// `schedule` says with how many of the newest runs it is merged, 0 where it stays a run of its
/// own.
///
/// With [`optimum::schedule`](crate::optimum::schedule) these are the expected costs of what is
/// best for flushes that share no key.
pub fn scheduled(setting: &Setting<'_>, schedule: impl Iterator<Item = u64>) -> Model {
    let merge = |taken: u64| Some(RunMerge { newer: 0, runs: taken as usize + 1 });
    carried_out(setting, schedule.map(merge))
}

/// Costs of merges that are known in advance, where keys may be shared: for each flush in turn the
/// merges that follow it, one after the other. Merges of less than two runs are none, and of more
/// than there are take all.
///
/// There are as many flushes as all requests fill memtables, or as `schedule` has.
///
/// # Derivation
/// Runs cover neighbouring stretches of requests, so a run of `m` memtables of `r` requests each
/// has the expected size `unique(m r)`, whatever merges it came from: which merges there are
/// decides all costs.
pub fn carried_out<M: IntoIterator<Item = RunMerge>>(
    setting: &Setting<'_>,
    schedule: impl Iterator<Item = M>,
) -> Model {
    let popularity = setting.popularity;
    let requests = setting.memtable_requests();
    let flushed = popularity.unique(requests);
    let flushes_max = (setting.requests / requests).floor().max(1.0) as u64;
    let sample_each = (flushes_max / SAMPLES).max(1);
    let mut stack = Stack { requests, ..Stack::default() };
    let mut run_sum = 0.0;
    let mut size_sum = 0.0;
    let mut space_sum = 0.0;
    let mut samples = 0.0;
    let mut flushes = 0;
    for (flush, merges) in (1..=flushes_max).zip(schedule) {
        flushes = flush;
        stack.push(1, flushed);
        for merge in merges {
            stack.merge(merge, popularity);
        }
        run_sum += stack.runs.len() as f64;
        size_sum += stack.size;
        if flush % sample_each == 0 {
            let live = popularity.unique(flush as f64 * requests).min(popularity.live());
            space_sum += stack.size / live;
            samples += 1.0;
        }
    }
    let flushes = (flushes as f64).max(1.0);
    let total = flushes * requests;
    let stages = vec![
        Stage::log(),
        Stage::new("flush", flushed / requests, 0.0),
        Stage::new("merges", stack.written / total, stack.read / total),
    ];
    let levels = vec![Level { runs: run_sum / flushes, size: size_sum / flushes }];
    let flushes = Flushes::of_memtables(setting, requests);
    let space_cost = space_sum / f64::max(samples, 1.0);
    Model { space_cost, ..Model::new(setting, flushes, stages, levels) }
}

/// Runs of memtables of so many requests each.
#[derive(Debug, Default)]
struct Stack {
    requests: f64,
    /// Oldest first: memtables and size of each.
    runs: Vec<(u64, f64)>,
    /// Of all runs.
    size: f64,
    written: f64,
    read: f64,
}

impl Stack {
    fn push(&mut self, memtables: u64, size: f64) {
        self.runs.push((memtables, size));
        self.size += size;
    }

    fn merge(&mut self, merge: RunMerge, popularity: &Popularity) {
        let end = self.runs.len().saturating_sub(merge.newer);
        let start = end.saturating_sub(merge.runs);
        if end - start < 2 {
            return;
        }
        let inputs = self.runs[start..end].iter();
        let (memtables, sizes) = inputs.fold((0, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
        let size = popularity.unique(memtables as f64 * self.requests);
        self.runs.splice(start..end, [(memtables, size)]);
        self.size += size - sizes;
        self.written += size;
        self.read += sizes;
    }
}
