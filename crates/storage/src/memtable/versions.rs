//! Which versions of a key a memtable keeps, and one that it has found.

use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};

/// The oldest place in time at which anybody may still read: the older of the oldest live snapshot
/// and the newest sequence number that readers without a snapshot see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepFrom(pub SeqNo);

/// One write of a key, as a read finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// When it was written.
    pub seq: SeqNo,
    /// What it says.
    pub kind: EntryKind,
    /// The value; empty for tombstones.
    pub value: Bytes,
}
