//! Batches that are built without a store, and their bytes.

use super::change::{Change, range_ends};
use super::{Batch, Keyspace, Store};
use crate::write::Op;
use bytes::Bytes;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::expiry::EXPIRY_BYTES;
use lsmith_storage::format::{
    Damage, OpKind, Reader, put_bytes, put_varint, take_pair, take_range,
};
use lsmith_tree::EntryKind;
use rustc_hash::FxHashMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The first byte of the bytes of a batch: the version of their format.
const VERSION: u8 = 1;

/// The same of a batch that deletes ranges.
const VERSION_WITH_RANGES: u8 = 2;

/// Bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 8;

/// An ordered list of writes that names keyspaces instead of holding their handles. So it needs no
/// store. It can be sent elsewhere as bytes, read, and [bound](Store::bind) to any store that has
/// the keyspaces.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{Change, DetachedBatch, PersistMode, Store};
///
/// let mut batch = DetachedBatch::new();
/// batch.put("users", "7", "ada");
/// batch.delete("names", "bob");
/// let bytes = batch.to_bytes();
///
/// let received = DetachedBatch::from_bytes(&bytes)?;
/// for change in &received {
///     match change {
///         Change::Put { keyspace, key, value } => println!("{keyspace}: {key:?} = {value:?}"),
///         other => println!("{}: {other:?}", other.keyspace()),
///     }
/// }
///
/// let store = Store::builder(dir.path()).open()?;
/// store.keyspace("users")?;
/// store.keyspace("names")?;
/// store.write(store.bind(&received)?, PersistMode::Buffer)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A [change feed](crate::Changes) returns writes of the same type. So a batch of a feed can be
/// sent to a copy of the store:
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let store = lsmith::Store::builder(dir.path()).open()?;
/// # let fruit = store.keyspace("fruit")?;
/// # let mut feed = store.changes(store.next_seq())?;
/// # fruit.put("apple", "red")?;
/// use lsmith::DetachedBatch;
///
/// let batch = feed.next_batch()?.expect("there was a write");
/// let sent = DetachedBatch::from_iter(batch.changes).to_bytes();
/// # assert_eq!(DetachedBatch::from_bytes(&sent)?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetachedBatch {
    /// The names of the keyspaces written to.
    names: Vec<Arc<str>>,
    writes: Vec<Change>,
}

impl DetachedBatch {
    /// Returns an empty batch.
    pub fn new() -> DetachedBatch {
        DetachedBatch::default()
    }

    /// Adds a put, as [`Batch::put`] does, to the keyspace called `keyspace`.
    #[doc(alias("insert", "set"))]
    pub fn put(&mut self, keyspace: &str, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.add(keyspace, EntryKind::Put, key.as_ref(), value.as_ref());
    }

    /// Adds a put of a value that expires, as [`Batch::put_until`] does.
    pub fn put_until(
        &mut self,
        keyspace: &str,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: u64,
    ) {
        let keyspace = self.name(keyspace);
        let [key, value] = [key.as_ref(), value.as_ref()].map(Bytes::copy_from_slice);
        self.writes.push(Change::PutUntil { keyspace, key, value, time });
    }

    /// Adds a delete, as [`Batch::delete`] does.
    #[doc(alias("remove", "erase"))]
    pub fn delete(&mut self, keyspace: &str, key: impl AsRef<[u8]>) {
        self.add(keyspace, EntryKind::Delete, key.as_ref(), &[]);
    }

    /// Adds an insert, as [`Batch::put_new_unchecked`] does.
    pub fn put_new_unchecked(
        &mut self,
        keyspace: &str,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) {
        self.add(keyspace, EntryKind::Insert, key.as_ref(), value.as_ref());
    }

    /// Adds a remove, as [`Batch::delete_single_unchecked`] does.
    #[doc(alias("single delete", "SingleDelete"))]
    pub fn delete_single_unchecked(&mut self, keyspace: &str, key: impl AsRef<[u8]>) {
        self.add(keyspace, EntryKind::Remove, key.as_ref(), &[]);
    }

    /// Adds a combine, as [`Batch::combine`] does.
    pub fn combine(&mut self, keyspace: &str, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) {
        self.add(keyspace, EntryKind::Combine, key.as_ref(), operand.as_ref());
    }

    /// Adds a range delete, as [`Batch::delete_range`] does.
    pub fn delete_range<K: AsRef<[u8]>>(&mut self, keyspace: &str, range: impl RangeBounds<K>) {
        let Some((start, end)) = range_ends(range) else { return };
        let (keyspace, start, end) = (self.name(keyspace), start.into(), end.map(Bytes::from));
        self.writes.push(Change::DeleteRange { keyspace, start, end });
    }

    fn add(&mut self, keyspace: &str, kind: EntryKind, key: &[u8], value: &[u8]) {
        let keyspace = self.name(keyspace);
        let [key, value] = [key, value].map(Bytes::copy_from_slice);
        self.writes.push(Change::new(OpKind::Entry(kind), keyspace, key, value));
    }

    /// Adds `change`.
    pub fn push(&mut self, change: Change) {
        self.name(change.keyspace());
        self.writes.push(change);
    }

    /// Returns the indexes of the names.
    fn indexes(&self) -> FxHashMap<&str, usize> {
        self.names.iter().enumerate().map(|(index, name)| (&**name, index)).collect()
    }

    /// Returns the name `keyspace`, and adds it if it is new.
    fn name(&mut self, keyspace: &str) -> Arc<str> {
        let known = self.names.iter().rposition(|name| **name == *keyspace);
        let known = known.unwrap_or_else(|| {
            self.names.push(Arc::from(keyspace));
            self.names.len() - 1
        });
        Arc::clone(&self.names[known])
    }

    /// Removes all writes.
    pub fn clear(&mut self) {
        *self = DetachedBatch::new();
    }

    /// Returns the writes, in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Change> {
        self.writes.iter()
    }

    /// Returns the number of writes.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Returns the bytes of all keys, values, operands, and ends of ranges.
    pub fn bytes(&self) -> usize {
        let bytes = |(key, value): (&[u8], &[u8])| key.len() + value.len();
        self.writes.iter().map(|change| bytes(change.parts())).sum()
    }

    /// Returns true if there is no write.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns the batch as bytes, with a checksum:
    ///
    /// ```text
    /// version: 1 byte | names | name ... | writes | write ... | checksum: XXH3 of all before
    /// write = kind: 1 byte | index of the name | key | value, unless it deletes
    /// ```
    ///
    /// where integers are varints, and names, keys and values have their lengths in front. The
    /// kinds are the same as in the log: 0 put, 1 delete, 2 insert, 3 remove, 4 range delete, 5
    /// combine, 6 a put that expires. In the place of its key and its value, a range delete has the
    /// two ends of the range, the second empty for none. A value that expires has its time in front
    /// of it, in 8 bytes, little-endian. The version is 2 if there is a range delete, otherwise 1.
    pub fn to_bytes(&self) -> Vec<u8> {
        let has_ranges = self.iter().any(|change| change.kind() == OpKind::DeleteRange);
        let mut out = vec![if has_ranges { VERSION_WITH_RANGES } else { VERSION }];
        put_varint(&mut out, self.names.len() as u64);
        self.names.iter().for_each(|name| put_bytes(&mut out, name.as_bytes()));
        put_varint(&mut out, self.writes.len() as u64);
        let indexes = self.indexes();
        for change in self {
            let (kind, (key, value)) = (change.kind(), change.parts());
            out.push(kind.to_byte());
            put_varint(&mut out, indexes[change.keyspace()] as u64);
            put_bytes(&mut out, key);
            if let Change::PutUntil { time, .. } = change {
                put_varint(&mut out, (EXPIRY_BYTES + value.len()) as u64);
                out.extend_from_slice(&time.to_le_bytes());
                out.extend_from_slice(value);
            } else if !kind.is_tombstone() {
                put_bytes(&mut out, value);
            }
        }
        let checksum = xxh3_64(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Returns the batch that [`to_bytes`](DetachedBatch::to_bytes) has turned into `bytes`.
    ///
    /// # Errors
    /// `Corruption` if the bytes are damaged or cut; `Unsupported` if a newer version made them.
    pub fn from_bytes(bytes: &[u8]) -> Result<DetachedBatch> {
        let damaged = |damage: Damage| {
            let Damage { what, at } = damage;
            Error::new(ErrorKind::Corruption, format!("the bytes of a batch, at {at}: {what}"))
        };
        let (body, checksum) = bytes
            .split_last_chunk::<CHECKSUM_BYTES>()
            .ok_or_else(|| damaged(Damage::whole("they are too short")))?;
        if xxh3_64(body).to_le_bytes() != *checksum {
            return Err(damaged(Damage::whole("they do not match their checksum")));
        }
        match body.first() {
            Some(&(VERSION | VERSION_WITH_RANGES)) => {
                take_batch(&Bytes::copy_from_slice(body)).map_err(damaged)
            }
            version => {
                let found = version.map_or("none".into(), u8::to_string);
                let message = format!(
                    "a batch of version {VERSION} or {VERSION_WITH_RANGES} is expected, found \
                     {found}"
                );
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }
}

fn take_batch(body: &Bytes) -> std::result::Result<DetachedBatch, Damage> {
    let mut reader = Reader::new(body, 1);
    let mut batch = DetachedBatch::new();
    for _ in 0..reader.varint()? {
        let name = std::str::from_utf8(reader.bytes()?);
        batch.names.push(Arc::from(name.map_err(|_| reader.damage("a name is no text"))?));
    }
    for _ in 0..reader.varint()? {
        let [kind] = reader.array()?;
        let kind = OpKind::from_byte(kind).ok_or_else(|| reader.damage("an unknown kind"))?;
        let Some(keyspace) = batch.names.get(reader.size()?) else {
            return Err(reader.damage("a write names no keyspace"));
        };
        let (key, value) = match kind {
            OpKind::Entry(kind) => take_pair(&mut reader, kind)?,
            OpKind::DeleteRange => take_range(&mut reader)?,
        };
        if kind == OpKind::Entry(EntryKind::Expiring) && value.len() < EXPIRY_BYTES {
            return Err(reader.damage("a value that expires has no time"));
        }
        let [key, value] = [key, value].map(|part| body.slice_ref(part));
        batch.writes.push(Change::new(kind, Arc::clone(keyspace), key, value));
    }
    reader.finish()?;
    Ok(batch)
}

impl<'a> IntoIterator for &'a DetachedBatch {
    type Item = &'a Change;
    type IntoIter = std::slice::Iter<'a, Change>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Change> for DetachedBatch {
    fn from_iter<I: IntoIterator<Item = Change>>(changes: I) -> DetachedBatch {
        let mut batch = DetachedBatch::new();
        changes.into_iter().for_each(|change| batch.push(change));
        batch
    }
}

impl Store {
    /// Returns `batch` with the keyspaces of this store that it names.
    ///
    /// As with each [`Batch`], writing it fails if one of its writes breaks a rule, such as a
    /// combine in a keyspace without an operator.
    ///
    /// # Errors
    /// `NotFound` if there is no keyspace of a name; `InvalidArgument` if it is a group.
    pub fn bind(&self, batch: &DetachedBatch) -> Result<Batch> {
        let named = batch.names.iter().map(|name| self.existing_keyspace(name));
        let keyspaces = named.collect::<Result<Vec<_>>>()?;
        let mut bound = Batch::new();
        let indexes = batch.indexes();
        for change in batch {
            bound.push(&keyspaces[indexes[change.keyspace()]], change);
        }
        Ok(bound)
    }
}

impl Batch {
    /// Adds `change` as a write to `keyspace`.
    fn push(&mut self, keyspace: &Keyspace, change: &Change) {
        match change {
            Change::Put { key, value, .. } => self.put(keyspace, key, value),
            Change::PutUntil { key, value, time, .. } => {
                self.put_until(keyspace, key, value, *time);
            }
            Change::Insert { key, value, .. } => self.put_new_unchecked(keyspace, key, value),
            Change::Combine { key, operand, .. } => self.combine(keyspace, key, operand),
            Change::Delete { key, .. } => self.delete(keyspace, key),
            Change::Remove { key, .. } => self.delete_single_unchecked(keyspace, key),
            Change::DeleteRange { start, end, .. } => {
                let end = end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
                self.delete_range::<Bytes>(keyspace, (Bound::Included(start), end));
            }
        }
    }

    /// Returns the writes of the batch with the names of their keyspaces, as these are now. They
    /// can be read there.
    ///
    /// # Errors
    /// `InvalidArgument` if a write of the batch breaks a rule: the batch then has no writes.
    pub fn detach(&self) -> Result<DetachedBatch> {
        let ops = self.ops();
        ops.check()?;
        let change = |op: Op<'_>| {
            Change::of_op(op.keyspace, op.kind, (op.key, op.value), Bytes::copy_from_slice)
        };
        Ok(ops.iter().map(change).collect())
    }
}
