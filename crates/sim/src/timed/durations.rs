//! How long operations take in simulated time.

/// Buckets for each doubling of the time: a bucket is 4.4 % wide.
const PER_DOUBLING: f64 = 16.0;

/// How long the operations of one kind took.
#[derive(Clone, Debug, PartialEq)]
pub struct Durations {
    /// The number of operations by their times; the last bucket ends at 2^64 nanoseconds.
    buckets: Vec<u64>,
    count: u64,
    max_nanos: f64,
}

impl Durations {
    pub(super) fn new() -> Durations {
        Durations { buckets: vec![0; 64 * PER_DOUBLING as usize], count: 0, max_nanos: 0.0 }
    }

    pub(super) fn note(&mut self, nanos: f64) {
        let index = (nanos.max(1.0).log2() * PER_DOUBLING) as usize;
        let index = index.min(self.buckets.len() - 1);
        self.buckets[index] += 1;
        self.count += 1;
        self.max_nanos = self.max_nanos.max(nanos);
    }

    /// Returns the nanoseconds in which the share `quantile` of all operations was done, to 2.2 %;
    /// 0 without operations.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> f64 {
        let wanted = (quantile * self.count as f64).ceil().max(1.0) as u64;
        let mut found = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            found += count;
            if found >= wanted {
                let middle = ((index as f64 + 0.5) / PER_DOUBLING).exp2();
                return middle.min(self.max_nanos);
            }
        }
        0.0
    }

    /// Returns the nanoseconds of the longest operation; 0 without operations.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.max_nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_bucket() {
        let mut times = Durations::new();
        assert_eq!((times.quantile(0.5), times.max()), (0.0, 0.0));
        (1..=10_000).for_each(|count| times.note(f64::from(count) * 1e3));
        for (quantile, nanos) in [(0.5, 5e6), (0.99, 9.9e6), (0.999, 9.99e6)] {
            let found = times.quantile(quantile);
            assert!((found / nanos - 1.0).abs() < 0.03, "{quantile}: {found}");
        }
        assert_eq!(times.max(), 1e7);
        times.note(1e30);
        assert_eq!(times.max(), 1e30);
    }
}
