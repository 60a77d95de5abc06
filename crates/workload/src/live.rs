//! Tracks the live bytes of a store.

use crate::{Op, OpKind};

/// Logical bytes per entry in addition to key and value.
const ENTRY_BYTES: u64 = 8;

/// Marks an item without a live value. No value has this length.
const ABSENT: u32 = u32::MAX;

/// Tracks the live bytes of a store: the logical bytes of the newest versions that are not deleted.
/// They are the size of a store without obsolete entries.
///
/// Takes 4 bytes per item that is put or deleted, and none for an item that is inserted and
/// removed. So an item must not be used both ways.
#[derive(Clone, Debug, Default)]
pub struct LiveBytes {
    /// Length of the value of each item that is put, or [`ABSENT`].
    values: Vec<u32>,
    bytes: u64,
    entries: u64,
}

impl LiveBytes {
    /// Returns the live bytes of an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records an operation on a key of `key_bytes`. Reads change nothing.
    pub fn observe(&mut self, op: &Op, key_bytes: usize) {
        let entry_bytes = key_bytes as u64 + ENTRY_BYTES;
        match op.kind {
            OpKind::Read | OpKind::Scan => {}
            OpKind::Put | OpKind::ReadModifyWrite | OpKind::Combine => {
                self.replace(op.item, op.value_bytes, entry_bytes);
            }
            OpKind::Delete => self.replace(op.item, ABSENT, entry_bytes),
            OpKind::Insert => {
                self.bytes += entry_bytes + u64::from(op.value_bytes);
                self.entries += 1;
            }
            OpKind::Remove => {
                self.bytes -= entry_bytes + u64::from(op.removed_bytes);
                self.entries -= 1;
            }
        }
    }

    /// Records the new length of the value of `item`.
    fn replace(&mut self, item: u64, new: u32, entry_bytes: u64) {
        let index = item as usize;
        if index >= self.values.len() {
            self.values.resize(index + 1, ABSENT);
        }
        let old = std::mem::replace(&mut self.values[index], new);
        if old != ABSENT {
            self.bytes -= entry_bytes + u64::from(old);
            self.entries -= 1;
        }
        if new != ABSENT {
            self.bytes += entry_bytes + u64::from(new);
            self.entries += 1;
        }
    }

    /// Returns the logical bytes of all live entries: key, value and 8 bytes each.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of live entries.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_newest_undeleted_versions_count() {
        let mut live = LiveBytes::new();
        for (op, bytes, entries) in [
            (Op::delete(3), 0, 0),
            (Op::put(3, 100), 118, 1),
            (Op::put(0, 0), 136, 2),
            (Op::put(3, 50), 86, 2),
            (Op::read(3), 86, 2),
            (Op::scan(0, 10), 86, 2),
            (Op::read_modify_write(3, 60), 96, 2),
            (Op::delete(0), 78, 1),
            (Op::delete(0), 78, 1),
            (Op::delete(3), 0, 0),
            (Op::put(9, 1), 19, 1),
            (Op::insert(1 << 40, 7), 44, 2),
            (Op::insert(1 << 41, 8), 70, 3),
            (Op { value_bytes: 100, ..Op::remove(1 << 40, 7) }, 45, 2),
            (Op::delete(9), 26, 1),
            (Op::remove(1 << 41, 8), 0, 0),
        ] {
            live.observe(&op, 10);
            assert_eq!((live.bytes(), live.entries()), (bytes, entries), "after {op:?}");
        }
    }
}
