//! Flushes of given sizes, or with keys that repeat, and a bound on runs.

use super::unions::Unions;
use super::unit::least;

/// The most flushes for which the optimum is computed exactly.
const EXACT_MAX: usize = 500;

/// The least cost of merging flushes of given sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct LeastOfSizes {
    /// Total of merge outputs, in the unit of the sizes.
    pub merged: f64,
    /// True if a schedule has exactly this cost; otherwise the cost is a lower bound. If sizes are
    /// within `x` of each other, the bound is within `x` of the optimum.
    pub is_exact: bool,
}

/// Returns the least total of merge outputs for flushes of `sizes`, in order, with at most
/// `runs_max` runs after each: exact for up to 500 flushes (in time that grows with their third
/// power), a lower bound for more.
#[must_use]
pub fn least_of_sizes(sizes: &[u64], runs_max: u64) -> LeastOfSizes {
    let runs_max = runs_max.max(1);
    if sizes.len() as u64 <= runs_max {
        return LeastOfSizes { merged: 0.0, is_exact: true };
    }
    let equal = sizes.windows(2).all(|pair| pair[0] == pair[1]);
    if equal {
        let merged = least(sizes.len() as u64, runs_max) as f64 * sizes[0] as f64;
        return LeastOfSizes { merged, is_exact: true };
    }
    if sizes.len() > EXACT_MAX {
        return LeastOfSizes { merged: bound(sizes, runs_max), is_exact: false };
    }
    LeastOfSizes { merged: exact(&Unions::of_sizes(sizes), runs_max), is_exact: true }
}

/// Returns the least total of merge outputs with at most `runs_max` runs after each flush, for
/// flushes whose merges have the sizes of `unions`: exact for up to 500 flushes. For more it is a
/// lower bound: each merge writes as little as any merge of as many flushes does.
#[must_use]
pub fn least_of_unions(unions: &Unions, runs_max: u64) -> LeastOfSizes {
    let runs_max = runs_max.max(1);
    if unions.flushes() as u64 <= runs_max {
        return LeastOfSizes { merged: 0.0, is_exact: true };
    }
    if unions.flushes() > EXACT_MAX {
        let merged = by_count(&unions.least_by_count(), runs_max) as f64;
        return LeastOfSizes { merged, is_exact: false };
    }
    LeastOfSizes { merged: exact(unions, runs_max), is_exact: true }
}

/// Returns the least total if merges of as many flushes write the same: the recursion of the module
/// with `outputs`, by the number of flushes, from one on.
pub(super) fn by_count(outputs: &[u64], runs_max: u64) -> u64 {
    let flushes = outputs.len();
    // The costs of `n` flushes with one run less. Without a run there is no flush.
    let mut fewer = vec![u64::MAX / 4; flushes + 1];
    fewer[0] = 0;
    for _ in 0..runs_max {
        let mut costs = vec![0; flushes + 1];
        for n in 1..=flushes {
            let merged = (2..=n).map(|t| costs[t - 1] + outputs[t - 1] + fewer[n - t]);
            costs[n] = merged.fold(fewer[n - 1], u64::min);
        }
        fewer = costs;
    }
    fewer[flushes]
}

/// The costs of all ranges of flushes, with a bound on runs that grows by one at a time.
struct RangeCosts<'a> {
    /// The number of flushes plus one.
    width: usize,
    unions: &'a Unions,
    /// The cost of flushes `from..end` at index `end * width + from`.
    costs: Vec<u64>,
}

impl RangeCosts<'_> {
    /// Returns the costs without any run, which allow no flush.
    fn new(unions: &Unions) -> RangeCosts<'_> {
        let width = unions.flushes() + 1;
        let mut costs = vec![u64::MAX / 4; width * width];
        (0..width).for_each(|at| costs[at * width + at] = 0);
        RangeCosts { width, unions, costs }
    }

    /// Allows one more run. This is one step of the recursion over the last flush that is merged
    /// into the oldest run. If sizes differ, the best such flush does not grow with the ends of the
    /// range, so every flush is tried.
    fn allow_one_more(&mut self) {
        let width = self.width;
        let mut costs = vec![0; width * width];
        // The costs of all ranges with the same first flush, ascending by their end.
        let mut of_first = vec![0; width];
        for from in (0..width - 1).rev() {
            of_first[from] = 0;
            let outputs = self.unions.from(from);
            for end in from + 1..width {
                let fewer = &self.costs[end * width..][..width];
                let merged = (from + 2..=end)
                    .map(|cut| of_first[cut - 1] + outputs[cut - from - 1] + fewer[cut]);
                of_first[end] = merged.fold(fewer[from + 1], u64::min);
                costs[end * width + from] = of_first[end];
            }
        }
        self.costs = costs;
    }
}

fn exact(unions: &Unions, runs_max: u64) -> f64 {
    let mut ranges = RangeCosts::new(unions);
    (0..runs_max).for_each(|_| ranges.allow_one_more());
    ranges.costs[unions.flushes() * ranges.width] as f64
}

/// Returns a lower bound of every schedule. It assumes that the largest flushes are those written
/// least often. Each of the `j` flushes that a tree writes least often is written at least as often
/// as it has steps to the left; in total they are written as often as in the best tree for flushes
/// of equal size.
pub(super) fn bound(sizes: &[u64], runs_max: u64) -> f64 {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable_by(|left, right| right.cmp(left));
    let smallest = sorted[sorted.len() - 1] as f64;
    let mut bound = least(sizes.len() as u64, runs_max) as f64 * smallest;
    let mut depth = 0_u64;
    let mut places = u128::from(runs_max);
    let mut left = u128::from(runs_max);
    for size in sorted {
        bound += (size as f64 - smallest) * depth as f64;
        left -= 1;
        if left == 0 {
            let factor = u128::from(depth) + u128::from(runs_max) + 1;
            places = places.saturating_mul(factor) / u128::from(depth + 2);
            depth += 1;
            left = places;
        }
    }
    bound
}
