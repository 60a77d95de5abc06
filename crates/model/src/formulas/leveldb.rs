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
    /// holds all requests to its keys since the last merge of the same place: as many as the piece
    /// of level `l - 1` that brought its newest entries, plus those of one sweep of level `l`. It
    /// is merged with its overlap in level `l + 1`, and for each table that is merged down one more
    /// table is rewritten.
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
    /// *The last level* is the first that holds less than its size. It holds what was requested and
    /// has come down to it: all requests but the newest, which are in the levels above. How many
    /// those are differs from place to place, and is in the mean those of the memtables that stay
    /// in level 0 and, for each level, half of a sweep, or all that it stands for where no place is
    /// older than another.
    ///
    /// *Moves.* While a full level is swept for the first time, there is nothing below what it
    /// gives, which is moved down. A place that the sweep comes to after `r` requests stands for
    /// the `f` that filled the level and these, so the share `1 / (p (f + r))` of the key space is
    /// passed per request, with `p` as below: all of it in `f (exp(p) - 1)` requests.
    ///
    /// *Skipped tables.* A round-robin sweep goes on with the first table that begins behind the
    /// last one that went down. As often as the level was written there since, the borders of
    /// tables have moved, and what is left of the table across is skipped: half a table's worth in
    /// the mean (`skipped`, 0.5). Level 1 is written all over by each flush; a piece that comes
    /// down to a deeper level stands for one memtable of the `i` requests between two pieces at a
    /// place, so it is that share of the key space wide. With `s`, `skipped` times that share,
    /// skipped for each table, a sweep takes the share `p = 1 / (1 + s)` of what it passes. Then a
    /// place goes down after `k` sweeps of `P` requests with probability `p (1-p)^(k-1)`; the mean
    /// `T` of that is `P / p`, the mean square `P^2 (2 - p) / p^2`, so, no key shared, what the
    /// level stands for, half the mean square over the mean, is `T (2 - p) / 2`. So `T` is a
    /// sweep's [`interval`](crate::Popularity::interval) over `2 - p`: between a strict sweep, `p =
    /// 1`, and a random choice.
    ///
    /// That takes sweeps to be independent. In level 1 they are not: how much is skipped follows
    /// from where the sweep is, and sweeps settle in patterns that hang on how many tables the
    /// level has. Its interval is then anywhere between that of a random choice and that of a
    /// strict sweep, and the cost up to a fifteenth off.
    ///
    /// A choice by least overlap skips nothing (`skipped` 0): tables have equally many bytes, so
    /// the one with least below is the narrowest, which is where the level is densest, which is
    /// where it was longest not taken from. So it is a strict sweep in another order.
    ///
    /// *Keys in ascending order.* Nothing overlaps, so every table is moved.
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

    /// `last` says of a level, by its number from 0, whether it is the last one; `skipped` how much
    /// of a table is skipped for each that goes down, by the requests between two pieces from
    /// above.
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
    /// Requests that are in these levels, averaged over places.
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
