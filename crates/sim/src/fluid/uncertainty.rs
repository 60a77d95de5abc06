//! How far expected sizes may be off.

use super::FluidWorkload;
use crate::SimError;
use lsmith_policy::{MergePolicy, Shape};
use lsmith_tree::MergePlan;

/// The error of stacks and of levels of many tables.
const USUAL: f64 = 0.03;

/// The error of policies that keep blocks, if windows hold many entries.
const BLOCKS: f64 = 0.05;

/// The added error of policies that keep blocks, if keys are hashes of numbers in a row. Such keys
/// do not lie as by chance, and whole levels merge or not by a few blocks.
const HASHED: f64 = 0.15;

/// The added error if keys that are written together lie together, and plans take windows of keys.
const CLUSTERS: f64 = 0.30;

/// The added error if single bytes decide, and if no key is written twice, so that they often do.
const TIES: f64 = 0.03;
const TIES_OF_NEW_KEYS: f64 = 0.27;

/// The added error under policies that use append tables: this over the entries of a memtable.
/// Expected trees are equally large, where real ones vary, and are split and fused one by one.
const TREES: f64 = 30.0;

/// The added error under policies that use append tables if all writes are for new keys. Expected
/// trees grow alike and are split at the same moment, where real ones are split one by one. So what
/// a load has written for splits up to its end may be off by as much.
const SPLITS: f64 = 0.1;

/// The added error if a single entry between two trees makes a tree. It is then fused with a
/// neighbour. Expected sizes have no such gaps.
const TREES_OF_ONE: f64 = 0.25;

/// The part of a level that one merge takes, by default.
const WINDOW: f64 = 0.07;

/// The least entries of a memtable if plans cut levels into tables.
const TABLE_ENTRIES_MIN: f64 = 16.0;

/// The least entries of a memtable if plans take windows of blocks.
const BLOCK_ENTRIES_MIN: f64 = 64.0;

impl FluidWorkload {
    /// Returns the relative error of write costs that is to be expected of a fluid simulation under
    /// `policy`, compared with a keyed one: no measured case of this kind was further off.
    ///
    /// The parts are measured, see `docs/model.md`. Tables and windows of few entries vary more
    /// than expected sizes do.
    #[must_use]
    pub fn uncertainty(&self, policy: &dyn MergePolicy, memtable_bytes: u64) -> f64 {
        let needs = policy.needs();
        let entries = memtable_bytes as f64 / self.entry_bytes();
        let is_leveled = matches!(policy.shape(), Shape::Leveled { .. });
        let mut error = match (needs.blocks, is_leveled) {
            (true, _) => BLOCKS + 2.5 / (WINDOW * entries).max(1.0),
            (false, true) => USUAL + 1.0 / entries,
            (false, false) => USUAL,
        };
        if needs.blocks && self.is_hashed() {
            error += HASHED;
        }
        if needs.windows && self.is_clustered() {
            error += CLUSTERS;
        }
        if needs.exact_sizes {
            error += if self.is_new() { TIES_OF_NEW_KEYS } else { TIES };
        }
        if let (true, Shape::Leveled { ratio, .. }) = (needs.appends, policy.shape()) {
            let least = entries / (ratio * MergePlan::NEW_APPEND_PARTS as f64);
            let is_one = least < 1.0;
            error += if is_one { TREES_OF_ONE } else { (TREES / entries).min(TREES_OF_ONE) };
            error += SPLITS * self.live_entries(self.writes()) / self.writes().max(1.0);
        }
        error
    }

    /// Checks that tables and windows hold enough entries for their expected sizes to mean
    /// anything. [`simulate_fluid`](crate::simulate_fluid) does not check that.
    ///
    /// # Errors
    /// Fails with [`SimError::FewEntries`] if they do not.
    pub fn check_entries(
        &self,
        policy: &dyn MergePolicy,
        memtable_bytes: u64,
    ) -> Result<(), SimError> {
        let is_leveled = matches!(policy.shape(), Shape::Leveled { .. });
        let least = match (policy.needs().blocks, is_leveled) {
            (true, _) => BLOCK_ENTRIES_MIN,
            (false, true) => TABLE_ENTRIES_MIN,
            (false, false) => return Ok(()),
        };
        let entries = memtable_bytes as f64 / self.entry_bytes();
        if entries >= least {
            return Ok(());
        }
        let entry_bytes = self.entry_bytes() as u64;
        let memtable_bytes_min = (least * self.entry_bytes()).ceil() as u64;
        Err(SimError::FewEntries { policy: policy.spec(), entry_bytes, memtable_bytes_min })
    }
}
