//! What a transaction has written in a keyspace.

use bytes::Bytes;
use lsmith_storage::combine::Combiner;
use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::Result;
use lsmith_storage::expiry::{EXPIRY_BYTES, has_expired};
use lsmith_tree::{EntryKind, Key, SeqNo};
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

/// How a key was before a write.
#[derive(Debug)]
pub(super) enum Before {
    /// The transaction had written this to it, or nothing.
    Wrote(Option<Own>),
    /// It had one operand less.
    OneOperandLess,
}

/// What a transaction has written in a keyspace, by key. Iterators share it, and a write copies it
/// if one is alive.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes(Arc<Map>);

impl Changes {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the writes in key order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Own)> {
        self.0.iter()
    }

    /// Returns what was written to `key`, if anything was.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Own> {
        self.0.get(key)
    }

    /// Adds a write to `key`. A value or a tombstone takes the place of what was written to the key
    /// before, as in a merge: an insert over a delete becomes a put, because the delete hid
    /// something, and a remove over an insert leaves nothing.
    pub(super) fn write(&mut self, key: Key, kind: EntryKind, value: Bytes) -> Before {
        let map = Arc::make_mut(&mut self.0);
        if kind != EntryKind::Combine {
            let older = map.get(&key).map(Own::base_kind);
            let Some(kind) = older.map_or(Some(kind), |older| kind.over(older)) else {
                return Before::Wrote(map.remove(&key));
            };
            let own = Own { base: Some((kind, value)), operands: Vec::new() };
            return Before::Wrote(map.insert(key, own));
        }
        if let Some(own) = map.get_mut(&key) {
            own.operands.push(value);
            return Before::OneOperandLess;
        }
        Before::Wrote(map.insert(key, Own { base: None, operands: vec![value] }))
    }

    /// Makes `key` as it was `before`.
    pub(super) fn restore(&mut self, key: &Key, before: Before) {
        let map = Arc::make_mut(&mut self.0);
        match before {
            Before::Wrote(Some(own)) => drop(map.insert(key.clone(), own)),
            Before::Wrote(None) => drop(map.remove(key)),
            Before::OneOperandLess => {
                map.get_mut(key).and_then(|own| own.operands.pop());
            }
        }
    }

    /// Returns a cursor over the writes as they are now.
    pub(super) fn cursor(&self, seq: SeqNo) -> ChangesCursor {
        ChangesCursor { map: Arc::clone(&self.0), seq, at: None }
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
