use super::*;
use std::collections::BTreeMap;

/// Returns the recursion as it stands, for all numbers of flushes up to `flushes` and of runs up to
/// `runs_max`.
fn by_recursion(flushes: usize, runs_max: usize) -> Vec<Vec<u64>> {
    let mut costs = vec![vec![u64::MAX / 4; flushes + 1]];
    costs[0][0] = 0;
    for runs in 1..=runs_max {
        let mut next = vec![0; flushes + 1];
        for n in 1..=flushes {
            let cost = |t: usize| {
                let merged = if t > 1 { t as u64 } else { 0 };
                next[t - 1] + merged + costs[runs - 1][n - t]
            };
            next[n] = (1..=n).map(cost).min().unwrap();
        }
        costs.push(next);
    }
    costs
}

/// Returns the least cost of all schedules there are: after each flush any neighbours may be
/// merged. A state is the set of flushes that are the last of their run.
fn by_brute_force(sizes: &[u64], runs_max: u32) -> u64 {
    let mut states = BTreeMap::from([(0_u32, 0_u64)]);
    for (flush, _) in sizes.iter().enumerate() {
        let mut next: BTreeMap<u32, u64> = BTreeMap::new();
        for (ends, cost) in states {
            let before = ends | 1 << flush;
            // All subsets of the ends before in which the newest run ends where it must.
            let inner = before & !(1 << flush);
            let mut kept = inner;
            loop {
                let after = kept | 1 << flush;
                if after.count_ones() <= runs_max {
                    let merged = cost + written(sizes, before, after);
                    next.entry(after).and_modify(|c| *c = (*c).min(merged)).or_insert(merged);
                }
                if kept == 0 {
                    break;
                }
                kept = (kept - 1) & inner;
            }
        }
        states = next;
    }
    states.into_values().min().unwrap()
}

/// Returns what it takes to come from runs that end at `before` to runs that end at `after`.
fn written(sizes: &[u64], before: u32, after: u32) -> u64 {
    let mut total = 0;
    let mut bytes = 0;
    let mut runs = 0;
    for (flush, size) in sizes.iter().enumerate() {
        bytes += size;
        runs += before >> flush & 1;
        if after >> flush & 1 == 1 {
            total += if runs > 1 { bytes } else { 0 };
            bytes = 0;
            runs = 0;
        }
    }
    total
}

/// Total of merge outputs, most runs and sum of runs of a schedule.
fn carried_out(sizes: &[u64], takes: impl IntoIterator<Item = u64>) -> (u64, usize, usize) {
    let mut runs: Vec<u64> = Vec::new();
    let mut merged = 0;
    let mut most = 0;
    let mut sum = 0;
    let mut flushes = 0;
    for (size, takes) in sizes.iter().zip(takes) {
        let older = runs.split_off(runs.len() - takes as usize);
        let bytes = size + older.iter().sum::<u64>();
        merged += if takes > 0 { bytes } else { 0 };
        runs.push(bytes);
        most = most.max(runs.len());
        sum += runs.len();
        flushes += 1;
    }
    assert_eq!(flushes, sizes.len());
    (merged, most, sum)
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

#[test]
fn it_is_the_recursion() {
    let costs = by_recursion(400, 12);
    for (runs, costs) in costs.iter().enumerate().skip(1) {
        for (n, cost) in costs.iter().enumerate() {
            assert_eq!(least(n as u64, runs as u64), u128::from(*cost), "{n} flushes, {runs} runs");
        }
    }
}

#[test]
fn no_schedule_is_better() {
    for n in 1..=9 {
        for runs in 1..=5 {
            let found = by_brute_force(&vec![1; n], runs);
            assert_eq!(least(n as u64, runs.into()), u128::from(found), "{n} flushes, {runs} runs");
        }
    }
}

#[test]
fn no_schedule_is_better_for_sizes() {
    let mut draws = Draws(3);
    for round in 0..300 {
        let largest = [3, 10, 1000][round % 3];
        let sizes: Vec<u64> = (0..1 + draws.below(8)).map(|_| 1 + draws.below(largest)).collect();
        for runs in 1..=4 {
            let found = by_brute_force(&sizes, runs);
            let message = least_of_sizes(&sizes, runs.into());
            assert!(message.is_exact);
            assert_eq!(message.merged, found as f64, "{sizes:?}, {runs} runs");
            assert!(super::sizes::bound(&sizes, runs.into()) <= found as f64, "{sizes:?}");
        }
    }
}

#[test]
fn known_values() {
    let found = write_cost_least(1024, 4);
    assert!((found - 8.7832).abs() < 5e-5, "{found}");
    assert_eq!(least(0, 3), 0);
    assert_eq!(least(1_000_000, 1), 500_000_500_000 - 1);
    // A full tree of C(m + k, k) - 1 flushes costs at most m for each.
    assert!(write_cost_least(binomial(9 + 6, 6) as u64 - 1, 6) <= 9.0 + 1.0);
}

#[test]
fn a_schedule_costs_what_it_should() {
    for runs in 1..=7 {
        for n in (0..60).chain([200, 999, 1024]) {
            let (merged, most, _) = carried_out(&vec![1; n], schedule(n as u64, runs));
            assert!(most as u64 <= runs);
            assert_eq!(u128::from(merged), least(n as u64, runs), "{n} flushes, {runs} runs");
        }
    }
}

#[test]
fn more_runs_cost_less_and_more_flushes_more() {
    for runs in 1..20 {
        for n in [1, 10, 1000, 100_000, 10_000_000] {
            assert!(least(n, runs + 1) <= least(n, runs));
            assert!(least(n + 1, runs) >= least(n, runs));
        }
    }
}

#[test]
fn a_bound_for_many_flushes_is_close() {
    let mut draws = Draws(11);
    let sizes: Vec<u64> = (0..400).map(|_| 1000 + draws.below(20)).collect();
    for runs in [2, 4, 9] {
        let exact = least_of_sizes(&sizes, runs).merged;
        let bound = super::sizes::bound(&sizes, runs);
        assert!(bound <= exact && bound > 0.98 * exact, "{bound} for {exact}");
    }
}

/// Returns every schedule of few flushes, as the sum of its outputs and of its runs.
fn all_schedules(flushes: usize) -> Vec<(u64, usize)> {
    let mut found = Vec::new();
    let mut takes = vec![0; flushes];
    loop {
        let sizes = vec![1; flushes];
        let (merged, _, sum) = carried_out(&sizes, takes.iter().copied());
        found.push((merged, sum));
        // The next one: the last flush that can take one run more does.
        let mut at = flushes;
        loop {
            if at == 0 {
                return found;
            }
            at -= 1;
            takes[at] += 1;
            let runs = takes[..at].iter().fold(0, |runs, takes| runs + 1 - takes);
            if takes[at] <= runs {
                break;
            }
            takes[at] = 0;
        }
    }
}

#[test]
fn the_hull_is_below_all_schedules_and_close_to_the_best() {
    let flushes = 9;
    let all = all_schedules(flushes);
    let hull = Hull::new(flushes as u64);
    let mut nearest = f64::INFINITY;
    for (merged, runs) in all {
        let write_cost = 1.0 + merged as f64 / flushes as f64;
        let bound = hull.write_cost(runs as f64 / flushes as f64);
        assert!(bound <= write_cost + 1e-9, "{merged} merged, {runs} runs: {bound}");
        nearest = nearest.min(write_cost - bound);
    }
    assert!(nearest < 1e-6, "the hull is {nearest} away");
}

#[test]
fn the_hull_meets_schedules_of_many_flushes() {
    // With a price on runs, the recursion needs no bound on them.
    let flushes = 300;
    for price in [0.05, 0.2, 1.0, 3.0] {
        let mut costs = vec![0.0];
        for n in 1..=flushes {
            let cost = |t: usize| {
                let merged = if t > 1 { t as f64 } else { 0.0 };
                costs[t - 1] + merged + costs[n - t] + price * (n - t) as f64
            };
            costs.push((1..=n).map(cost).fold(f64::INFINITY, f64::min));
        }
        let exact = costs[flushes];
        let found = Hull::new(flushes as u64).total_at(price);
        assert!(found <= exact + 1e-6 && found > exact - 4.0, "{price}: {found} for {exact}");
    }
}

#[test]
fn points_of_the_hull_lie_on_it() {
    let hull = Hull::new(10_000);
    let points = hull.points(12);
    for pair in points.windows(2) {
        assert!(pair[0].runs_mean <= pair[1].runs_mean + 1e-9, "{pair:?}");
        assert!(pair[0].write_cost >= pair[1].write_cost - 1e-9, "{pair:?}");
    }
    for point in points {
        let at = hull.write_cost(point.runs_mean);
        assert!((at - point.write_cost).abs() < 1e-3 * point.write_cost, "{point:?}: {at}");
    }
    assert!(hull.write_cost(0.5).is_infinite());
}
