//! One operation of a workload.

use std::ops::Range;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// Looks a key up.
    Read,
    /// Writes a key, new or not.
    Put,
    /// Writes a key that the workload promises is absent.
    Insert,
    /// Deletes a key, present or not.
    Delete,
    /// Deletes a key that the workload promises is present and was inserted once, with the length
    /// of its value.
    Remove,
    /// Reads entries in key order from a key on.
    Scan,
    /// Looks a key up, then writes it.
    ReadModifyWrite,
    /// Changes a key by an operand, without a look at it. The value has the length of the newest
    /// operand then, as a counter has.
    Combine,
    /// Deletes all keys from one item up to another, present or not. Items are in key order.
    DeleteRange,
}

/// An operation. Fields that its kind does not use are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op {
    /// What to do.
    pub kind: OpKind,
    /// The item whose key is used. A scan starts there.
    pub item: u64,
    /// The length of the value to write, in bytes. For a delete, the bytes that it counts for in
    /// addition to its key; a store writes none.
    pub value_bytes: u32,
    /// For a scan, the number of entries to read; for a range delete, the number of items.
    pub items: u32,
    /// For a remove, the length of the removed value in bytes.
    pub removed_bytes: u32,
    /// The number of writes after which the value expires, as of
    /// [`Workload::lives`](crate::Workload::lives); 0 if it stays.
    pub life: u64,
}

impl Op {
    const fn of(kind: OpKind, item: u64) -> Self {
        Self { kind, item, value_bytes: 0, items: 0, removed_bytes: 0, life: 0 }
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

    /// Returns a scan of `items` entries from `item` on.
    #[must_use]
    pub const fn scan(item: u64, items: u32) -> Self {
        Self { items, ..Self::of(OpKind::Scan, item) }
    }

    /// Returns a lookup followed by a write of `value_bytes`.
    #[must_use]
    pub const fn read_modify_write(item: u64, value_bytes: u32) -> Self {
        Self { value_bytes, ..Self::of(OpKind::ReadModifyWrite, item) }
    }

    /// Returns a change by an operand of `value_bytes`.
    #[must_use]
    pub const fn combine(item: u64, value_bytes: u32) -> Self {
        Self { value_bytes, ..Self::of(OpKind::Combine, item) }
    }

    /// Returns a delete of all keys of `items`. There must be fewer than 2^32.
    #[must_use]
    pub const fn delete_range(items: Range<u64>) -> Self {
        let count = items.end - items.start;
        assert!(count <= u32::MAX as u64, "a workload has fewer items");
        Self { items: count as u32, ..Self::of(OpKind::DeleteRange, items.start) }
    }

    /// Returns the first item behind the range of a range delete.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.item + self.items as u64
    }

    /// Returns true if the operation writes a value, or an operand.
    #[must_use]
    pub const fn writes_value(&self) -> bool {
        matches!(
            self.kind,
            OpKind::Put | OpKind::Insert | OpKind::ReadModifyWrite | OpKind::Combine
        )
    }

    /// Returns true if the operation deletes the key, or a range of keys from it on.
    #[must_use]
    pub const fn deletes(&self) -> bool {
        matches!(self.kind, OpKind::Delete | OpKind::Remove | OpKind::DeleteRange)
    }

    /// Returns the user bytes written: key and value. For a delete, the key and the bytes that it
    /// counts for in addition. For a read, 0.
    #[must_use]
    pub const fn user_bytes(&self, key_bytes: usize) -> u64 {
        if self.writes_value() || self.deletes() {
            key_bytes as u64 + self.value_bytes as u64
        } else {
            0
        }
    }
}
