//! The moment that a read asks about.

use lsmith_storage::sync::atomic::AtomicU64;
use lsmith_tree::SeqNo;

/// The moment that a read asks about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment<'a> {
    /// The newest that is visible, by this number.
    Latest(&'a AtomicU64),
    /// A live snapshot.
    Snapshot(SeqNo),
}
