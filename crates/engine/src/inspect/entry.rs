//! Entries as they are in files.

use bytes::Bytes;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::reference::ValueReference;
use lsmith_tree::{EntryKind, SeqNo};

/// An entry of a table, a log or a spill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Bytes,
    /// The sequence number. Tables store 0 for entries that every reader sees, and for entries of a
    /// bulk load.
    pub seq: SeqNo,
    /// The kind: put, delete, insert, remove or combine.
    pub kind: EntryKind,
    /// The value; empty for tombstones, the operand for a combine, a reference if the value lies in
    /// a value file.
    pub value: Bytes,
}

impl Entry {
    /// Returns the place of the value, if it lies in a value file.
    pub fn reference(&self) -> Option<ValueReference> {
        if self.kind.is_reference() { ValueReference::decode(&self.value) } else { None }
    }
}

impl From<EntryRef<'_>> for Entry {
    fn from(entry: EntryRef<'_>) -> Entry {
        Entry {
            key: Bytes::copy_from_slice(entry.key),
            seq: entry.seq,
            kind: entry.kind,
            value: Bytes::copy_from_slice(entry.value),
        }
    }
}
