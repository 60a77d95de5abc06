//! Models whose variables are the intervals between merges, not sizes.

use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// Levels given by the number of requests between two merges into each.
///
/// # Derivation
/// A merge into level `l` comes every `I_l` requests. Every `I_{l+1}` requests the level is emptied
/// into the next. So its age when it is written runs through `I_l, 2 I_l, .., I_{l+1}`. Its mean
/// size when it is written is the mean of `unique` between the first and the last of these ages: a
/// difference of two [`mean_unique`](crate::Popularity::mean_unique). The same mean is taken if the
/// intervals do not divide each other.
///
/// * *Two levels at a time*: each merge into level `l` writes that size, so the stage costs the
///   size over `I_l`. A bound on the size says the same as an interval: level `l` grows to
///   `unique(I_{l+1})`.
/// * *Many levels at once*: if the next level is due too, a merge continues into it and writes
///   nothing into this one. Merges that end in level `l` come at the rate `1 / I_l - 1 / I_{l+1}`.
///
/// Source: Lim et al., FAST 2016, have both kinds of variables for their optimizer; the mean over
/// ages is derived here.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalModel {
    /// Requests per memtable.
    pub memtable: f64,
    /// Requests between two merges into each level, from level 1 to the last, ascending.
    pub intervals: Vec<f64>,
    /// True if a merge continues into the next level when that level is due too.
    pub many_at_once: bool,
}

impl IntervalModel {
    /// Returns intervals that start with `first` and grow by `ratio` while they are below `keys`.
    pub fn geometric(first: f64, ratio: f64, keys: f64) -> Vec<f64> {
        let next = |interval: &f64| Some(interval * ratio);
        std::iter::successors(Some(first), next).take_while(|&at| at <= keys.max(first)).collect()
    }

    /// Returns the costs per request.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let popularity = setting.popularity;
        let flushed = popularity.unique(self.memtable);
        let mut stages =
            vec![Stage::log(), Stage::new("memory -> 0", flushed / self.memtable, 0.0)];
        let first = self.intervals.first();
        let kept = first.map_or(0.0, |first| (first / self.memtable - 1.0) / 2.0).max(0.0);
        let mut levels = vec![Level { runs: kept, size: kept * flushed }];
        for (index, &interval) in self.intervals.iter().enumerate() {
            let next = self.intervals.get(index + 1).copied();
            let written = match next {
                None => popularity.live(),
                Some(next) => self.mean_between(setting, interval, next),
            };
            let rate = match next {
                Some(next) if self.many_at_once => 1.0 / interval - 1.0 / next,
                _ => 1.0 / interval,
            };
            let taken = if index == 0 {
                flushed * interval / self.memtable
            } else {
                popularity.unique(interval)
            };
            let name = format!("level {index} -> {}", index + 1);
            stages.push(Stage::new(name, written * rate, (taken + written) * rate));
            let size = match next {
                None => popularity.live(),
                Some(next) => (popularity.mean_unique(next) - taken / 2.0).max(0.0),
            };
            levels.push(Level { runs: 1.0, size });
        }
        Model::new(setting, Flushes::of_memtables(setting, self.memtable), stages, levels)
    }

    /// Returns the mean size written at the ages `first, 2 first, ..` up to `last`, as an integral
    /// between the middles of the steps.
    fn mean_between(&self, setting: &Setting<'_>, first: f64, last: f64) -> f64 {
        let integral = |at: f64| setting.popularity.mean_unique(at) * at;
        let half = first / 2.0;
        let oldest = last + first / 2.0;
        // With many levels at once, the last of the ages is written into the next level.
        let to = if self.many_at_once { (oldest - first).max(first) } else { oldest };
        let from = half.min(to / 2.0);
        (integral(to) - integral(from)) / (to - from)
    }
}
