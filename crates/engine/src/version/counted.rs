//! Counts the reads of a keyspace, for a policy that needs them.

use lsmith_storage::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lsmith_tree::Reads;

/// The reads since a memtable was last sealed.
#[derive(Debug, Default)]
pub(crate) struct CountedReads {
    found: AtomicU64,
    absent: AtomicU64,
    scans: AtomicU64,
}

impl CountedReads {
    /// Counts a lookup, which has `found` a value or not.
    pub(crate) fn note_get(&self, found: bool) {
        let count = if found { &self.found } else { &self.absent };
        count.fetch_add(1, Relaxed);
    }

    /// Counts a range read.
    pub(crate) fn note_scan(&self) {
        self.scans.fetch_add(1, Relaxed);
    }

    /// Returns `before` with the memtable that was just filled, and begins to count for the next.
    pub(crate) fn next(&self, before: Reads) -> Reads {
        let take = |count: &AtomicU64| count.swap(0, Relaxed);
        before.with_memtable(take(&self.found), take(&self.absent), take(&self.scans))
    }
}
