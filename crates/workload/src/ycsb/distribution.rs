//! Distributions of the record of an operation and of the length of a scan.

use std::ops::Range;

use super::zipfian::{THETA, Zipfian};
use crate::Rng;
use crate::keys::fnv_hash;

/// YCSB draws scrambled ranks from this many, whatever the number of records, so that the hot
/// records stay hot when records are added.
const SCRAMBLED_RANKS: u64 = 10_000_000_001;

/// The choice of records in the run phase.
#[derive(Clone, Debug)]
pub(super) enum Requests {
    /// Any of the loaded records with equal chance.
    Uniform,
    /// The loaded records in order, again and again.
    Sequential,
    /// Zipf distributed, the hot records scattered by a hash.
    Zipfian {
        /// Records that the run phase may add, at a guess; drawn too early, they are drawn again.
        added_max: u64,
        theta: f64,
    },
    /// Zipf distributed by age, the newest record the hottest.
    Latest { theta: f64 },
    /// Exponentially distributed by age, the newest record the hottest.
    Exponential { gamma: f64 },
    /// A first part of the loaded records gets a share of the operations of its own.
    Hotspot { hot_records: f64, hot_operations: f64 },
}

/// Draws records by [`Requests`].
#[derive(Clone, Debug)]
pub(super) struct Picker {
    requests: Requests,
    /// The records of the load phase.
    loaded: Range<u64>,
    /// One past the newest record.
    end: u64,
    /// Of `Sequential`: draws so far.
    drawn: u64,
    zipfian: Zipfian,
}

impl Picker {
    pub(super) fn new(requests: &Requests, loaded: Range<u64>, record_count: u64) -> Self {
        let (ranks, theta) = match requests {
            Requests::Zipfian { theta, .. } => (SCRAMBLED_RANKS, *theta),
            // One less than there are records: YCSB never draws the oldest.
            Requests::Latest { theta } => (record_count - 1, *theta),
            _ => (1, THETA),
        };
        Self {
            requests: requests.clone(),
            loaded,
            end: record_count,
            drawn: 0,
            zipfian: Zipfian::new(ranks, theta),
        }
    }

    /// Adds a record and returns it.
    pub(super) fn insert(&mut self) -> u64 {
        self.end += 1;
        if matches!(self.requests, Requests::Latest { .. }) && self.end > 2 {
            self.zipfian.grow();
        }
        self.end - 1
    }

    /// Draws an existing record.
    pub(super) fn draw(&mut self, rng: &mut Rng) -> u64 {
        let records = self.loaded.end - self.loaded.start;
        match self.requests {
            Requests::Uniform => self.loaded.start + rng.below(records),
            Requests::Sequential => {
                self.drawn += 1;
                self.loaded.start + (self.drawn - 1) % records
            }
            Requests::Zipfian { added_max, .. } => loop {
                let hash = fnv_hash(self.zipfian.draw(rng));
                let item = self.loaded.start + hash % (records + added_max + 1);
                if item < self.end {
                    return item;
                }
            },
            Requests::Latest { .. } => self.end - 1 - self.zipfian.draw(rng),
            Requests::Exponential { gamma } => loop {
                let age = (-(1.0 - rng.unit()).ln() / gamma) as u64;
                if age < self.end {
                    return self.end - 1 - age;
                }
            },
            Requests::Hotspot { hot_records, hot_operations } => {
                let hot = (records as f64 * hot_records) as u64;
                let cold = records - hot;
                if cold == 0 || (hot > 0 && rng.unit() < hot_operations) {
                    self.loaded.start + rng.below(hot)
                } else {
                    self.loaded.start + hot + rng.below(cold)
                }
            }
        }
    }
}

/// The number of lengths whose mean stands for the mean of a Zipf distribution.
const MEAN_DRAWS: u32 = 20_000;

/// The distribution of the number of entries that a scan reads.
#[derive(Clone, Debug)]
pub(super) enum ScanLengths {
    /// Any number of a range with equal chance.
    Uniform(Range<u32>),
    /// Zipf distributed, the shortest the likeliest.
    Zipfian(u32, Zipfian),
}

impl ScanLengths {
    /// Returns the mean, for a Zipf distribution within a few percent.
    pub(super) fn mean(&self) -> f64 {
        match self {
            Self::Uniform(lengths) => {
                f64::midpoint(f64::from(lengths.start), f64::from(lengths.end) - 1.0)
            }
            Self::Zipfian(..) => {
                let mut rng = Rng::new(1, 1);
                let drawn = (0..MEAN_DRAWS).map(|_| f64::from(self.draw(&mut rng)));
                drawn.sum::<f64>() / f64::from(MEAN_DRAWS)
            }
        }
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Self::Uniform(lengths) => {
                lengths.start + rng.below(u64::from(lengths.end - lengths.start)) as u32
            }
            Self::Zipfian(shortest, zipfian) => shortest + zipfian.draw(rng) as u32,
        }
    }
}
