//! A schedule of whole-run merges, carried out on expected sizes.

use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// How often the space is looked at.
const SAMPLES: u64 = 64;

/// Costs of merges that are known in advance, where keys may be shared: for each flush in turn
/// `schedule` says with how many of the newest runs it is merged, 0 where it stays a run of its
/// own.
///
/// With [`optimum::schedule`](crate::optimum::schedule) these are the expected costs of what is
/// best for flushes that share no key; `minlatency` is within a few percent of it.
pub fn scheduled(setting: &Setting<'_>, schedule: impl Iterator<Item = u64>) -> Model {
    let popularity = setting.popularity;
    let requests = setting.memtable_requests();
    let flushed = popularity.unique(requests);
    let flushes = (setting.requests / requests).floor().max(1.0);
    let sample_each = (flushes as u64 / SAMPLES).max(1);
    // Oldest first: memtables and size of each.
    let mut runs: Vec<(u64, f64)> = Vec::new();
    let (mut size, mut written, mut read) = (0.0, 0.0, 0.0);
    let (mut run_sum, mut size_sum, mut space_sum, mut samples) = (0.0, 0.0, 0.0, 0.0);
    for (flush, taken) in (1..=flushes as u64).zip(schedule) {
        let kept = runs.len().saturating_sub(taken as usize);
        let mut new = (1, flushed);
        if kept < runs.len() {
            let merged = runs.drain(kept..);
            let (memtables, sizes) =
                merged.fold((1, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
            new = (memtables, popularity.unique(memtables as f64 * requests));
            size -= sizes;
            written += new.1;
            read += sizes + flushed;
        }
        runs.push(new);
        size += new.1;
        run_sum += runs.len() as f64;
        size_sum += size;
        if flush % sample_each == 0 {
            let live = popularity.unique(flush as f64 * requests).min(popularity.live());
            space_sum += size / live;
            samples += 1.0;
        }
    }
    let total = flushes * requests;
    let stages = vec![
        Stage::log(),
        Stage::new("flush", flushed / requests, 0.0),
        Stage::new("merges", written / total, read / total),
    ];
    let levels = vec![Level { runs: run_sum / flushes, size: size_sum / flushes }];
    let flushes = Flushes::of_memtables(setting, requests);
    Model { space_cost: space_sum / samples, ..Model::new(setting, flushes, stages, levels) }
}
