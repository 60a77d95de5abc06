//! Which versions of a key a memtable keeps, and one that a read has found.

use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};

/// The oldest sequence number at which a reader may still read: the smaller of the oldest live
/// snapshot and the newest sequence number visible to readers without a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepFrom(pub SeqNo);

/// One version of a key, as a read returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundVersion {
    /// The sequence number of the write.
    pub seq: SeqNo,
    /// The kind of the write.
    pub kind: EntryKind,
    /// The value; empty for tombstones.
    pub value: Bytes,
}
