//! Simulates a schedule of whole-run merges on expected sizes.

use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// The number of moments at which the space is computed.
const SAMPLES: u64 = 64;

/// A merge of neighbouring runs into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMerge {
    /// The number of runs that are newer than the merged ones.
    pub newer: usize,
    /// The number of merged runs.
    pub runs: usize,
}

/// Returns the costs of merges that are known in advance; keys may be shared. For each flush in
/// turn, `schedule` gives the number of newest runs that it is merged with; 0 if it stays a run of
/// its own.
///
/// With [`optimum::schedule`](crate::optimum::schedule) the result is the expected cost of the
/// schedule that is best for flushes without shared keys.
pub fn scheduled(setting: &Setting<'_>, schedule: impl Iterator<Item = u64>) -> Model {
    let merge = |taken: u64| Some(RunMerge { newer: 0, runs: taken as usize + 1 });
    carried_out(setting, schedule.map(merge))
}

/// Returns the costs of merges that are known in advance; keys may be shared. For each flush in
/// turn, `schedule` gives the merges after it, in order. A merge of fewer than two runs does
/// nothing; a merge of more runs than exist takes all.
///
/// Flushes are counted as full memtables of all requests, or as in `schedule` if it has less.
///
/// # Derivation
/// Runs cover adjacent intervals of requests. Outside a load phase, a run of `m` memtables of `r`
/// requests each has the expected size `unique(m r)`, whatever merges made it
/// ([`Setting::size_between`]). So the merges decide all costs.
pub fn carried_out<M: IntoIterator<Item = RunMerge>>(
    setting: &Setting<'_>,
    schedule: impl Iterator<Item = M>,
) -> Model {
    let flushes_max = setting.full_memtables() as u64;
    let sample_each = (flushes_max / SAMPLES).max(1);
    let mut stack = Stack::default();
    let mut flushed = 0.0;
    let mut run_sum = 0.0;
    let mut size_sum = 0.0;
    let mut space_sum = 0.0;
    let mut samples = 0.0;
    let mut flushes = 0;
    for (flush, merges) in (1..=flushes_max).zip(schedule) {
        flushed += stack.push(flush, setting);
        flushes = flush;
        for merge in merges {
            stack.merge(merge, setting);
        }
        run_sum += stack.runs.len() as f64;
        size_sum += stack.size;
        if flush % sample_each == 0 {
            let requests = setting.requests_of_flushes(flush as f64);
            space_sum += stack.size / Setting { requests, ..*setting }.live();
            samples += 1.0;
        }
    }
    let total = setting.requests_of_flushes(flushes.max(1) as f64);
    let divisor = (flushes as f64).max(1.0);
    let stages = vec![
        Stage::log(),
        Stage::new("flush", flushed / total, 0.0),
        Stage::new("merges", stack.written / total, stack.read / total),
    ];
    let levels = vec![Level { runs: run_sum / divisor, size: size_sum / divisor }];
    let flushes = Flushes { size: flushed / total, merged: 0.0 };
    let space_cost = space_sum / f64::max(samples, 1.0);
    Model { space_cost, ..Model::new(setting, flushes, stages, levels) }
}

/// Runs made of whole memtables.
#[derive(Debug, Default)]
struct Stack {
    /// The flush before the first of each run, and the size of the run, oldest first. A run ends
    /// where the next one begins.
    runs: Vec<(u64, f64)>,
    flushes: u64,
    /// The total size of all runs.
    size: f64,
    written: f64,
    read: f64,
}

impl Stack {
    /// Adds a run of one memtable, and returns its size.
    fn push(&mut self, flush: u64, setting: &Setting<'_>) -> f64 {
        let size = size_of_flushes(setting, self.flushes, flush);
        self.runs.push((self.flushes, size));
        self.flushes = flush;
        self.size += size;
        size
    }

    fn merge(&mut self, merge: RunMerge, setting: &Setting<'_>) {
        let end = self.runs.len().saturating_sub(merge.newer);
        let start = end.saturating_sub(merge.runs);
        if end - start < 2 {
            return;
        }
        let sizes: f64 = self.runs[start..end].iter().map(|run| run.1).sum();
        let first = self.runs[start].0;
        let last = self.runs.get(end).map_or(self.flushes, |run| run.0);
        let size = size_of_flushes(setting, first, last);
        self.runs.splice(start..end, [(first, size)]);
        self.size += size - sizes;
        self.written += size;
        self.read += sizes;
    }
}

/// Returns the size of a run of the memtables behind flush `first` up to `last`.
fn size_of_flushes(setting: &Setting<'_>, first: u64, last: u64) -> f64 {
    let requests = |flushes: u64| setting.requests_of_flushes(flushes as f64);
    setting.size_between(requests(first), requests(last))
}
