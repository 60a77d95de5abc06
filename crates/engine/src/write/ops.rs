//! What one call writes: a single entry, or a batch of them.

use crate::keyspace::KeyspaceShared;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::{KEY_BYTES_MAX, VALUE_BYTES_MAX, put_varint};
use lsmith_tree::{EntryKind, SeqNo};
use std::sync::Arc;

/// Bytes of all keys and values of a batch, and 24 more for each write: 1 GiB.
pub const BATCH_BYTES_MAX: usize = 1 << 30;

/// Bytes that an operation takes in the log besides key and value, at most.
const OP_OVERHEAD_BYTES: usize = 24;

/// The writes of a batch.
#[derive(Debug, Default)]
pub(crate) struct OpBuffer {
    /// The keyspaces written to, each once.
    keyspaces: Vec<Arc<KeyspaceShared>>,
    /// The writes as the log will hold them.
    record: Vec<u8>,
    ops: Vec<Placed>,
    /// How many writes were asked for.
    pub(crate) len: usize,
    /// Bytes of the keys and values of `ops`.
    bytes: usize,
    /// Why nothing can be written.
    refused: Option<String>,
}

/// Where in its batch's record a write is.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// The keyspace, among those of the batch.
    keyspace: u32,
    kind: EntryKind,
    key_start: u32,
    key_bytes: u32,
    value_start: u32,
    value_bytes: u32,
}

impl OpBuffer {
    /// Adds a write. One that breaks a rule spoils the batch.
    pub(crate) fn push(
        &mut self,
        keyspace: &Arc<KeyspaceShared>,
        kind: EntryKind,
        key: &[u8],
        value: &[u8],
    ) {
        self.len += 1;
        if self.refused.is_some() {
            return;
        }
        let op = Op { keyspace, kind, key, value };
        let bytes = self.bytes + key.len() + value.len();
        if let Some(message) = op.broken_rule().or_else(|| too_large(bytes, self.len)) {
            return self.refuse(op, &message);
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
        let place = self.place_of(keyspace);
        self.ops.push(Placed {
            keyspace: place,
            kind,
            key_start,
            key_bytes,
            value_start,
            value_bytes,
        });
    }

    /// Nothing will be written, because `op` cannot be: there is no need to hold the rest.
    #[cold]
    fn refuse(&mut self, op: Op<'_>, message: &str) {
        let what = match op.kind {
            EntryKind::Put => "a put",
            EntryKind::Delete => "a delete",
            EntryKind::Insert => "an insert",
            EntryKind::Remove => "a remove",
        };
        let (number, name) = (self.len, &op.keyspace.name);
        let message =
            format!("write {number} of the batch, {what} in keyspace `{name}`: {message}");
        self.record = Vec::new();
        self.ops = Vec::new();
        self.refused = Some(message);
    }

    /// Returns the place of `keyspace` among the batch's own.
    fn place_of(&mut self, keyspace: &Arc<KeyspaceShared>) -> u32 {
        let known = self.keyspaces.iter().rposition(|known| Arc::ptr_eq(known, keyspace));
        known.unwrap_or_else(|| {
            self.keyspaces.push(Arc::clone(keyspace));
            self.keyspaces.len() - 1
        }) as u32
    }

    fn op(&self, placed: &Placed) -> Op<'_> {
        let part = |start: u32, bytes: u32| &self.record[start as usize..][..bytes as usize];
        Op {
            keyspace: &self.keyspaces[placed.keyspace as usize],
            kind: placed.kind,
            key: part(placed.key_start, placed.key_bytes),
            value: part(placed.value_start, placed.value_bytes),
        }
    }
}

/// One write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op<'a> {
    pub(crate) keyspace: &'a Arc<KeyspaceShared>,
    pub(crate) kind: EntryKind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl Op<'_> {
    /// Appends what stands before the key in the log.
    fn put_head(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        put_varint(out, u64::from(self.keyspace.id));
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
    Many(&'a OpBuffer),
}

impl<'a> Ops<'a> {
    /// How many writes there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Ops::One(_) => 1,
            Ops::Many(buffer) => buffer.len,
        }
    }

    /// Bytes of all keys and values.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Ops::One(op) => op.key.len() + op.value.len(),
            Ops::Many(buffer) => buffer.bytes,
        }
    }

    /// The keyspaces written to, each once.
    pub(crate) fn keyspaces(&self) -> &'a [Arc<KeyspaceShared>] {
        match self {
            Ops::One(op) => std::slice::from_ref(op.keyspace),
            Ops::Many(buffer) => &buffer.keyspaces,
        }
    }

    /// The writes, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Op<'a>> {
        let (one, many) = match *self {
            Ops::One(op) => (Some(op), None),
            Ops::Many(buffer) => (None, Some(buffer)),
        };
        let of = |buffer: &'a OpBuffer| buffer.ops.iter().map(|placed| buffer.op(placed));
        one.into_iter().chain(many.into_iter().flat_map(of))
    }

    /// Checks the limits.
    pub(crate) fn check(&self) -> Result<()> {
        let message = match self {
            Ops::One(op) => op.broken_rule(),
            Ops::Many(buffer) => buffer.refused.clone(),
        };
        message.map_or(Ok(()), |message| Err(Error::new(ErrorKind::InvalidArgument, message)))
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
            Ops::Many(ops) => take(&[buffer, &ops.record]),
        }
    }
}
