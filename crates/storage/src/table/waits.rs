//! Decides whether to request blocks of mapped files ahead.
//!
//! A page that is not in the page cache is read from the device on access, and the thread waits. A
//! thread that requests several blocks before it reads the first one waits once, not once per page.
//! But a request is a system call, which takes as long as reading several blocks in memory. So
//! blocks are requested only if reads have recently waited. The clock tells: a first read of a
//! block takes less than a microsecond in memory, a few if the system must map the page, and tens
//! of them if a device must read it.
//!
//! While no blocks are requested, one first read of [`BLOCKS_PER_TIMED`] is timed. The index of the
//! block decides which one, so that nothing must be counted; data on the device is spread over all
//! numbers. Once a read has waited, the next [`BLOCKS_REQUESTED`] blocks are requested and all
//! first reads are timed. Each read that waits starts this again. So useless requests take at most
//! about as long as the wait before them.

use crate::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// While no blocks are requested, one first read in this many is timed.
const BLOCKS_PER_TIMED: u64 = 32;

/// The number of blocks that are requested after a read that waited.
const BLOCKS_REQUESTED: u32 = 32;

/// A read that takes at least this long has waited for a device.
pub(super) const WAIT_MIN: Duration = Duration::from_micros(10);

/// The number of blocks that are still to be requested. Threads that change it at the same time may
/// make it larger or smaller than intended, which does no harm.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Waits(AtomicU32);

impl Waits {
    /// Returns true if reads have waited recently.
    #[inline]
    pub(super) fn are_recent(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Returns true if the first read of block `index` of table `table` must be timed.
    #[inline]
    pub(super) fn must_time(&self, table: u64, index: usize) -> bool {
        // If tables are small, every one of them has a block 0.
        table.wrapping_add(index as u64).is_multiple_of(BLOCKS_PER_TIMED) || self.are_recent()
    }

    /// Counts a requested block.
    pub(super) fn count_request(&self) {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
    }

    /// Counts a first read that took `time`.
    pub(super) fn count_read(&self, time: Duration) {
        if time >= WAIT_MIN {
            self.0.store(BLOCKS_REQUESTED, Ordering::Relaxed);
        }
    }

    /// Counts a call that read `bytes` bytes in `time`. Without a wait it copies them.
    pub(super) fn count_call(&self, time: Duration, bytes: u64) {
        self.count_request();
        self.count_read(time.saturating_sub(Duration::from_nanos(bytes)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_causes_some_requests_and_then_no_more() {
        let waits = Waits::default();
        waits.count_read(WAIT_MIN / 2);
        assert!(!waits.are_recent());
        for _ in 0..2 {
            waits.count_read(WAIT_MIN);
            waits.count_request();
            waits.count_read(WAIT_MIN);
            for _ in 0..BLOCKS_REQUESTED {
                assert!(waits.are_recent() && (0..100).all(|index| waits.must_time(7, index)));
                waits.count_read(Duration::ZERO);
                waits.count_request();
            }
            assert!(!waits.are_recent());
        }
    }

    #[test]
    fn one_fast_read_of_many_is_timed_in_tables_of_any_size() {
        let waits = Waits::default();
        let timed = |tables: u64, blocks: usize| {
            let looks = (0..tables).flat_map(|table| (0..blocks).map(move |index| (table, index)));
            looks.filter(|(table, index)| waits.must_time(*table, *index)).count() as u64
        };
        assert_eq!(timed(1, 3200), 3200 / BLOCKS_PER_TIMED);
        assert_eq!(timed(3200, 1), 3200 / BLOCKS_PER_TIMED);
    }
}
