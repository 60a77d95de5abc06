//! Counters of a store since it was opened.

mod histogram;
mod prometheus;

pub use histogram::{Histogram, Histograms};
pub(crate) use histogram::{Recorders, Timer};
pub(crate) use prometheus::MetricsText;

use lsmith_storage::sync::atomic::Ordering::Relaxed;
use lsmith_storage::sync::unscheduled::AtomicU64;
use lsmith_storage::system;
use lsmith_storage::table::ReadCount;

macro_rules! stats {
    ($($(#[doc = $doc:literal])* $name:ident),* $(,)?) => {
        /// Counts since the store was opened. Bytes are physical unless a field says otherwise:
        /// bytes written to or read from files.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct StoreStats {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl StoreStats {
            /// Returns the names and values of all fields, in a fixed order.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// Returns what each field is, in the order of [`fields`](StoreStats::fields).
            pub(crate) fn helps() -> impl Iterator<Item = &'static str> {
                [$(concat!($($doc),*)),*].into_iter().map(str::trim)
            }
        }

        /// The counters behind [`StoreStats`].
        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Counts {
            /// Returns the counts as of now.
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
    /// Bytes of records of the write-ahead log, with their framing, and of spills that
    /// replace the start of the log.
    wal_bytes,
    /// Bytes of those spills alone.
    spill_bytes,
    /// Entries that were looked at one by one when memory was folded. Under a policy that counts in
    /// blocks, a new entry is, and later whenever a block begins with it.
    entries_folded,
    /// Bytes of records of the manifest, with their framing.
    manifest_bytes,
    /// Bytes of tables written by plans whose only input was a memtable.
    flush_bytes,
    /// Bytes of tables written by bulk loads.
    load_bytes,
    /// Bytes of tables written by all other plans.
    merge_bytes_written,
    /// Bytes of nodes of append tables, in what flushes and those other plans wrote.
    node_bytes,
    /// Bytes of tables that those other plans read.
    merge_bytes_read,
    /// Logical bytes that plans dropped without reading them: they had expired, range deletes hid
    /// them, or the policy gave them up.
    bytes_dropped_unread,
    /// Nanoseconds of CPU that policies took to choose the next merge, if any.
    planning_nanos,
    /// Nanoseconds of CPU of the threads that merge: flushes, merges, choosing them, and making and
    /// removing files. In lockstep, of the writers that do this work.
    merge_cpu_nanos,
    /// Plans carried out.
    plans,
    /// Plans refused because they broke a rule.
    plans_refused,
    /// Plans that failed, for example because the device was full.
    plans_failed,
    /// Syncs of the write-ahead log, without the syncs for merges and bulk loads.
    syncs,
    /// Keys looked up.
    gets,
    /// Keys looked up and found present.
    gets_found,
    /// Blocks that lookups of present keys looked at: mapped, cached or read.
    get_blocks_found,
    /// Blocks that lookups of absent keys looked at: mapped, cached or read.
    get_blocks_absent,
    /// Blocks of lookups that were in the map of a file. The system may have had them in memory, or
    /// read them.
    get_blocks_mapped,
    /// Blocks of lookups that were in the cache.
    get_blocks_cached,
    /// Range reads: iterators that were asked for an entry. The store counts them when they are
    /// dropped.
    scans,
    /// Runs on storage that range reads looked at.
    scan_runs,
    /// Blocks that range reads looked at: mapped, cached or read.
    scan_blocks,
    /// Blocks of range reads, of all of these, in which a search found no entry. Fence pointers are
    /// shorter than keys, so a search may begin one block early.
    scan_blocks_in_vain,
    /// Blocks of range reads that were in the map of a file.
    scan_blocks_mapped,
    /// Blocks of range reads that were in the cache.
    scan_blocks_cached,
    /// Tables that a filter ruled out for a range read, because it excluded the prefix of all keys
    /// within the bounds.
    scan_filter_negatives,
    /// Tables that a filter ruled out for a lookup.
    filter_negatives,
    /// Microseconds for which writers were held back: the sum of the next five.
    held_back_micros,
    /// Microseconds for which writers were slowed because memtables wait to be merged.
    slowed_by_memory_micros,
    /// Microseconds for which writers were slowed because the merge policy is behind.
    slowed_by_merges_micros,
    /// Microseconds for which writers were stopped because memory is full.
    stopped_by_memory_micros,
    /// Microseconds for which writers were stopped because the merge policy is far behind.
    stopped_by_merges_micros,
    /// Microseconds for which writers were stopped because the limit on space leaves no room.
    stopped_by_space_micros,
    /// Microseconds for which merges waited because of a limit on what they write.
    paced_micros,
}

/// Bytes that a store holds in memory, by part. Tables count if the current trees name them.
/// Excludes tables that only readers of older versions use, and pages of mapped files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Bytes that active and sealed memtables have allocated.
    pub memtables: u64,
    /// Bytes that memtables have left for the next one, and bytes of memtables that are being freed
    /// or that only readers of older versions use.
    pub spare: u64,
    /// Bytes of tables that merges are writing: blocks on their way to the file, and what becomes
    /// filters and fence pointers.
    pub merges: u64,
    /// Bytes of blocks in the cache. A shared cache counts the blocks of all its stores.
    pub cache: u64,
    /// Bytes of the fence pointers of open tables, with the offsets of their blocks.
    pub fences: u64,
    /// Bytes of the filters of open tables.
    pub filters: u64,
    /// Bytes of the profiles of open tables, at whose points plans cut.
    pub profiles: u64,
    /// The limit on all of them, if there is one. See
    /// [`Builder::memory_bytes`](crate::Builder::memory_bytes).
    pub limit: Option<u64>,
}

/// The bytes that the files of a store take, and the limit on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceUse {
    /// Bytes of the files in the directory of the store. Holes in them do not count.
    pub used: u64,
    /// The limit. See [`Builder::space_bytes`](crate::Builder::space_bytes).
    pub limit: u64,
}

impl MemoryUse {
    /// Returns the sum of all parts, in bytes.
    pub fn total(&self) -> u64 {
        self.parts().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the names and the bytes of all parts, in a fixed order.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("memtables", self.memtables),
            ("spare", self.spare),
            ("merges", self.merges),
            ("cache", self.cache),
            ("fences", self.fences),
            ("filters", self.filters),
            ("profiles", self.profiles),
        ]
        .into_iter()
    }

    /// Returns the bytes of open tables.
    pub(crate) fn tables(&self) -> u64 {
        self.fences + self.filters + self.profiles
    }
}

/// Returns the nanoseconds of CPU that this thread has used so far, user and system.
pub(crate) fn thread_cpu_nanos() -> u64 {
    system::thread_cpu_time().as_nanos() as u64
}

/// Adds `by` to `counter`.
pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}

/// Adds `by` to `counter`, unless it is 0: an atomic addition of nothing takes as long.
fn add_some(counter: &AtomicU64, by: u64) {
    if by > 0 {
        add(counter, by);
    }
}

impl Counts {
    /// Counts a lookup that caused `reads`; `found` is true if the key was present.
    pub(crate) fn note_get(&self, found: bool, reads: &ReadCount) {
        add(&self.gets, 1);
        if found {
            add(&self.gets_found, 1);
        }
        let blocks = if found { &self.get_blocks_found } else { &self.get_blocks_absent };
        add_some(blocks, reads.blocks());
        add_some(&self.get_blocks_mapped, reads.blocks_mapped);
        add_some(&self.get_blocks_cached, reads.blocks_cached);
        add_some(&self.filter_negatives, reads.filter_negatives);
    }

    /// Counts a range read that looked at `runs` runs on storage and caused `reads`.
    pub(crate) fn note_scan(&self, runs: u64, reads: &ReadCount) {
        add(&self.scans, 1);
        add_some(&self.scan_runs, runs);
        add_some(&self.scan_blocks, reads.blocks());
        add_some(&self.scan_blocks_in_vain, reads.blocks_in_vain);
        add_some(&self.scan_blocks_mapped, reads.blocks_mapped);
        add_some(&self.scan_blocks_cached, reads.blocks_cached);
        add_some(&self.scan_filter_negatives, reads.filter_negatives);
    }
}
