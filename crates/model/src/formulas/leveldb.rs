//! The LevelDB model, and what differs from it in the choice of what goes down.
//!
//! Source: Lim, Andersen, Kaminsky, "Towards Accurate and Fast Evaluation of Multi-Stage
//! Log-Structured Designs", FAST 2016: the model of LevelDB, and the one of RocksDB, which differs
//! in its interval.

use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// How a level that is full picks what goes down. It decides how long an entry stays in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Round and round in key order: what lies longest goes down next, and a level is thin where
    /// it was just compacted ([`Popularity::interval`](crate::Popularity::interval)).
    RoundRobin,
    /// Anywhere: each place of a level is as dense as any other.
    Random,
}

/// Levels that are compacted piece by piece, each piece with what it overlaps in the next level.
///
/// All sizes are numbers of entries of mean size.
#[derive(Clone, Debug, PartialEq)]
pub struct LeveledModel {
    /// Requests that a memtable takes.
    pub memtable: f64,
    /// Memtables that are merged from level 0 into level 1 together.
    pub level0_merged: f64,
    /// Memtables that stay in level 0, mean over time.
    pub level0_kept: f64,
    /// Sizes of the levels from 1 to the one before the last; the last holds every live key.
    pub sizes: Vec<f64>,
    /// How pieces are picked.
    pub sweep: Sweep,
    /// Of what a piece brings, how much more is rewritten in the next level since tables are not
    /// cut where pieces end. One table for each table that goes down: 1.
    pub false_overlap: f64,
}

impl LeveledModel {
    /// Sizes that begin with `level1` and grow by `ratio` as long as they are below `keys`.
    pub fn geometric(level1: f64, ratio: f64, keys: f64) -> Vec<f64> {
        let next = |size: &f64| Some(size * ratio);
        std::iter::successors(Some(level1), next).take_while(|&size| size < keys).collect()
    }

    /// Costs per request.
    ///
    /// Level 0 is merged into level 1 each `level0_merged` memtables. A piece of level `l` that
    /// goes down stands for all requests to its keys since the last piece of the same place went
    /// down: as many as the piece of level `l - 1` that brought the newest of it, and those in
    /// which level `l` is swept once. It is merged with what is there in level `l + 1`, and for
    /// each table that goes down one table's worth is rewritten beside it.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let all = |index: usize, _: &Above| {
            let last = Last { size: setting.popularity.live(), requests: f64::INFINITY };
            (index == self.sizes.len()).then_some(last)
        };
        self.with_last(setting, all, |_| 0.0)
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
    pub fn evaluate_grown(&self, setting: &Setting<'_>, skipped: f64) -> Model {
        let popularity = setting.popularity;
        let last = |index: usize, above: &Above| {
            let requests = (setting.requests - above.requests).max(0.0);
            let size = popularity.unique(requests).min(popularity.live());
            let is_last = self.sizes.get(index).is_none_or(|full| size <= *full);
            is_last.then_some(Last { size, requests })
        };
        self.with_last(setting, last, |interval| skipped * self.memtable / interval)
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
            let unique = popularity.unique(interval + stands_for);
            let merged = if last.is_some() { unique.min(popularity.live()) } else { unique };
            let name = match index {
                0 => "level 0 -> 1".to_owned(),
                _ => format!("level {index} -> {}", index + 1),
            };
            // A level that has always been there is not met empty.
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

/// What is known of the levels above one.
struct Above {
    /// Requests that are in them, mean over places.
    requests: f64,
    /// Requests after which they were full for the first time.
    filled: f64,
    /// Requests in which the one above was then swept for the first time.
    swept: f64,
}

/// The last level.
struct Last {
    size: f64,
    /// The requests that it stands for.
    requests: f64,
}
