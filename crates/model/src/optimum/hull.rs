//! Write cost against the mean number of runs.

use super::binomial::binomial;

/// The lower hull of what schedules can reach: no schedule has a smaller write cost at its mean
/// number of runs.
///
/// # Derivation
/// Give every run after every flush a price. In the tree of the schedule, a flush then costs 1 for
/// each step to the left on its path, and `price` for each step to the right. It costs 1 more if
/// the last step goes to the left, because it makes the flush above it merge.
///
/// Form a group of such a flush and the flushes that follow it to the right. Beside the path to its
/// first flush, a group of `c` flushes costs `1 / c + price * (c - 1) / 2` per flush. Take the `c`
/// for which this is least, and fill the tree with groups of `c` places, the cheapest first. The
/// total is the least possible if the flushes fill their groups exactly. Otherwise it is a lower
/// bound, off by less than the cost of `c` flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hull {
    flushes: u64,
}

/// A point of the hull: the least write cost at a mean number of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HullPoint {
    /// Runs after a flush, mean over flushes.
    pub runs_mean: f64,
    /// `write_cost_system`.
    pub write_cost: f64,
}

/// Places of a tree with equal cost per flush.
#[derive(Clone, Copy, Debug)]
struct Group {
    cost: f64,
    /// Steps to the right, per flush.
    right: f64,
    places: f64,
}

/// The total cost of all flushes at one price.
#[derive(Clone, Copy, Debug)]
struct Total {
    cost: f64,
    right: f64,
}

impl Hull {
    /// Returns the hull for `flushes` flushes of equal size that share no key.
    #[must_use]
    pub fn new(flushes: u64) -> Hull {
        Hull { flushes }
    }

    /// Returns the least `write_cost_system` with at most `runs_mean` runs after a flush, mean over
    /// all flushes. Infinite for less than one run.
    #[must_use]
    pub fn write_cost(&self, runs_mean: f64) -> f64 {
        if runs_mean < 1.0 {
            return f64::INFINITY;
        }
        if self.flushes == 0 {
            return 0.0;
        }
        // The bound is concave in the price: the interval is narrowed to its summit.
        let bound = |log_price: f64| self.bound(log_price.exp(), runs_mean);
        let mut low = -2.0 * self.log_flushes();
        let mut high = self.log_flushes();
        for _ in 0..60 {
            let left = low + (high - low) / 3.0;
            let right = high - (high - low) / 3.0;
            if bound(left) < bound(right) {
                low = left;
            } else {
                high = right;
            }
        }
        1.0 + bound(f64::midpoint(low, high)).max(0.0)
    }

    /// Returns `points` points of the hull, at least two, from few runs to many. They are evenly
    /// spread over the logarithm of the price of a run.
    #[must_use]
    pub fn points(&self, points: usize) -> Vec<HullPoint> {
        let first = self.log_flushes();
        let last = -self.log_flushes();
        let price = |index: usize| {
            let part = index as f64 / points.saturating_sub(1).max(1) as f64;
            (first + (last - first) * part).exp()
        };
        (0..points.max(2)).map(|index| self.point(price(index))).collect()
    }

    fn log_flushes(&self) -> f64 {
        (self.flushes as f64 + 1.0).ln()
    }

    /// Returns a bound on merge outputs per flush, at `runs_mean` runs.
    fn bound(&self, price: f64, runs_mean: f64) -> f64 {
        let total = self.total(price);
        total.cost / self.flushes as f64 - price * (runs_mean - 1.0)
    }

    fn point(&self, price: f64) -> HullPoint {
        let total = self.total(price);
        let flushes = self.flushes.max(1) as f64;
        HullPoint {
            runs_mean: 1.0 + total.right / flushes,
            write_cost: 1.0 + (total.cost - price * total.right) / flushes,
        }
    }

    /// Returns the total cost of merge outputs and of runs beyond the first.
    #[cfg(test)]
    pub(super) fn total_at(&self, price: f64) -> f64 {
        self.total(price).cost
    }

    fn total(&self, price: f64) -> Total {
        let mut groups = Vec::new();
        let mut limit = 1.0_f64.max(price);
        loop {
            groups.clear();
            add_groups(price, limit, self.flushes, &mut groups);
            if groups.iter().map(|group| group.places).sum::<f64>() >= self.flushes as f64 {
                break;
            }
            limit *= 1.5;
        }
        groups.sort_by(|left, right| left.cost.total_cmp(&right.cost));
        let mut left = self.flushes as f64;
        let mut total = Total { cost: 0.0, right: 0.0 };
        for group in groups {
            let taken = group.places.min(left);
            total.cost += taken * group.cost;
            total.right += taken * group.right;
            left -= taken;
            if left <= 0.0 {
                break;
            }
        }
        total
    }
}

/// Returns all groups that cost up to `limit`.
fn add_groups(price: f64, limit: f64, flushes: u64, groups: &mut Vec<Group>) {
    let mut add = |group: Group| {
        if group.cost <= limit {
            groups.push(group);
        }
    };
    let mean = |count: u64| 1.0 / count as f64 + price * (count - 1) as f64 / 2.0;
    let about = (2.0 / price).sqrt() as u64;
    let chain =
        (about.max(1)..=about + 2).min_by(|left, right| mean(*left).total_cmp(&mean(*right)));
    let chain = chain.unwrap_or(1).min(flushes.max(1));
    let cost = |left: u64, right: u64| left as f64 + price * right as f64;
    for right in (0..flushes).take_while(|right| cost(0, *right) <= limit) {
        add(Group { cost: cost(0, right), right: right as f64, places: 1.0 });
    }
    for left in (1..flushes).take_while(|left| cost(*left, 0) <= limit) {
        for right in (0..flushes).take_while(|right| cost(left, *right) <= limit) {
            add(Group {
                cost: cost(left, right) + mean(chain),
                right: right as f64 + (chain - 1) as f64 / 2.0,
                places: binomial(left - 1 + right, right) as f64 * chain as f64,
            });
            if right >= chain {
                add(Group {
                    cost: cost(left, right),
                    right: right as f64,
                    places: binomial(left + right - chain, left) as f64,
                });
            }
        }
    }
}
