//! Histograms: the number of values seen in each of many steps, each at most 1/32 of its value.

use lsmith_storage::env::Env;
use lsmith_storage::sync::atomic::Ordering::Relaxed;
use lsmith_storage::sync::unscheduled::AtomicU64;
use std::time::Duration;

/// The logarithm of [`STEPS`].
const STEP_BITS: u32 = 5;

/// Each value below this number has a step of its own. From there on each doubling of the value has
/// this number of steps.
const STEPS: u64 = 1 << STEP_BITS;

/// The number of steps that hold all values of 64 bits.
const STEPS_ALL: usize = ((u64::BITS - STEP_BITS + 1) * STEPS as u32) as usize;

/// Returns the index of the step that holds `value`.
fn step_of(value: u64) -> usize {
    let power = (value | 1).ilog2();
    if power < STEP_BITS {
        return value as usize;
    }
    let shift = power - STEP_BITS;
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// Returns the greatest value that step `step` holds.
fn greatest(step: usize) -> u64 {
    let step = step as u64;
    if step < STEPS {
        return step;
    }
    let shift = step / STEPS - 1;
    ((((step - shift * STEPS) as u128 + 1) << shift) - 1) as u64
}

/// The distribution of recorded values, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// The number of values in each step.
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean of the values, or 0 if there are none.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Returns the greatest value, or 0 if there are none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the quantile of `share` (0 to 1), at most 1/32 too high, or 0 if there are no
    /// values. `quantile(0.99)` is the 99th percentile.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0, |step| greatest(step).min(self.max))
    }
}

/// Counts values, from many threads at once.
#[derive(Debug)]
pub(crate) struct Recorder {
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
    max: AtomicU64,
}

impl Default for Recorder {
    fn default() -> Recorder {
        let counts = (0..STEPS_ALL).map(|_| AtomicU64::new(0)).collect();
        Recorder { counts, sum: AtomicU64::new(0), max: AtomicU64::new(0) }
    }
}

impl Recorder {
    /// Counts `value`.
    pub(crate) fn record(&self, value: u64) {
        self.counts[step_of(value)].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
        self.max.fetch_max(value, Relaxed);
    }

    fn read(&self) -> Histogram {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Relaxed)).collect();
        let count = counts.iter().sum();
        Histogram { counts, count, sum: self.sum.load(Relaxed), max: self.max.load(Relaxed) }
    }
}

macro_rules! histograms {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Histograms since the store was opened, kept if
        /// [`Builder::histograms`](crate::Builder::histograms) asks for them.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Histograms {
            $($(#[$doc])* pub $name: Histogram,)*
        }

        impl Histograms {
            /// Returns the names and histograms of all fields, in a fixed order.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
                [$((stringify!($name), &self.$name)),*].into_iter()
            }
        }

        /// The recorders behind [`Histograms`].
        #[derive(Debug, Default)]
        pub(crate) struct Recorders {
            $(pub(crate) $name: Recorder,)*
        }

        impl Recorders {
            /// Returns the histograms as of now.
            pub(crate) fn read(&self) -> Histograms {
                Histograms { $($name: self.$name.read(),)* }
            }
        }
    };
}

histograms! {
    /// Nanoseconds per lookup.
    get_nanos,
    /// Blocks searched per lookup, from the cache or from files.
    get_blocks,
    /// Nanoseconds per write of an entry or a batch, with its sync and its delay by back-pressure.
    write_nanos,
    /// Nanoseconds per first step of an iterator, which seeks in all runs.
    seek_nanos,
    /// Nanoseconds per plan that has taken effect, flushes included.
    merge_nanos,
    /// Bytes of the tables written per plan that has taken effect.
    merge_bytes,
}

/// Measures a duration for a histogram, if the store keeps histograms.
#[derive(Debug)]
pub(crate) struct Timer<'a> {
    running: Option<(&'a Recorders, &'a dyn Env, Duration)>,
}

impl<'a> Timer<'a> {
    /// Starts now. The timer records nothing without `recorders`.
    #[inline]
    pub(crate) fn begin(recorders: Option<&'a Recorders>, env: &'a dyn Env) -> Timer<'a> {
        Timer { running: recorders.map(|recorders| (recorders, env, env.now())) }
    }

    /// Records the nanoseconds since the start in the recorder that `pick` returns.
    #[inline]
    pub(crate) fn end(self, pick: impl FnOnce(&Recorders) -> &Recorder) {
        if let Some((recorders, env, began)) = self.running {
            let nanos = env.now().saturating_sub(began).as_nanos();
            pick(recorders).record(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_each_other_without_gaps() {
        let mut last = 0;
        let powers = (0..64).flat_map(|power| [0, 1, 2, 5].map(|more| (1u64 << power) + more));
        for value in (0..5000).chain(powers).chain([u64::MAX - 1, u64::MAX]) {
            let step = step_of(value);
            assert!(step < STEPS_ALL, "{value}");
            let top = greatest(step);
            assert!(top >= value && top - value <= value / 32, "{value} up to {top}");
            assert_eq!(step_of(top), step);
            if top < u64::MAX {
                assert_eq!(step_of(top + 1), step + 1);
            }
            last = last.max(step);
        }
        assert_eq!(last, STEPS_ALL - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_recorded_values() {
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
