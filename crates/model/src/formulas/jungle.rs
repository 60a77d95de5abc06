//! Jungle: levels of append tables.

use crate::cost::{Flushes, Level, Model, ReadCosts, Setting, Stage};
use crate::formulas::textbook::levels_needed;

/// Jungle's row of its table of costs.
///
/// `L` is the number of levels, `T` their ratio, `C` the bytes of an append table per live byte at
/// which it is rewritten. `B_w` and `B_s` are the index bytes written and held per value byte. The
/// write cost is `(L + 1/C) (1 + B_w)`, with one run per level and space `C T / (T - 1) (1 + B_s)`.
/// In the paper both are between key bytes over value bytes and `C` times that.
/// [`AppendNodes`](super::AppendNodes) predicts them.
///
/// A memtable is appended to the first level and written nowhere else. So the write cost counts
/// only what is really written. `write_cost_system` of simulations counts a flush first, one more.
/// `docs/model.md` says how far off the rest is.
///
/// Source: Ahn et al., "Jungle: Towards Dynamically Adjustable Key-Value Store by Combining
/// LSM-Tree and Copy-On-Write B+-Tree", HotStorage 2019.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JungleModel {
    /// Bytes of an append table per live byte at which it is rewritten; more than 1.
    pub garbage_ratio: f64,
    /// The ratio of the sizes of neighbouring levels.
    pub ratio: f64,
    /// What nodes add.
    pub index: IndexShare,
}

/// Bytes of nodes per byte of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IndexShare {
    /// Of what is written: the paper's `B_w`.
    pub written: f64,
    /// Of what files hold: the paper's `B_s`.
    pub held: f64,
}

impl IndexShare {
    /// Returns the same share for what is written and what is held.
    pub fn both(share: f64) -> IndexShare {
        IndexShare { written: share, held: share }
    }
}

impl JungleModel {
    /// Returns the live entries of the levels: `ratio` memtables in the first, all keys in the
    /// last.
    pub fn level_sizes(setting: &Setting<'_>, ratio: f64) -> Vec<f64> {
        let count = levels_needed(setting, ratio);
        let full = (1..count).map(|level| setting.memtable * ratio.powi(level as i32));
        full.chain(std::iter::once(setting.popularity.live())).collect()
    }

    /// Returns the costs per request, plus the log.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let sizes = JungleModel::level_sizes(setting, self.ratio);
        let count = sizes.len();
        let [written, held] = [self.index.written, self.index.held].map(|share| 1.0 + share);
        let mut stages = vec![Stage::log()];
        let mut levels = Vec::new();
        for (index, live) in sizes.into_iter().enumerate() {
            stages.push(Stage::new(format!("append to level {}", index + 1), written, 0.0));
            levels.push(Level { runs: 1.0, size: live * self.garbage_ratio * held });
        }
        let rewritten = written / self.garbage_ratio;
        stages.push(Stage::new("rewrite in place", rewritten, rewritten));
        let space_cost = self.garbage_ratio * self.ratio / (self.ratio - 1.0) * held;
        Model {
            stages,
            flushes: Flushes::unshared(),
            levels,
            worst_reads: Some(ReadCosts::worst(setting, count as f64)),
            space_cost,
        }
    }

    /// Returns the binary search steps of a lookup through the append tables of all levels, if a
    /// run holds `run_keys` keys: `L (log C + log R)`, or `(1 + p L) (log C + log R)` with filters.
    pub fn lookup_steps(&self, reads: &ReadCosts, run_keys: f64, with_filters: bool) -> f64 {
        let per_run = self.garbage_ratio.log2() + run_keys.log2();
        if !with_filters { reads.runs * per_run } else { (1.0 + reads.point_miss) * per_run }
    }
}
