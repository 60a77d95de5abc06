//! The part of a phase that one thread does, and what it counts.

use crate::data::{Order, Values};
use crate::stores::Store;
use anyhow::Result;
use hdrhistogram::Histogram;
use lsmith_workload::Rng;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Writes of a batch, and keys of a `multi_get`.
pub(super) const BATCH: u64 = 100;

/// Longest time that is told apart, in nanoseconds: ten minutes.
const LATENCY_NS_MAX: u64 = 600_000_000_000;

/// An open store and what it holds.
pub(crate) struct Dataset {
    /// The store.
    pub(crate) store: Box<dyn Store>,
    /// The folder of its files.
    pub(crate) dir: PathBuf,
    /// How its keys lie.
    pub(crate) order: Order,
    /// What values are drawn from.
    pub(crate) values: Values,
    /// Keys 0 up to this have been given out.
    pub(crate) keys: AtomicU64,
}

impl Dataset {
    /// How many keys there are.
    pub(crate) fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }
}

/// The part of one thread.
pub(crate) struct Part<'a> {
    pub(crate) data: &'a Dataset,
    /// The first of its operations, counted over all threads.
    pub(crate) first: u64,
    /// How many operations are its own.
    pub(crate) ops: u64,
    pub(crate) rng: Rng,
    pub(crate) tally: Tally,
}

/// What a thread has counted.
pub(crate) struct Tally {
    /// Nanoseconds of operations.
    pub(crate) latencies: Histogram<u64>,
    /// Bytes of keys and values written, deleted keys included.
    pub(crate) user_bytes: u64,
    /// Bytes that the thread's gets have read from the device. `None` if they are not counted.
    pub(crate) get_read_bytes: Option<u64>,
    /// Bytes on the device, sampled over the last quarter of an overwrite.
    pub(crate) disk_samples: Vec<u64>,
}

impl Tally {
    pub(super) fn new() -> Result<Tally> {
        let latencies = Histogram::new_with_max(LATENCY_NS_MAX, 3)?;
        Ok(Tally { latencies, user_bytes: 0, get_read_bytes: None, disk_samples: Vec::new() })
    }

    /// Notes that `count` operations took `time` each.
    pub(crate) fn note(&mut self, time: Duration, count: u64) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.latencies.saturating_record_n(nanos.clamp(1, LATENCY_NS_MAX), count);
    }

    pub(super) fn add(&mut self, other: Tally) -> Result<()> {
        self.latencies.add(&other.latencies)?;
        self.user_bytes += other.user_bytes;
        self.get_read_bytes = self.get_read_bytes.or(other.get_read_bytes);
        self.disk_samples.extend(other.disk_samples);
        Ok(())
    }
}

/// Takes the time of operations that follow each other, with one look at the clock for each.
pub(crate) struct Laps {
    last: Instant,
}

impl Laps {
    /// Begins now.
    pub(crate) fn start() -> Laps {
        Laps { last: Instant::now() }
    }

    /// The time since the last lap or the start.
    pub(crate) fn lap(&mut self) -> Duration {
        let now = Instant::now();
        let time = now - self.last;
        self.last = now;
        time
    }
}
