//! Flushes of equal size.

use super::binomial::binomial;

/// The places that a number of flushes takes in a tree with at most `runs_max - 1` steps to the
/// right on each path. Places with the fewest steps to the left are taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Filling {
    /// The steps to the left of the first places that are not all taken; all places with fewer are
    /// taken.
    depth: u64,
    /// The number of taken places with `depth` steps, at least one.
    taken: u64,
    /// Flushes with fewer than `depth` steps to the left.
    above: u64,
    /// The sum of (steps to the left + 1) over all flushes.
    steps: u128,
    /// The number of flushes with something on their left: these flushes are merged.
    merged: u128,
}

impl Filling {
    /// Returns the taken places. `flushes` and `runs_max` must be at least 1.
    fn of(flushes: u64, runs_max: u64) -> Filling {
        let k = u128::from(runs_max);
        let mut depth = 0;
        let mut above = 0;
        let mut left = flushes;
        let mut places = k;
        let mut steps = 0;
        let mut merged = 0;
        while u128::from(left) > places {
            let here = places as u64;
            left -= here;
            above += here;
            steps += u128::from(depth + 1) * places;
            // Each of these places has the first of the next places on its left.
            merged += places;
            places = next_places(places, k, depth);
            depth += 1;
        }
        if depth > 0 {
            merged -= last_places(depth, k);
            merged += parents(left, depth, runs_max);
        }
        steps += u128::from(depth + 1) * u128::from(left);
        Filling { depth, taken: left, above, steps, merged }
    }
}

/// Returns the number of places with `depth + 1` steps to the left, given the `places` with
/// `depth`.
fn next_places(places: u128, k: u128, depth: u64) -> u128 {
    let factor = u128::from(depth) + k + 1;
    places.checked_mul(factor).map_or(u128::MAX, |product| product / u128::from(depth + 2))
}

/// Returns the number of places with `depth - 1` steps to the left.
fn last_places(depth: u64, k: u128) -> u128 {
    binomial(depth - 1 + k as u64, depth)
}

/// Returns the number of places with `depth - 1` steps to the left that hold the last `left`
/// flushes: as few as possible, so places with few steps to the right, which have most room, first.
fn parents(left: u64, depth: u64, runs_max: u64) -> u128 {
    let mut left = u128::from(left);
    let mut parents = 0;
    for right in 0..runs_max {
        let room = u128::from(runs_max - right);
        let here = binomial(depth - 1 + right, right).min(left.div_ceil(room));
        parents += here;
        left = left.saturating_sub(here.saturating_mul(room));
        if left == 0 {
            break;
        }
    }
    parents
}

/// Returns `f_k(n)`: the exact least total of merge outputs, in flushes, for `flushes` flushes of
/// size one with at most `runs_max` runs after each. The time is proportional to the `runs_max`-th
/// root of the flushes: for 100,000 flushes 7 us with 2 runs, less than 1 us with 4.
#[must_use]
pub fn least(flushes: u64, runs_max: u64) -> u128 {
    let runs_max = runs_max.max(1);
    if flushes <= runs_max {
        return 0;
    }
    let n = u128::from(flushes);
    if runs_max == 1 {
        return n * (n + 1) / 2 - 1;
    }
    let filling = Filling::of(flushes, runs_max);
    filling.steps - (n - filling.merged)
}

/// Returns the least `write_cost_system` of any policy that leaves at most `runs_max` runs after
/// each of `flushes` flushes of equal size that do not overlap: `1 + f_k(n) / n`.
///
/// ```
/// let cost = lsmith_model::optimum::write_cost_least(1024, 4);
/// assert!((cost - 8.7832).abs() < 5e-5);
/// ```
#[must_use]
pub fn write_cost_least(flushes: u64, runs_max: u64) -> f64 {
    if flushes == 0 {
        return 0.0;
    }
    1.0 + least(flushes, runs_max) as f64 / flushes as f64
}

/// Returns a schedule with the cost [`least`]: for each flush in turn the number of newest runs
/// that it is merged with; 0 if it stays a run of its own.
#[must_use]
pub fn schedule(flushes: u64, runs_max: u64) -> Schedule {
    let mut schedule = Schedule { waiting: Vec::new() };
    schedule.descend(flushes, runs_max.max(1));
    schedule
}

/// Iterates over the merges of a [`schedule`].
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The later flushes on the path to the current one, each with the flushes that follow it
    /// within its part of the tree.
    waiting: Vec<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    runs_taken: u64,
    after: u64,
    runs_max: u64,
}

impl Schedule {
    /// Goes to the first flush of a tree of `flushes`.
    fn descend(&mut self, mut flushes: u64, runs_max: u64) {
        while flushes > 0 {
            let before = left_of_root(flushes, runs_max);
            self.waiting.push(Waiting {
                runs_taken: before.min(runs_max),
                after: flushes - 1 - before,
                runs_max,
            });
            flushes = before;
        }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let Waiting { runs_taken, after, runs_max } = self.waiting.pop()?;
        self.descend(after, runs_max - 1);
        Some(runs_taken)
    }
}

/// Returns how many of `flushes` come before the one at the root.
fn left_of_root(flushes: u64, runs_max: u64) -> u64 {
    if flushes <= runs_max {
        return 0;
    }
    if runs_max == 1 {
        return flushes - 1;
    }
    let Filling { depth, taken, .. } = Filling::of(flushes, runs_max);
    let mut left = u128::from(taken);
    let mut before = 0;
    // Places on the left with fewer than `depth` steps, the one to the left of the root counted.
    let full: u128 = (0..depth - 1).map(|a| binomial(a + runs_max, a + 1)).sum();
    for right in 0..runs_max {
        let room = u128::from(runs_max - right);
        let (here, there) = match depth {
            1 => (u128::from(right == 0), u128::from(right > 0)),
            _ => {
                let all = binomial(depth - 1 + right, right);
                let here = binomial(depth - 2 + right, right);
                (here, all - here)
            }
        };
        let taken = here.saturating_mul(room).min(left);
        before += taken;
        left = (left - taken).saturating_sub(there.saturating_mul(room));
    }
    (full + before) as u64
}
