//! Batches that are built without a store, and their bytes.

use super::{Batch, Store};
use crate::group::NUMBER_BYTES;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::{Damage, OpKind, Reader, put_bytes, put_varint, take_pair};
use lsmith_tree::EntryKind;
use xxhash_rust::xxh3::xxh3_64;

/// The first byte of the bytes of a batch: the version of their format.
const VERSION: u8 = 1;

/// Bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 8;

/// An ordered list of writes that names keyspaces instead of holding their handles. So it needs no
/// store. It can be sent elsewhere as bytes, and [bound](Store::bind) to any store that has the
/// keyspaces.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{DetachedBatch, PersistMode, Store};
///
/// let mut batch = DetachedBatch::new();
/// batch.put("users", "7", "ada");
/// batch.delete("names", "bob");
/// let bytes = batch.to_bytes();
///
/// let store = Store::builder(dir.path()).open()?;
/// store.keyspace("users")?;
/// store.keyspace("names")?;
/// let batch = store.bind(&DetachedBatch::from_bytes(&bytes)?)?;
/// store.write(batch, PersistMode::Buffer)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetachedBatch {
    /// The names of the keyspaces written to, each once.
    names: Vec<String>,
    writes: Vec<DetachedWrite>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct DetachedWrite {
    /// The index of the keyspace among the names.
    keyspace: usize,
    kind: EntryKind,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl DetachedBatch {
    /// Returns an empty batch.
    pub fn new() -> DetachedBatch {
        DetachedBatch::default()
    }

    /// Adds a put, as [`Batch::put`] does, to the keyspace called `keyspace`.
    pub fn put(&mut self, keyspace: &str, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.add(keyspace, EntryKind::Put, key.as_ref(), value.as_ref());
    }

    /// Adds a delete, as [`Batch::delete`] does.
    pub fn delete(&mut self, keyspace: &str, key: impl AsRef<[u8]>) {
        self.add(keyspace, EntryKind::Delete, key.as_ref(), &[]);
    }

    /// Adds an insert, as [`Batch::insert_new`] does.
    pub fn insert_new(&mut self, keyspace: &str, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.add(keyspace, EntryKind::Insert, key.as_ref(), value.as_ref());
    }

    /// Adds a remove, as [`Batch::remove_single`] does.
    pub fn remove_single(&mut self, keyspace: &str, key: impl AsRef<[u8]>) {
        self.add(keyspace, EntryKind::Remove, key.as_ref(), &[]);
    }

    fn add(&mut self, keyspace: &str, kind: EntryKind, key: &[u8], value: &[u8]) {
        let known = self.names.iter().rposition(|name| name == keyspace);
        let keyspace = known.unwrap_or_else(|| {
            self.names.push(keyspace.to_string());
            self.names.len() - 1
        });
        self.writes.push(DetachedWrite {
            keyspace,
            kind,
            key: key.to_vec(),
            value: value.to_vec(),
        });
    }

    /// Removes all writes.
    pub fn clear(&mut self) {
        *self = DetachedBatch::new();
    }

    /// Returns the number of writes.
    pub fn len(&self) -> usize {
        self.writes.len()
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
    /// where numbers are varints, and names, keys and values have their lengths in front. The kinds
    /// are those of the log: 0 put, 1 delete, 2 insert, 3 remove.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_varint(&mut out, self.names.len() as u64);
        self.names.iter().for_each(|name| put_bytes(&mut out, name.as_bytes()));
        put_varint(&mut out, self.writes.len() as u64);
        for DetachedWrite { keyspace, kind, key, value } in &self.writes {
            out.push(*kind as u8);
            put_varint(&mut out, *keyspace as u64);
            put_bytes(&mut out, key);
            if !kind.is_tombstone() {
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
            Some(&VERSION) => take_batch(body).map_err(damaged),
            version => {
                let found = version.map_or("none".into(), u8::to_string);
                let message = format!("a batch of version {VERSION} is expected, found {found}");
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }
}

fn take_batch(body: &[u8]) -> std::result::Result<DetachedBatch, Damage> {
    let mut reader = Reader::new(body, 1);
    let mut batch = DetachedBatch::new();
    for _ in 0..reader.varint()? {
        let name = std::str::from_utf8(reader.bytes()?);
        batch.names.push(name.map_err(|_| reader.damage("a name is no text"))?.to_string());
    }
    for _ in 0..reader.varint()? {
        let [kind] = reader.array()?;
        let kind = EntryKind::from_byte(kind).ok_or_else(|| reader.damage("an unknown kind"))?;
        let keyspace = reader.size()?;
        if keyspace >= batch.names.len() {
            return Err(reader.damage("a write names no keyspace"));
        }
        let (key, value) = take_pair(&mut reader, kind)?;
        let (key, value) = (key.to_vec(), value.to_vec());
        batch.writes.push(DetachedWrite { keyspace, kind, key, value });
    }
    reader.finish()?;
    Ok(batch)
}

impl Store {
    /// Returns `batch` with the keyspaces of this store that it names.
    ///
    /// # Errors
    /// `NotFound` if there is no keyspace of a name; `InvalidArgument` if it is a group.
    pub fn bind(&self, batch: &DetachedBatch) -> Result<Batch> {
        let named = batch.names.iter().map(|name| self.existing_keyspace(name));
        let keyspaces = named.collect::<Result<Vec<_>>>()?;
        let mut bound = Batch::new();
        for DetachedWrite { keyspace, kind, key, value } in &batch.writes {
            bound.add(&keyspaces[*keyspace], *kind, key, value);
        }
        Ok(bound)
    }
}

impl Batch {
    /// Returns the writes of the batch with the names of their keyspaces, as these are now.
    ///
    /// # Errors
    /// `InvalidArgument` if a write of the batch breaks a rule: the batch then has no writes. Also
    /// if a write deletes a range, which batches without a store do not have.
    pub fn detach(&self) -> Result<DetachedBatch> {
        let ops = self.ops();
        ops.check()?;
        let mut batch = DetachedBatch::new();
        for op in ops.iter() {
            let OpKind::Entry(kind) = op.kind else {
                let message = "a batch that deletes ranges cannot be detached from its store";
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            };
            let number_bytes = if op.keyspace.members.is_some() { NUMBER_BYTES } else { 0 };
            let name = op.keyspace.name_of(op.key);
            batch.add(&name, kind, &op.key[number_bytes..], op.value);
        }
        Ok(batch)
    }
}
