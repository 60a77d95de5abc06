//! Level sizes as free variables.
//!
//! Lim et al. (FAST 2016) hand the sizes to a general solver. Here the structure of the sum is
//! used: what a stage costs depends on the interval that its level is entered with and on the next
//! size alone, so the least total over any number of levels is found from the last level back, on a
//! grid of intervals and sizes; then each size is moved to its exact optimum between its
//! neighbours.

use crate::Popularity;
use crate::formulas::leveldb::{LeveledModel, Sweep};
use std::ops::RangeInclusive;

/// Points of the grid of sizes, and of intervals.
const POINTS: usize = 48;

/// Most levels below level 0, the last not counted.
const LEVELS_MAX: usize = 16;

/// Relative gain of a round of moves below which no further one of that reach is made.
const GAIN_MIN: f64 = 1e-6;

/// How much, relatively, the grid may be above what moves from it come to.
const GRID_ERROR_MAX: f64 = 0.003;

/// Reach of a move, as a logarithm, below which nothing is left to gain.
const REACH_MIN: f64 = 0.01;

/// Rounds of moves over all sizes, at most; some five are made.
const ROUNDS_MAX: usize = 20;

/// Returns the sizes of the levels from 1 to the one before the last that cost least, in entries,
/// with all else as in `model`, whose own sizes don't matter: `levels` of them, or as many as is
/// best.
pub fn optimal(model: &LeveledModel, popularity: &Popularity, levels: Option<usize>) -> Vec<f64> {
    let search = SizeSearch { model, popularity, first: model.memtable * model.level0_merged };
    let size_min = model.memtable.min(popularity.live()) / 2.0;
    let size_max = popularity.live().min(popularity.size_max()) * 0.999;
    if size_max <= size_min {
        return Vec::new();
    }
    let counts = match levels {
        Some(levels) => levels.min(LEVELS_MAX)..=levels.min(LEVELS_MAX),
        None => 0..=LEVELS_MAX,
    };
    let mut candidates = search.by_grid(size_min, size_max, counts);
    candidates.sort_by(|left, right| left.0.total_cmp(&right.0));
    let mut least = f64::INFINITY;
    for (total, points) in &mut candidates {
        // The grid is coarse, but not so coarse that more could still be gained.
        if *total < least * (1.0 + GRID_ERROR_MAX) {
            *total = search.polish(points, size_min, size_max);
            least = least.min(*total);
        }
    }
    let best = candidates.into_iter().min_by(|left, right| left.0.total_cmp(&right.0));
    best.map(|(_, points)| points.iter().map(|point| point.size).collect()).unwrap_or_default()
}

struct SizeSearch<'a> {
    model: &'a LeveledModel,
    popularity: &'a Popularity,
    /// Requests between two merges of level 0.
    first: f64,
}

/// A size with what follows from it.
#[derive(Clone, Copy, Debug)]
struct Point {
    size: f64,
    /// Requests that it stands for.
    inverse: f64,
    /// Requests in which a level of that size is swept once.
    interval: f64,
}

/// Least costs from a level on, by the interval it is entered with.
type Rest = Vec<f64>;

impl SizeSearch<'_> {
    fn point(&self, size: f64) -> Point {
        let inverse = self.popularity.inverse(size);
        let interval = match self.model.sweep {
            Sweep::RoundRobin => self.popularity.interval(size),
            Sweep::Random => inverse,
        };
        Point { size, inverse, interval }
    }

    /// Returns what it costs to merge into a level of a size, entered with an interval.
    fn stage(&self, interval: f64, point: &Point) -> f64 {
        (self.popularity.unique(interval + point.inverse) + self.beside(interval)) / interval
    }

    /// Returns the same for each of many sizes.
    fn stages<'p>(
        &self,
        interval: f64,
        points: &'p [Point],
    ) -> impl Iterator<Item = f64> + use<'_, 'p> {
        let beside = self.beside(interval);
        points.iter().map(move |point| {
            (self.popularity.unique(interval + point.inverse) + beside) / interval
        })
    }

    /// Returns what it costs to merge into the last level.
    fn last_stage(&self, interval: f64) -> f64 {
        (self.popularity.live() + self.beside(interval)) / interval
    }

    /// Returns what is rewritten beside; nothing where level 0 goes down as a whole.
    fn beside(&self, interval: f64) -> f64 {
        if interval <= self.first {
            return 0.0;
        }
        self.model.false_overlap * self.popularity.unique(interval)
    }

    fn total(&self, points: &[Point]) -> f64 {
        let mut interval = self.first;
        let mut total = 0.0;
        for point in points {
            total += self.stage(interval, point);
            interval += point.interval;
        }
        total + self.last_stage(interval)
    }

    /// Returns the best points of the grid for each of some counts of levels around the best, with
    /// their totals.
    fn by_grid(
        &self,
        size_min: f64,
        size_max: f64,
        counts: RangeInclusive<usize>,
    ) -> Vec<(f64, Vec<Point>)> {
        let sizes = geometric(size_min, size_max);
        let points: Vec<Point> = sizes.iter().map(|&size| self.point(size)).collect();
        let sweep_max = points.iter().map(|point| point.interval).fold(0.0, f64::max);
        let intervals = geometric(self.first, self.first + 2.0 * sweep_max);
        let stages: Vec<Vec<f64>> =
            intervals.iter().map(|&interval| self.stages(interval, &points).collect()).collect();
        // The costs with no level but the last, with one more, and so on.
        let last: Rest = intervals.iter().map(|&interval| self.last_stage(interval)).collect();
        let mut rests = vec![last];
        for _ in 1..LEVELS_MAX {
            let below = &rests[rests.len() - 1];
            let costs = intervals.iter().zip(&stages).map(|(&interval, stages)| {
                let cost = |(point, stage): (&Point, &f64)| {
                    stage + interpolated(&intervals, below, interval + point.interval)
                };
                points.iter().zip(stages).map(cost).fold(f64::INFINITY, f64::min)
            });
            rests.push(costs.collect());
        }
        let mut candidates: Vec<(f64, Vec<Point>)> = Vec::new();
        for count in counts {
            let mut chosen = self.walk(&points, &intervals, &rests[..count]);
            chosen.sort_by(|left, right| left.size.total_cmp(&right.size));
            let total = self.total(&chosen);
            // More levels than are worth it only cost more and more.
            let is_past = candidates.last().is_some_and(|(last, _)| total > *last);
            candidates.push((total, chosen));
            if is_past {
                break;
            }
        }
        candidates.split_off(candidates.len().saturating_sub(3))
    }

    /// Returns the best points for as many levels as there are rests, the rest behind the first
    /// level last.
    fn walk(&self, points: &[Point], intervals: &[f64], rests: &[Rest]) -> Vec<Point> {
        let mut interval = self.first;
        let mut chosen = Vec::new();
        for rest in rests.iter().rev() {
            let costs = self.stages(interval, points).zip(points).map(|(stage, point)| {
                let behind = interpolated(intervals, rest, interval + point.interval);
                (stage + behind, *point)
            });
            let Some((_, best)) = costs.min_by(|left, right| left.0.total_cmp(&right.0)) else {
                break;
            };
            interval += best.interval;
            chosen.push(best);
        }
        chosen
    }

    /// Moves one size after the other to where the total is least, and says what it is then.
    fn polish(&self, points: &mut [Point], size_min: f64, size_max: f64) -> f64 {
        let mut total = self.total(points);
        let mut reach = (size_max / size_min).ln() / (POINTS - 1) as f64;
        for _ in 0..ROUNDS_MAX {
            let before = total;
            for index in 0..points.len() {
                let above = if index == 0 { size_min } else { points[index - 1].size };
                let below = points.get(index + 1).map_or(size_max, |point| point.size);
                total = self.move_one(points, index, total, reach, above..=below);
            }
            if before - total <= GAIN_MIN * total {
                // Nothing is gained at this distance: nearer, or done.
                if reach < REACH_MIN {
                    break;
                }
                reach /= 4.0;
            }
        }
        total
    }

    /// Tries a size on both sides and at the summit of the parabola through the three, and keeps
    /// the best.
    fn move_one(
        &self,
        points: &mut [Point],
        index: usize,
        total: f64,
        reach: f64,
        allowed: RangeInclusive<f64>,
    ) -> f64 {
        let middle = points[index].size;
        let mut best = (total, points[index]);
        let mut trial = |step: f64| {
            let size = (middle * step.exp()).max(*allowed.start()).min(*allowed.end());
            points[index] = self.point(size);
            let total = self.total(points);
            if total < best.0 {
                best = (total, points[index]);
            }
            total
        };
        let smaller = trial(-reach);
        let larger = trial(reach);
        let curve = smaller + larger - 2.0 * total;
        if curve > 0.0 {
            trial((reach * (smaller - larger) / (2.0 * curve)).clamp(-2.0 * reach, 2.0 * reach));
        }
        points[index] = best.1;
        best.0
    }
}

/// So many points between two ends, both included, each the same factor above the last.
fn geometric(from: f64, end: f64) -> Vec<f64> {
    let step = (end / from).ln() / (POINTS - 1) as f64;
    (0..POINTS).map(|index| from * (step * index as f64).exp()).collect()
}

/// Returns the value at a place between points that are a constant factor apart; the last one
/// beyond them.
fn interpolated(places: &[f64], values: &[f64], at: f64) -> f64 {
    let last = places.len() - 1;
    let step = (places[last] / places[0]).ln() / last as f64;
    let position = (at / places[0]).ln() / step;
    if position >= last as f64 {
        return values[last];
    }
    let whole = position.max(0.0).floor();
    let part = position.max(0.0) - whole;
    let index = whole as usize;
    values[index] + part * (values[index + 1] - values[index])
}
