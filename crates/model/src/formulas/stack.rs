//! Policies of whole runs whose merges are all known in advance: `none`, `constant`, `tiered`.
//!
//! Source: Mao et al., VLDB Journal 2021, section 2, for the policies. Every merge is known because
//! all flushes hold equally many requests. Sizes are expected sizes, so keys may be shared.

use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// Returns the model of a tree in which every flush stays a run: on average it has half as many
/// runs as flushes.
pub fn unmerged(setting: &Setting<'_>) -> Model {
    let requests = setting.memtable_requests();
    let flushed = setting.popularity.unique(requests);
    let runs = (flushes(setting) + 1.0) / 2.0;
    let stages = vec![Stage::log(), Stage::new("flush", flushed / requests, 0.0)];
    let levels = vec![Level { runs, size: runs * flushed }];
    grown(setting, stages, levels, |flushes| flushes * flushed)
}

/// Returns the model of a tree in which everything is merged after each `runs_max` flushes: at
/// flush `j k + 1`, for `j` from 1, one run of that many memtables is written.
pub fn constant(setting: &Setting<'_>, runs_max: u64) -> Model {
    let popularity = setting.popularity;
    let requests = setting.memtable_requests();
    let flushed = popularity.unique(requests);
    let k = runs_max as f64;
    let n = flushes(setting);
    let merges = ((n - 1.0) / k).floor();
    let merged = |merge: f64| popularity.unique((merge * k + 1.0) * requests);
    let written = sum_of_steps(merges, merged) / (n * requests);
    // A merge reads the run of the last merge and all flushes since, including the newest.
    let last = sum_of_steps(merges, |merge| merged(merge - 1.0)) / (n * requests);
    let read = last + merges * k * flushed / (n * requests);
    let stages = vec![
        Stage::log(),
        Stage::new("flush", flushed / requests, 0.0),
        Stage::new("merges", written, read),
    ];
    let newer = (k - 1.0) / 2.0;
    let oldest = popularity.mean_unique(n * requests);
    let levels =
        vec![Level { runs: newer, size: newer * flushed }, Level { runs: 1.0, size: oldest }];
    grown(setting, stages, levels, |flushes| {
        let last = ((flushes - 1.0) / k).floor() * k + 1.0;
        popularity.unique(last * requests) + (flushes - last) * flushed
    })
}

/// Returns the model of a tree in which `ratio` runs of a level become one run of the next. Level
/// `i` gets a run of `ratio^i` flushes after every `ratio^i` flushes.
pub fn tiered(setting: &Setting<'_>, ratio: u64) -> Model {
    let popularity = setting.popularity;
    let requests = setting.memtable_requests();
    let n = flushes(setting);
    let total = n * requests;
    let mut stages = vec![Stage::log()];
    let mut levels = Vec::new();
    let mut sizes = Vec::new();
    let mut flushes_of_run = 1.0;
    let mut size_above = 0.0;
    while flushes_of_run <= n {
        let size = popularity.unique(flushes_of_run * requests);
        let made = (n / flushes_of_run).floor();
        let name = match levels.len() {
            0 => "flush".to_owned(),
            level => format!("level {} -> {level}", level - 1),
        };
        let read = made * size_above / total;
        stages.push(Stage::new(name, made * size / total, read));
        let runs = mean_digit(n, flushes_of_run, ratio as f64);
        levels.push(Level { runs, size: runs * size });
        size_above = ratio as f64 * size;
        sizes.push((size, flushes_of_run));
        flushes_of_run *= ratio as f64;
    }
    // Newest level first: the size of one of its runs, and the flushes in it.
    grown(setting, stages, levels, |flushes| {
        let level = |(size, unit): &(f64, f64)| (flushes / unit).floor() % ratio as f64 * size;
        sizes.iter().map(level).sum()
    })
}

/// The number of moments at which the space is computed.
const MOMENTS: u32 = 64;

/// Returns a model of a tree that grows from nothing. Its space is the size per live size, averaged
/// over moments.
fn grown(
    setting: &Setting<'_>,
    stages: Vec<Stage>,
    levels: Vec<Level>,
    size_at: impl Fn(f64) -> f64,
) -> Model {
    let requests = setting.memtable_requests();
    let all = flushes(setting);
    let space = |moment: u32| {
        let flushes = ((f64::from(moment) + 0.5) / f64::from(MOMENTS) * all).ceil();
        let found = setting.popularity.unique(flushes * requests);
        size_at(flushes) / found.min(setting.popularity.live())
    };
    let space_cost = (0..MOMENTS).map(space).sum::<f64>() / f64::from(MOMENTS);
    let flushes = Flushes::of_memtables(setting, requests);
    Model { space_cost, ..Model::new(setting, flushes, stages, levels) }
}

/// Returns the number of flushes.
fn flushes(setting: &Setting<'_>) -> f64 {
    (setting.requests / setting.memtable_requests() + 1e-9).floor().max(1.0)
}

/// Returns the mean over `1..=end` of a digit in base `ratio`, the one that counts multiples of
/// `unit`.
fn mean_digit(end: f64, unit: f64, ratio: f64) -> f64 {
    // The count of numbers with the digit at least `d`, in all complete rounds and in the last.
    let round = unit * ratio;
    let numbers = end + 1.0;
    let complete = (numbers / round).floor();
    let left = numbers - complete * round;
    let in_rounds = complete * unit * ratio * (ratio - 1.0) / 2.0;
    let digit = (left / unit).floor();
    let in_last = unit * digit * (digit - 1.0) / 2.0 + digit * (left - digit * unit);
    (in_rounds + in_last) / end
}

/// Returns the sum of `value` over `1..=steps`, for thousands of steps by the midpoint rule.
pub(super) fn sum_of_steps(steps: f64, value: impl Fn(f64) -> f64) -> f64 {
    const EXACT_MAX: f64 = 1024.0;
    let parts = steps.min(EXACT_MAX).floor();
    if parts < 1.0 {
        return 0.0;
    }
    let width = steps / parts;
    let middle = |part: u32| f64::from(part) * width + (width + 1.0) / 2.0;
    (0..parts as u32).map(|part| value(middle(part))).sum::<f64>() * width
}
