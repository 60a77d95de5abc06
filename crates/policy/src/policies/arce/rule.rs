//! The scores of merges, and the simulation that finds how long a saved run counts.

use std::ops::Range;
use std::sync::OnceLock;

/// Which merge is made of a stack. Sizes are in flushes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// The most runs.
    pub runs: usize,
    /// What a run costs while a memtable is written.
    pub price: f64,
    /// The memtables for which a saved run counts.
    pub horizon: f64,
}

/// A merge of neighbours.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Action {
    /// Their places in the stack, newest first.
    pub runs: Range<usize>,
    /// Their size.
    pub size: f64,
    /// What they save less what they take, in written memtables.
    pub score: f64,
}

/// A merge that was made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// What it wrote.
    pub size: f64,
    /// The flushes since.
    pub since: f64,
}

/// The difference in size that does not count: memtables are not equally large.
const SLACK: f64 = 0.05;

impl Rule {
    /// Returns true if flushes and reads have not yet cost what the last merge wrote.
    pub(super) fn is_busy(&self, len: usize, last: Work) -> bool {
        last.since * (1.0 + self.price * len as f64) < last.size - SLACK
    }

    /// Returns the best action, unless it is better to do nothing.
    pub(super) fn choose(&self, sizes: &[Option<f64>], last: Work) -> Option<Action> {
        if sizes.len() <= self.runs && self.is_busy(sizes.len(), last) {
            return None;
        }
        let actions = self.actions(sizes).into_iter();
        // Of equal ones the first: it writes least.
        let best = actions.reduce(|best, next| if next.score > best.score { next } else { best });
        best.filter(|best| best.score > 0.0 || sizes.len() > self.runs)
    }

    /// Returns for each number of runs the smallest merge of so many, the newest of equal ones.
    /// Each leaves at most as many runs as are allowed.
    pub(super) fn actions(&self, sizes: &[Option<f64>]) -> Vec<Action> {
        let mut sums = vec![(0.0, 0)];
        for (index, size) in sizes.iter().enumerate() {
            let (sum, busy) = sums[index];
            sums.push((sum + size.unwrap_or(0.0), busy + usize::from(size.is_none())));
        }
        let least = (sizes.len() + 1).saturating_sub(self.runs).max(2);
        let of_count = |count: usize| {
            let windows = sums.iter().zip(&sums[count..]).enumerate();
            let free = windows.filter(|(_, (from, end))| from.1 == end.1);
            let merges = free.map(|(index, (from, end))| (index, end.0 - from.0));
            let (from, size) =
                merges.reduce(|best, next| if next.1 < best.1 - SLACK { next } else { best })?;
            let score = self.score(sizes.len(), count, size);
            Some(Action { runs: from..from + count, size, score })
        };
        (least..=sizes.len()).filter_map(of_count).collect()
    }

    /// Returns the score of a merge of `count` of `len` runs, which writes `size`.
    fn score(&self, len: usize, count: usize, size: f64) -> f64 {
        // Each memtable that is written meanwhile is flushed, and is one run more.
        let first = 1.0 + self.price * len as f64;
        let takes =
            |memtables: f64| memtables * first + self.price * memtables * (memtables - 1.0) / 2.0;
        let half = first - self.price / 2.0;
        let goal = (size - SLACK).max(0.0);
        let memtables = 2.0 * goal / (half + (half * half + 2.0 * self.price * goal).sqrt());
        self.horizon * self.price * (count - 1) as f64 - takes(memtables.ceil().max(1.0))
    }

    /// Returns what `flushes` flushes into a stack of one run of `held` cost: all that is written,
    /// and the price of each run after each flush.
    fn cost(&self, held: f64, flushes: usize) -> f64 {
        let mut stack = vec![Some(held)];
        let mut last = Work::default();
        let mut cost = 0.0;
        for _ in 0..flushes {
            stack.insert(0, Some(1.0));
            cost += 1.0;
            last.since += 1.0;
            while let Some(Action { runs, size, .. }) = self.choose(&stack, last) {
                last = Work { size, since: 0.0 };
                cost += size;
                stack.splice(runs, [Some(size)]);
            }
            cost += self.price * stack.len() as f64;
        }
        cost
    }
}

/// The prices at which simulations are made: powers of two, from the least on.
const LEAST: f64 = 1.0 / 1024.0;
const PRICES: usize = 21;

/// The sizes from which simulations begin, in flushes: powers of two, from one on.
const SIZES: usize = 21;

/// The horizons that are simulated: powers of two, from one on.
const HORIZONS: i32 = 16;

/// The most flushes of a simulation. The fewest are as many as the tree has twice, and some more.
const FLUSHES_MAX: usize = 512;
const FLUSHES_MORE: usize = 16;

/// The best horizon at each price and size that was needed so far. It follows from them and the
/// bound on runs alone.
#[derive(Debug)]
pub(super) struct Horizons(Vec<OnceLock<f64>>);

impl Default for Horizons {
    fn default() -> Horizons {
        Horizons(vec![OnceLock::new(); PRICES * SIZES])
    }
}

impl Horizons {
    /// Returns the best horizon at the simulated price and size that are nearest to `price` and
    /// `held`.
    pub(super) fn at(&self, runs: usize, price: f64, held: f64) -> f64 {
        let step = |value: f64, steps: usize| {
            value.max(1.0).log2().round().min((steps - 1) as f64) as usize
        };
        let (price, size) = (step(price / LEAST, PRICES), step(held, SIZES));
        let horizon = &self.0[price * SIZES + size];
        let power = |step: usize| (step as f64).exp2();
        *horizon.get_or_init(|| best_horizon(runs, LEAST * power(price), power(size)))
    }
}

/// Returns the power of two with which flushes into a stack of one run of `held` cost least, the
/// least of equal ones.
fn best_horizon(runs: usize, price: f64, held: f64) -> f64 {
    let flushes = (2 * held as usize).saturating_add(FLUSHES_MORE).min(FLUSHES_MAX);
    let horizons = (0..HORIZONS).map(|power| f64::from(power).exp2());
    let costs =
        horizons.map(|horizon| (horizon, Rule { runs, price, horizon }.cost(held, flushes)));
    let best = costs.reduce(|best, next| if next.1 < best.1 { next } else { best });
    best.map_or(1.0, |(horizon, _)| horizon)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(runs: usize, price: f64, horizon: f64) -> Rule {
        Rule { runs, price, horizon }
    }

    fn stack(sizes: &[f64]) -> Vec<Option<f64>> {
        sizes.iter().copied().map(Some).collect()
    }

    #[test]
    fn a_merge_takes_whole_memtables_until_they_cost_what_it_writes() {
        let rule = of(8, 1.0, 8.0);
        // Four runs and a flush cost 5, and then 6, 7 and so on.
        for (size, takes) in [(2.0, 5.0), (5.0, 5.0), (5.1, 11.0), (11.0, 11.0), (11.1, 18.0)] {
            assert_eq!(rule.score(4, 3, size), 16.0 - takes, "{size}");
        }
        // Without reads, a memtable costs what its flush does, and nothing is saved.
        assert_eq!(of(8, 0.0, 8.0).score(4, 3, 7.0), -7.0);
    }

    #[test]
    fn the_smallest_merge_of_each_number_of_runs_is_scored() {
        let runs = |rule: Rule, sizes: &[Option<f64>]| -> Vec<Range<usize>> {
            rule.actions(sizes).into_iter().map(|action| action.runs).collect()
        };
        let sizes = stack(&[3.0, 2.0, 1.0, 1.02, 9.0]);
        assert_eq!(runs(of(8, 1.0, 8.0), &sizes), [2..4, 1..4, 0..4, 0..5]);
        // Too many runs: at most three may be left.
        assert_eq!(runs(of(3, 1.0, 8.0), &sizes), [1..4, 0..4, 0..5]);
        // Of equal ones the newest, also if it is larger by a few bytes.
        assert_eq!(runs(of(8, 1.0, 8.0), &stack(&[1.0, 1.01, 1.0]))[0], 0..2);
        let busy = [Some(3.0), None, Some(1.0), Some(5.0)];
        assert_eq!(runs(of(8, 1.0, 8.0), &busy), std::slice::from_ref(&(2..4)));
    }

    #[test]
    fn nothing_is_merged_for_reads_that_do_not_come() {
        let sizes = stack(&[1.0; 4]);
        let choose = |rule: Rule| rule.choose(&sizes, Work::default()).map(|action| action.runs);
        assert_eq!(choose(of(4, 0.0, 256.0)), None);
        assert_eq!(choose(of(3, 0.0, 256.0)), Some(0..2));
        assert_eq!(choose(of(4, 1.0, 8.0)), Some(0..4));
    }

    #[test]
    fn one_merge_runs_at_a_time_unless_there_are_too_many_runs() {
        let sizes = stack(&[1.0; 4]);
        let is_made = |runs, price, since| {
            let last = Work { size: 20.0, since };
            of(runs, price, 8.0).choose(&sizes, last).is_some()
        };
        // Four runs and a flush cost 5.
        assert!(!is_made(4, 1.0, 3.0) && is_made(4, 1.0, 4.0));
        assert!(is_made(3, 1.0, 0.0));
        // More reads end a merge sooner.
        assert!(is_made(4, 2.0, 3.0));
    }

    #[test]
    fn a_simulated_horizon_costs_no_more_than_others() {
        for price in [0.1, 1.0, 10.0] {
            let found = of(8, price, best_horizon(8, price, 64.0)).cost(64.0, 144);
            for horizon in [1.0, 4.0, 32.0, 256.0] {
                assert!(found <= of(8, price, horizon).cost(64.0, 144), "{price}, {horizon}");
            }
        }
        // One run is left whatever the horizon.
        assert_eq!(best_horizon(1, 1.0, 64.0), 1.0);
    }

    #[test]
    fn the_horizon_is_that_of_the_nearest_price_and_size() {
        let horizons = Horizons::default();
        assert_eq!(horizons.at(8, 1.1, 60.0), best_horizon(8, 1.0, 64.0));
        assert_eq!(horizons.at(8, 7.0, 8.0), best_horizon(8, 8.0, 8.0));
        assert_ne!(best_horizon(8, 1.0, 64.0), best_horizon(8, 8.0, 8.0));
        // Neither end of the table is passed.
        horizons.at(1, 0.0, 0.0);
        horizons.at(1, f64::INFINITY, f64::INFINITY);
    }
}
