//! Reads of several keys, questions about the size of a keyspace, and what snapshots read.

use super::iter::range_of;
use super::{Cursor, Iter, Keyspace, Snapshot, prefix_bounds};
use crate::version::KEYS_TOGETHER;
use bytes::Bytes;
use lsmith_storage::cursor::Cursor as _;
use lsmith_storage::error::Result;
use lsmith_storage::memtable::Memtable;
use lsmith_tree::{KeyRange, Size, logical_bytes};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// Entries of the active memtable that an estimate looks at. Beyond them it takes the range to hold
/// the whole memtable.
const COUNTED_MAX: u64 = 1024;

impl Keyspace {
    /// Returns the values of `keys`, in their order, all as of one moment. `None` stands for an
    /// absent key.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = lsmith::Store::builder(dir.path()).open()?;
    /// # let fruit = store.keyspace("fruit")?;
    /// fruit.put("apple", "red")?;
    /// let values = fruit.multi_get(["apple", "pear"])?;
    /// assert_eq!(values[0].as_deref(), Some(&b"red"[..]));
    /// assert!(values[1].is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Keyspace::get).
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Bytes>>> {
        self.store().snapshot().multi_get(self, keys)
    }

    /// Returns the entry with the least key, or `None` if there is none.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = lsmith::Store::builder(dir.path()).open()?;
    /// # let years = store.keyspace("years")?;
    /// years.put("1815", "ada")?;
    /// years.put("1906", "grace")?;
    /// assert_eq!(years.first()?.expect("two years").0, "1815");
    /// assert_eq!(years.last()?.expect("two years").1, "grace");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Keyspace::get).
    #[doc(alias = "first_key_value")]
    pub fn first(&self) -> Result<Option<(Bytes, Bytes)>> {
        self.iter().next().transpose()
    }

    /// Returns the entry with the greatest key, or `None` if there is none.
    ///
    /// # Errors
    /// As [`get`](Keyspace::get).
    #[doc(alias = "last_key_value")]
    pub fn last(&self) -> Result<Option<(Bytes, Bytes)>> {
        self.iter().next_back().transpose()
    }

    /// Returns a cursor over all entries as they are now.
    pub fn cursor(&self) -> Cursor {
        self.store().snapshot().cursor(self)
    }

    /// Returns a cursor over the entries with keys in `range` as they are now.
    pub fn cursor_within<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Cursor {
        self.store().snapshot().cursor_within(self, range)
    }

    /// Returns true if no key has a value. Reads at most until the first that has one.
    ///
    /// # Errors
    /// As [`get`](Keyspace::get).
    pub fn is_empty(&self) -> Result<bool> {
        is_over(self.iter())
    }

    /// Returns about how many keys have a value. Reads no table.
    ///
    /// Each table and memtable counts its entries. A deletion counts as one entry less, for the
    /// entry that it hides. So keys that were written again and not merged yet count more than
    /// once, and deletions of absent keys make the count too small. After
    /// [`merge`](Keyspace::merge) the count is exact, unless snapshots keep older versions.
    pub fn approximate_len(&self) -> u64 {
        let size = self.size_within::<&[u8]>(..);
        size.entries.saturating_sub(2 * size.tombstones)
    }

    /// Returns about how many logical bytes the entries in `range` have: keys, values and 8 per
    /// entry. Reads no table. Counts entries as [`approximate_len`](Keyspace::approximate_len)
    /// does, to about 64 KiB at both ends of the range in each table.
    pub fn approximate_bytes<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> u64 {
        self.size_within(range).bytes
    }

    fn size_within<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Size {
        let Some(range) = self.key_range(range) else { return Size::default() };
        let version = self.shared().version.load();
        let of_runs: Size = version.tree.runs().map(|(_, run)| run.size_within(&range)).sum();
        of_runs + size_of_active(&version.active, &range)
    }

    /// Returns `range` as keys of the tree, or `None` if it ends before it begins.
    pub(super) fn key_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Option<KeyRange> {
        let bound = |bound: Bound<&K>| bound.map(|key| Bytes::copy_from_slice(key.as_ref()));
        let bounds = (bound(range.start_bound()), bound(range.end_bound()));
        let range = range_of(&self.stored_bounds(bounds));
        let is_backwards = range.end.as_ref().is_some_and(|end| *end <= range.start);
        (!is_backwards).then_some(range)
    }
}

/// Returns true if `entries` has none.
fn is_over(mut entries: Iter) -> Result<bool> {
    entries.next_ref().transpose().map(|first| first.is_none())
}

/// Returns about the size of the entries of `memtable` in `range`.
fn size_of_active(memtable: &Arc<Memtable>, range: &KeyRange) -> Size {
    let mut cursor = memtable.cursor();
    let mut size = Size::default();
    if memtable.is_empty() || cursor.seek(&range.start).is_err() {
        return size;
    }
    while let Some(entry) = cursor.entry().filter(|entry| range.contains(entry.key)) {
        size.entries += 1;
        size.bytes += logical_bytes(entry.key.len(), entry.value.len());
        size.tombstones += u64::from(entry.kind.is_tombstone());
        if size.entries == COUNTED_MAX {
            let share = memtable.entries().max(COUNTED_MAX) as f64 / COUNTED_MAX as f64;
            let more = |part: u64| (part as f64 * share) as u64;
            return Size {
                entries: memtable.entries().max(COUNTED_MAX),
                bytes: memtable.live_bytes().max(size.bytes),
                tombstones: more(size.tombstones),
            };
        }
        if cursor.next().is_err() {
            break;
        }
    }
    size
}

impl Snapshot {
    /// Returns the values that `keys` have in `keyspace` at the snapshot, in their order.
    ///
    /// # Errors
    /// As [`get`](Snapshot::get).
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Bytes>>> {
        self.check_store(keyspace)?;
        let at = Some(self.guard());
        let mut keys = keys.into_iter().fuse();
        let mut values = Vec::new();
        let mut together = Vec::with_capacity(KEYS_TOGETHER);
        loop {
            together.extend(keys.by_ref().take(KEYS_TOGETHER));
            if together.is_empty() {
                return Ok(values);
            }
            if together.len() > 1 && keyspace.reads_wait() {
                keyspace.request(together.iter().map(AsRef::as_ref), self.guard());
            }
            for key in together.drain(..) {
                values.push(keyspace.read(key.as_ref(), at, |value| value.into_shared())?);
            }
        }
    }

    /// Returns true if `key` has a value in `keyspace` at the snapshot.
    ///
    /// # Errors
    /// As [`get`](Snapshot::get).
    #[doc(alias = "contains_key")]
    pub fn contains(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_with(keyspace, key, |_| ())?.is_some())
    }

    /// Returns the entry with the least key that `keyspace` has at the snapshot.
    ///
    /// # Errors
    /// As [`get`](Snapshot::get).
    pub fn first(&self, keyspace: &Keyspace) -> Result<Option<(Bytes, Bytes)>> {
        self.iter(keyspace).next().transpose()
    }

    /// Returns the entry with the greatest key that `keyspace` has at the snapshot.
    ///
    /// # Errors
    /// As [`get`](Snapshot::get).
    pub fn last(&self, keyspace: &Keyspace) -> Result<Option<(Bytes, Bytes)>> {
        self.iter(keyspace).next_back().transpose()
    }

    /// Returns true if no key has a value in `keyspace` at the snapshot.
    ///
    /// # Errors
    /// As [`get`](Snapshot::get).
    pub fn is_empty(&self, keyspace: &Keyspace) -> Result<bool> {
        is_over(self.iter(keyspace))
    }

    /// Returns an iterator over all entries that `keyspace` has at the snapshot, in key order, as
    /// [`range`](Snapshot::range) does.
    pub fn iter(&self, keyspace: &Keyspace) -> Iter {
        self.range::<&[u8]>(keyspace, ..)
    }

    /// Returns an iterator over the entries that `keyspace` has at the snapshot and whose keys
    /// begin with `prefix`, in key order, as [`range`](Snapshot::range) does.
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Iter {
        self.range::<Bytes>(keyspace, prefix_bounds(prefix.as_ref()))
    }

    /// Returns a cursor over the entries that `keyspace` has at the snapshot. If the keyspace
    /// belongs to another store, its first step fails with `InvalidArgument`.
    pub fn cursor(&self, keyspace: &Keyspace) -> Cursor {
        self.cursor_within::<&[u8]>(keyspace, ..)
    }

    /// Returns a cursor over the entries that `keyspace` has at the snapshot, with keys in `range`,
    /// as [`cursor`](Snapshot::cursor) does.
    pub fn cursor_within<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Cursor {
        let bound = |bound: Bound<&K>| bound.map(|key| Bytes::copy_from_slice(key.as_ref()));
        let bounds = (bound(range.start_bound()), bound(range.end_bound()));
        let iter = self.range::<Bytes>(keyspace, bounds.clone());
        Cursor::new(iter, keyspace.member(), keyspace.stored_bounds(bounds))
    }
}
