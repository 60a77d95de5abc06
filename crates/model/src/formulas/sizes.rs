//! Level sizes as free variables.
//!
//! Lim et al. (FAST 2016) use a general solver. This module uses the structure of the sum: the cost
//! of a stage depends only on the interval of merges into its level and on the next size. So
//! dynamic programming from the last level back, on a grid of intervals and sizes, finds the least
//! total over any number of levels. Then each size moves to its exact optimum between its
//! neighbours.

use super::leveldb::{LeveledModel, Sweep};
use crate::Popularity;
use std::ops::RangeInclusive;

/// The points of the grids of sizes and of intervals.
const POINTS: usize = 48;

/// The most levels below level 0, without the last, that [`optimal`] returns.
pub const LEVELS_MAX: usize = 16;

/// The relative gain of a round of moves below which the reach shrinks.
const GAIN_MIN: f64 = 1e-6;

/// The greatest relative gain of moves over a total on the grid.
const GRID_ERROR_MAX: f64 = 0.003;

/// The least reach of a move, as a logarithm.
const REACH_MIN: f64 = 0.01;

/// The most rounds of moves over all sizes. About five are usual.
const ROUNDS_MAX: usize = 20;

/// Returns the sizes of least cost, in entries, for the levels from 1 to the one before the last.
/// There are as many as cost least, of the numbers in `levels`; numbers above [`LEVELS_MAX`] count
/// as that. All else is as in `model`; its sizes are ignored.
pub fn optimal(
    model: &LeveledModel,
    popularity: &Popularity,
    levels: RangeInclusive<usize>,
) -> Vec<f64> {
    let search = SizeSearch { model, popularity, first: model.memtable * model.level0_merged };
    let size_min = model.memtable.min(popularity.live()) / 2.0;
    let size_max = popularity.live().min(popularity.size_max()) * 0.999;
    if size_max <= size_min {
        return Vec::new();
    }
    let counts = (*levels.start()).min(LEVELS_MAX)..=(*levels.end()).min(LEVELS_MAX);
    let mut candidates = search.by_grid(size_min, size_max, counts);
    candidates.sort_by(|left, right| left.0.total_cmp(&right.0));
    let mut least = f64::INFINITY;
    for (total, points) in &mut candidates {
        // Only totals on the grid near the best one can still become the best by moves.
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

/// A size with its derived values.
#[derive(Clone, Copy, Debug)]
struct Point {
    size: f64,
    /// The requests whose unique keys have this size.
    inverse: f64,
    /// The requests of one sweep over a level of this size.
    interval: f64,
}

/// The least costs of a level and all below, by the interval of merges into it.
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

    /// Returns the cost of merges into a level of a size, for an interval.
    fn stage(&self, interval: f64, point: &Point) -> f64 {
        (self.popularity.unique(interval + point.inverse) + self.beside(interval)) / interval
    }

    /// Returns the same cost for each of many sizes.
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

    /// Returns the cost of merges into the last level.
    fn last_stage(&self, interval: f64) -> f64 {
        (self.popularity.live() + self.beside(interval)) / interval
    }

    /// Returns the cost of false overlap; 0 for merges of all of level 0.
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

    /// Returns the best points of the grid and their totals, for some numbers of levels around the
    /// best number.
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
        // The costs with only the last level, with one level more, and so on.
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
            // From some number of levels on, each further level costs more.
            let is_past = candidates.last().is_some_and(|(last, _)| total > *last);
            candidates.push((total, chosen));
            if is_past {
                break;
            }
        }
        candidates.split_off(candidates.len().saturating_sub(3))
    }

    /// Returns the best points for as many levels as there are rests. The rest behind the first
    /// level is the last one.
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

    /// Moves one size after the other to the least total, and returns this total.
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
                // No gain with this reach: shrink it, or stop.
                if reach < REACH_MIN {
                    break;
                }
                reach /= 4.0;
            }
        }
        total
    }

    /// Tries a size on both sides and at the extremum of the parabola through the three, and keeps
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

/// Returns points from one end to the other, both inclusive, with a constant factor between them.
fn geometric(from: f64, end: f64) -> Vec<f64> {
    let step = (end / from).ln() / (POINTS - 1) as f64;
    (0..POINTS).map(|index| from * (step * index as f64).exp()).collect()
}

/// Interpolates values at points with a constant factor between them. Beyond the points it returns
/// the last value.
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
