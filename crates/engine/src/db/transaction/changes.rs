//! What a transaction has written in a keyspace.

use bytes::Bytes;
use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::Result;
use lsmith_tree::{EntryKind, Key, SeqNo};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A value, or `None` for a delete, of each key that was written.
type Map = BTreeMap<Key, Option<Bytes>>;

/// What a transaction has written in a keyspace, by key. Iterators share it, and a write copies it
/// if one is alive.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes(Arc<Map>);

impl Changes {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the writes in key order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Option<Bytes>)> {
        self.0.iter()
    }

    /// Returns what was written to `key`, if it was.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Option<Bytes>> {
        self.0.get(key)
    }

    /// Writes `value` to `key`. Returns what was written before.
    pub(super) fn set(&mut self, key: Key, value: Option<Bytes>) -> Option<Option<Bytes>> {
        Arc::make_mut(&mut self.0).insert(key, value)
    }

    /// Makes `key` as it was `before`.
    pub(super) fn restore(&mut self, key: &Key, before: Option<Option<Bytes>>) {
        let map = Arc::make_mut(&mut self.0);
        match before {
            Some(value) => drop(map.insert(key.clone(), value)),
            None => drop(map.remove(key)),
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
    /// That of the newest write that the transaction sees, so that no range delete hides its own.
    seq: SeqNo,
    at: Option<(Key, Option<Bytes>)>,
}

impl ChangesCursor {
    fn go<'a>(
        map: &'a Map,
        bounds: (Bound<&'a [u8]>, Bound<&'a [u8]>),
        last: bool,
    ) -> Option<(Key, Option<Bytes>)> {
        let mut entries = map.range::<[u8], _>(bounds);
        let found = if last { entries.next_back() } else { entries.next() };
        found.map(|(key, value)| (key.clone(), value.clone()))
    }
}

impl Cursor for ChangesCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.at = ChangesCursor::go(&self.map, (Bound::Unbounded, Bound::Unbounded), false);
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.at = ChangesCursor::go(&self.map, (Bound::Unbounded, Bound::Unbounded), true);
        Ok(())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.at = ChangesCursor::go(&self.map, (Bound::Included(key), Bound::Unbounded), false);
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.at = ChangesCursor::go(&self.map, (Bound::Unbounded, Bound::Excluded(key)), true);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        let Some((key, _)) = self.at.take() else { return Ok(()) };
        self.at = ChangesCursor::go(&self.map, (Bound::Excluded(&key), Bound::Unbounded), false);
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        let Some((key, _)) = self.at.take() else { return Ok(()) };
        self.seek_before(&key)
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        let (key, value) = self.at.as_ref()?;
        Some(EntryRef {
            key,
            seq: self.seq,
            kind: if value.is_some() { EntryKind::Put } else { EntryKind::Delete },
            value: value.as_deref().unwrap_or_default(),
        })
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn value(&self) -> Bytes {
        self.at.as_ref().and_then(|(_, value)| value.clone()).unwrap_or_default()
    }
}
