//! Jungle: levels of append-only trees.

use crate::cost::{Flushes, Level, Model, ReadCosts, Setting, Stage};
use crate::formulas::textbook::levels_needed;

/// Jungle's row of its table of costs.
///
/// `L` is the number of levels, `T` their ratio, `C` the bytes of a tree per live byte at which it
/// is rewritten, `B_w` the index bytes written per value byte, and `B_s` those held. The write cost
/// is `(L + 1/C) (1 + B_w)`, with one run per level and space `C T / (T - 1) (1 + B_s)`. In the
/// paper both are between key bytes over value bytes and `C` times that. [`TreeNodes`] predicts
/// them.
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

    /// Returns the binary search steps of a lookup through the trees of all levels, if a run holds
    /// `run_keys` keys: `L (log C + log R)`, or `(1 + p L) (log C + log R)` with filters.
    pub fn lookup_steps(&self, reads: &ReadCosts, run_keys: f64, with_filters: bool) -> f64 {
        let per_run = self.garbage_ratio.log2() + run_keys.log2();
        if !with_filters { reads.runs * per_run } else { (1.0 + reads.point_miss) * per_run }
    }
}

/// The nodes of copy-on-write B+-trees that take batches in.
///
/// A batch writes each leaf anew in which it has a key. If a tree has `1/s` times the entries of
/// the batch, and a leaf has `f` entries, a share of `1 - (1 - s)^f` of all leaves has such a key.
/// So a batch writes `(1 - (1 - s)^f) / s` references for each of its entries: nearly `1/s`, if
/// leaves have many entries. Inner nodes are less than a percent of leaves, and are left out.
///
/// In the last level a tree always has all its entries. In the levels above, ranges begin empty,
/// take `k` batches in, and go down: the tree then has 1, 2, ... `k` times the entries of the
/// batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeNodes {
    /// Bytes of a key with its reference in a leaf.
    pub reference_bytes: f64,
    /// Bytes of a leaf.
    pub leaf_bytes: f64,
    /// Bytes of an entry, key and value.
    pub entry_bytes: f64,
}

/// Bytes of nodes in the store.
const NODE_BYTES: f64 = 4096.0;

/// Bytes of a reference besides its key, as in the paper: 16 with a key of eight bytes.
const REFERENCE_BYTES: f64 = 8.0;

impl TreeNodes {
    /// Returns the nodes of the store for keys of `key_bytes` that share no prefixes.
    pub fn of_keys(key_bytes: f64, entry_bytes: f64) -> TreeNodes {
        let reference_bytes = key_bytes + REFERENCE_BYTES;
        TreeNodes { reference_bytes, leaf_bytes: NODE_BYTES, entry_bytes }
    }

    /// Returns the references that a batch writes per entry of its own, in a tree that has it as
    /// `share` of its entries.
    fn references(&self, share: f64) -> f64 {
        let share = share.clamp(1e-9, 1.0);
        let entries = (self.leaf_bytes / self.reference_bytes).max(1.0);
        (1.0 - (1.0 - share).powf(entries)) / share
    }

    /// Returns the references that a batch writes per entry, averaged over the `batches` of a range
    /// that begins empty.
    fn references_while_growing(&self, batches: f64) -> f64 {
        let count = batches.round().max(1.0) as u32;
        let all = (1..=count).map(|batch| self.references(1.0 / f64::from(batch)));
        all.sum::<f64>() / f64::from(count)
    }

    /// Returns what nodes add to trees in levels that hold `live`, the first level first, and take
    /// memtables of `memtable` in, both in one unit. Each tree is rewritten when its file has
    /// `garbage_ratio` times its live bytes. At that point a file holds `held`, or with `in_mean`
    /// half way to it.
    pub fn share(
        &self,
        memtable: f64,
        live: &[f64],
        garbage_ratio: f64,
        in_mean: bool,
    ) -> IndexShare {
        let above = std::iter::once(memtable).chain(live.iter().copied());
        let times: Vec<f64> = live.iter().zip(above).map(|(own, above)| own / above).collect();
        let Some((last, upper)) = times.split_last() else { return IndexShare::default() };
        let appended = self.references(1.0 / last.max(1.0));
        let growing: f64 = upper.iter().map(|times| self.references_while_growing(*times)).sum();
        let rewritten = 1.0 / garbage_ratio;
        let values = live.len() as f64 + rewritten;
        let dead = (garbage_ratio - 1.0) * if in_mean { 0.5 } else { 1.0 };
        let reference = self.reference_bytes / self.entry_bytes;
        IndexShare {
            written: (growing + appended + rewritten) / values * reference,
            held: (1.0 + dead * appended) / (1.0 + dead) * reference,
        }
    }
}
