//! Histograms: how often which value was recorded, within one part in 32.

use histogram::{AtomicHistogram, Config};
use lsmith_storage::env::Env;
use lsmith_storage::sync::atomic::Ordering::Relaxed;
use lsmith_storage::sync::unscheduled::AtomicU64;
use std::time::Duration;

/// Each value below 2 to this power has a bucket of its own. Above, each doubling of the value has
/// 2 to this power buckets.
const GROUPING_POWER: u8 = 5;

/// Values of all 64 bits can be recorded.
const VALUE_POWER: u8 = 64;

/// How often which value was recorded, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: histogram::Histogram,
    count: u64,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// Returns how many values were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean of the values; 0 where there are none.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Returns the greatest value; 0 where there are none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns a value that the part `share` (0 to 1) of all values does not exceed, at most a 32nd
    /// above the least such value: `quantile(0.99)` is the 99th percentile. 0 where there are no
    /// values.
    pub fn quantile(&self, share: f64) -> u64 {
        let share = share.clamp(0.0, 1.0);
        let bucket = self.buckets.quantile_bucket(share).ok().flatten();
        bucket.map_or(0, |bucket| bucket.end().min(self.max))
    }
}

/// Records values, from many threads at once, without loss.
#[derive(Debug)]
pub(crate) struct Recorder {
    buckets: AtomicHistogram,
    sum: AtomicU64,
    max: AtomicU64,
}

impl Default for Recorder {
    fn default() -> Recorder {
        let config = Config::new(GROUPING_POWER, VALUE_POWER).expect("the powers fit each other");
        Recorder {
            buckets: AtomicHistogram::with_config(&config),
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }
}

impl Recorder {
    /// Records `value`.
    pub(crate) fn record(&self, value: u64) {
        self.buckets.increment(value).expect("there is a bucket for every value of 64 bits");
        self.sum.fetch_add(value, Relaxed);
        self.max.fetch_max(value, Relaxed);
    }

    fn read(&self) -> Histogram {
        let buckets = self.buckets.load();
        let count = buckets.iter().map(|bucket| bucket.count()).sum();
        Histogram { buckets, count, sum: self.sum.load(Relaxed), max: self.max.load(Relaxed) }
    }
}

macro_rules! histograms {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Histograms since the store was opened, where
        /// [`Builder::histograms`](crate::Builder::histograms) asks for them.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Histograms {
            $($(#[$doc])* pub $name: Histogram,)*
        }

        impl Histograms {
            /// Returns names and histograms, in a fixed order.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
                [$((stringify!($name), &self.$name)),*].into_iter()
            }
        }

        /// The recorders of all histograms.
        #[derive(Debug, Default)]
        pub(crate) struct Recorders {
            $(pub(crate) $name: Recorder,)*
        }

        impl Recorders {
            /// Returns what was recorded so far.
            pub(crate) fn read(&self) -> Histograms {
                Histograms { $($name: self.$name.read(),)* }
            }
        }
    };
}

histograms! {
    /// Nanoseconds of a lookup.
    get_nanos,
    /// Blocks that a lookup looked into, in the cache or in files.
    get_blocks,
    /// Nanoseconds of a write of one entry or of a batch, with its sync and with back-pressure.
    write_nanos,
    /// Nanoseconds of the first step of an iterator, which seeks in all runs.
    seek_nanos,
    /// Nanoseconds of a plan, flushes included, until it has taken effect.
    merge_nanos,
    /// Bytes of the tables that a plan has written.
    merge_bytes,
}

/// Measures how long something takes, if histograms are wanted.
#[derive(Debug)]
pub(crate) struct Timer<'a> {
    running: Option<(&'a Recorders, &'a dyn Env, Duration)>,
}

impl<'a> Timer<'a> {
    /// Starts now, if there are `recorders`.
    #[inline]
    pub(crate) fn begin(recorders: Option<&'a Recorders>, env: &'a dyn Env) -> Timer<'a> {
        Timer { running: recorders.map(|recorders| (recorders, env, env.now())) }
    }

    /// Records the nanoseconds since the start with the recorder that `pick` returns.
    #[inline]
    pub(crate) fn end(self, pick: impl FnOnce(&Recorders) -> &Recorder) {
        if let Some((recorders, env, start)) = self.running {
            let nanos = env.now().saturating_sub(start).as_nanos();
            pick(recorders).record(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_size_are_found_again_within_a_32nd() {
        let powers = (0..64).flat_map(|power| [0, 1, 2, 5].map(|more| (1_u64 << power) + more));
        for value in (0..5000).chain(powers).chain([u64::MAX - 1, u64::MAX]) {
            let recorder = Recorder::default();
            recorder.record(value);
            recorder.record(u64::MAX);
            let found = recorder.read().quantile(0.5);
            assert!(found >= value && found - value <= value / 32, "{value} found as {found}");
        }
    }

    #[test]
    fn quantiles_are_those_of_what_was_recorded() {
        let recorder = Recorder::default();
        assert_eq!((recorder.read().quantile(0.5), recorder.read().mean()), (0, 0.0));
        (1..=1000).for_each(|value| recorder.record(value * 10));
        let histogram = recorder.read();
        assert_eq!((histogram.count(), histogram.max()), (1000, 10_000));
        assert_eq!(histogram.mean(), 5005.0);
        for (share, value) in [(0.0, 10.0), (0.5, 5000.0), (0.99, 9900.0), (1.0, 10_000.0)] {
            let found = histogram.quantile(share) as f64;
            assert!((value..=value * 1.04).contains(&found), "{share}: {found}");
        }
    }
}
