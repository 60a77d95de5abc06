//! The moment at which a read sees the store.

use lsmith_storage::sync::atomic::AtomicU64;
use lsmith_tree::SeqNo;

/// The moment at which a read sees the store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment<'a> {
    /// Now. The counter holds the sequence number of the newest visible write.
    Latest(&'a AtomicU64),
    /// The moment of a live snapshot.
    Snapshot(SeqNo),
}
