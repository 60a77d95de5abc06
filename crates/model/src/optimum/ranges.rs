//! Merges of parts of runs: each key range has a schedule of its own.

use super::hull::HullPoint;
use super::priced::{EXACT_MAX, Priced, PricedSchedule};
use super::unions::Unions;

/// Prices lie closer together as long as the mean runs at neighbours differ by more than this part.
const RUNS_APART: f64 = 0.04;

/// How often the ratio of two neighbouring prices is halved at most.
const HALVINGS: u32 = 8;

/// The least costs of merging flushes, if each of a few key ranges merges by itself: a merge takes
/// what neighbouring runs have in one range.
///
/// A lookup considers the runs that have an entry in its range. Ranges have equally many keys, so
/// that lookups of random keys reach each equally often. At a price of a run no range has to know
/// of the others: the least total is the sum of the least totals of ranges, which [`Priced`] finds
/// exactly. What runs cost at that price, taken off, leaves a lower bound for every schedule with a
/// given mean number of runs. A schedule close to it takes the exact schedules of two neighbouring
/// prices, some ranges from each.
///
/// If all flushes spread their keys evenly, every range repeats the costs of whole runs at a
/// smaller scale, and whole runs have the same bound: then merges of parts cannot write less at
/// equal mean runs. They can where keys come in order, or where some ranges are written more often
/// than others.
///
/// Source: the bound is Everett's, "Generalized Lagrange multiplier method" (1963).
#[derive(Clone, Debug)]
pub struct KeyRanges {
    /// Ascending by price. All ranges, at each price.
    at_prices: Vec<AtPrice>,
    flushes: usize,
    flushed: f64,
}

/// The schedules of all ranges at one price.
#[derive(Clone, Debug)]
struct AtPrice {
    /// The price of a run in one range, after one flush.
    price: f64,
    ranges: Vec<PricedSchedule>,
}

impl AtPrice {
    fn runs(&self) -> u64 {
        self.ranges.iter().map(|range| range.runs).sum()
    }

    fn merged(&self) -> f64 {
        self.ranges.iter().map(|range| range.merged).sum()
    }
}

/// The least write cost at a mean number of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastOfRanges {
    /// No schedule writes less: bytes of flushes and of merge outputs over bytes of flushes.
    pub bound: f64,
    /// What a schedule writes that was found.
    pub found: f64,
}

impl KeyRanges {
    /// The most flushes.
    pub const FLUSHES_MAX: usize = EXACT_MAX;

    /// Returns the costs for flushes whose merges have the sizes `unions`, one for each key range.
    /// `None` for more than 300 flushes, and if nothing was flushed.
    #[must_use]
    pub fn of_unions(unions: &[Unions]) -> Option<KeyRanges> {
        let flushes = unions.first()?.flushes();
        let flushed = unions.iter().map(|range| range.flushed() as f64).sum();
        if flushes > EXACT_MAX || flushed == 0.0 {
            return None;
        }
        let ranges: Vec<Priced> =
            unions.iter().map(|range| Priced::of_unions(range, None)).collect();
        let at = |price: f64| AtPrice {
            price,
            ranges: ranges.iter().map(|range| range.at_price(price)).collect(),
        };
        // Ranges without a flush have prices of zero.
        let prices = || ranges.iter().map(Priced::prices).filter(|[lowest, _]| *lowest > 0.0);
        let lowest = prices().map(|[lowest, _]| lowest).fold(f64::INFINITY, f64::min);
        let highest = prices().map(|[_, highest]| highest).fold(0.0, f64::max);
        let mut at_prices = vec![at(lowest)];
        between(&at, &mut at_prices, at(highest), HALVINGS);
        Some(KeyRanges { at_prices, flushes, flushed })
    }

    /// Returns the number of key ranges.
    #[must_use]
    pub fn count(&self) -> usize {
        self.at_prices[0].ranges.len()
    }

    /// Returns the least cost with at most `runs_mean` runs in a lookup's key range after a flush,
    /// mean over flushes and ranges. `None` if so few runs cannot be had.
    #[must_use]
    pub fn least(&self, runs_mean: f64) -> Option<LeastOfRanges> {
        let runs = runs_mean * (self.flushes * self.count()) as f64;
        let within = self.at_prices.iter().position(|at| at.runs() as f64 <= runs)?;
        let bound = |at: &AtPrice| at.merged() + at.price * (at.runs() as f64 - runs);
        let bound = self.at_prices.iter().map(bound).fold(0.0, f64::max);
        let found = self.mixed(within, runs);
        let write_cost = |merged: f64| 1.0 + merged / self.flushed;
        Some(LeastOfRanges { bound: write_cost(bound), found: write_cost(found) })
    }

    /// Returns what is written if ranges take the schedules of price number `within`, and go on to
    /// lower prices, one after the other, as long as `runs` allow it.
    fn mixed(&self, within: usize, runs: f64) -> f64 {
        let few = &self.at_prices[within];
        let (mut merged, mut left) = (few.merged(), runs - few.runs() as f64);
        let mut taken = few.ranges.clone();
        for lower in self.at_prices[..within].iter().rev() {
            for (taken, many) in taken.iter_mut().zip(&lower.ranges) {
                let more = many.runs as f64 - taken.runs as f64;
                if more <= left && many.merged < taken.merged {
                    left -= more;
                    merged += many.merged - taken.merged;
                    *taken = *many;
                }
            }
        }
        merged
    }

    /// Returns the curve of bounds, from few runs to many.
    #[must_use]
    pub fn points(&self) -> Vec<HullPoint> {
        let places = (self.flushes * self.count()) as f64;
        let point = |at: &AtPrice| HullPoint {
            runs_mean: at.runs() as f64 / places,
            write_cost: 1.0 + at.merged() / self.flushed,
        };
        self.at_prices.iter().rev().map(point).collect()
    }
}

/// Adds the prices between the last one of `before` and `highest`, and `highest`. They ascend.
fn between(
    at: &impl Fn(f64) -> AtPrice,
    before: &mut Vec<AtPrice>,
    highest: AtPrice,
    halvings: u32,
) {
    let last = &before[before.len() - 1];
    let few = highest.runs() as f64;
    if halvings > 0 && last.runs() as f64 > few * (1.0 + RUNS_APART) {
        let middle = at((last.price * highest.price).sqrt());
        between(at, before, middle, halvings - 1);
        between(at, before, highest, halvings - 1);
    } else {
        before.push(highest);
    }
}
