//! Jungle: levels of append-only trees.

use crate::cost::{Flushes, Level, Model, ReadCosts, Setting, Stage};
use crate::formulas::textbook::levels_needed;

/// Jungle's row of its table of costs.
///
/// With `L` levels of ratio `T`, `C` for how much larger than its live bytes a tree may become, and
/// `B` for index bytes written per value byte: write cost `(L + 1/C) (1 + B)`, one run per level,
/// space `C T / (T - 1) (1 + B)`. The paper puts `B` between key over value bytes and `C` times
/// that.
///
/// Source: Ahn et al., "Jungle: Towards Dynamically Adjustable Key-Value Store by Combining
/// LSM-Tree and Copy-On-Write B+-Tree", HotStorage 2019.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JungleModel {
    /// Bytes of a tree over its live bytes at which it is rewritten; more than 1.
    pub garbage_ratio: f64,
    /// Size of a level over the one above.
    pub ratio: f64,
    /// Index bytes written per value byte.
    pub index_share: f64,
}

impl JungleModel {
    /// Costs per request; the log comes on top.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let count = levels_needed(setting, self.ratio);
        let index = 1.0 + self.index_share;
        let mut stages = vec![Stage::log()];
        let mut levels = Vec::new();
        for level in 1..=count {
            stages.push(Stage::new(format!("append to level {level}"), index, 0.0));
            let is_last = level == count;
            let full = setting.memtable * self.ratio.powi(level as i32);
            let live = if is_last { setting.popularity.live() } else { full };
            levels.push(Level { runs: 1.0, size: live * self.garbage_ratio * index });
        }
        let rewritten = index / self.garbage_ratio;
        stages.push(Stage::new("rewrite in place", rewritten, rewritten));
        let space_cost = self.garbage_ratio * self.ratio / (self.ratio - 1.0) * index;
        Model {
            stages,
            flushes: Flushes::unshared(),
            levels,
            worst_reads: Some(ReadCosts::worst(setting, f64::from(count))),
            space_cost,
        }
    }

    /// Steps of a lookup through the trees of all levels, in powers of two, where a run holds
    /// `run_keys` keys: `L (log C + log R)`, or `(1 + p L) (log C + log R)` with filters.
    pub fn lookup_steps(&self, reads: &ReadCosts, run_keys: f64, with_filters: bool) -> f64 {
        let per_run = self.garbage_ratio.log2() + run_keys.log2();
        if !with_filters { reads.runs * per_run } else { (1.0 + reads.point_miss) * per_run }
    }
}
