//! Whether blocks of mapped files have to be waited for.
//!
//! A page that the system has not got is read from the device when it is looked at, and nothing
//! else goes on meanwhile. Who asks for several blocks before looking at the first waits once
//! instead of once per page; but asking takes a call of the system, as long as looking into several
//! blocks that are there. So it is done only where it has lately been worth it, and the clock says
//! that: a look takes less than a microsecond at memory, a few where the system has the page but
//! must map it, and tens of them at a device.
//!
//! While nothing is asked for, one block of [`BLOCKS_PER_LOOK`] is looked at with a clock. Its
//! number says which, so that nothing needs to be counted: data that lies on the device is spread
//! over all numbers. Once a look has waited, the next [`BLOCKS_ASKED`] blocks are asked for, and
//! all looks are timed; each that waits begins that anew. So asking in vain takes at most about as
//! long as the wait before did.

use crate::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// While nothing is asked for, one block of so many is looked at with a clock.
const BLOCKS_PER_LOOK: u64 = 32;

/// Blocks that are asked for after one that had to be waited for.
const BLOCKS_ASKED: u32 = 32;

/// A look that takes as long has waited for a device.
const WAIT_MIN: Duration = Duration::from_micros(10);

/// How many blocks are still to be asked for ahead. It is a guess: threads that change it at once
/// may make it larger or smaller than either meant.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Waits(AtomicU32);

impl Waits {
    /// Whether looks have waited lately.
    #[inline]
    pub(super) fn lately(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Whether a look at block `index` of table number `table` is to be timed.
    #[inline]
    pub(super) fn wants_time(&self, table: u64, index: usize) -> bool {
        // Where tables are small, every one of them has a block 0.
        table.wrapping_add(index as u64).is_multiple_of(BLOCKS_PER_LOOK) || self.lately()
    }

    /// Notes that a block was asked for.
    pub(super) fn asked(&self) {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
    }

    /// Notes that a look took `time`.
    pub(super) fn looked(&self, time: Duration) {
        if time >= WAIT_MIN {
            self.0.store(BLOCKS_ASKED, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_wait_some_blocks_are_asked_for_and_then_no_more() {
        let waits = Waits::default();
        waits.looked(WAIT_MIN / 2);
        assert!(!waits.lately());
        for _ in 0..2 {
            waits.looked(WAIT_MIN);
            waits.asked();
            waits.looked(WAIT_MIN);
            for _ in 0..BLOCKS_ASKED {
                assert!(waits.lately() && (0..100).all(|index| waits.wants_time(7, index)));
                waits.looked(Duration::ZERO);
                waits.asked();
            }
            assert!(!waits.lately());
        }
    }

    #[test]
    fn of_fast_looks_one_of_many_is_timed_in_whatever_tables() {
        let waits = Waits::default();
        let timed = |tables: u64, blocks: usize| {
            let looks = (0..tables).flat_map(|table| (0..blocks).map(move |index| (table, index)));
            looks.filter(|(table, index)| waits.wants_time(*table, *index)).count() as u64
        };
        assert_eq!(timed(1, 3200), 3200 / BLOCKS_PER_LOOK);
        assert_eq!(timed(3200, 1), 3200 / BLOCKS_PER_LOOK);
    }
}
