//! Computes and divides the memory of a choice.

use super::limits::Limits;
use super::survey::Survey;
use anyhow::{Result, bail};
use lsmith_spec::format_bytes;
use serde::Serialize;

/// Filter bits per entry, if memory suffices.
const FILTER_BITS: f64 = 10.0;

/// The memtables in memory: the active one and a sealed one.
const MEMTABLES: f64 = 2.0;

/// The smallest considered memtable, in bytes.
const MEMTABLE_BYTES_MIN: f64 = 65_536.0;

/// Bytes of a data block. Each has one fence pointer.
pub(super) const BLOCK_BYTES: f64 = 4096.0;

/// Bytes of a fence pointer without its key.
const FENCE_BYTES: f64 = 8.0;

/// The bytes held per live byte for which filters and fence pointers get memory.
const SPACE_COST: f64 = 1.3;

/// Bytes of memory that a choice needs on the store, without the block cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MemoryNeed {
    /// The active memtable and a sealed one.
    pub memtables: u64,
    /// Filters of all entries on storage, including old versions, averaged over time.
    pub filters: u64,
    /// The fence pointers of all blocks, averaged over time.
    pub fences: u64,
}

impl MemoryNeed {
    /// Returns the sum of all parts.
    pub(super) fn total(&self) -> u64 {
        self.memtables + self.filters + self.fences
    }
}

/// The division of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) memtable_bytes: u64,
    /// All memory. `None` means as much as filters and fence pointers need.
    limit: Option<u64>,
    /// The greatest number of live entries, and their bytes.
    live_entries: f64,
    live_bytes: f64,
    fence_bytes: f64,
}

impl Memory {
    /// Divides memory for a workload with `shrink` times the live data of `survey`. Filters and
    /// fence pointers get what they need for [`SPACE_COST`] entries per live entry, but filters get
    /// at most what fence pointers leave of one half. Memtables get the rest.
    ///
    /// # Errors
    /// Fails if fence pointers and the smallest memtables do not fit.
    pub(super) fn of(limits: &Limits, survey: &Survey, shrink: f64) -> Result<Memory> {
        let mut shared = Memory {
            memtable_bytes: limits.memtable_bytes,
            limit: limits.memory_bytes,
            live_entries: survey.live_entries_max as f64 * shrink,
            live_bytes: survey.live_bytes_max as f64 * shrink,
            fence_bytes: survey.key_bytes() + FENCE_BYTES,
        };
        let Some(memory) = limits.memory_bytes else { return Ok(shared) };
        let memory = memory as f64;
        let fences = shared.fences(SPACE_COST);
        let filters = shared.live_entries * SPACE_COST * FILTER_BITS / 8.0;
        let rest = fences.max((fences + filters).min(memory / 2.0));
        let memtable = (memory - rest) / MEMTABLES;
        if memtable < MEMTABLE_BYTES_MIN {
            let least = fences + MEMTABLES * MEMTABLE_BYTES_MIN;
            bail!(
                "memory of {} is too little: two memtables of 64 KiB and the fence pointers of \
                 these data take {}",
                format_bytes(memory as u64),
                format_bytes(least.ceil() as u64),
            );
        }
        shared.memtable_bytes = memtable as u64;
        Ok(shared)
    }

    fn fences(&self, space_cost: f64) -> f64 {
        self.live_bytes * space_cost / BLOCK_BYTES * self.fence_bytes
    }

    /// Returns the memory that a policy needs, and its filter bits per entry. Filters have what
    /// memtables and fence pointers leave.
    pub(super) fn need(&self, space_cost: f64) -> (MemoryNeed, f64) {
        let entries = self.live_entries * space_cost;
        let fences = self.fences(space_cost);
        let memtables = self.memtable_bytes as f64 * MEMTABLES;
        let left = self.limit.map_or(f64::INFINITY, |limit| limit as f64 - memtables - fences);
        let filters = (entries * FILTER_BITS / 8.0).min(left.max(0.0));
        let need = MemoryNeed {
            memtables: memtables as u64,
            filters: filters as u64,
            fences: fences as u64,
        };
        (need, filters * 8.0 / entries.max(1.0))
    }

    /// Returns true if a policy that needs `need` stays within the memory that is given.
    pub(super) fn allows(&self, need: &MemoryNeed) -> bool {
        self.limit.is_none_or(|limit| need.total() <= limit)
    }
}
