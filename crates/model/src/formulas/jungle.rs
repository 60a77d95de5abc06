//! Jungle: levels of append-only trees.

use crate::cost::{Flushes, Level, Model, ReadCosts, Setting, Stage};
use crate::formulas::textbook::levels_needed;

/// Jungle's row of its table of costs.
///
/// `L` is the number of levels, `T` their ratio, `C` the bytes of a tree per live byte at which it
/// is rewritten, and `B` the index bytes written per value byte. The write cost is
/// `(L + 1/C) (1 + B)`, with one run per level and space `C T / (T - 1) (1 + B)`. In the paper `B`
/// is between key bytes over value bytes and `C` times that.
///
/// A memtable is appended to the first level and written nowhere else. So the write cost is that
/// of what is really written. `write_cost_system` of simulations counts a flush first, one more.
/// `docs/model.md` says how far off the rest is.
///
/// Source: Ahn et al., "Jungle: Towards Dynamically Adjustable Key-Value Store by Combining
/// LSM-Tree and Copy-On-Write B+-Tree", HotStorage 2019.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JungleModel {
    /// Bytes of a tree per live byte at which it is rewritten; more than 1.
    pub garbage_ratio: f64,
    /// The ratio of the sizes of neighbouring levels.
    pub ratio: f64,
    /// Index bytes written per value byte.
    pub index_share: f64,
}

impl JungleModel {
    /// Returns the costs per request, plus the log.
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

    /// Returns the binary search steps of a lookup through the trees of all levels, if a run holds
    /// `run_keys` keys: `L (log C + log R)`, or `(1 + p L) (log C + log R)` with filters.
    pub fn lookup_steps(&self, reads: &ReadCosts, run_keys: f64, with_filters: bool) -> f64 {
        let per_run = self.garbage_ratio.log2() + run_keys.log2();
        if !with_filters { reads.runs * per_run } else { (1.0 + reads.point_miss) * per_run }
    }
}
