//! The cost of range reads, as far as it follows from the tree alone.

use lsmith_tree::blocks::full_bytes;
use lsmith_tree::{BLOCK_BYTES_USUAL, Size, Tree};

/// The number of entries of a range read if a workload has none.
pub const SCAN_ITEMS: f64 = 50.0;

/// The cost of a range read, in runs and in data blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScanCost {
    /// Runs on storage that the range read looks at.
    pub runs: f64,
    /// Data blocks of these runs that it looks at. `None` if entries are unknown.
    pub blocks: Option<f64>,
}

/// Computes the mean cost of range reads from trees at rest.
///
/// A range read of `n` entries looks at every run on storage. There it looks at one data block, and
/// at the blocks that it passes over. If there are `l` live entries, it passes over the share
/// `n / l` of all blocks on storage, at most over all.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanMeter {
    /// The entries of a range read.
    items: f64,
    /// True if each cell of a table is a block.
    by_block: bool,
    live_entries: Option<u64>,
    rests: u64,
    runs: u64,
    /// The sum of blocks passed over; `None` if the live entries were unknown at some rest.
    passed: Option<f64>,
}

impl Default for ScanMeter {
    fn default() -> ScanMeter {
        ScanMeter {
            items: SCAN_ITEMS,
            by_block: false,
            live_entries: None,
            rests: 0,
            runs: 0,
            passed: Some(0.0),
        }
    }
}

impl ScanMeter {
    /// Returns a meter of range reads of `items` entries. `by_block` says that each cell of a table
    /// is a block.
    pub(super) fn new(items: f64, by_block: bool) -> ScanMeter {
        ScanMeter { items, by_block, ..ScanMeter::default() }
    }

    /// Sets the number of live entries.
    pub(super) fn live(&mut self, entries: u64) {
        self.live_entries = Some(entries);
    }

    /// Adds a tree at rest. `live_bytes` counts all live entries.
    pub(super) fn rest(&mut self, tree: &Tree, live_bytes: u64) {
        self.rests += 1;
        self.runs += tree.disk_run_count() as u64;
        let live_entries = self.live_entries;
        if let Some(passed) = &mut self.passed {
            match live_entries {
                None => self.passed = None,
                // A range read of nothing looks at all tombstones.
                Some(live) => {
                    let share = (self.items / live as f64).min(1.0);
                    let blocks = if self.by_block {
                        tree.disk_runs().map(|run| run.cell_count()).sum::<u64>() as f64
                    } else {
                        let all = Size { bytes: live_bytes, entries: live, tombstones: 0 };
                        // Only levels are visited: a tree may have thousands of runs.
                        tree.disk_bytes() as f64 / full_bytes(BLOCK_BYTES_USUAL, all) as f64
                    };
                    *passed += share * blocks;
                }
            }
        }
    }

    /// Returns the mean cost over all rests.
    pub(super) fn cost(&self) -> ScanCost {
        if self.rests == 0 {
            return ScanCost::default();
        }
        let rests = self.rests as f64;
        let runs = self.runs as f64 / rests;
        ScanCost { runs, blocks: self.passed.map(|passed| runs + passed / rests) }
    }
}
