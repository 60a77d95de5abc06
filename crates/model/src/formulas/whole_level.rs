//! Levels that are compacted as a whole.

use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// Levels that take what comes from above, piled up in one run, until they are above their size;
/// then all of a level is merged into the next and it begins anew, empty.
///
/// # Derivation
/// Level `l` takes `x_{l-1}` requests at a time. After the `j`-th of them it stands for
/// `j x_{l-1}` requests, and is written with size `unique(j x_{l-1})`. The first `j` for which that
/// is more than its size sends it down, with `x_l = j x_{l-1}` requests. The last level holds
/// every key and is written once for each `x_{L-1}` requests.
///
/// Source: Lim et al., FAST 2016, name this variant; here the steps are summed one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeLevelModel {
    /// Requests that a memtable takes.
    pub memtable: f64,
    /// Memtables that level 0 takes until it is merged.
    pub level0_merged: f64,
    /// Sizes of the levels from 1 to the one before the last, in entries of mean size.
    pub sizes: Vec<f64>,
}

/// More merges into one level than this are taken together: their mean is the middle's.
const STEPS_MAX: f64 = 64.0;

impl WholeLevelModel {
    /// Costs per request.
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
            // A merge reads what it takes, and what the one before it wrote.
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

/// Returns the mean of `value` over `1..=steps`.
fn mean_of_steps(steps: f64, value: impl Fn(f64) -> f64) -> f64 {
    let parts = steps.min(STEPS_MAX).floor();
    let width = steps / parts;
    let middle = |part: u32| f64::from(part) * width + (width + 1.0) / 2.0;
    (0..parts as u32).map(|part| value(middle(part))).sum::<f64>() / parts
}
