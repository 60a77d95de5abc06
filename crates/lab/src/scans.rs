//! What range reads cost, in reports.

use lsmith::StoreStats;
use lsmith_model::{Model, Setting};
use lsmith_sim::ScanCost;
use lsmith_tree::BLOCK_BYTES_USUAL;
use serde::Serialize;

/// The cost of a range read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ScanCosts {
    /// Runs on storage that it looks at.
    pub runs: f64,
    /// Data blocks of these runs that it looks at. `None` if entries are unknown.
    pub blocks: Option<f64>,
}

impl From<ScanCost> for ScanCosts {
    fn from(cost: ScanCost) -> ScanCosts {
        ScanCosts { runs: cost.runs, blocks: cost.blocks }
    }
}

impl ScanCosts {
    /// Returns the cost by formula of a range read of `items` entries.
    pub(crate) fn of_formula(model: &Model, setting: &Setting<'_>, items: f64) -> ScanCosts {
        let blocks = model.scan_blocks(setting, items, BLOCK_BYTES_USUAL as f64);
        ScanCosts { runs: model.reads(setting).range, blocks: Some(blocks) }
    }
}

/// Counts of range reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Scans {
    /// The number of range reads.
    pub scans: u64,
    /// Runs on storage that they looked at.
    pub runs: u64,
    /// Blocks in which they stood on an entry, wherever the blocks were.
    pub blocks: u64,
    /// Blocks in which a search found no entry. Fence pointers are shorter than keys, so a search
    /// may begin one block early.
    pub blocks_in_vain: u64,
    /// Blocks in the map of a file, blocks in vain included.
    pub blocks_mapped: u64,
    /// Blocks in the cache, blocks in vain included. The rest was read from files.
    pub blocks_cached: u64,
}

impl Scans {
    pub(crate) fn of(stats: &StoreStats) -> Scans {
        Scans {
            scans: stats.scans,
            runs: stats.scan_runs,
            blocks: stats.scan_blocks - stats.scan_blocks_in_vain,
            blocks_in_vain: stats.scan_blocks_in_vain,
            blocks_mapped: stats.scan_blocks_mapped,
            blocks_cached: stats.scan_blocks_cached,
        }
    }

    /// Returns the blocks read from files per range read, blocks in vain included. `None` if there
    /// was no range read, and if files were mapped.
    #[must_use]
    pub fn uncached(&self) -> Option<f64> {
        let blocks = self.blocks + self.blocks_in_vain - self.blocks_cached;
        let is_known = self.scans > 0 && self.blocks_mapped == 0;
        is_known.then(|| blocks as f64 / self.scans as f64)
    }

    /// Returns the cost per range read. `None` if there was none.
    #[must_use]
    pub fn cost(&self) -> Option<ScanCosts> {
        let mean = |count: u64| count as f64 / self.scans as f64;
        (self.scans > 0)
            .then(|| ScanCosts { runs: mean(self.runs), blocks: Some(mean(self.blocks)) })
    }
}
