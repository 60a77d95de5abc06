//! What a store has counted since it was opened.

mod histogram;

pub use histogram::{Histogram, Histograms};
pub(crate) use histogram::{Recorders, Timer};

use lsmith_storage::sync::atomic::Ordering::Relaxed;
use lsmith_storage::sync::unscheduled::AtomicU64;
use lsmith_storage::table::ReadCount;
use rustix::time::{ClockId, clock_gettime};

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counts since the store was opened. Bytes are physical unless the name says otherwise:
        /// as written to or read from files, before the device does anything of its own.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct StoreStats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl StoreStats {
            /// Names and values, in a fixed order.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }

        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Counts {
            pub(crate) fn read(&self) -> StoreStats {
                StoreStats { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

stats! {
    /// Entries written by users.
    entries_written,
    /// Keys and values of those entries, in bytes: the denominator of `write_cost_user`.
    user_bytes,
    /// Batches written.
    batches,
    /// Records of the write-ahead log, with their framing, and copies of memory that stand in for
    /// old ones.
    wal_bytes,
    /// Those copies alone.
    spill_bytes,
    /// Records of the manifest, with their framing.
    manifest_bytes,
    /// Tables written by plans whose only input was a memtable.
    flush_bytes,
    /// Tables written by bulk loads.
    load_bytes,
    /// Tables written by all other plans.
    merge_bytes_written,
    /// Table bytes that those plans read.
    merge_bytes_read,
    /// Nanoseconds of CPU that policies took to say what to merge, if anything.
    planning_nanos,
    /// Plans carried out.
    plans,
    /// Plans refused because they broke a rule.
    plans_refused,
    /// Plans given up because the system refused something.
    plans_failed,
    /// Syncs of the write-ahead log that were asked for.
    syncs,
    /// Keys looked up.
    gets,
    /// Keys looked up and found present.
    gets_found,
    /// Blocks that lookups of present keys read from files.
    get_blocks_read_found,
    /// Blocks that lookups of absent keys read from files.
    get_blocks_read_absent,
    /// Blocks that lookups found in the cache.
    get_blocks_cached,
    /// Tables that a filter ruled out for a lookup.
    filter_negatives,
    /// Microseconds for which writers were held back.
    held_back_micros,
    /// Microseconds for which merges waited because of a limit on what they write.
    paced_micros,
}

/// Bytes that a store holds in memory, by part. Of tables, those that trees name now: what readers
/// still hold of older versions is not in it, and neither is what the system keeps of mapped files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Memtables, active and sealed, as far as they have allocated anything.
    pub memtables: u64,
    /// Blocks in the cache; of all stores where it is shared.
    pub cache: u64,
    /// Fence pointers of open tables, with the places of their blocks.
    pub fences: u64,
    /// Filters of open tables.
    pub filters: u64,
    /// Profiles of open tables, which plans cut at.
    pub profiles: u64,
}

impl MemoryUse {
    /// All parts together.
    pub fn total(&self) -> u64 {
        self.memtables + self.cache + self.fences + self.filters + self.profiles
    }
}

/// Nanoseconds of CPU that this thread has taken so far, user and system.
pub(crate) fn thread_cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}

impl Counts {
    /// Notes a lookup.
    pub(crate) fn note_get(&self, found: bool, reads: &ReadCount) {
        add(&self.gets, 1);
        if found {
            add(&self.gets_found, 1);
        }
        if reads.blocks_read > 0 {
            let blocks = match found {
                true => &self.get_blocks_read_found,
                false => &self.get_blocks_read_absent,
            };
            add(blocks, reads.blocks_read);
        }
        if reads.blocks_cached > 0 {
            add(&self.get_blocks_cached, reads.blocks_cached);
        }
        if reads.filter_negatives > 0 {
            add(&self.filter_negatives, reads.filter_negatives);
        }
    }
}
