//! Atomic batches.

use crate::db::Keyspace;
use crate::version::Space;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::{KEY_BYTES_MAX, VALUE_BYTES_MAX, put_varint};
use lsmith_tree::{EntryKind, SeqNo};
use std::sync::Arc;

/// Bytes of all keys and values of a batch, and 24 more for each write: 1 GiB.
pub const BATCH_BYTES_MAX: usize = 1 << 30;

/// Bytes that an operation takes in the log besides key and value, at most.
const OP_OVERHEAD_BYTES: usize = 24;

/// Writes that take effect together, in their order: all of them or none, also across keyspaces
/// and across a crash.
///
/// Adding a write tells nothing. One that breaks a rule (an empty key, a key of more than
/// [`KEY_BYTES_MAX`], a value of more than [`VALUE_BYTES_MAX`], a batch of more than
/// [`BATCH_BYTES_MAX`]) spoils the batch: its memory is given back, and
/// [`Store::write`](crate::Store::write) refuses all of it, and says which write it was and why.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{Batch, PersistMode, Store};
///
/// let store = Store::builder(dir.path()).open()?;
/// let users = store.keyspace("users")?;
/// let names = store.keyspace("names")?;
/// let mut batch = Batch::new();
/// batch.put(&users, "7", "ada");
/// batch.put(&names, "ada", "7");
/// store.write(batch, PersistMode::SyncData)?;
/// assert_eq!(names.get("ada")?.as_deref(), Some(&b"7"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    /// The keyspaces written to, each once.
    spaces: Vec<Arc<Space>>,
    /// The writes as the log will hold them.
    record: Vec<u8>,
    ops: Vec<Placed>,
    /// How many writes were asked for.
    len: usize,
    /// Bytes of the keys and values of `ops`.
    bytes: usize,
    /// Why nothing can be written.
    refused: Option<String>,
}

/// Where in its batch's record a write is.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// The keyspace, among those of the batch.
    space: u32,
    kind: EntryKind,
    key_start: u32,
    key_bytes: u32,
    value_start: u32,
    value_bytes: u32,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Gives `key` this `value`, whatever was there before.
    pub fn put(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.push(keyspace, EntryKind::Put, key.as_ref(), value.as_ref());
    }

    /// Removes `key`, whether it was there or not.
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        self.push(keyspace, EntryKind::Delete, key.as_ref(), &[]);
    }

    /// Gives `key` this `value`; the caller promises that the key is absent. In exchange this
    /// entry and a later [`remove`](Batch::remove) may vanish together early. A broken promise
    /// can bring older values of the key back.
    pub fn insert(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.push(keyspace, EntryKind::Insert, key.as_ref(), value.as_ref());
    }

    /// Removes `key`; the caller promises that it is present and was inserted once. See
    /// [`insert`](Batch::insert).
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        self.push(keyspace, EntryKind::Remove, key.as_ref(), &[]);
    }

    /// How many writes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no writes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn push(&mut self, keyspace: &Keyspace, kind: EntryKind, key: &[u8], value: &[u8]) {
        self.len += 1;
        if self.refused.is_some() {
            return;
        }
        let op = Op { space: keyspace.space(), kind, key, value };
        let bytes = self.bytes + key.len() + value.len();
        if let Some(told) = op.broken_rule().or_else(|| too_large(bytes, self.len)) {
            return self.refuse(op, &told);
        }
        self.bytes = bytes;
        self.record.reserve(OP_OVERHEAD_BYTES + key.len() + value.len());
        op.put_head(&mut self.record);
        let key_start = self.record.len() as u32;
        self.record.extend_from_slice(key);
        op.put_value_bytes(&mut self.record);
        let value_start = self.record.len() as u32;
        self.record.extend_from_slice(value);
        let (key_bytes, value_bytes) = (key.len() as u32, value.len() as u32);
        let space = self.place_space(keyspace.space());
        self.ops.push(Placed { space, kind, key_start, key_bytes, value_start, value_bytes });
    }

    /// Nothing will be written, because `op` cannot be: there is no need to hold the rest.
    #[cold]
    fn refuse(&mut self, op: Op<'_>, told: &str) {
        let what = match op.kind {
            EntryKind::Put => "a put",
            EntryKind::Delete => "a delete",
            EntryKind::Insert => "an insert",
            EntryKind::Remove => "a remove",
        };
        let (number, name) = (self.len, &op.space.name);
        let told = format!("write {number} of the batch, {what} in keyspace `{name}`: {told}");
        (self.record, self.ops, self.refused) = (Vec::new(), Vec::new(), Some(told));
    }

    /// The place of `space` among the batch's own.
    fn place_space(&mut self, space: &Arc<Space>) -> u32 {
        let known = self.spaces.iter().rposition(|known| Arc::ptr_eq(known, space));
        known.unwrap_or_else(|| {
            self.spaces.push(Arc::clone(space));
            self.spaces.len() - 1
        }) as u32
    }

    fn op(&self, placed: &Placed) -> Op<'_> {
        let part = |start: u32, bytes: u32| &self.record[start as usize..][..bytes as usize];
        Op {
            space: &self.spaces[placed.space as usize],
            kind: placed.kind,
            key: part(placed.key_start, placed.key_bytes),
            value: part(placed.value_start, placed.value_bytes),
        }
    }
}

/// One write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op<'a> {
    pub(crate) space: &'a Arc<Space>,
    pub(crate) kind: EntryKind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl Op<'_> {
    /// Appends what stands before the key in the log.
    fn put_head(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        put_varint(out, u64::from(self.space.id));
        put_varint(out, self.key.len() as u64);
    }

    /// Appends what stands between key and value.
    fn put_value_bytes(&self, out: &mut Vec<u8>) {
        if !self.kind.is_tombstone() {
            put_varint(out, self.value.len() as u64);
        }
    }

    /// Which rule it breaks, if any.
    #[inline]
    fn broken_rule(&self) -> Option<String> {
        match (self.key.len(), self.value.len()) {
            (1..=KEY_BYTES_MAX, ..=VALUE_BYTES_MAX) => None,
            (0, _) => Some("a key has at least one byte".into()),
            (1..=KEY_BYTES_MAX, value) => {
                Some(format!("a value of {value} bytes: at most {VALUE_BYTES_MAX}"))
            }
            (key, _) => Some(format!("a key of {key} bytes: at most {KEY_BYTES_MAX}")),
        }
    }
}

/// Why there cannot be a batch of `len` writes with `bytes` of keys and values.
#[inline]
fn too_large(bytes: usize, len: usize) -> Option<String> {
    let bytes = bytes.saturating_add(OP_OVERHEAD_BYTES.saturating_mul(len));
    let told = || format!("a batch of {bytes} bytes: at most {BATCH_BYTES_MAX}");
    (bytes > BATCH_BYTES_MAX).then(told)
}

/// What one call writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ops<'a> {
    One(Op<'a>),
    Batch(&'a Batch),
}

impl<'a> Ops<'a> {
    /// How many writes there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Ops::One(_) => 1,
            Ops::Batch(batch) => batch.len(),
        }
    }

    /// Bytes of all keys and values.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Ops::One(op) => op.key.len() + op.value.len(),
            Ops::Batch(batch) => batch.bytes,
        }
    }

    /// The keyspaces written to, each once.
    pub(crate) fn spaces(&self) -> &'a [Arc<Space>] {
        match self {
            Ops::One(op) => std::slice::from_ref(op.space),
            Ops::Batch(batch) => &batch.spaces,
        }
    }

    /// The writes, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Op<'a>> {
        let (one, many) = match *self {
            Ops::One(op) => (Some(op), None),
            Ops::Batch(batch) => (None, Some(batch)),
        };
        let of = |batch: &'a Batch| batch.ops.iter().map(|placed| batch.op(placed));
        one.into_iter().chain(many.into_iter().flat_map(of))
    }

    /// Checks the limits.
    pub(crate) fn check(&self) -> Result<()> {
        let told = match self {
            Ops::One(op) => op.broken_rule(),
            Ops::Batch(batch) => batch.refused.clone(),
        };
        told.map_or(Ok(()), |told| Err(Error::new(ErrorKind::InvalidArgument, told)))
    }

    /// Gives `take` the log record, in parts, of these writes, of which the first has number
    /// `first`: that number, how many writes there are, and for each its kind, its keyspace, and
    /// key and value behind their lengths; all numbers as varints. `buffer` is room for parts.
    pub(crate) fn with_record<T>(
        &self,
        first: SeqNo,
        buffer: &mut Vec<u8>,
        take: impl FnOnce(&[&[u8]]) -> T,
    ) -> T {
        buffer.clear();
        put_varint(buffer, first.0);
        put_varint(buffer, self.len() as u64);
        match self {
            Ops::One(op) => {
                op.put_head(buffer);
                let head_bytes = buffer.len();
                op.put_value_bytes(buffer);
                let (head, value_bytes) = buffer.split_at(head_bytes);
                take(&[head, op.key, value_bytes, op.value])
            }
            Ops::Batch(batch) => take(&[buffer, &batch.record]),
        }
    }
}
