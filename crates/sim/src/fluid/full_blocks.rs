//! The layout of full blocks.

use super::merger::Made;
use lsmith_tree::Size;

/// The layout of full blocks of equally large entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullBlocks {
    entries: u64,
    entries_each: u64,
}

impl FullBlocks {
    pub(super) fn of(size: Size, block_bytes: u64) -> FullBlocks {
        let entry_bytes = size.bytes.checked_div(size.entries).unwrap_or(0).max(1);
        FullBlocks { entries: size.entries, entries_each: (block_bytes / entry_bytes).max(1) }
    }

    pub(super) fn count(self) -> u64 {
        self.entries.div_ceil(self.entries_each)
    }

    /// Returns the blocks of the output of a merge that keeps none.
    pub(super) fn made(self) -> Vec<Made> {
        let full = self.entries / self.entries_each;
        let rest = Some(self.entries % self.entries_each).filter(|rest| *rest > 0);
        let made = |entries| Made { entries, bytes: 0, kept_at: None };
        (0..full).map(|_| self.entries_each).chain(rest).map(made).collect()
    }
}
