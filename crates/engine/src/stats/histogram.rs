//! Histograms: how often which value was seen, within one part in 32.

use lsmith_storage::env::Env;
use lsmith_storage::sync::atomic::Ordering::Relaxed;
use lsmith_storage::sync::unscheduled::AtomicU64;
use std::time::Duration;

/// Values up to two to this power are told apart; from there on each doubling has as many steps.
const STEP_BITS: u32 = 5;

const STEPS: u64 = 1 << STEP_BITS;

/// Steps of all values of 64 bits.
const PLACES: usize = ((u64::BITS - STEP_BITS + 1) * STEPS as u32) as usize;

/// The place of `value`.
fn place(value: u64) -> usize {
    let power = (value | 1).ilog2();
    if power < STEP_BITS {
        return value as usize;
    }
    let shift = power - STEP_BITS;
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// The greatest value that has its place at `place`.
fn greatest(place: usize) -> u64 {
    let place = place as u64;
    if place < STEPS {
        return place;
    }
    let shift = place / STEPS - 1;
    ((((place - shift * STEPS) as u128 + 1) << shift) - 1) as u64
}

/// How often which value was seen, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// How many values were seen.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean of the values; 0 where there are none.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// The greatest value; 0 where there are none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// A value that the part `share` (0 to 1) of all values does not exceed, at most a 32nd above
    /// the least such value: `quantile(0.99)` is the 99th percentile. 0 where there are none.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0, |place| greatest(place).min(self.max))
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
        let counts = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        Recorder { counts, sum: AtomicU64::new(0), max: AtomicU64::new(0) }
    }
}

impl Recorder {
    pub(crate) fn record(&self, value: u64) {
        self.counts[place(value)].fetch_add(1, Relaxed);
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
        /// Histograms since the store was opened, where
        /// [`Builder::histograms`](crate::Builder::histograms) asks for them.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Histograms {
            $($(#[$doc])* pub $name: Histogram,)*
        }

        impl Histograms {
            /// Names and histograms, in a fixed order.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
                [$((stringify!($name), &self.$name)),*].into_iter()
            }
        }

        /// What histograms are made of.
        #[derive(Debug, Default)]
        pub(crate) struct Recorders {
            $(pub(crate) $name: Recorder,)*
        }

        impl Recorders {
            pub(crate) fn read(&self) -> Histograms {
                Histograms { $($name: self.$name.read(),)* }
            }
        }
    };
}

histograms! {
    /// Nanoseconds of a lookup.
    get_nanos,
    /// Blocks that a lookup looked into, from the cache or from files.
    get_blocks,
    /// Nanoseconds of a write of one entry or of a batch, its sync and what it was held back for
    /// included.
    write_nanos,
    /// Nanoseconds of the first step of an iterator, which seeks in all runs.
    seek_nanos,
    /// Nanoseconds of a plan that was carried out and has taken effect, flushes included.
    merge_nanos,
    /// Bytes of the tables that such a plan has written.
    merge_bytes,
}

/// Tells how long something took, where somebody wants to know.
#[derive(Debug)]
pub(crate) struct Timer<'a> {
    running: Option<(&'a Recorders, &'a dyn Env, Duration)>,
}

impl<'a> Timer<'a> {
    /// Begins now, if there are `recorders`.
    #[inline]
    pub(crate) fn begin(recorders: Option<&'a Recorders>, env: &'a dyn Env) -> Timer<'a> {
        Timer { running: recorders.map(|recorders| (recorders, env, env.now())) }
    }

    /// Records the nanoseconds since then where `pick` says.
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
    fn every_value_has_its_place() {
        let mut last = 0;
        let powers = (0..64).flat_map(|power| [0, 1, 2, 5].map(|more| (1u64 << power) + more));
        for value in (0..5000).chain(powers).chain([u64::MAX - 1, u64::MAX]) {
            let at = place(value);
            assert!(at < PLACES, "{value}");
            let top = greatest(at);
            assert!(top >= value && top - value <= value / 32, "{value} up to {top}");
            assert_eq!(place(top), at);
            if top < u64::MAX {
                assert_eq!(place(top + 1), at + 1);
            }
            last = last.max(at);
        }
        assert_eq!(last, PLACES - 1);
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
