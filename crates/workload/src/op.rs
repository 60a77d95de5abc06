//! One operation of a workload.

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// Looks a key up.
    Read,
    /// Writes a key, new or not.
    Put,
    /// Writes a key of which the workload promises that it is absent.
    Insert,
    /// Deletes a key, present or not.
    Delete,
    /// Deletes a key of which the workload promises that it was inserted once and is present.
    Remove,
    /// Reads entries in key order from a key on.
    Scan,
    /// Looks a key up, then writes it.
    ReadModifyWrite,
}

/// One operation. What its kind has no use for is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op {
    /// What to do.
    pub kind: OpKind,
    /// Which key; of a scan, where it starts.
    pub item: u64,
    /// Length of the value to write, in bytes.
    pub value_bytes: u32,
    /// Of a scan, how many entries to read.
    pub scan_items: u32,
}

impl Op {
    /// A lookup.
    #[must_use]
    pub const fn read(item: u64) -> Self {
        Self { kind: OpKind::Read, item, value_bytes: 0, scan_items: 0 }
    }

    /// A write of a value of `value_bytes`.
    #[must_use]
    pub const fn put(item: u64, value_bytes: u32) -> Self {
        Self { kind: OpKind::Put, item, value_bytes, scan_items: 0 }
    }

    /// A delete.
    #[must_use]
    pub const fn delete(item: u64) -> Self {
        Self { kind: OpKind::Delete, item, value_bytes: 0, scan_items: 0 }
    }

    /// A scan of `scan_items` entries from `item` on.
    #[must_use]
    pub const fn scan(item: u64, scan_items: u32) -> Self {
        Self { kind: OpKind::Scan, item, value_bytes: 0, scan_items }
    }

    /// A lookup followed by a write of `value_bytes`.
    #[must_use]
    pub const fn read_modify_write(item: u64, value_bytes: u32) -> Self {
        Self { kind: OpKind::ReadModifyWrite, item, value_bytes, scan_items: 0 }
    }

    /// Whether a value is written, be it after a read.
    #[must_use]
    pub const fn writes_value(&self) -> bool {
        matches!(self.kind, OpKind::Put | OpKind::Insert | OpKind::ReadModifyWrite)
    }

    /// Whether the key is deleted.
    #[must_use]
    pub const fn deletes(&self) -> bool {
        matches!(self.kind, OpKind::Delete | OpKind::Remove)
    }

    /// User bytes written: key and value, of a delete the key, of a read nothing.
    #[must_use]
    pub const fn user_bytes(&self, key_bytes: usize) -> u64 {
        if self.writes_value() || self.deletes() {
            key_bytes as u64 + self.value_bytes as u64
        } else {
            0
        }
    }
}
