//! What a transaction has written in a keyspace.

use crate::version::OwnWrites;
use bytes::Bytes;
use lsmith_storage::combine::Combiner;
use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::Result;
use lsmith_storage::expiry::{EXPIRY_BYTES, has_expired};
use lsmith_tree::{EntryKind, Key, KeyRange, RangeDeletePart, RangeDeletes, Readers, SeqNo};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// What a transaction has written to a key: a value, a tombstone or nothing, and operands on top.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    /// A value or a tombstone. `None` if there are only operands: they are for what the transaction
    /// sees beneath.
    base: Option<(EntryKind, Bytes)>,
    /// Oldest first.
    operands: Vec<Bytes>,
}

impl Own {
    /// Returns the entries, newest first.
    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = (EntryKind, &Bytes)> {
        let operands = self.operands.iter().rev().map(|operand| (EntryKind::Combine, operand));
        operands.chain(self.base.iter().map(|(kind, value)| (*kind, value)))
    }

    /// Returns the kind of the oldest entry.
    fn base_kind(&self) -> EntryKind {
        self.base.as_ref().map_or(EntryKind::Combine, |(kind, _)| *kind)
    }

    /// Returns true if the value depends on what lies beneath.
    pub(super) fn needs_older(&self) -> bool {
        self.base.is_none()
    }

    /// Returns the value of `key`. The transaction sees `older` beneath, which counts only if
    /// [`needs_older`](Own::needs_older).
    ///
    /// # Errors
    /// As [`Combiner::combine`] and [`Combiner::now`].
    pub(super) fn value(
        &self,
        key: &[u8],
        older: Option<Bytes>,
        combiner: &dyn Combiner,
    ) -> Result<Option<Bytes>> {
        let value = match &self.base {
            Some((EntryKind::Expiring, stored)) => {
                let is_over = has_expired(EntryKind::Expiring, stored, combiner.now()?);
                (!is_over).then(|| stored.slice(EXPIRY_BYTES..))
            }
            Some((kind, value)) => kind.is_value().then(|| value.clone()),
            None => older,
        };
        if self.operands.is_empty() {
            return Ok(value);
        }
        let operands: Vec<&[u8]> = self.operands.iter().map(|operand| &**operand).collect();
        let combined = combiner.combine(key, value.as_deref(), &operands)?;
        Ok(Some(Bytes::from(combined)))
    }
}

type Map = BTreeMap<Key, Own>;

/// How writes were before another one.
#[derive(Debug)]
pub(super) enum Before {
    /// The transaction had written this to the key, or nothing.
    Wrote(Key, Option<Own>),
    /// The key had one operand less.
    OneOperandLess(Key),
    /// Of this range only these parts were deleted, and keys in it had these writes.
    RangeDelete(KeyRange, Vec<RangeDeletePart>, Vec<(Key, Own)>),
}

/// What a transaction has written in a keyspace. Iterators share it, and a write copies it if one
/// is alive.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// By key. They are newer than all range deletes.
    map: Arc<Map>,
    /// The ranges that were deleted. The sequence number of each part stands for its keyspace in
    /// the group, so that no range of one is joined with its neighbour of another.
    range_deletes: RangeDeletes,
}

impl Changes {
    /// Returns the number of keys and ranges that are written.
    pub(super) fn len(&self) -> usize {
        self.map.len() + self.range_deletes.len()
    }

    /// Returns the writes in key order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Own)> {
        self.map.iter()
    }

    /// Returns the ranges that were deleted before all these writes, in key order.
    pub(super) fn range_deletes(&self) -> impl Iterator<Item = &KeyRange> {
        self.range_deletes.parts().map(|part| &part.range)
    }

    /// Returns what was written to `key` since its range was deleted, if anything was.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Own> {
        self.map.get(key)
    }

    /// Returns true if the value of `key` depends on what lies beneath.
    pub(super) fn need_older(&self, key: &[u8]) -> bool {
        self.get(key).is_none_or(Own::needs_older) && self.range_deletes.part_of(key).is_none()
    }

    /// Adds a write to `key`. A value or a tombstone takes the place of what was written to the key
    /// before, as in a merge: an insert over a delete becomes a put, because the delete hid
    /// something, and a remove over an insert leaves nothing.
    pub(super) fn write(&mut self, key: Key, kind: EntryKind, value: Bytes) -> Before {
        let map = Arc::make_mut(&mut self.map);
        if kind != EntryKind::Combine {
            let older = map.get(&key).map(Own::base_kind);
            let Some(kind) = older.map_or(Some(kind), |older| kind.over(older)) else {
                let before = map.remove(&key);
                return Before::Wrote(key, before);
            };
            let own = Own { base: Some((kind, value)), operands: Vec::new() };
            let before = map.insert(key.clone(), own);
            return Before::Wrote(key, before);
        }
        if let Some(own) = map.get_mut(&key) {
            own.operands.push(value);
            return Before::OneOperandLess(key);
        }
        let before = map.insert(key.clone(), Own { base: None, operands: vec![value] });
        Before::Wrote(key, before)
    }

    /// Deletes all keys in `range` of keyspace `member_id` of a group. What was written to them is
    /// dropped.
    ///
    /// What it returns has only what this range delete took the place of. A copy of the whole list
    /// would make each range delete of a transaction cost as much as all those before it.
    pub(super) fn delete_range(&mut self, range: KeyRange, member_id: u8) -> Before {
        let parts = self.range_deletes.overlapping(&range);
        let inside = |part: &RangeDeletePart| part.range.intersection(&range);
        let before = parts.map(|part| RangeDeletePart { range: inside(part), ..part.clone() });
        let before = before.collect();
        self.range_deletes.delete_range(&range, SeqNo(u64::from(member_id) + 1), &Readers::ANY);
        let map = Arc::make_mut(&mut self.map);
        let lower = Bound::Included(&*range.start);
        let upper = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let hidden = map.range::<[u8], _>((lower, upper));
        let hidden: Vec<Key> = hidden.map(|(key, _)| key.clone()).collect();
        let dropped = hidden.into_iter().filter_map(|key| map.remove_entry(&key)).collect();
        Before::RangeDelete(range, before, dropped)
    }

    /// Makes the writes as they were `before`.
    pub(super) fn restore(&mut self, before: Before) {
        let map = Arc::make_mut(&mut self.map);
        match before {
            Before::Wrote(key, Some(own)) => drop(map.insert(key, own)),
            Before::Wrote(key, None) => drop(map.remove(&key)),
            Before::OneOperandLess(key) => {
                map.get_mut(&key).and_then(|own| own.operands.pop());
            }
            Before::RangeDelete(range, parts, dropped) => {
                self.range_deletes.forget(&range, SeqNo::MAX);
                for RangeDeletePart { range, seqs, .. } in parts {
                    self.range_deletes.delete_range(&range, seqs[0], &Readers::ANY);
                }
                map.extend(dropped);
            }
        }
    }

    /// Returns the writes as they are now, for iterators of a transaction that sees others' writes
    /// up to `seq`. Returns `None` if there are none.
    pub(super) fn own_writes(&self, seq: SeqNo) -> Option<OwnWrites> {
        let cursor = || ChangesCursor { map: Arc::clone(&self.map), seq, at: None };
        (self.len() > 0).then(|| OwnWrites {
            entries: Box::new(cursor()),
            range_deletes: self.range_deletes.clone(),
        })
    }
}

/// Walks the writes of a transaction. They have no sequence numbers yet, and are newer than all
/// other entries of their keys, because this is the first source of a merge.
pub(super) struct ChangesCursor {
    map: Arc<Map>,
    /// The newest write that the transaction sees, so that no range delete hides its own writes.
    seq: SeqNo,
    at: Option<At>,
}

/// An entry under a cursor.
struct At {
    key: Key,
    /// The number of newer entries of the key.
    newer: usize,
    kind: EntryKind,
    value: Bytes,
}

impl At {
    fn newest((key, own): (&Key, &Own)) -> Option<At> {
        let (kind, value) = own.entries().next()?;
        Some(At { key: key.clone(), newer: 0, kind, value: value.clone() })
    }

    fn oldest((key, own): (&Key, &Own)) -> Option<At> {
        let (kind, value) = own.entries().next_back()?;
        let newer = own.entries().count() - 1;
        Some(At { key: key.clone(), newer, kind, value: value.clone() })
    }

    /// Returns the entry of the same key that has `newer` newer ones.
    fn sibling(&self, map: &Map, newer: usize) -> Option<At> {
        let (kind, value) = map.get(&self.key)?.entries().nth(newer)?;
        Some(At { key: self.key.clone(), newer, kind, value: value.clone() })
    }
}

impl ChangesCursor {
    /// Returns the newest entry of the first key at `lower` or above.
    fn first(&self, lower: Bound<&[u8]>) -> Option<At> {
        self.map.range::<[u8], _>((lower, Bound::Unbounded)).next().and_then(At::newest)
    }

    /// Returns the oldest entry of the last key at `upper` or below.
    fn last(&self, upper: Bound<&[u8]>) -> Option<At> {
        self.map.range::<[u8], _>((Bound::Unbounded, upper)).next_back().and_then(At::oldest)
    }
}

impl Cursor for ChangesCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.at = self.first(Bound::Unbounded);
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.at = self.last(Bound::Unbounded);
        Ok(())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.at = self.first(Bound::Included(key));
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.at = self.last(Bound::Excluded(key));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        let Some(at) = self.at.take() else { return Ok(()) };
        let older = at.sibling(&self.map, at.newer + 1);
        self.at = older.or_else(|| self.first(Bound::Excluded(&at.key)));
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        let Some(at) = self.at.take() else { return Ok(()) };
        let newer = at.newer.checked_sub(1).and_then(|newer| at.sibling(&self.map, newer));
        self.at = newer.or_else(|| self.last(Bound::Excluded(&at.key)));
        Ok(())
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        let At { key, kind, value, .. } = self.at.as_ref()?;
        Some(EntryRef { key, seq: self.seq, kind: *kind, value })
    }

    fn value(&self) -> Bytes {
        self.at.as_ref().map(|at| at.value.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_fuzz::dice::{Dice, with_seeds};

    fn range(start: u32, end: u32) -> KeyRange {
        let key = |number: u32| Key::copy_from_slice(&number.to_be_bytes());
        KeyRange { start: key(start), end: Some(key(end)) }
    }

    #[test]
    fn range_deletes_are_taken_back_one_after_the_other() {
        with_seeds(50, |seed| {
            let mut dice = Dice::new(seed);
            let mut changes = Changes::default();
            let mut before = Vec::new();
            for _ in 0..40 {
                // Two neighbours in a group.
                let keyspace = dice.below(2) as u32;
                let start = 100 * keyspace + dice.below(99) as u32;
                let end = start + 1 + dice.below((100 * (keyspace + 1) - start) as usize) as u32;
                let state = changes.range_deletes.clone();
                before.push((state, changes.delete_range(range(start, end), keyspace as u8)));
            }
            while let Some((state, undo)) = before.pop() {
                changes.restore(undo);
                assert_eq!(changes.range_deletes, state);
            }
        });
    }

    /// So many range deletes in one transaction cost no more than each of them alone.
    #[test]
    fn a_range_delete_keeps_what_it_takes_the_place_of() {
        let mut changes = Changes::default();
        let mut kept = |start, end| match changes.delete_range(range(start, end), 0) {
            Before::RangeDelete(_, parts, _) => parts.len(),
            other => panic!("{other:?}"),
        };
        let apart: usize = (0..1000).map(|number| kept(2 * number, 2 * number + 1)).sum();
        assert_eq!(apart, 0);
        assert_eq!(kept(100, 120), 10);
        assert_eq!(kept(100, 121), 1);
        assert_eq!(kept(0, 4000), 990);
    }
}
