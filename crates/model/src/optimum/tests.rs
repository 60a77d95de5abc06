use super::binomial::binomial;
use super::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// Evaluates the recursion directly, for all numbers of flushes up to `flushes` and of runs up to
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

/// Returns the least cost of all schedules: after each flush any neighbours may be merged. A state
/// is the set of flushes that are the last of their run.
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

/// Returns the cost of merging runs that end at `before` into runs that end at `after`.
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

/// A run: the bytes of each key's entry, and whether it is a tombstone.
type Keys = BTreeMap<u64, (u64, bool)>;

/// Totals of a schedule: merge outputs, the most runs, and the sum of runs that are not empty.
type Totals = (u64, usize, usize);

/// Adds the totals of all schedules of `left`, if `runs` are there: after each flush any neighbours
/// may be merged.
fn all_of_keys(runs: &[Keys], left: &[Keys], so_far: Totals, found: &mut Vec<Totals>) {
    let Some((flush, left)) = left.split_first() else {
        return found.push(so_far);
    };
    let before: Vec<&Keys> = runs.iter().chain([flush]).collect();
    // Each bit says whether a run is merged with the next newer one.
    for joined in 0..1_u32 << (before.len() - 1) {
        let mut after: Vec<Keys> = Vec::new();
        let mut is_output = Vec::new();
        for (index, run) in before.iter().enumerate() {
            if index > 0 && joined >> (index - 1) & 1 == 1 {
                after.last_mut().unwrap().extend(*run);
                *is_output.last_mut().unwrap() = true;
            } else {
                after.push((*run).clone());
                is_output.push(false);
            }
        }
        // The first flush has nothing to delete.
        if is_output[0] || runs.is_empty() {
            after[0].retain(|_, (_, is_tombstone)| !*is_tombstone);
        }
        let outputs = after.iter().zip(&is_output).filter(|(_, is_output)| **is_output);
        let merged: u64 = outputs.flat_map(|(run, _)| run.values().map(|(bytes, _)| bytes)).sum();
        let (before, most, sum) = so_far;
        let there = after.iter().filter(|run| !run.is_empty()).count();
        let totals = (before + merged, most.max(after.len()), sum + there);
        all_of_keys(&after, left, totals, found);
    }
}

fn unions_of(flushes: &[Keys]) -> Unions {
    let mut unions = UnionsBuilder::new(flushes.len());
    for (flush, keys) in flushes.iter().enumerate() {
        for (key, (bytes, is_tombstone)) in keys {
            let newer = (flush + 1..flushes.len()).find(|newer| flushes[*newer].contains_key(key));
            unions.add(flush, newer, *bytes, *is_tombstone);
        }
    }
    unions.finish()
}

#[test]
fn no_schedule_is_better_if_keys_repeat() {
    let mut draws = Draws(5);
    for round in 0..400 {
        let keys = [2, 6, 40][round % 3];
        let deletes = [0, 3][round % 2];
        let mut flush = || {
            let mut entry = || (draws.below(keys), (1 + draws.below(9), draws.below(10) < deletes));
            (0..4).map(|_| entry()).collect::<Keys>()
        };
        let flushes: Vec<Keys> = (0..1 + round % 6).map(|_| flush()).collect();
        let mut found = Vec::new();
        all_of_keys(&[], &flushes, (0, 0, 0), &mut found);
        let unions = unions_of(&flushes);
        for runs in 1..=4 {
            let fits = found.iter().filter(|(_, most, _)| *most <= runs);
            let least = fits.map(|(merged, ..)| *merged).min().unwrap();
            let exact = least_of_unions(&unions, runs as u64);
            assert!(exact.is_exact);
            assert_eq!(exact.merged, least as f64, "{flushes:?}, {runs} runs");
            let bound = super::sizes::by_count(&unions.least_by_count(), runs as u64);
            assert!(bound <= least, "{flushes:?}, {runs} runs: {bound} for {least}");
        }
        let priced = Priced::of_unions(&unions, None);
        let flushed = unions.flushed() as f64;
        for (merged, _, runs) in found {
            let mean = runs as f64 / flushes.len() as f64;
            let cost = 1.0 + merged as f64 / flushed;
            assert!(priced.write_cost(mean) <= cost + 1e-9, "{flushes:?}, {mean} runs");
        }
    }
}

#[test]
fn bounds_of_flushes_whose_keys_repeat_evenly_are_close() {
    let mut draws = Draws(6);
    let flushes: Vec<Keys> =
        (0..200).map(|_| (0..100).map(|_| (draws.below(3000), (1, false))).collect()).collect();
    let unions = unions_of(&flushes);
    let least = least_of_unions(&unions, 4).merged;
    let bound = super::sizes::by_count(&unions.least_by_count(), 4) as f64;
    assert!(bound <= least && bound > 0.95 * least, "{bound} for {least}");
    let sizes: Vec<u64> = flushes.iter().map(|keys| keys.len() as u64).collect();
    assert!(least < 0.8 * least_of_sizes(&sizes, 4).merged, "{least}");
    let hull = Priced::of_unions(&unions, None).points(20);
    assert!(hull.windows(2).all(|pair| pair[0].runs_mean <= pair[1].runs_mean), "{hull:?}");
    assert_eq!((hull[0].runs_mean, hull[19].write_cost), (1.0, 1.0));
}

/// All schedules of two key ranges, tried one by one.
#[test]
fn no_schedule_of_key_ranges_is_better() {
    let mut draws = Draws(7);
    let (mut near, mut cases) = (0, 0);
    for round in 0..2000 {
        let deletes = [0, 3][round % 2];
        // Keys below 4 are the first range. One range in two is written more often.
        let keys = [4, 8, 12][round / 2 % 3];
        let mut flush = || {
            let mut entry = || (draws.below(keys), (1 + draws.below(9), draws.below(10) < deletes));
            (0..4).map(|_| entry()).collect::<Keys>()
        };
        let flushes: Vec<Keys> = (0..1 + round % 5).map(|_| flush()).collect();
        let part = |range: Range<u64>| -> Vec<Keys> {
            let keep = |keys: &Keys| keys.range(range.clone()).map(|(k, e)| (*k, *e)).collect();
            flushes.iter().map(keep).collect()
        };
        let parts = [part(0..4), part(4..12)];
        let [first, second] = parts.each_ref().map(|part| {
            let mut found = Vec::new();
            all_of_keys(&[], part, (0, 0, 0), &mut found);
            found.sort_unstable_by_key(|(merged, _, runs)| (*runs, *merged));
            found.dedup_by_key(|(.., runs)| *runs);
            found
        });
        let unions = parts.each_ref().map(|part| unions_of(part));
        let flushed: u64 = unions.iter().map(Unions::flushed).sum();
        let Some(least) = KeyRanges::of_unions(&unions) else {
            assert_eq!(flushed, 0);
            continue;
        };
        let pairs = || first.iter().flat_map(|one| second.iter().map(move |two| (one, two)));
        for runs in 0..=2 * flushes.len() * flushes.len() {
            let within = pairs().filter(|(one, two)| one.2 + two.2 <= runs);
            let exact = within.map(|(one, two)| one.0 + two.0).min();
            let found = least.least(runs as f64 / (2 * flushes.len()) as f64);
            assert_eq!(found.is_some(), exact.is_some(), "{flushes:?}, {runs} runs");
            let Some((found, exact)) = found.zip(exact) else {
                continue;
            };
            let exact = 1.0 + exact as f64 / flushed as f64;
            assert!(found.bound <= exact + 1e-9, "{flushes:?}, {runs}: {found:?} for {exact}");
            assert!(found.found >= exact - 1e-9, "{flushes:?}, {runs}: {found:?} for {exact}");
            cases += 1;
            near += u64::from((found.found - exact).abs() < 1e-9);
        }
    }
    assert!(near * 3 > cases * 2, "{near} of {cases} are the optimum itself");
}

#[test]
fn parts_of_runs_gain_where_keys_are_not_spread_evenly() {
    let mut draws = Draws(8);
    let ranges = |flushes: &[Keys]| -> Vec<Unions> {
        let part = |range: u64| -> Vec<Keys> {
            let keys = range * 250..(range + 1) * 250;
            let keep = |run: &Keys| run.range(keys.clone()).map(|(k, e)| (*k, *e)).collect();
            flushes.iter().map(keep).collect()
        };
        (0..4).map(|range| unions_of(&part(range))).collect()
    };
    let mut compared = |below: [u64; 2]| {
        let mut flush = |_| {
            let mut entry = |number: usize| (draws.below(below[number % 2]), (1, false));
            (0..60).map(&mut entry).collect::<Keys>()
        };
        let flushes: Vec<Keys> = (0..120).map(&mut flush).collect();
        let whole = Priced::of_unions(&unions_of(&flushes), None).write_cost(2.0);
        let least = KeyRanges::of_unions(&ranges(&flushes)).unwrap().least(2.0).unwrap();
        assert!(least.found < least.bound * 1.02, "{least:?}");
        least.bound / whole
    };
    let even = compared([1000, 1000]);
    assert!(even > 0.98 && even < 1.001, "{even}");
    let skewed = compared([1000, 100]);
    assert!(skewed < 0.95, "{skewed}");
}
