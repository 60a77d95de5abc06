//! What the next flushes cost: the recursion by which a plan is chosen.
//!
//! All sizes are in flushes: one is the size of a usual flush. A cost is what merges write, plus
//! `price` for each run after each flush.

use crate::Eager;
use std::ops::Range;

/// Numbers of flushes up to this one have an entry of their own in every table. Above it, each
/// entry is [`GROWTH`] times the one before it, and costs between two entries are interpolated.
const FINE: usize = 24;
const GROWTH: f64 = 1.1;

/// The tables end here. Beyond, costs go on as straight lines.
const FLUSHES_MAX: f64 = 1e5;

/// A plan looks ahead until the tree has seen this many times as many flushes as now.
const HORIZON: f64 = 20.0;

/// The next flushes that a plan looks at one by one. The moments behind them are powers of
/// [`MOMENT_GROWTH`], counted from the first flush of the tree, so that a plan that is made one
/// flush later looks at the same moments.
const FINE_MOMENTS: usize = 8;
const MOMENT_GROWTH: f64 = 1.05;

/// What flushes cost that come upon an empty stack, or upon runs that stay as they are.
///
/// The merge that reaches furthest down takes all flushes up to some flush `t` and leaves the run
/// that stays the oldest. So with at most `r` runs, `m` flushes cost
///
/// ```text
/// E_r(m) = min over t of E_r(t - 1) + (t if t > 1) + price * (m - t + 1) + E_{r-1}(m - t)
/// ```
#[derive(Clone, Debug)]
pub(super) struct Future {
    price: f64,
    runs_max: usize,
    eager: Eager,
    /// The numbers of flushes of the tables, ascending from 0.
    flushes: Vec<f64>,
    /// The costs with at most 1, 2, ... runs. If more runs cost no less, there are no more tables.
    costs: Vec<Vec<f64>>,
}

/// What there is to plan for.
#[derive(Clone, Debug)]
pub(super) struct Stand {
    /// The sizes of runs, oldest first. The newest has just been flushed.
    pub(super) sizes: Vec<f64>,
    /// The number of flushes of the tree so far.
    pub(super) flushes: f64,
    /// The oldest run such that no plan takes it or a newer one.
    pub(super) free_from: usize,
    /// The size of all keys. Updates make no tree larger. Infinite without updates.
    pub(super) all: f64,
    /// The largest merge. Infinite if there is none.
    pub(super) largest: f64,
}

impl Stand {
    /// Returns the size of a merge of runs of these sizes.
    fn union(&self, one: f64, other: f64) -> f64 {
        if self.all.is_infinite() {
            return one + other;
        }
        let absent = |size: f64| (1.0 - size / self.all).clamp(0.0, 1.0);
        self.all * (1.0 - absent(one) * absent(other))
    }

    /// Returns the size of a merge of runs of `size` with the data of `flushes` more.
    fn merged(&self, size: f64, flushes: f64) -> f64 {
        if self.all.is_infinite() {
            return size + flushes;
        }
        let free = (1.0 - size / self.all).clamp(0.0, 1.0);
        self.all * (1.0 - free * (-flushes / self.all).exp())
    }
}

/// What is to be done now. Runs are counted from the oldest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    /// The oldest run that is merged with all newer ones, or the newest run if nothing is merged.
    pub(super) from: usize,
    /// What this and the next flushes cost, weighted by how likely it is that they come.
    pub(super) cost: f64,
}

/// The moments that a plan looks at, in flushes from now.
struct Moments {
    times: Vec<f64>,
    /// How much a cost at each moment weighs.
    weights: Vec<f64>,
    /// The logarithms of the tree's flushes at each moment.
    logs: Vec<f64>,
    flushes: f64,
    /// How much the flushes weigh that come after the last moment.
    tail: f64,
}

impl Moments {
    /// Returns the moments for a stack in which each run together with all newer ones has the size
    /// in `from_here`.
    fn new(stand: &Stand, from_here: &[f64]) -> Moments {
        let flushes = stand.flushes;
        let fine = FINE_MOMENTS as f64;
        let all = flushes * (HORIZON - 1.0);
        // Nothing that is there now is merged once the largest merge is full.
        let horizon = all.min(2.0 * stand.largest).max(fine).round();
        let tail =
            flushes * ((flushes * HORIZON).max(flushes + horizon) / (flushes + horizon)).ln();
        // The first flush of the tree, or the first that is not settled.
        let held = if stand.largest.is_finite() { from_here[0].round() } else { flushes };
        let mut times: Vec<f64> = (0..=FINE_MOMENTS).map(|time| time as f64).collect();
        let first = ((held + fine).ln() / MOMENT_GROWTH.ln()).floor();
        let powers = (0..).map(|step| MOMENT_GROWTH.powf(first + f64::from(step)).round());
        let later = powers.map(|power| power - held).skip_while(|time| *time <= fine);
        times.extend(later.take_while(|time| *time < horizon));
        // The last flush with which each run fits into the largest merge.
        let fits = from_here.iter().map(|size| (stand.largest - size).floor());
        times.extend(fits.filter(|time| *time > fine && *time < horizon));
        times.push(horizon);
        times.sort_by(f64::total_cmp);
        times.dedup();
        let weights = times.iter().map(|time| flushes / (flushes + time)).collect();
        let logs = times.iter().map(|time| (flushes + time).ln()).collect();
        Moments { times, weights, logs, flushes, tail }
    }

    /// Returns how much a cost weighs that is spread from one moment to a later one.
    fn weight_between(&self, from: usize, to: usize) -> f64 {
        if to == from {
            return self.weights[from];
        }
        let logs = self.logs[to] - self.logs[from];
        self.flushes * logs / (self.times[to] - self.times[from])
    }
}

impl Future {
    /// Returns the costs at a `price` per run and flush, with at most `runs_max` runs.
    pub(super) fn new(price: f64, runs_max: usize, eager: Eager) -> Future {
        let mut flushes: Vec<f64> = (0..=FINE).map(|count| count as f64).collect();
        let next = |last: &f64| Some((last * GROWTH).ceil());
        let later = std::iter::successors(Some(FINE as f64), next).skip(1);
        flushes.extend(later.take_while(|count| *count <= FLUSHES_MAX));
        let mut future = Future { price, runs_max, eager, flushes, costs: Vec::new() };
        future.costs.reserve_exact(runs_max);
        for runs in 1..=runs_max {
            let costs = future.costs_with(runs);
            if future.costs.last() == Some(&costs) {
                break;
            }
            future.costs.push(costs);
        }
        future
    }

    /// Returns the costs with at most `runs` runs, given the tables for fewer runs.
    fn costs_with(&self, runs: usize) -> Vec<f64> {
        if runs == 1 {
            return self.flushes.iter().map(|flushes| self.all_in_one(*flushes)).collect();
        }
        let mut costs = Vec::with_capacity(self.flushes.len());
        costs.push(0.0);
        for (index, flushes) in self.flushes.iter().enumerate().skip(1) {
            let known = &self.flushes[..index];
            // All but the root of the tree, on its left or on its right.
            let parts = known.iter().flat_map(|part| [*part, flushes - 1.0 - part]);
            let before = parts.filter(|part| (0.0..=known[index - 1]).contains(part));
            let cost = |before: f64| {
                let left = Place::of(known, before).between(&costs);
                let merged = if before > 0.0 { before + 1.0 } else { 0.0 };
                let merge = self.merge_cost(merged, f64::INFINITY);
                let stays = self.price * (flushes - before);
                let after = flushes - before - 1.0;
                left + merge + stays + self.upon_empty(runs - 1, after, f64::INFINITY)
            };
            costs.push(before.map(cost).fold(f64::INFINITY, f64::min));
        }
        costs
    }

    /// Returns what `flushes` flushes cost if each is merged with all.
    fn all_in_one(&self, flushes: f64) -> f64 {
        let fine = flushes.min(FINE as f64);
        let first: f64 =
            (2..=fine as u64).map(|at| self.merge_cost(at as f64, f64::INFINITY)).sum();
        // Each of the others writes one flush more than the one before it.
        let next = self.merge_cost(fine + 1.0, f64::INFINITY);
        let others = flushes - fine;
        first + others * next + others * (others - 1.0) / 2.0 + self.price * flushes
    }

    /// Returns what `flushes` flushes cost upon an empty stack, with at most `runs` runs.
    ///
    /// If there are more than the `largest` merge takes, they become one run after another of that
    /// size. Such a run stays for good.
    fn upon_empty(&self, runs: usize, flushes: f64, largest: f64) -> f64 {
        if flushes <= largest || largest < 2.0 {
            return self.upon_empty_at(runs, flushes, Place::of(&self.flushes, flushes));
        }
        let largest = largest.floor();
        let full = (flushes / largest).floor();
        let rest = flushes - full * largest;
        let own = self.upon_empty(runs, largest - 1.0, largest) + largest;
        let stays = full * (flushes + 1.0) - largest * full * (full + 1.0) / 2.0;
        full * own + self.price * stays + self.upon_empty(runs, rest, largest)
    }

    fn upon_empty_at(&self, runs: usize, flushes: f64, place: Place) -> f64 {
        match runs.min(self.costs.len()).checked_sub(1) {
            _ if flushes <= 0.0 => 0.0,
            Some(index) => place.between(&self.costs[index]),
            None => f64::INFINITY,
        }
    }

    /// Returns what a merge costs with an output of `size`; 0 for none. An eager merge saves the
    /// flush of its memtable.
    fn merge_cost(&self, size: f64, largest: f64) -> f64 {
        match size {
            _ if size > largest => f64::INFINITY,
            _ if size > 0.0 && self.eager.takes_of(size) => size - 1.0,
            _ => size,
        }
    }

    /// Returns the best choice, and the next best if there is one.
    ///
    /// # Derivation
    /// A merge that reaches a run which is there now leaves one run of all from there on, whatever
    /// was merged before. So a moment and the number of runs below it are all that the costs of the
    /// rest depend on: `after[time][run]` is the cost behind a merge at that time which reached
    /// that run. Between two such merges, flushes come upon runs that stay as they are.
    ///
    /// Nobody knows when writing ends. If any number of flushes is as likely as any other on a
    /// scale of logarithms, flush `n + t` weighs `n / (n + t)` for a tree of `n` flushes.
    pub(super) fn choose(&self, stand: &Stand) -> (Choice, Option<Choice>) {
        let free_from = stand.free_from;
        let newest = stand.sizes.len() - 1;
        let mut from_here = vec![0.0; stand.sizes.len()];
        let mut newer = 0.0;
        for (index, size) in stand.sizes.iter().enumerate().rev() {
            newer = stand.union(*size, newer);
            from_here[index] = newer;
        }
        let after = self.after(stand, &from_here);
        let cost = |from: usize| {
            let merge = match from < newest {
                true => self.merge_cost(stand.merged(from_here[from], 0.0), stand.largest),
                false => 0.0,
            };
            merge + self.price * (from + 1) as f64 + after[from]
        };
        let allowed = free_from.min(newest)..self.runs_max.min(newest + 1);
        let choices = allowed.map(|from| Choice { from, cost: cost(from) });
        let mut best: Option<Choice> = None;
        let mut second: Option<Choice> = None;
        for choice in choices.filter(|choice| choice.cost.is_finite()) {
            if best.is_none_or(|best| choice.cost <= best.cost) {
                (best, second) = (Some(choice), best);
            } else if second.is_none_or(|second| choice.cost < second.cost) {
                second = Some(choice);
            }
        }
        // With one run, each flush is merged with all. With too many runs, if too few are
        // free, all that are free are merged.
        let all = Choice { from: free_from.min(newest), cost: f64::INFINITY };
        (best.unwrap_or(all), second)
    }

    /// Returns the window of `sizes`, newest first, whose merge saves most: the price of its runs
    /// for as long as flushes may come, less what it writes. The window does not have run 0, and no
    /// neighbour of it fits into the same merge. `None` if no merge saves anything.
    pub(super) fn window(&self, sizes: &[f64], flushes: f64, largest: f64) -> Option<Range<usize>> {
        let stays = self.price * flushes * HORIZON.ln();
        let mut best = (0.0, None);
        for from in 1..sizes.len() {
            let sums = sizes[from..].iter().scan(0.0, |sum, size| {
                *sum += size;
                Some(*sum)
            });
            let Some((runs, sum)) = sums.take_while(|sum| *sum <= largest).enumerate().last()
            else {
                continue;
            };
            let saved = stays * runs as f64 - sum;
            if saved > best.0 && sum + sizes[from - 1] > largest {
                best = (saved, Some(from..from + runs + 1));
            }
        }
        best.1
    }

    /// Returns the costs behind a choice of now, by the oldest run that it merges. `from_here` are
    /// the sizes of each run together with all newer ones.
    fn after(&self, stand: &Stand, from_here: &[f64]) -> Vec<f64> {
        let moments = Moments::new(stand, from_here);
        let Moments { times, weights, .. } = &moments;
        let (runs, last) = (from_here.len(), times.len() - 1);
        let mut after = vec![0.0; runs];
        // The least cost from each time on, if a merge reaches a run or an older one then.
        let mut reached = vec![f64::INFINITY; times.len() * runs];
        for now in (0..times.len()).rev() {
            // The same for all runs. Most runs look at the first few only.
            let mut gaps: Vec<Gap> = Vec::new();
            let gap_to = |later: usize| {
                let flushes = times[later] - times[now] - 1.0;
                let weight = moments.weight_between(now, later);
                Gap { flushes, weight, place: Place::of(&self.flushes, flushes) }
            };
            let rest = times[last] - times[now];
            let rest_weight = moments.weight_between(now, last);
            let mut least = f64::INFINITY;
            for run in 0..runs {
                let stay = (run + 1) as f64 * self.price;
                let more = self.runs_max.saturating_sub(run + 1);
                // The runs that the largest merge leaves stay for good.
                let settled = (run + 1) as f64 + rest / stand.largest;
                let own = self.upon_empty(more, rest, stand.largest) + stay * rest;
                let mut cost = rest_weight * own + moments.tail * self.price * settled;
                for later in now + 1..=last {
                    if later - now > gaps.len() {
                        gaps.push(gap_to(later));
                    }
                    let gap = &gaps[later - now - 1];
                    let own = match gap.flushes <= stand.largest {
                        true => self.upon_empty_at(more, gap.flushes, gap.place),
                        false => self.upon_empty(more, gap.flushes, stand.largest),
                    };
                    let between = gap.weight * (own + stay * gap.flushes);
                    // It only grows with the gap.
                    if between >= cost {
                        break;
                    }
                    cost = cost.min(between + reached[later * runs + run]);
                }
                after[run] = cost;
                let output = stand.merged(from_here[run], times[now]);
                let merge = self.merge_cost(output, stand.largest);
                least = least.min(weights[now] * (merge + stay) + cost);
                reached[now * runs + run] = least;
            }
        }
        after
    }
}

/// A place between two entries of a table. Behind the last entry, the last line goes on.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The entry to the right.
    end: usize,
    /// How far it is from the entry to the left, where the distance of the two is 1.
    part: f64,
}

impl Place {
    fn of(flushes: &[f64], at: f64) -> Place {
        let end = match at {
            fine if fine < FINE as f64 => fine as usize + 1,
            coarse => flushes.partition_point(|flushes| *flushes <= coarse),
        };
        let end = end.min(flushes.len() - 1).max(1);
        let left = flushes.get(end - 1).copied().unwrap_or(0.0);
        let right = flushes.get(end).copied().unwrap_or(left + 1.0);
        Place { end, part: (at - left) / (right - left) }
    }

    fn between(self, costs: &[f64]) -> f64 {
        let left = costs[self.end - 1];
        match costs.get(self.end) {
            Some(right) => left + (right - left) * self.part,
            None => left,
        }
    }
}

/// Flushes between two moments at which merges reach runs that are there now.
struct Gap {
    flushes: f64,
    /// How much their costs weigh.
    weight: f64,
    place: Place,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates the recursion flush by flush.
    fn by_recursion(price: f64, runs_max: usize, flushes: usize) -> Vec<Vec<f64>> {
        let mut fewer = vec![f64::INFINITY; flushes + 1];
        fewer[0] = 0.0;
        let mut all = Vec::new();
        for _ in 0..runs_max {
            let mut costs = vec![0.0];
            for count in 1..=flushes {
                let cost = |before: usize| {
                    let merge = if before > 0 { (before + 1) as f64 } else { 0.0 };
                    let stays = price * (count - before) as f64;
                    costs[before] + merge + stays + fewer[count - before - 1]
                };
                costs.push((0..count).map(cost).fold(f64::INFINITY, f64::min));
            }
            fewer.clone_from(&costs);
            all.push(costs);
        }
        all
    }

    #[test]
    fn tables_are_the_recursion_and_close_to_it_between_entries() {
        for price in [0.05, 0.7, 9.0] {
            let future = Future::new(price, 5, Eager::Never);
            for (runs, costs) in by_recursion(price, 5, 400).iter().enumerate() {
                for (flushes, cost) in costs.iter().enumerate() {
                    let found = future.upon_empty(runs + 1, flushes as f64, f64::INFINITY);
                    let off = found / cost.max(1e-9) - 1.0;
                    let allowed = if flushes <= FINE { 1e-9 } else { 0.03 };
                    assert!(
                        flushes == 0 || off.abs() <= allowed,
                        "{price}, {} runs, {flushes} flushes: {found}, {cost}",
                        runs + 1
                    );
                }
            }
        }
    }

    fn stand(sizes: &[f64]) -> Stand {
        let (all, largest) = (f64::INFINITY, f64::INFINITY);
        Stand { sizes: sizes.to_vec(), flushes: 100.0, free_from: 0, all, largest }
    }

    #[test]
    fn a_bound_on_runs_holds_from_any_tree() {
        let future = Future::new(0.01, 5, Eager::Never);
        let (choice, _) = future.choose(&stand(&[1.0; 70]));
        assert!(choice.from < 5, "{choice:?}");
        // Too few are free.
        let (choice, _) = future.choose(&Stand { free_from: 60, ..stand(&[1.0; 70]) });
        assert_eq!(choice.from, 60);
        let (choice, _) = Future::new(1.0, 1, Eager::Never).choose(&stand(&[50.0, 3.0, 1.0]));
        assert_eq!(choice.from, 0);
    }

    #[test]
    fn small_runs_are_merged_and_large_ones_are_left() {
        let future = Future::new(1.0, 20, Eager::Never);
        let (choice, second) = future.choose(&stand(&[90.0, 7.0, 1.0, 1.0, 1.0]));
        assert!((1..=2).contains(&choice.from), "{choice:?}");
        assert!(second.is_some_and(|second| second.cost >= choice.cost), "{second:?}");
    }

    #[test]
    fn a_merge_is_filled_before_it_is_too_late() {
        let future = Future::new(0.05, 20, Eager::Never);
        let sizes = [1.0; 10];
        // The next flush would not fit.
        let full = Stand { largest: 10.5, ..stand(&sizes) };
        assert_eq!(future.choose(&full).0.from, 0);
        let early = Stand { largest: 40.0, ..stand(&sizes) };
        assert!(future.choose(&early).0.from > 0);
    }

    #[test]
    fn updates_bound_what_a_merge_writes() {
        let stand = Stand { all: 10.0, ..stand(&[8.0, 1.0]) };
        assert!((stand.merged(8.0, 0.0) - 8.0).abs() < 1e-9);
        assert!(stand.merged(9.0, 1e6) <= 10.0 + 1e-9);
        // Of two halves of the keys, drawn evenly, half of one is in the other.
        assert!((stand.union(5.0, 5.0) - 7.5).abs() < 1e-9);
        assert_eq!(stand.union(10.0, 4.0), 10.0);
    }
}
