//! Computes and divides the memory of a choice.

use super::{Choice, Limits};
use crate::profile::Profile;
use anyhow::{Result, bail};
use lsmith_workload::Workload;
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

/// The keys that are read for their mean length.
const KEYS_SAMPLED: u64 = 1000;

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
    fn total(&self) -> u64 {
        self.memtables + self.filters + self.fences
    }
}

/// The division of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) memtable_bytes: u64,
    /// Bytes for filters and fence pointers. `None` means as many as they need.
    rest: Option<f64>,
    keys: f64,
    entry_bytes: f64,
    fence_bytes: f64,
}

impl Memory {
    /// Divides memory. Filters and fence pointers for one entry per key get what they need, but at
    /// most half of a given memory. Memtables get the rest.
    pub(super) fn of(limits: &Limits, profile: &Profile, workload: &Workload) -> Result<Memory> {
        let keys = profile.keys();
        let key_bytes = key_bytes(workload);
        let mut shared = Memory {
            memtable_bytes: limits.memtable_bytes,
            rest: None,
            keys,
            entry_bytes: profile.entry_bytes,
            fence_bytes: key_bytes + FENCE_BYTES,
        };
        let Some(memory) = limits.memory_bytes else { return Ok(shared) };
        let wanted = keys * FILTER_BITS / 8.0 + shared.fences(1.0);
        let rest = wanted.min(memory as f64 / 2.0);
        let memtable = (memory as f64 - rest) / MEMTABLES;
        if memtable < MEMTABLE_BYTES_MIN {
            bail!("memory of {memory} bytes is too little: memtables take at least 64 KiB, twice");
        }
        (shared.memtable_bytes, shared.rest) = (memtable as u64, Some(rest));
        Ok(shared)
    }

    fn fences(&self, space_cost: f64) -> f64 {
        self.keys * self.entry_bytes * space_cost / BLOCK_BYTES * self.fence_bytes
    }

    /// Fills in the memory that `choice` needs, and the cost of lookups of absent keys with the
    /// filters that fit.
    pub(super) fn share_out(&self, choice: &mut Choice) {
        let entries = self.keys * choice.space_cost_mean;
        let fences = self.fences(choice.space_cost_mean);
        let for_filters = self.rest.map_or(f64::INFINITY, |rest| (rest - fences).max(0.0));
        let filters = (entries * FILTER_BITS / 8.0).min(for_filters);
        choice.memtable_bytes = self.memtable_bytes;
        choice.filter_bits = filters * 8.0 / entries;
        choice.memory = MemoryNeed {
            memtables: (self.memtable_bytes as f64 * MEMTABLES) as u64,
            filters: filters as u64,
            fences: fences as u64,
        };
        choice.memory_bytes = choice.memory.total();
        let passes = crate::model::false_positives(choice.filter_bits);
        choice.point_read_miss = passes * choice.read_cost_mean;
    }
}

/// Returns the mean length of keys.
fn key_bytes(workload: &Workload) -> f64 {
    let items = workload.items().max(1);
    let count = items.min(KEYS_SAMPLED);
    let bytes = (0..count).map(|index| workload.key_bytes(index * (items / count)) as f64);
    bytes.sum::<f64>() / count as f64
}
