//! What reads and open tables are counted by.

use crate::sync::atomic::{AtomicU64, Ordering};
use lsmith_tree::ProfilePoint;

/// Counts the work of reads, summed over calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCount {
    /// Tables that a filter excluded.
    pub filter_negatives: u64,
    /// Blocks found in the cache.
    pub blocks_cached: u64,
    /// Blocks looked at in the map of a file. Whether the system had them in memory is unknown.
    pub blocks_mapped: u64,
    /// Blocks read from a file.
    pub blocks_read: u64,
    /// Bytes read from a file, or looked at in its map.
    pub bytes_read: u64,
    /// Blocks, of all of these, in which a cursor found no entry of its range. Fence pointers are
    /// shorter than keys, so a search may begin one block early.
    pub blocks_in_vain: u64,
}

impl ReadCount {
    /// Returns the number of blocks looked at, wherever they were.
    pub fn blocks(&self) -> u64 {
        self.blocks_cached + self.blocks_mapped + self.blocks_read
    }

    /// Counts a block of `bytes` bytes in the map of a file.
    #[inline(always)]
    pub(super) fn count_mapped(&mut self, bytes: u64) {
        self.blocks_mapped += 1;
        self.bytes_read += bytes;
    }
}

/// The memory that an open table holds in bytes, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// Fence pointers, with the places of their blocks.
    pub fences: u64,
    /// The filter.
    pub filters: u64,
    /// The profile, where plans can cut.
    pub profiles: u64,
}

impl TableMemory {
    /// Returns the sum of all parts.
    pub fn total(&self) -> u64 {
        self.fences + self.filters + self.profiles
    }
}

/// Counts the reads of many cursors, added when a cursor is dropped.
#[derive(Debug, Default)]
pub struct ReadTally {
    blocks: AtomicU64,
    bytes: AtomicU64,
    cached: AtomicU64,
    mapped: AtomicU64,
    in_vain: AtomicU64,
    excluded: AtomicU64,
}

impl ReadTally {
    pub(super) fn add(&self, reads: ReadCount) {
        let add = |counter: &AtomicU64, count| {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        };
        add(&self.blocks, reads.blocks_read);
        add(&self.bytes, reads.bytes_read);
        add(&self.cached, reads.blocks_cached);
        add(&self.mapped, reads.blocks_mapped);
        add(&self.in_vain, reads.blocks_in_vain);
    }

    /// Adds `tables` that filters excluded, so that no cursor reads them.
    pub fn note_excluded(&self, tables: u64) {
        self.excluded.fetch_add(tables, Ordering::Relaxed);
    }

    /// Returns all counts.
    pub fn count(&self) -> ReadCount {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReadCount {
            filter_negatives: read(&self.excluded),
            blocks_cached: read(&self.cached),
            blocks_mapped: read(&self.mapped),
            blocks_read: read(&self.blocks),
            bytes_read: read(&self.bytes),
            blocks_in_vain: read(&self.in_vain),
        }
    }

    /// Returns the number of blocks read from files.
    pub fn blocks(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes read from files.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Returns the memory of the profile of `table`, in bytes.
pub(super) fn profile_bytes(table: &lsmith_tree::Table) -> u64 {
    let point = |point: &ProfilePoint| {
        let after = point.after.as_ref().map_or(0, |after| after.len());
        (size_of::<ProfilePoint>() + point.key.len() + after) as u64
    };
    table.profile.iter().map(point).sum()
}
