//! A price for each run, and a largest merge.

use super::hull::HullPoint;
use super::unions::Unions;

/// The most flushes of known unions for which schedules are found. The time grows with the third
/// power: 300 flushes take 5 ms at each price.
pub(super) const EXACT_MAX: usize = 300;

/// What a schedule costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PricedSchedule {
    /// Total of merge outputs, in the unit of the sizes.
    pub merged: f64,
    /// Runs after a flush, summed over flushes. A run without an entry does not count.
    pub runs: u64,
}

/// The least costs of merging flushes that come in a given order, if no merge writes more than a
/// given amount.
///
/// The best schedule at a `price` for each run after each flush merges all flushes up to some flush
/// `t` into the run that stays the oldest from then on, if they are not larger than the largest
/// merge. With `F(a, b)` for flushes `a` to `b`:
///
/// ```text
/// F(a, b) = min over t of
///     F(a, t - 1) + (output of a to t if t > a) + price * (b - t + 1) + F(t + 1, b)
/// ```
///
/// If keys repeat, an output is the union of its flushes, whichever merges have been before. So the
/// recursion stays the same.
///
/// Source: the recursion of the module, with the sum of merges and reads of Mathieu et al.
/// "Bigtable merge compaction" (2014). Only neighbours are merged.
#[derive(Clone, Debug)]
pub struct Priced {
    outputs: Outputs,
    flushes: usize,
    flushed: f64,
    largest: Option<u64>,
}

/// What merges write.
#[derive(Clone, Debug)]
enum Outputs {
    /// By the number of flushes, from one on. Merges of equally many flushes write equally much.
    ByCount(Vec<u64>),
    ByRange(Unions),
}

impl Priced {
    /// Returns the costs for flushes of `sizes`, in order, that share no key, if no merge writes
    /// more than `largest`.
    ///
    /// # Panics
    /// Panics if there are more than [`Unions`] hold.
    #[must_use]
    pub fn new(sizes: &[u64], largest: Option<u64>) -> Priced {
        let first = sizes.first().copied().unwrap_or(0);
        let outputs = if sizes.iter().all(|size| *size == first) {
            Outputs::ByCount((1..=sizes.len() as u64).map(|count| count * first).collect())
        } else {
            Outputs::ByRange(Unions::of_sizes(sizes))
        };
        let flushed = sizes.iter().map(|size| *size as f64).sum();
        Priced { outputs, flushes: sizes.len(), flushed, largest }
    }

    /// Returns the costs of flushes whose merges have the sizes of `unions`. They are exact for up
    /// to 300 flushes. For more they are a lower bound: each merge writes as little as any merge of
    /// as many flushes does.
    #[must_use]
    pub fn of_unions(unions: &Unions, largest: Option<u64>) -> Priced {
        let flushes = unions.flushes();
        let outputs = if flushes <= EXACT_MAX {
            Outputs::ByRange(unions.clone())
        } else {
            Outputs::ByCount(unions.least_by_count())
        };
        Priced { outputs, flushes, flushed: unions.flushed() as f64, largest }
    }

    /// Returns the schedule for which merge outputs plus `price` for each run after each flush are
    /// least. `price` is in the unit of the sizes.
    #[must_use]
    pub fn at_price(&self, price: f64) -> PricedSchedule {
        match &self.outputs {
            Outputs::ByCount(outputs) => self.by_count(outputs, price),
            Outputs::ByRange(outputs) => self.by_range(outputs, price),
        }
    }

    /// Returns the least write cost with at most `runs_mean` runs after a flush, mean over flushes:
    /// bytes of flushes and of merge outputs over bytes of flushes. No schedule is below it. It is
    /// infinite if so few runs cannot be had.
    ///
    /// At any price, no schedule is cheaper in total than the cheapest one. What runs cost at that
    /// price, taken off, leaves a bound for what a schedule with so many runs writes. The best of
    /// these bounds is on the lower hull of all schedules.
    #[must_use]
    pub fn write_cost(&self, runs_mean: f64) -> f64 {
        if self.flushed == 0.0 {
            return 0.0;
        }
        let runs = runs_mean * self.flushes as f64;
        let [lowest, highest] = self.prices();
        if self.at_price(highest).runs as f64 > runs {
            return f64::INFINITY;
        }
        let mut best = 0.0_f64;
        // Too many runs at the lower price, too few at the higher one.
        let (mut low, mut high) = (lowest.ln(), highest.ln());
        for _ in 0..PRICES {
            let log = f64::midpoint(low, high);
            let found = self.at_price(log.exp());
            best = best.max(found.merged + log.exp() * (found.runs as f64 - runs));
            if found.runs as f64 > runs {
                low = log;
            } else {
                high = log;
            }
        }
        1.0 + best / self.flushed
    }

    /// Returns `points` points of the hull, at least two, from few runs to many. They are evenly
    /// spread over the logarithm of the price of a run.
    #[must_use]
    pub fn points(&self, points: usize) -> Vec<HullPoint> {
        if self.flushed == 0.0 {
            return Vec::new();
        }
        let [lowest, highest] = self.prices().map(f64::ln);
        let point = |index: usize| {
            let part = index as f64 / points.saturating_sub(1).max(1) as f64;
            let found = self.at_price((highest + (lowest - highest) * part).exp());
            HullPoint {
                runs_mean: found.runs as f64 / self.flushes as f64,
                write_cost: 1.0 + found.merged / self.flushed,
            }
        };
        (0..points.max(2)).map(point).collect()
    }

    /// Returns a price that no merge is worth, and one at which all are made: a merge of everything
    /// takes one run away at least.
    pub(super) fn prices(&self) -> [f64; 2] {
        [self.flushed / self.flushes as f64 * 1e-6, 2.0 * self.flushed]
    }

    fn allows(&self, output: u64) -> bool {
        self.largest.is_none_or(|largest| output <= largest)
    }

    fn by_count(&self, outputs: &[u64], price: f64) -> PricedSchedule {
        let mut best = vec![(0.0, PricedSchedule::default())];
        for count in 1..=self.flushes {
            let mut least = (f64::INFINITY, PricedSchedule::default());
            for (before, output) in outputs[..count].iter().enumerate() {
                if before > 0 && !self.allows(*output) {
                    continue;
                }
                let merged = if before > 0 { *output as f64 } else { 0.0 };
                let runs = flushes_with_run(*output, count - before);
                let (left, right) = (&best[before], &best[count - before - 1]);
                let cost = left.0 + right.0 + merged + price * runs as f64;
                if cost < least.0 {
                    let merged = left.1.merged + right.1.merged + merged;
                    let runs = left.1.runs + right.1.runs + runs as u64;
                    least = (cost, PricedSchedule { merged, runs });
                }
            }
            best.push(least);
        }
        best[self.flushes].1
    }

    fn by_range(&self, outputs: &Unions, price: f64) -> PricedSchedule {
        let width = self.flushes + 1;
        // The costs of flushes `from..end`: by rows of one first flush, and by rows of one end.
        let mut by_first = vec![0.0; width * width];
        let mut by_end = vec![0.0; width * width];
        let mut roots = vec![0_u32; width * width];
        for from in (0..width - 1).rev() {
            for end in from + 1..width {
                let left = &by_first[from * width + from..][..end - from];
                let right = &by_end[end * width + from + 1..][..end - from];
                let costs = left.iter().zip(right).zip(outputs.from(from));
                let mut least = (f64::INFINITY, from);
                for (before, ((left, right), output)) in costs.enumerate() {
                    if before > 0 && !self.allows(*output) {
                        continue;
                    }
                    let merged = if before > 0 { *output as f64 } else { 0.0 };
                    let runs = flushes_with_run(*output, end - from - before);
                    let cost = left + right + merged + price * runs as f64;
                    if cost < least.0 {
                        least = (cost, from + before);
                    }
                }
                by_first[from * width + end] = least.0;
                by_end[end * width + from] = least.0;
                roots[from * width + end] = least.1 as u32;
            }
        }
        followed(outputs, &roots, width)
    }
}

/// Returns after how many of `flushes` flushes a run of `bytes` is there. An empty run is not: a
/// flush may have no key of a key range, and deletes may leave nothing.
fn flushes_with_run(bytes: u64, flushes: usize) -> usize {
    if bytes > 0 { flushes } else { 0 }
}

/// Returns what the schedule with these `roots` costs.
fn followed(outputs: &Unions, roots: &[u32], width: usize) -> PricedSchedule {
    let mut schedule = PricedSchedule::default();
    let mut parts = vec![(0, width - 1)];
    while let Some((from, end)) = parts.pop() {
        if from == end {
            continue;
        }
        let root = roots[from * width + end] as usize;
        let output = outputs.from(from)[root - from];
        if root > from {
            schedule.merged += output as f64;
        }
        schedule.runs += flushes_with_run(output, end - root) as u64;
        parts.extend([(from, root), (root + 1, end)]);
    }
    schedule
}

/// The prices that are tried for a number of runs.
const PRICES: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of runs, oldest first, and whether each may be merged further.
    type Stack = Vec<u64>;

    /// Adds the totals of all schedules: after each flush any neighbours may be merged, with
    /// outputs of at most `largest`.
    fn all(stack: &Stack, left: &[u64], largest: u64, so_far: PricedSchedule, found: &mut Found) {
        let Some((flush, left)) = left.split_first() else {
            return found.push(so_far);
        };
        let mut before = stack.clone();
        before.push(*flush);
        // Each bit says whether a run is merged with the next newer one.
        for joined in 0..1_u32 << (before.len() - 1) {
            let mut after: Stack = Vec::new();
            let mut merged = 0;
            let mut outputs = Vec::new();
            for (index, size) in before.iter().enumerate() {
                if index > 0 && joined >> (index - 1) & 1 == 1 {
                    *after.last_mut().unwrap() += size;
                    *outputs.last_mut().unwrap() = true;
                } else {
                    after.push(*size);
                    outputs.push(false);
                }
            }
            let mut is_legal = true;
            for (size, is_output) in after.iter().zip(outputs) {
                if is_output {
                    merged += size;
                    is_legal &= *size <= largest;
                }
            }
            if is_legal {
                let so_far = PricedSchedule {
                    merged: so_far.merged + merged as f64,
                    runs: so_far.runs + after.len() as u64,
                };
                all(&after, left, largest, so_far, found);
            }
        }
    }

    type Found = Vec<PricedSchedule>;

    #[test]
    fn no_schedule_costs_less() {
        let mut draws = 7_u64;
        let mut draw = |below: u64| {
            draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (draws >> 33) % below
        };
        for round in 0..150 {
            let most = [1, 5, 100][round % 3];
            let sizes: Vec<u64> = (0..1 + draw(7)).map(|_| 1 + draw(most)).collect();
            let total: u64 = sizes.iter().sum();
            let largest = [total, 1 + draw(total)][round % 2];
            let mut found = Vec::new();
            all(&Vec::new(), &sizes, largest, PricedSchedule::default(), &mut found);
            let priced = Priced::new(&sizes, (round % 2 == 1).then_some(largest));
            for price in [0.01, 0.3, 1.0, 4.0, 50.0] {
                let cost = |it: &PricedSchedule| it.merged + price * it.runs as f64;
                let least = found.iter().map(cost).fold(f64::INFINITY, f64::min);
                let schedule = priced.at_price(price);
                assert!((cost(&schedule) - least).abs() < 1e-6, "{sizes:?}, {largest}, {price}");
            }
            for schedule in &found {
                let mean = schedule.runs as f64 / sizes.len() as f64;
                let cost = 1.0 + schedule.merged / total as f64;
                assert!(priced.write_cost(mean) <= cost + 1e-6, "{sizes:?}, {largest}, {mean}");
            }
        }
    }

    #[test]
    fn it_is_the_hull_where_nothing_is_bounded() {
        let priced = Priced::new(&[1000; 300], None);
        let hull = super::super::Hull::new(300);
        for runs in [2.0, 3.5, 6.0, 12.0] {
            let (found, bound) = (priced.write_cost(runs), hull.write_cost(runs));
            assert!(found >= bound * 0.9999 && found <= bound * 1.01, "{runs}: {found}, {bound}");
        }
    }

    /// Nothing is spent on merges that the largest one will end.
    #[test]
    fn a_largest_merge_makes_writing_cheaper_and_runs_more() {
        let free = Priced::new(&[1; 600], None).at_price(1.0);
        let bounded = Priced::new(&[1; 600], Some(20)).at_price(1.0);
        assert!(bounded.merged < free.merged * 0.7, "{bounded:?}, {free:?}");
        assert!(bounded.runs > free.runs * 2, "{bounded:?}, {free:?}");
        assert_eq!(Priced::new(&[1; 600], Some(20)).write_cost(3.0), f64::INFINITY);
    }
}
