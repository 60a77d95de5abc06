//! The limit on the memory of a store, and what each part may have of it.
//!
//! Memtables grow with writes, and open tables need their fence pointers and filters. Only the
//! cache can shrink at any time. So it gets what the others leave, up to a bound: an allocator does
//! not give back all that small blocks leave behind.
//!
//! ```text
//! memtables          up to 5 sixteenths; from 3 on the largest is sealed early
//! merges under way   1 sixteenth: tables are cut before what becomes their filter takes more
//! allocator          4 sixteenths and 3 MiB, for what it holds beyond what it was asked for
//! open tables        what they need
//! cache              the rest, 1 to 5 sixteenths; at most 5 without the 3 MiB
//! ```

use lsmith_storage::table::TableOptions;

/// The least part of a limit that is given to anything.
const PART: u64 = 16;

/// Bytes of memory that a default store takes at most, roughly. A control group that leaves more
/// changes nothing.
const USUAL_BYTES: u64 = 256 << 20;

/// A store takes this part of what its control group leaves.
const GROUP_PART: u64 = 2;

/// Bytes of a table under construction that do not depend on its size, roughly.
const WRITER_BYTES: u64 = 512 << 10;

/// Bytes that an allocator keeps for threads beyond its sixteenths, whatever the limit is, roughly.
/// A store with a limit too low for that keeps one and a half sixteenths.
const ALLOCATOR_BYTES: u64 = 3 << 20;

/// The entries that any table under construction may have.
const ENTRIES_MIN: u64 = 16 << 10;

/// The limit on memory, if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryLimit {
    pub(crate) bytes: Option<u64>,
    /// The bytes of all memtables from which on the largest one is sealed early.
    pub(crate) memtables_low: u64,
    /// The bytes of all memtables at which writers stop.
    pub(crate) memtables_max: u64,
}

impl MemoryLimit {
    /// Returns a limit of `bytes`, or none.
    pub(crate) fn new(bytes: Option<u64>) -> MemoryLimit {
        let parts = |parts: u64| bytes.map_or(u64::MAX, |bytes| bytes / PART * parts);
        MemoryLimit { bytes, memtables_low: parts(3), memtables_max: parts(5) }
    }

    /// Returns the logical bytes of a memtable under a limit of `bytes`.
    pub(crate) fn memtable_bytes(bytes: u64) -> u64 {
        bytes / PART
    }

    /// Returns the limit for a store that says nothing of memory, in a process whose control group
    /// leaves `group_bytes`.
    pub(crate) fn in_group(group_bytes: u64) -> Option<u64> {
        Some(group_bytes / GROUP_PART).filter(|bytes| *bytes < USUAL_BYTES)
    }

    /// Returns the capacity of the cache beside `memtables` and `tables`, in bytes, if there is a
    /// limit.
    pub(crate) fn cache_bytes(self, memtables: u64, tables: u64) -> Option<u64> {
        let part = self.bytes? / PART;
        let of_threads = ALLOCATOR_BYTES.min(3 * part / 2);
        let rest = (11 * part).saturating_sub(of_threads + memtables + tables);
        Some(rest.clamp(part, 5 * part - of_threads))
    }

    /// Returns true if memtables, open tables and the cache need more than the limit leaves them.
    pub(crate) fn is_exceeded_by(self, bytes: u64) -> bool {
        self.bytes.is_some_and(|limit| bytes > limit / PART * 11)
    }

    /// Returns the entries after which a table with `options` is cut, whatever the plan says, if
    /// `threads` threads write tables.
    pub(crate) fn table_entries(self, threads: usize, options: &TableOptions) -> u64 {
        let Some(bytes) = self.bytes else { return u64::MAX };
        let of_thread = (bytes / PART / threads.max(1) as u64).saturating_sub(WRITER_BYTES);
        // A hash, two copies of the filter, and a share of the fences.
        let of_entry = 8.0 + options.bits_per_key() / 4.0 + 1.0;
        ((of_thread as f64 / of_entry) as u64).max(ENTRIES_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_within_the_limit() {
        let limit = MemoryLimit::new(Some(64 << 20));
        let tables = 10 << 20;
        let cache = limit.cache_bytes(limit.memtables_max, tables).unwrap();
        let merges_and_allocator = 5 * (4 << 20) + ALLOCATOR_BYTES;
        assert_eq!(limit.memtables_max + tables + cache + merges_and_allocator, 64 << 20);
        assert_eq!(limit.cache_bytes(0, 0), Some(17 << 20), "five sixteenths at most");
        let small = MemoryLimit::new(Some(2 << 20));
        assert_eq!(small.cache_bytes(0, 0), Some(448 << 10), "three and a half sixteenths");
        assert_eq!(limit.cache_bytes(0, 1 << 30), Some(4 << 20), "a sixteenth at least");
        assert!(!limit.is_exceeded_by(44 << 20) && limit.is_exceeded_by(45 << 20));
        let entries = limit.table_entries(2, &TableOptions::default());
        assert!((100_000..200_000).contains(&entries), "{entries}");
    }

    #[test]
    fn without_a_limit_nothing_is_bounded() {
        let none = MemoryLimit::new(None);
        assert_eq!((none.memtables_low, none.memtables_max), (u64::MAX, u64::MAX));
        assert_eq!(none.cache_bytes(0, 0), None);
        assert_eq!(none.table_entries(2, &TableOptions::default()), u64::MAX);
    }

    #[test]
    fn half_of_a_small_group_is_taken() {
        assert_eq!(MemoryLimit::in_group(200 << 20), Some(100 << 20));
        assert_eq!(MemoryLimit::in_group(512 << 20), None);
        assert_eq!(MemoryLimit::in_group(u64::MAX), None);
    }
}
