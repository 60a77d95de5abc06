//! Tracks the live bytes of a store.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::{Op, OpKind, Workload};

/// Logical bytes per entry in addition to key and value.
const ENTRY_BYTES: u64 = 8;

/// Logical bytes of an entry that expires in addition: its time.
pub const TIME_BYTES: u64 = 8;

/// Marks an item without a live entry. No entry is as long.
const ABSENT: u32 = u32::MAX;

/// Tracks the live bytes of a store: the logical bytes of the newest versions that are not deleted.
/// They are the size of a store without obsolete entries.
///
/// Takes 4 bytes per item that is put or deleted, and none for an item that is inserted and
/// removed. So an item must not be used both ways. If entries expire, it takes about 60 bytes
/// per entry that has not.
#[derive(Clone, Debug, Default)]
pub struct LiveBytes {
    /// The logical bytes of each item that is put, or [`ABSENT`].
    entry_bytes: Vec<u32>,
    bytes: u64,
    entries: u64,
    expiring: Option<Expiring>,
}

/// The entries that will expire.
#[derive(Clone, Debug)]
struct Expiring {
    /// The number of writes so far.
    writes: u64,
    /// The end, the write and the item of each entry that will expire, whether or not a newer one
    /// has replaced it.
    due: BinaryHeap<Reverse<(u64, u64, u64)>>,
    /// The write and the logical bytes of each live entry, by item.
    live: BTreeMap<u64, (u64, u64)>,
}

impl LiveBytes {
    /// Returns the live bytes of an empty store whose entries stay.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the live bytes of an empty store, whose entries expire as `workload` says.
    #[must_use]
    pub fn of(workload: &Workload) -> Self {
        let expiring = workload.lives().expire().then(|| Expiring {
            writes: 0,
            due: BinaryHeap::new(),
            live: BTreeMap::new(),
        });
        Self { expiring, ..Self::default() }
    }

    /// Records an operation on a key of `key_bytes`. Reads change nothing.
    pub fn observe(&mut self, op: &Op, key_bytes: usize) {
        if self.expiring.is_some() {
            self.observe_expiring(op, key_bytes);
            return;
        }
        let entry_bytes = key_bytes as u64 + ENTRY_BYTES;
        match op.kind {
            OpKind::Read | OpKind::Scan => {}
            OpKind::Put | OpKind::ReadModifyWrite | OpKind::Combine => {
                let bytes = entry_bytes + u64::from(op.value_bytes);
                self.replace(op.item, u32::try_from(bytes).expect("keys and values are short"));
            }
            OpKind::Delete => self.replace(op.item, ABSENT),
            OpKind::DeleteRange => self.delete_range(op),
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

    /// Deletes the items of `op`.
    #[cold]
    fn delete_range(&mut self, op: &Op) {
        let end = op.end().min(self.entry_bytes.len() as u64);
        (op.item..end).for_each(|item| self.replace(item, ABSENT));
    }

    #[cold]
    fn observe_expiring(&mut self, op: &Op, key_bytes: usize) {
        let Some(expiring) = &mut self.expiring else { return };
        if !op.writes_value() && !op.deletes() {
            return;
        }
        expiring.writes += 1;
        let now = expiring.writes;
        while let Some(Reverse((end, write, item))) = expiring.due.peek().copied()
            && end <= now
        {
            expiring.due.pop();
            if let Some((_, bytes)) = remove_if(&mut expiring.live, item, write) {
                self.bytes -= bytes;
                self.entries -= 1;
            }
        }
        let end = if op.kind == OpKind::DeleteRange { op.end() } else { op.item + 1 };
        for item in op.item..end {
            if let Some((_, bytes)) = expiring.live.remove(&item) {
                self.bytes -= bytes;
                self.entries -= 1;
            }
        }
        if op.writes_value() {
            let end = (op.life > 0).then(|| now.saturating_add(op.life));
            let time_bytes = if end.is_some() { TIME_BYTES } else { 0 };
            let bytes = key_bytes as u64 + time_bytes + u64::from(op.value_bytes) + ENTRY_BYTES;
            expiring.live.insert(op.item, (now, bytes));
            expiring.due.extend(end.map(|end| Reverse((end, now, op.item))));
            self.bytes += bytes;
            self.entries += 1;
        }
    }

    /// Records the new logical bytes of `item`.
    fn replace(&mut self, item: u64, new: u32) {
        let index = item as usize;
        if index >= self.entry_bytes.len() {
            self.make_room(index);
        }
        let old = std::mem::replace(&mut self.entry_bytes[index], new);
        if old != ABSENT {
            self.bytes -= u64::from(old);
            self.entries -= 1;
        }
        if new != ABSENT {
            self.bytes += u64::from(new);
            self.entries += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, index: usize) {
        self.entry_bytes.resize(index + 1, ABSENT);
    }

    /// Returns true if `item` has a live entry. An item that is inserted and removed has none here.
    #[must_use]
    pub fn holds(&self, item: u64) -> bool {
        if let Some(expiring) = &self.expiring {
            return expiring.live.contains_key(&item);
        }
        let bytes = usize::try_from(item).ok().and_then(|index| self.entry_bytes.get(index));
        bytes.is_some_and(|bytes| *bytes != ABSENT)
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

/// Removes and returns the entry of `item`, if `write` wrote it.
fn remove_if(live: &mut BTreeMap<u64, (u64, u64)>, item: u64, write: u64) -> Option<(u64, u64)> {
    if live.get(&item)?.0 == write { live.remove(&item) } else { None }
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
            (Op::put(2, 1), 19, 1),
            (Op::put(4, 1), 38, 2),
            (Op::delete_range(0..4), 19, 1),
            (Op::delete_range(4..1000), 0, 0),
        ] {
            live.observe(&op, 10);
            assert_eq!((live.bytes(), live.entries()), (bytes, entries), "after {op:?}");
        }
    }

    #[test]
    fn expired_entries_do_not_count() {
        let spec = "load(keys=10, expire=3)".parse().unwrap();
        let mut live = LiveBytes::of(&Workload::from_spec(&spec, &crate::NoInputs).unwrap());
        for (op, bytes, entries) in [
            (Op::put(1, 100), 126, 1),
            (Op::put(2, 10), 162, 2),
            (Op::read(1), 162, 2),
            (Op::put(1, 50), 112, 2),
            // The first entry of item 1 would have expired now, but was replaced.
            (Op::delete(7), 112, 2),
            (Op::delete(7), 76, 1),
            (Op::insert(3, 0), 26, 1),
            (Op::remove(3, 0), 0, 0),
            (Op::delete(7), 0, 0),
            (Op::put(5, 0), 26, 1),
            (Op::put(6, 0), 52, 2),
            (Op::delete_range(3..6), 26, 1),
            (Op::delete(7), 26, 1),
            (Op::delete(7), 0, 0),
        ] {
            let op = Op { life: if op.writes_value() { 3 } else { 0 }, ..op };
            live.observe(&op, 10);
            assert_eq!((live.bytes(), live.entries()), (bytes, entries), "after {op:?}");
        }
    }
}
