//! Atomic batches.

use crate::db::Keyspace;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Damage, Reader, put_bytes, put_varint};
use crate::version::Space;
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};
use std::sync::Arc;

/// Bytes of the longest key.
pub const KEY_BYTES_MAX: usize = 65_535;
/// Bytes of the longest value: 256 MiB.
pub const VALUE_BYTES_MAX: usize = 1 << 28;
/// Bytes of all keys and values of a batch: 1 GiB.
pub const BATCH_BYTES_MAX: usize = 1 << 30;

/// Bytes that an operation takes in the log besides key and value, at most.
const OP_OVERHEAD_BYTES: usize = 24;

/// Writes that take effect together, in their order: all of them or none, also across keyspaces
/// and across a crash.
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
    pub(crate) ops: Vec<BatchOp>,
    pub(crate) bytes: usize,
}

/// One write.
#[derive(Clone, Debug)]
pub(crate) struct BatchOp {
    pub(crate) space: Arc<Space>,
    pub(crate) kind: EntryKind,
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
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
        self.ops.len()
    }

    /// Whether there are no writes.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    fn push(&mut self, keyspace: &Keyspace, kind: EntryKind, key: &[u8], value: &[u8]) {
        self.bytes += key.len() + value.len();
        self.ops.push(BatchOp {
            space: Arc::clone(keyspace.space()),
            kind,
            key: Bytes::copy_from_slice(key),
            value: Bytes::copy_from_slice(value),
        });
    }

    /// Checks the limits.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |told: String| Err(Error::new(ErrorKind::InvalidArgument, told));
        for op in &self.ops {
            match (op.key.len(), op.value.len()) {
                (0, _) => return refuse("a key has at least one byte".into()),
                (key, _) if key > KEY_BYTES_MAX => {
                    return refuse(format!("a key of {key} bytes: at most {KEY_BYTES_MAX}"));
                }
                (_, value) if value > VALUE_BYTES_MAX => {
                    return refuse(format!("a value of {value} bytes: at most {VALUE_BYTES_MAX}"));
                }
                _ => {}
            }
        }
        match self.bytes + OP_OVERHEAD_BYTES * self.ops.len() {
            bytes if bytes > BATCH_BYTES_MAX => {
                refuse(format!("a batch of {bytes} bytes: at most {BATCH_BYTES_MAX}"))
            }
            _ => Ok(()),
        }
    }
}

/// Writes the log record of a batch whose first write has number `first`: that number, how many
/// writes there are, and for each its kind, its keyspace, and key and value behind their lengths;
/// all numbers as varints.
pub(crate) fn encode_batch(out: &mut Vec<u8>, first: SeqNo, ops: &[BatchOp]) {
    out.clear();
    put_varint(out, first.0);
    put_varint(out, ops.len() as u64);
    for op in ops {
        out.push(op.kind as u8);
        put_varint(out, u64::from(op.space.id));
        put_bytes(out, &op.key);
        if !op.kind.is_tombstone() {
            put_bytes(out, &op.value);
        }
    }
}

/// One write read back from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedOp<'a> {
    pub(crate) space: u32,
    pub(crate) kind: EntryKind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Reads a log record back: the number of its first write, and the writes.
pub(crate) fn decode_batch(
    payload: &[u8],
) -> std::result::Result<(SeqNo, Vec<LoggedOp<'_>>), Damage> {
    let mut reader = Reader::new(payload, 0);
    let first = SeqNo(reader.varint()?);
    let count = reader.varint()?;
    let mut ops = Vec::new();
    for _ in 0..count {
        let [kind] = reader.array()?;
        let kind = EntryKind::from_byte(kind).ok_or_else(|| reader.damage("an unknown kind"))?;
        let space = reader.varint()?;
        let space = u32::try_from(space).map_err(|_| reader.damage("an unknown keyspace"))?;
        let key = reader.bytes()?;
        let value = if kind.is_tombstone() { &[][..] } else { reader.bytes()? };
        ops.push(LoggedOp { space, kind, key, value });
    }
    reader.finish()?;
    Ok((first, ops))
}
