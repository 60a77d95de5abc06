//! The bytes of the manifest, and of memory that is copied so that logs can go.

use super::sizes::FileSizes;
use lsmith_tree::{Tree, TreeEdit};
use std::collections::HashSet;

/// Bytes of the record of an edit without its slices.
const EDIT_BYTES: f64 = 120.0;

/// Bytes of a slice without its two keys, and of the description of a new table.
const SLICE_BYTES: f64 = 10.0;
const TABLE_BYTES: f64 = 60.0;

/// Bytes of the records that let a memtable's logs go, one for each log.
const LOGS_BYTES: f64 = 8.0 * 50.0;

/// A manifest is written anew when more bytes than these, and than twice its account, follow the
/// account.
const ROLL_BYTES: f64 = 262_144.0;

/// Memory is copied when more bytes of log than this, in memtables, wait for its oldest entry.
const LOGS_MAX: f64 = 4.0;

/// Counts the manifest and the copies of memory of a simulation.
#[derive(Clone, Debug, Default)]
pub(super) struct Metadata {
    /// Bytes written to manifests.
    pub(super) manifest: f64,
    /// Bytes in the manifest behind its account.
    behind: f64,
    /// Bytes of copies of memory.
    pub(super) spilled: f64,
    /// Logical bytes requested when memory was last empty or copied.
    covered: f64,
    requested: f64,
    /// Logical bytes of the largest memtable.
    memtable: f64,
}

impl Metadata {
    /// Counts a sealed memtable, after `requested` logical bytes of requests.
    pub(super) fn sealed(&mut self, sizes: &FileSizes, requested: u64, memory: u64) {
        self.requested = requested as f64;
        self.memtable = self.memtable.max(memory as f64);
        self.add(LOGS_BYTES, sizes, None);
    }

    /// Counts the record of `edit`, which is applied to `tree`.
    pub(super) fn edit(&mut self, sizes: &FileSizes, tree: &Tree, edit: &TreeEdit) {
        let range = 2.0 * sizes.key + SLICE_BYTES;
        let takes: Vec<_> = edit.remove.iter().filter_map(|input| tree.run(input.run)).collect();
        let mut bytes = EDIT_BYTES + edit.remove.len() as f64 * range;
        let slices = || edit.add.iter().flat_map(|addition| &addition.slices);
        let mut known: HashSet<_> = HashSet::new();
        let keeps = edit.counters.iter().any(|(_, counters)| counters.bytes_reused > 0);
        if keeps || slices().any(|slice| !slice.is_whole()) {
            let taken = takes.iter().flat_map(|(_, run)| run.slices().iter());
            known.extend(taken.map(|slice| slice.table().id));
        }
        for slice in slices() {
            bytes += range;
            if known.insert(slice.table().id) {
                bytes += TABLE_BYTES;
            }
        }
        self.add(bytes, sizes, Some(tree));
    }

    fn add(&mut self, bytes: f64, sizes: &FileSizes, tree: Option<&Tree>) {
        self.manifest += bytes * sizes.share;
        self.behind += bytes;
        let Some(tree) = tree.filter(|_| self.behind > ROLL_BYTES) else { return };
        let slices: usize = tree.disk_runs().map(|run| run.slices().len()).sum();
        let account = slices as f64 * (2.0 * sizes.key + SLICE_BYTES + TABLE_BYTES);
        if self.behind > 2.0 * account {
            self.manifest += account * sizes.share;
            self.behind = 0.0;
        }
    }

    /// Counts what is copied while `memory` logical bytes stay in memory at rest.
    pub(super) fn rest(&mut self, sizes: &FileSizes, memory: u64) {
        let log = (self.requested - self.covered) * sizes.user * sizes.log;
        if memory == 0 {
            self.covered = self.requested;
        } else if log > LOGS_MAX * self.memtable {
            self.covered = self.requested;
            self.spilled += memory as f64;
        }
    }
}
