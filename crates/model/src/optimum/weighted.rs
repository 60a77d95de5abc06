//! The optimum for writes and reads together.

use super::hull::{Hull, HullPoint};

/// The most flushes for which all corners of the hull are computed.
const EXACT_MAX: u64 = 400;

/// The points of the hull that are tried if there are more flushes.
const POINTS: usize = 400;

/// The schedule with the least weighted cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastWeighted {
    /// Its mean number of runs and its write cost.
    pub point: HullPoint,
    /// True if a schedule has exactly these costs; otherwise they lie on a [`Hull`], which no
    /// schedule is below.
    pub is_exact: bool,
}

/// Returns the schedule of merges of whole runs with the least `cost`, for `flushes` flushes of
/// equal size, at least one, that share no key. Exact for up to 400 flushes.
///
/// `cost` must grow with both the mean number of runs and the write cost, and must be concave, or
/// a growing function of something concave. A weighted sum is, and so is a product of powers,
/// whose logarithm is a weighted sum of logarithms.
///
/// # Derivation
/// Such a cost is least at a corner of the convex hull of all schedules, because on a line between
/// two corners it is nowhere below the smaller of the two. At a corner, some weighted sum of both
/// is least. For a price `p` of a run after a flush, the recursion of this module becomes
///
/// ```text
/// f(n) = min over t of f(t - 1) + (t if t > 1) + p * (n - t + 1) + f(n - t)
/// ```
///
/// because the run that flush `t` makes stays until the end. The corners between two known ones
/// are found with the price at which both cost the same.
///
/// Source: the sum of merges and of reads that pay for every run is the problem of Mathieu et al.,
/// "Bigtable merge compaction" (2014).
#[must_use]
pub fn least_weighted(flushes: u64, cost: impl Fn(&HullPoint) -> f64) -> LeastWeighted {
    let flushes = flushes.max(1);
    let is_exact = flushes <= EXACT_MAX;
    let points = if is_exact { corners(flushes) } else { Hull::new(flushes).points(POINTS) };
    let all = HullPoint { runs_mean: 1.0, write_cost: f64::INFINITY };
    let least = points.into_iter().min_by(|left, right| cost(left).total_cmp(&cost(right)));
    LeastWeighted { point: least.unwrap_or(all), is_exact }
}

/// Totals over all flushes of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    /// The size of all merge outputs.
    merged: u64,
    /// The runs after each flush.
    runs: u64,
}

impl Totals {
    fn cost(self, price: f64) -> f64 {
        self.merged as f64 + price * self.runs as f64
    }

    fn point(self, flushes: u64) -> HullPoint {
        let mean = |total: u64| total as f64 / flushes as f64;
        HullPoint { runs_mean: mean(self.runs), write_cost: 1.0 + mean(self.merged) }
    }
}

/// Returns the corners of the hull, few runs first.
fn corners(flushes: u64) -> Vec<HullPoint> {
    // A schedule that merges everything at each flush, and one that never merges.
    let merged = flushes * (flushes + 1) / 2 - 1;
    let few = Totals { merged: if flushes > 1 { merged } else { 0 }, runs: flushes };
    let many = Totals { merged: 0, runs: flushes * (flushes + 1) / 2 };
    let mut found = vec![few];
    add_between(flushes, few, many, &mut found);
    found.push(many);
    found.into_iter().map(|totals| totals.point(flushes)).collect()
}

/// Adds the corners between two others, in order.
fn add_between(flushes: u64, few: Totals, many: Totals, found: &mut Vec<Totals>) {
    if many.runs <= few.runs {
        return;
    }
    let price = (few.merged - many.merged) as f64 / (many.runs - few.runs) as f64;
    let corner = least_at(flushes, price);
    // Sums of whole numbers and of multiples of the price are exact to far less than this.
    if corner.cost(price) >= few.cost(price) * (1.0 - 1e-12) {
        return;
    }
    add_between(flushes, few, corner, found);
    found.push(corner);
    add_between(flushes, corner, many, found);
}

/// Returns a schedule with the least cost if each run after each flush costs `price`.
fn least_at(flushes: u64, price: f64) -> Totals {
    let mut best = vec![Totals::default()];
    let mut costs = vec![0.0];
    for count in 1..=flushes {
        // The flushes before the one that makes the oldest run.
        let cost = |before: u64| {
            let merged = if before > 0 { before + 1 } else { 0 };
            let own = merged as f64 + price * (count - before) as f64;
            costs[before as usize] + own + costs[(count - before - 1) as usize]
        };
        let mut before = 0;
        let mut least = f64::INFINITY;
        for tried in 0..count {
            let total = cost(tried);
            if total < least {
                (least, before) = (total, tried);
            }
        }
        let (left, right) = (best[before as usize], best[(count - before - 1) as usize]);
        let merged = if before > 0 { before + 1 } else { 0 };
        let totals = Totals {
            merged: left.merged + merged + right.merged,
            runs: left.runs + count - before + right.runs,
        };
        best.push(totals);
        costs.push(totals.cost(price));
    }
    best[flushes as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the totals of all schedules: after each flush some of the newest runs, or none, are
    /// merged with it.
    fn all(runs: &mut Vec<u64>, left: u64, totals: Totals, found: &mut Vec<Totals>) {
        if left == 0 {
            return found.push(totals);
        }
        let before = runs.clone();
        for taken in 0..=before.len() {
            let (stay, merge) = before.split_at(before.len() - taken);
            let merged = if taken == 0 { 0 } else { merge.iter().sum::<u64>() + 1 };
            *runs = stay.to_vec();
            runs.push(merge.iter().sum::<u64>() + 1);
            let after =
                Totals { merged: totals.merged + merged, runs: totals.runs + runs.len() as u64 };
            all(runs, left - 1, after, found);
        }
        *runs = before;
    }

    type Cost = fn(&HullPoint) -> f64;

    const COSTS: [Cost; 6] = [
        |point| point.write_cost + 0.1 * point.runs_mean,
        |point| point.write_cost + point.runs_mean,
        |point| point.write_cost + 3.0 * point.runs_mean,
        |point| point.write_cost * point.runs_mean,
        |point| point.write_cost * point.runs_mean.powf(0.4),
        |point| point.write_cost.powi(2) * point.runs_mean * (point.runs_mean + 20.0),
    ];

    #[test]
    fn no_schedule_costs_less() {
        for flushes in 1..=10 {
            let mut schedules = Vec::new();
            all(&mut Vec::new(), flushes, Totals::default(), &mut schedules);
            for cost in COSTS {
                let costs = schedules.iter().map(|totals| cost(&totals.point(flushes)));
                let least = costs.fold(f64::INFINITY, f64::min);
                let found = least_weighted(flushes, cost);
                assert!(found.is_exact);
                assert!((cost(&found.point) - least).abs() < 1e-9, "{flushes}: {found:?}, {least}");
            }
        }
    }

    /// The bound that is used for more flushes is never above the optimum, and little below it.
    #[test]
    fn the_hull_agrees() {
        for flushes in [50, EXACT_MAX] {
            let all_corners = corners(flushes);
            let points = Hull::new(flushes).points(POINTS);
            let least = |points: &[HullPoint], cost: Cost| {
                points.iter().map(cost).fold(f64::INFINITY, f64::min)
            };
            for cost in COSTS {
                let exact = least(&all_corners, cost);
                let bound = least(&points, cost);
                assert!(
                    bound <= exact * 1.001 && bound >= exact * 0.97,
                    "{flushes}: {bound}, {exact}"
                );
            }
        }
        assert!(!least_weighted(EXACT_MAX + 1, COSTS[0]).is_exact);
    }

    #[test]
    fn weights_move_the_optimum_from_one_run_to_no_merges() {
        let at = |price: f64| {
            least_weighted(200, |point| point.write_cost + price * point.runs_mean).point
        };
        assert_eq!(at(1e6).runs_mean, 1.0);
        assert_eq!(at(1e-9).write_cost, 1.0);
        let runs: Vec<f64> = [10.0, 1.0, 0.1, 0.01].map(|price| at(price).runs_mean).to_vec();
        assert!(runs.windows(2).all(|pair| pair[0] < pair[1]), "{runs:?}");
    }
}
