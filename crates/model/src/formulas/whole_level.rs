//! Levels that are merged down as a whole.

use crate::cost::{Flushes, KeyOrder, Level, Model, Setting, Stage};

/// Levels of one run that collect the merges from above until they exceed their size. Then all of
/// the level is merged into the next, and it starts again empty.
///
/// # Derivation
/// Level `l` receives `x_{l-1}` requests at a time. After the `j`-th time it holds `j x_{l-1}`
/// requests, and is written with size `unique(j x_{l-1})`. At the first `j` for which this exceeds
/// its size, the level is merged down, with `x_l = j x_{l-1}` requests. The last level holds every
/// key and is written once per `x_{L-1}` requests.
///
/// Source: Lim et al., FAST 2016, name this variant. The steps are summed one by one here.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeLevelModel {
    /// Requests per memtable.
    pub memtable: f64,
    /// Memtables per merge of level 0.
    pub level0_merged: f64,
    /// Sizes of the levels from 1 to the one before the last, in entries of mean size.
    pub sizes: Vec<f64>,
}

/// From this number on, merges into one level are summed by the midpoint rule.
const STEPS_MAX: f64 = 64.0;

impl WholeLevelModel {
    /// Returns the costs per request.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let popularity = setting.popularity;
        let flushed = popularity.unique(self.memtable);
        let mut stages =
            vec![Stage::log(), Stage::new("memory -> 0", flushed / self.memtable, 0.0)];
        let kept = (self.level0_merged - 1.0).max(0.0) / 2.0;
        let mut levels = vec![Level { runs: kept, size: kept * flushed }];
        let mut interval = self.memtable * self.level0_merged;
        let mut taken = flushed * self.level0_merged;
        for (index, &size) in self.sizes.iter().enumerate() {
            let steps = (popularity.inverse(size) / interval).floor() + 1.0;
            if steps.is_infinite() {
                break;
            }
            let written = mean_of_steps(steps, |step| popularity.unique(step * interval));
            let name = format!("level {index} -> {}", index + 1);
            // A merge reads its input from above and the output of the merge before it.
            let full = popularity.unique(steps * interval);
            let found = written - full / steps;
            stages.push(Stage::new(name, written / interval, (taken + found) / interval));
            levels.push(Level { runs: (steps - 1.0) / steps, size: found });
            interval *= steps;
            taken = full;
        }
        let last = popularity.live();
        let name = format!("level {} -> {}", levels.len() - 1, levels.len());
        stages.push(Stage::new(name, last / interval, (taken + last) / interval));
        levels.push(Level { runs: 1.0, size: last });
        Model::new(setting, Flushes::of_memtables(setting, self.memtable), stages, levels)
    }
}

impl WholeLevelModel {
    /// Returns the model of the policy `leveled(pick=whole_level)`, whose tree has grown from
    /// nothing in all requests of `setting`. `level0_kept` runs stay in level 0.
    ///
    /// # Derivation
    /// As for [`evaluate`](WholeLevelModel::evaluate), with three differences.
    ///
    /// *Moves.* The first of the `j` times that an empty level receives anything, nothing lies
    /// there, so it is moved and not written.
    ///
    /// *The last level* is the first that has never been merged down. It holds what has come down
    /// to it. That is written once per `x_{L-1}` requests. At a given moment the cost is the mean
    /// of the last such merge and the next.
    ///
    /// *Keys in ascending order.* Nothing overlaps, so every level is moved.
    pub fn evaluate_grown(&self, setting: &Setting<'_>, level0_kept: f64) -> Model {
        let popularity = setting.popularity;
        let live = setting.live();
        let flushed = popularity.unique(self.memtable);
        let mut stages =
            vec![Stage::log(), Stage::new("memory -> 0", flushed / self.memtable, 0.0)];
        let flushes = setting.requests / self.memtable;
        let kept = level0_kept.min(flushes);
        let mut levels = vec![Level { runs: kept, size: kept * flushed }];
        let mut above = self.memtable * kept;
        let mut interval = self.memtable * self.level0_merged;
        for index in 0..=self.sizes.len() {
            let name = format!("level {index} -> {}", index + 1);
            let reaching = (setting.requests - above).max(0.0);
            let size = self.sizes.get(index).copied().unwrap_or(f64::INFINITY);
            let steps = (popularity.inverse(size) / interval).floor() + 1.0;
            let held = |times: f64| setting.size_between(0.0, times * interval).min(live);
            if steps * interval > reaching {
                let times = (reaching / interval).floor();
                let written = |times: f64| if times > 1.0 { held(times) } else { 0.0 };
                let written_now = (written(times) + written(times + 1.0)) / 2.0;
                let taken = popularity.unique(interval);
                let reads = if written_now > 0.0 { taken + held(times) } else { 0.0 };
                stages.push(Stage::new(name, written_now / interval, reads / interval));
                levels.push(Level { runs: times.min(1.0), size: held(times) });
                break;
            }
            let full = popularity.unique(steps * interval);
            let first = popularity.unique(interval);
            let all = mean_of_steps(steps, |step| popularity.unique(step * interval));
            let written = all - first / steps;
            let found = all - full / steps;
            let taken = first * (steps - 1.0) / steps;
            stages.push(Stage::new(name, written / interval, (taken + found) / interval));
            levels.push(Level { runs: (steps - 1.0) / steps, size: found });
            above += interval * (steps - 1.0) / 2.0;
            interval *= steps;
        }
        let size: f64 = levels.iter().map(|level| level.size).sum();
        let flushes = Flushes::of_memtables(setting, self.memtable);
        let mut model = Model::new(setting, flushes, stages, levels);
        model.space_cost = (size / live).max(1.0);
        if setting.order == KeyOrder::Ascending {
            model.move_all();
        }
        model
    }
}

/// Returns the mean of `value` over `1..=steps`.
fn mean_of_steps(steps: f64, value: impl Fn(f64) -> f64) -> f64 {
    let parts = steps.min(STEPS_MAX).floor();
    let width = steps / parts;
    let middle = |part: u32| f64::from(part) * width + (width + 1.0) / 2.0;
    (0..parts as u32).map(|part| value(middle(part))).sum::<f64>() / parts
}
