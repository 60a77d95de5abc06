//! Reads of ranges, and what they cost.

use crate::keys::key;
use crate::stores::Made;
use lsmith::{Keyspace, Result};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Reads of ranges.
pub(crate) struct Reads {
    pub(crate) name: &'static str,
    /// The entries of a range.
    entries: u64,
    /// The number of ranges.
    ranges: u64,
    /// The number of all entries.
    all: u64,
}

/// What reads cost per entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Nanoseconds of CPU, with all pages in memory.
    pub(crate) warm: f64,
    /// Nanoseconds on the clock, with no page in memory.
    pub(crate) cold: f64,
    /// Bytes that the device read then.
    pub(crate) device: f64,
}

impl Cost {
    pub(crate) const WORST: Cost =
        Cost { warm: f64::INFINITY, cold: f64::INFINITY, device: f64::INFINITY };

    /// Keeps the smaller of each figure.
    pub(crate) fn take(&mut self, other: Cost) {
        self.warm = self.warm.min(other.warm);
        self.cold = self.cold.min(other.cold);
        self.device = self.device.min(other.device);
    }
}

impl Reads {
    /// Returns reads of a table with `all` entries.
    pub(crate) fn all(all: u64) -> [Reads; 4] {
        [
            Reads { name: "all", entries: all, ranges: 1, all },
            Reads { name: "ranges of 1000", entries: 1000.min(all / 20), ranges: 20, all },
            Reads { name: "ranges of 100", entries: 100.min(all / 50), ranges: 50, all },
            Reads { name: "ranges of 10", entries: 10, ranges: (all / 10).min(2000), all },
        ]
    }

    /// Returns what they cost on a store.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub(crate) fn cost(&self, made: &Made, is_mapped: bool) -> Result<Cost> {
        made.drop_pages();
        let (store, keyspace) = made.open(is_mapped)?;
        let (start, device) = (Instant::now(), device_bytes());
        let read = self.read(&keyspace)? as f64;
        let (cold, device) = (start.elapsed(), device_bytes() - device);
        let mut warm = Duration::MAX;
        for _ in 0..2 {
            let start = thread_cpu();
            self.read(&keyspace)?;
            warm = warm.min(thread_cpu() - start);
        }
        drop((keyspace, store));
        let nanos = |time: Duration| time.as_nanos() as f64 / read;
        Ok(Cost { warm: nanos(warm), cold: nanos(cold), device: device as f64 / read })
    }

    /// Reads all ranges. Returns the number of entries.
    fn read(&self, keyspace: &Keyspace) -> Result<u64> {
        let mut read = 0;
        let mut copy = Vec::new();
        for range in 0..self.ranges {
            let mut entries = match self.ranges {
                1 => keyspace.iter(),
                // Any keys, far from each other.
                _ => keyspace.range(key(range * (self.all / self.ranges))..),
            };
            for _ in 0..self.entries {
                let Some(entry) = entries.next_ref() else { break };
                let (key, value) = entry?;
                // A reader looks at all of a value.
                copy.clear();
                copy.extend_from_slice(key);
                copy.extend_from_slice(value);
                std::hint::black_box(&copy);
                read += 1;
            }
        }
        Ok(read)
    }
}

/// CPU time that this thread has taken so far, user and system.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the bytes that the device has read for this process.
fn device_bytes() -> u64 {
    let counters = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = counters.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}
