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
    /// Deletes a key of which the workload promises that it was inserted once and is present, and
    /// says how long its value is.
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
    /// Length of the value to write, in bytes. Of a delete, how much it is to be counted for beside
    /// its key, if more than nothing; a store writes it without.
    pub value_bytes: u32,
    /// Of a scan, how many entries to read.
    pub scan_items: u32,
    /// Of a remove, length of the value that goes, in bytes.
    pub removed_bytes: u32,
}

impl Op {
    const fn of(kind: OpKind, item: u64) -> Self {
        Self { kind, item, value_bytes: 0, scan_items: 0, removed_bytes: 0 }
    }

    /// Returns a lookup.
    #[must_use]
    pub const fn read(item: u64) -> Self {
        Self::of(OpKind::Read, item)
    }

    /// Returns a write of a value of `value_bytes`.
    #[must_use]
    pub const fn put(item: u64, value_bytes: u32) -> Self {
        Self { value_bytes, ..Self::of(OpKind::Put, item) }
    }

    /// Returns a write of a value of `value_bytes` under a key that is absent.
    #[must_use]
    pub const fn insert(item: u64, value_bytes: u32) -> Self {
        Self { value_bytes, ..Self::of(OpKind::Insert, item) }
    }

    /// Returns a delete.
    #[must_use]
    pub const fn delete(item: u64) -> Self {
        Self::of(OpKind::Delete, item)
    }

    /// Returns a delete of a key that was inserted once, with a value of `removed_bytes`, and is
    /// present.
    #[must_use]
    pub const fn remove(item: u64, removed_bytes: u32) -> Self {
        Self { removed_bytes, ..Self::of(OpKind::Remove, item) }
    }

    /// Returns a scan of `scan_items` entries from `item` on.
    #[must_use]
    pub const fn scan(item: u64, scan_items: u32) -> Self {
        Self { scan_items, ..Self::of(OpKind::Scan, item) }
    }

    /// Returns a lookup followed by a write of `value_bytes`.
    #[must_use]
    pub const fn read_modify_write(item: u64, value_bytes: u32) -> Self {
        Self { value_bytes, ..Self::of(OpKind::ReadModifyWrite, item) }
    }

    /// Returns true if a value is written, be it after a read.
    #[must_use]
    pub const fn writes_value(&self) -> bool {
        matches!(self.kind, OpKind::Put | OpKind::Insert | OpKind::ReadModifyWrite)
    }

    /// Returns true if the key is deleted.
    #[must_use]
    pub const fn deletes(&self) -> bool {
        matches!(self.kind, OpKind::Delete | OpKind::Remove)
    }

    /// User bytes written: key and value, of a delete the key and what it is counted for beside it,
    /// of a read nothing.
    #[must_use]
    pub const fn user_bytes(&self, key_bytes: usize) -> u64 {
        if self.writes_value() || self.deletes() {
            key_bytes as u64 + self.value_bytes as u64
        } else {
            0
        }
    }
}
