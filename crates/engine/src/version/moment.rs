//! The moment at which a read sees the store.

use lsmith_storage::sync::atomic::{AtomicU64, Ordering};
use lsmith_tree::SeqNo;

/// The moment at which a read sees the store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment<'a> {
    /// Now. The counter holds the sequence number of the newest visible write.
    Latest(&'a AtomicU64),
    /// The moment of a live snapshot.
    Snapshot(SeqNo),
}

impl Moment<'_> {
    /// Returns the sequence number of the newest write that the read sees now. A read of an active
    /// memtable asks under the lock of the leaf.
    pub(super) fn in_memory(self) -> SeqNo {
        match self {
            Moment::Latest(visible) => SeqNo(visible.load(Ordering::Acquire)),
            Moment::Snapshot(seq) => seq,
        }
    }

    /// Returns the same for tables, whose entries were visible before their memtable was sealed.
    #[inline]
    pub(super) fn in_tables(self) -> SeqNo {
        match self {
            Moment::Latest(_) => SeqNo::MAX,
            Moment::Snapshot(seq) => seq,
        }
    }
}
