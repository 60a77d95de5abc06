//! The LevelDB model, and its variants with another choice of pieces.
//!
//! Source: Lim, Andersen, Kaminsky, "Towards Accurate and Fast Evaluation of Multi-Stage
//! Log-Structured Designs", FAST 2016: the model of LevelDB, and the one of RocksDB, which differs
//! in its interval.

use crate::cost::{Flushes, KeyOrder, Level, Model, Setting, Stage};

/// How a full level picks the piece to merge down. The pick decides how long an entry stays in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// In key order, again and again: the oldest piece is next, and a level is thin where it was
    /// just swept ([`Popularity::interval`](crate::Popularity::interval)).
    RoundRobin,
    /// At random: all places of a level are equally dense.
    Random,
}

/// Levels that are merged down piece by piece, each piece with its overlap in the next level.
///
/// All sizes are numbers of entries of mean size.
#[derive(Clone, Debug, PartialEq)]
pub struct LeveledModel {
    /// Requests per memtable.
    pub memtable: f64,
    /// Memtables that are merged from level 0 into level 1 together.
    pub level0_merged: f64,
    /// Memtables that stay in level 0, averaged over time.
    pub level0_kept: f64,
    /// Sizes of the levels from 1 to the one before the last; the last holds every live key.
    pub sizes: Vec<f64>,
    /// The pick of pieces.
    pub sweep: Sweep,
    /// The extra size rewritten in the next level, per size of a piece, because tables are not cut
    /// at the ends of pieces. One extra table per table merged down is 1.
    pub false_overlap: f64,
}

impl LeveledModel {
    /// Returns sizes that start with `level1` and grow by `ratio` while they are below `keys`.
    pub fn geometric(level1: f64, ratio: f64, keys: f64) -> Vec<f64> {
        let next = |size: &f64| Some(size * ratio);
        std::iter::successors(Some(level1), next).take_while(|&size| size < keys).collect()
    }

    /// Returns the costs per request.
    ///
    /// Level 0 is merged into level 1 after each `level0_merged` memtables. A piece of level `l`
    /// holds all requests to its keys since the same place was last merged down: as many as the
    /// piece of level `l - 1` that brought the newest entries, plus one sweep of level `l`. The
    /// piece is merged with its overlap in level `l + 1`. For each table that is merged down,
    /// [`false_overlap`](LeveledModel::false_overlap) more tables are rewritten.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let all = |index: usize, _: &Above| {
            let live = setting.popularity.live();
            let last = Last { size: live, requests: f64::INFINITY, live };
            (index == self.sizes.len()).then_some(last)
        };
        let steady = Setting { loaded: 0.0, ..*setting };
        self.with_last(&steady, all, |_| 0.0)
    }

    /// Returns the model of the policy `leveled`, whose tree has grown from nothing in all requests
    /// of `setting`.
    ///
    /// # Derivation
    /// *The last level* is the first that holds less than its size. It holds all requests except
    /// the newest, which are still in the levels above. The number of these newest requests differs
    /// from place to place. Its mean is a sum over the levels above. Level 0 adds the memtables
    /// that stay in it. A level that is swept in order adds half a sweep. A level whose pieces are
    /// picked at random adds all requests that it stands for, because all its places are equally
    /// old.
    ///
    /// *Moves.* During the first sweep of a full level, the next level is empty below each piece.
    /// So the pieces are moved, not merged. Let `f` be the requests that filled the level. When the
    /// sweep has gone on for `r` requests, the place that it reaches holds `f + r` requests. So the
    /// sweep passes the share `1 / (p (f + r))` of the key space per request, with `p` as below. It
    /// passes the whole key space in `f (exp(p) - 1)` requests.
    ///
    /// *Skipped tables.* A round-robin sweep continues with the first table that begins behind the
    /// last one that went down. Since that one went down, writes into the level have moved the
    /// borders of its tables. The sweep skips the rest of the table that now lies across the old
    /// border: half a table on average (`skipped` is 0.5). Each flush rewrites all of level 1. In a
    /// deeper level, a piece from above rewrites one place. The piece is as wide as the share of
    /// the key space that one memtable has of the `i` requests between two pieces at a place. Let
    /// `s` be `skipped` times that share. The sweep skips `s` for each table that it takes, so it
    /// takes the share `p = 1 / (1 + s)` of what it passes.
    ///
    /// A sweep takes `P` requests. A place goes down after `k` sweeps with probability `p
    /// (1-p)^(k-1)`. So the interval between two pieces of a place has the mean `T = P / p` and the
    /// mean square `P^2 (2 - p) / p^2`. If requests share no key, the level stands for half the
    /// mean square over the mean: `T (2 - p) / 2`. So `T` is a sweep's
    /// [`interval`](crate::Popularity::interval) over `2 - p`. It lies between a strict sweep (`p =
    /// 1`) and a random pick.
    ///
    /// This assumes that sweeps are independent. In level 1 they are not. How much a sweep skips
    /// follows from where it is, and sweeps settle in patterns that depend on the number of tables
    /// in the level. The interval of level 1 can lie anywhere between a random pick and a strict
    /// sweep, so the cost is off by up to a fifteenth.
    ///
    /// A pick by least overlap skips nothing (`skipped` is 0). All tables have the same bytes, so
    /// the table with the least overlap is the narrowest one. It lies where the level is densest,
    /// which is the place that has waited longest. So this pick is a strict sweep in another order.
    ///
    /// *Keys in ascending order.* No tables overlap, so every table is moved.
    pub fn evaluate_grown(&self, setting: &Setting<'_>, skipped: f64) -> Model {
        let live = setting.live();
        let last = |index: usize, above: &Above| {
            let requests = (setting.requests - above.requests).max(0.0);
            let size = setting.size_between(0.0, requests).min(live);
            let is_last = self.sizes.get(index).is_none_or(|full| size <= *full);
            is_last.then_some(Last { size, requests, live })
        };
        let skipped = |interval| skipped * self.memtable / interval;
        let mut model = self.with_last(setting, last, skipped);
        if setting.order == KeyOrder::Ascending {
            model.move_all();
        }
        let size: f64 = model.levels.iter().map(|level| level.size).sum();
        // The levels hold all there is, but their sizes are means over time and places.
        Model { space_cost: (size / live).max(1.0), ..model }
    }

    /// Returns the costs per request. `last` returns the properties of a level, by its index from
    /// 0, if it is the last one. `skipped` returns the part of a table that is skipped for each
    /// table that goes down, given the requests between two pieces from above.
    fn with_last(
        &self,
        setting: &Setting<'_>,
        last: impl Fn(usize, &Above) -> Option<Last>,
        skipped: impl Fn(f64) -> f64,
    ) -> Model {
        let popularity = setting.popularity;
        let flush = self.memtable;
        let mut interval = self.memtable * self.level0_merged;
        let flushed = popularity.unique(flush);
        let mut stages = vec![Stage::log(), Stage::new("memory -> 0", flushed / flush, 0.0)];
        let mut levels = vec![Level { runs: self.level0_kept, size: flushed * self.level0_kept }];
        let kept = flush * self.level0_kept;
        let mut above = Above { requests: kept, filled: kept, swept: 0.0 };
        for index in 0..=self.sizes.len() {
            let last = last(index, &above);
            let (size, stands_for) = match (&last, self.sizes.get(index)) {
                (None, Some(&size)) => (size, popularity.inverse(size)),
                (None, None) => break,
                (Some(last), _) => (last.size, last.requests),
            };
            let (taken, beside) = match index {
                0 => (flushed * self.level0_merged, 0.0),
                _ => {
                    let taken = popularity.unique(interval);
                    (taken, self.false_overlap * taken)
                }
            };
            let merged = match &last {
                Some(last) => setting.size_between(0.0, interval + last.requests).min(last.live),
                None => popularity.unique(interval + stands_for),
            };
            let name = match index {
                0 => "level 0 -> 1".to_owned(),
                _ => format!("level {index} -> {}", index + 1),
            };
            // A level that has always existed is never empty.
            let is_new = last.as_ref().is_some_and(|last| last.requests.is_finite());
            let moves = is_new && setting.requests < above.filled + above.swept;
            let share = if moves { 0.0 } else { 1.0 / interval };
            let reads = (taken + size + beside) * share;
            stages.push(Stage::new(name, (merged + beside) * share, reads));
            levels.push(Level { runs: 1.0, size });
            if last.is_some() {
                break;
            }
            let passed = 1.0 / (1.0 + skipped(interval));
            let (sweep, half) = match self.sweep {
                Sweep::RoundRobin => {
                    let sweep = popularity.interval(size);
                    (sweep / (2.0 - passed), sweep / 2.0)
                }
                Sweep::Random => (stands_for, stands_for),
            };
            interval += sweep;
            above.requests += half;
            above.filled += stands_for;
            above.swept = stands_for * passed.exp_m1();
        }
        Model::new(setting, Flushes::of_memtables(setting, flush), stages, levels)
    }
}

/// The properties of the levels above a level.
struct Above {
    /// Requests that are in these levels, averaged over the places of the sweep.
    requests: f64,
    /// Requests after which these levels were full for the first time.
    filled: f64,
    /// Requests of the first sweep of the level above after that.
    swept: f64,
}

/// The last level.
struct Last {
    size: f64,
    /// The requests whose entries the level holds.
    requests: f64,
    /// The size that the level cannot exceed.
    live: f64,
}
