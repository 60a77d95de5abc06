//! Flushes of given sizes, a price for each run, and a largest merge.

/// The most flushes of different sizes for which schedules are found. The time grows with the third
/// power, and the space with the second: 1,000 flushes take 0.2 s.
pub const PRICED_MAX: usize = 2000;

/// What a schedule costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PricedSchedule {
    /// Total of merge outputs, in the unit of the sizes.
    pub merged: f64,
    /// Runs after a flush, summed over flushes.
    pub runs: u64,
}

/// The least costs of merging flushes of given sizes, if no merge writes more than a given amount.
///
/// The best schedule at a `price` for each run after each flush merges all flushes up to some flush
/// `t` into the run that stays the oldest from then on, if they are not larger than the largest
/// merge. With `F(a, b)` for flushes `a` to `b`:
///
/// ```text
/// F(a, b) = min over t of
///     F(a, t - 1) + (sizes a to t if t > a) + price * (b - t + 1) + F(t + 1, b)
/// ```
///
/// Source: the recursion of the module, with the sum of merges and reads of Mathieu et al.
/// "Bigtable merge compaction" (2014). Only neighbours are merged.
#[derive(Clone, Debug)]
pub struct Priced<'a> {
    sizes: &'a [u64],
    largest: Option<u64>,
}

impl Priced<'_> {
    /// Returns the costs for flushes of `sizes`, in order, if no merge writes more than `largest`.
    ///
    /// # Panics
    /// Panics if there are more than [`PRICED_MAX`] flushes of different sizes.
    #[must_use]
    pub fn new(sizes: &[u64], largest: Option<u64>) -> Priced<'_> {
        let differ = sizes.windows(2).any(|pair| pair[0] != pair[1]);
        assert!(!differ || sizes.len() <= PRICED_MAX, "too many flushes: {}", sizes.len());
        Priced { sizes, largest }
    }

    /// Returns the schedule for which merge outputs plus `price` for each run after each flush are
    /// least. `price` is in the unit of the sizes.
    #[must_use]
    pub fn at_price(&self, price: f64) -> PricedSchedule {
        match self.sizes.split_first() {
            None => PricedSchedule::default(),
            Some((first, rest)) if rest.iter().all(|size| size == first) => {
                self.of_one_size(*first, price)
            }
            Some(_) => self.of_many_sizes(price),
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
        let flushed: f64 = self.sizes.iter().map(|size| *size as f64).sum();
        if flushed == 0.0 {
            return 0.0;
        }
        let unit = flushed / self.sizes.len() as f64;
        let runs = runs_mean * self.sizes.len() as f64;
        // A merge of everything takes one run away at least. At a higher price all are made.
        if self.at_price(2.0 * flushed).runs as f64 > runs {
            return f64::INFINITY;
        }
        let mut best = 0.0_f64;
        // Too many runs at the lower price, too few at the higher one.
        let (mut low, mut high) = ((unit * 1e-6).ln(), (2.0 * flushed).ln());
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
        1.0 + best / flushed
    }

    fn allows(&self, size: u64) -> bool {
        self.largest.is_none_or(|largest| size <= largest)
    }

    /// Costs depend on the number of flushes alone.
    fn of_one_size(&self, size: u64, price: f64) -> PricedSchedule {
        let mut best = vec![(0.0, PricedSchedule::default())];
        for count in 1..=self.sizes.len() {
            let mut least = (f64::INFINITY, PricedSchedule::default());
            for before in 0..count {
                let output = (before as u64 + 1) * size;
                if before > 0 && !self.allows(output) {
                    break;
                }
                let merged = if before > 0 { output as f64 } else { 0.0 };
                let (left, right) = (&best[before], &best[count - before - 1]);
                let cost = left.0 + right.0 + merged + price * (count - before) as f64;
                if cost < least.0 {
                    let merged = left.1.merged + right.1.merged + merged;
                    let runs = left.1.runs + right.1.runs + (count - before) as u64;
                    least = (cost, PricedSchedule { merged, runs });
                }
            }
            best.push(least);
        }
        best[self.sizes.len()].1
    }

    fn of_many_sizes(&self, price: f64) -> PricedSchedule {
        let width = self.sizes.len() + 1;
        // The costs of flushes `from..end`: by rows of one first flush, and by rows of one end.
        let mut by_first = vec![0.0; width * width];
        let mut by_end = vec![0.0; width * width];
        let mut roots = vec![0_u32; width * width];
        for from in (0..width - 1).rev() {
            for end in from + 1..width {
                let left = &by_first[from * width + from..][..end - from];
                let right = &by_end[end * width + from + 1..][..end - from];
                let mut output = 0;
                let mut least = (f64::INFINITY, from);
                for (before, (left, right)) in left.iter().zip(right).enumerate() {
                    output += self.sizes[from + before];
                    if before > 0 && !self.allows(output) {
                        break;
                    }
                    let merged = if before > 0 { output as f64 } else { 0.0 };
                    let cost = left + right + merged + price * (end - from - before) as f64;
                    if cost < least.0 {
                        least = (cost, from + before);
                    }
                }
                by_first[from * width + end] = least.0;
                by_end[end * width + from] = least.0;
                roots[from * width + end] = least.1 as u32;
            }
        }
        self.followed(&roots, width)
    }

    /// Returns what the schedule with these `roots` costs.
    fn followed(&self, roots: &[u32], width: usize) -> PricedSchedule {
        let mut schedule = PricedSchedule::default();
        let mut parts = vec![(0, width - 1)];
        while let Some((from, end)) = parts.pop() {
            if from == end {
                continue;
            }
            let root = roots[from * width + end] as usize;
            if root > from {
                schedule.merged += self.sizes[from..=root].iter().sum::<u64>() as f64;
            }
            schedule.runs += (end - root) as u64;
            parts.extend([(from, root), (root + 1, end)]);
        }
        schedule
    }
}

/// The prices that are tried for a number of runs.
const PRICES: usize = 40;

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
