//! The operations of one write call: one, or a batch.

use crate::group::MEMBER_BYTES;
use crate::keyspace::KeyspaceShared;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::{KEY_BYTES_MAX, OpKind, VALUE_BYTES_MAX, put_varint};
use lsmith_tree::{EntryKind, SeqNo};
use std::sync::Arc;

/// The most bytes of a batch: 1 GiB. Keys and values count, and 24 bytes for each write.
pub const BATCH_BYTES_MAX: usize = 1 << 30;

/// Why an empty key is refused. Tables and logs have none: there it is damage.
pub(crate) const EMPTY_KEY: &str = "expected a key of at least 1 byte, found an empty key";

/// The greatest number of bytes of an operation in the log, without its key and its value.
const OP_OVERHEAD_BYTES: usize = 24;

/// The bytes that a record takes at first. The allocator keeps pieces of this size at hand.
const RECORD_BYTES_MIN: usize = 1000;

/// The operations that a batch has room for at first.
const OPS_MIN: usize = 16;

/// The operations of a batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpBuffer {
    /// The keyspaces written to, each once.
    keyspaces: Vec<Arc<KeyspaceShared>>,
    /// The operations as the log will hold them.
    record: Vec<u8>,
    ops: Vec<BufferedOp>,
    /// True if an operation deletes a range.
    has_ranges: bool,
    /// The number of operations that were pushed, dropped ones included.
    pub(crate) len: usize,
    /// Bytes of the keys and values of `ops`.
    bytes: usize,
    /// Why the batch cannot be written, if it cannot.
    refusal: Option<String>,
}

/// An operation, as offsets into the record of its batch.
#[derive(Clone, Copy, Debug)]
struct BufferedOp {
    /// The index of the keyspace in the batch.
    keyspace: u32,
    kind: OpKind,
    key_start: u32,
    key_bytes: u32,
    value_start: u32,
    value_bytes: u32,
}

impl OpBuffer {
    /// Makes room for an operation of `room` bytes in the record. Small batches take no second
    /// step, which would copy them.
    #[cold]
    fn grow(&mut self, room: usize) {
        self.record.reserve(room.max(RECORD_BYTES_MIN));
        if self.ops.capacity() == 0 {
            self.ops.reserve(OPS_MIN);
        }
    }

    /// Adds an operation. If it breaks a rule, the batch drops all operations and refuses to be
    /// written.
    #[inline(always)]
    pub(crate) fn push(&mut self, op: Op<'_>) {
        self.len += 1;
        if self.refusal.is_some() {
            return;
        }
        let Op { keyspace, kind, key, value } = op;
        let bytes = self.bytes + key.len() + value.len();
        if let Some(message) = op.broken_rule().or_else(|| too_large(bytes, self.len)) {
            return self.refuse(op, &message);
        }
        self.bytes = bytes;
        let room = OP_OVERHEAD_BYTES + key.len() + value.len();
        if self.record.capacity() - self.record.len() < room {
            self.grow(room);
        }
        op.put_head(&mut self.record);
        let key_start = self.record.len() as u32;
        self.record.extend_from_slice(key);
        op.put_value_bytes(&mut self.record);
        let value_start = self.record.len() as u32;
        self.record.extend_from_slice(value);
        let keyspace = self.index_of(keyspace);
        self.has_ranges |= kind == OpKind::DeleteRange;
        self.ops.push(BufferedOp {
            keyspace,
            kind,
            key_start,
            key_bytes: key.len() as u32,
            value_start,
            value_bytes: value.len() as u32,
        });
    }

    /// Counts `op`, and drops all operations, because it breaks the rule that `message` names.
    pub(crate) fn push_refused(&mut self, op: Op<'_>, message: &str) {
        self.len += 1;
        if self.refusal.is_none() {
            self.refuse(op, message);
        }
    }

    /// Drops all operations, because `op` breaks the rule that `message` names.
    #[cold]
    fn refuse(&mut self, op: Op<'_>, message: &str) {
        let what = match op.kind {
            OpKind::Entry(EntryKind::Put) => "a put",
            OpKind::Entry(EntryKind::Delete) => "a delete",
            OpKind::Entry(EntryKind::Insert) => "an insert",
            OpKind::Entry(EntryKind::Remove) => "a remove",
            OpKind::Entry(EntryKind::Combine) => "a combine",
            OpKind::Entry(EntryKind::Expiring) => "a put that expires",
            OpKind::Entry(EntryKind::PutReference | EntryKind::InsertReference) => "a reference",
            OpKind::DeleteRange => "a range delete",
        };
        let index = self.len;
        let name = op.keyspace.name_of(op.key);
        self.record = Vec::new();
        self.ops = Vec::new();
        self.bytes = 0;
        self.refusal =
            Some(format!("write {index} of the batch, {what} in keyspace `{name}`: {message}"));
    }

    /// Returns the index of `keyspace` in the batch, and adds it if it is new.
    fn index_of(&mut self, keyspace: &Arc<KeyspaceShared>) -> u32 {
        let known = self.keyspaces.iter().rposition(|known| Arc::ptr_eq(known, keyspace));
        known.unwrap_or_else(|| {
            self.keyspaces.push(Arc::clone(keyspace));
            self.keyspaces.len() - 1
        }) as u32
    }

    /// Returns the operations, in their order.
    #[inline]
    pub(crate) fn each(&self) -> impl Iterator<Item = Op<'_>> {
        self.ops.iter().map(|op| self.op(op))
    }

    fn op(&self, op: &BufferedOp) -> Op<'_> {
        let part = |start: u32, bytes: u32| &self.record[start as usize..][..bytes as usize];
        Op {
            keyspace: &self.keyspaces[op.keyspace as usize],
            kind: op.kind,
            key: part(op.key_start, op.key_bytes),
            value: part(op.value_start, op.value_bytes),
        }
    }
}

/// One write of one key, or of a range of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op<'a> {
    pub(crate) keyspace: &'a Arc<KeyspaceShared>,
    pub(crate) kind: OpKind,
    /// The key; of a range delete the start, which may be empty.
    pub(crate) key: &'a [u8],
    /// The value; of a range delete the end, empty for none.
    pub(crate) value: &'a [u8],
}

impl<'a> Op<'a> {
    /// Returns the write of an entry.
    #[inline(always)]
    pub(crate) fn entry(
        keyspace: &'a Arc<KeyspaceShared>,
        kind: EntryKind,
        key: &'a [u8],
        value: &'a [u8],
    ) -> Op<'a> {
        Op { keyspace, kind: OpKind::Entry(kind), key, value }
    }

    /// Appends the bytes that precede the key in the log: kind, keyspace, length of the key.
    fn put_head(&self, out: &mut Vec<u8>) {
        out.push(self.kind.to_byte());
        put_varint(out, u64::from(self.keyspace.id));
        put_varint(out, self.key.len() as u64);
    }

    /// Appends the length of the value, which follows the key in the log. Tombstones have none.
    fn put_value_bytes(&self, out: &mut Vec<u8>) {
        if !self.kind.is_tombstone() {
            put_varint(out, self.value.len() as u64);
        }
    }

    /// Returns a message about the limit that the operation breaks, if it breaks one.
    #[inline(always)]
    fn broken_rule(&self) -> Option<String> {
        if self.kind == OpKind::DeleteRange {
            return broken_range_rule(self.key, self.value);
        }
        let member_bytes = if self.keyspace.members.is_some() { MEMBER_BYTES } else { 0 };
        match (self.key.len(), self.value.len()) {
            (1..=KEY_BYTES_MAX, ..=VALUE_BYTES_MAX) => None,
            (0, _) => Some(EMPTY_KEY.into()),
            (1..=KEY_BYTES_MAX, value) => {
                Some(format!("expected a value of at most {VALUE_BYTES_MAX} bytes, found {value}"))
            }
            (key, _) => {
                let [most, found] = [KEY_BYTES_MAX, key].map(|bytes| bytes - member_bytes);
                Some(format!("expected a key of at most {most} bytes, found {found}"))
            }
        }
    }
}

/// Returns a message about the limit that the range delete from `start` to `end` breaks, if it
/// breaks one. The end is empty for none.
#[cold]
pub(crate) fn broken_range_rule(start: &[u8], end: &[u8]) -> Option<String> {
    if !end.is_empty() && start >= end {
        return Some("expected a range that does not end before it begins".into());
    }
    if start.len() > KEY_BYTES_MAX || end.len() > KEY_BYTES_MAX + 1 {
        let found = start.len().max(end.len());
        return Some(format!(
            "expected the ends of a range to have at most {KEY_BYTES_MAX} bytes, found {found}"
        ));
    }
    None
}

/// Returns a message if a batch of `len` writes with `bytes` of keys and values is too large.
#[inline]
fn too_large(bytes: usize, len: usize) -> Option<String> {
    let bytes = bytes.saturating_add(OP_OVERHEAD_BYTES.saturating_mul(len));
    let message = || format!("expected a batch of at most {BATCH_BYTES_MAX} bytes, found {bytes}");
    (bytes > BATCH_BYTES_MAX).then(message)
}

/// The operations of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ops<'a> {
    One(Op<'a>),
    Many(&'a OpBuffer),
}

impl<'a> Ops<'a> {
    /// Returns the number of operations.
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

    /// Returns the keyspaces written to, each once.
    pub(crate) fn keyspaces(&self) -> &'a [Arc<KeyspaceShared>] {
        match self {
            Ops::One(op) => std::slice::from_ref(op.keyspace),
            Ops::Many(buffer) => &buffer.keyspaces,
        }
    }

    /// Returns true if an operation deletes a range.
    #[inline]
    pub(crate) fn have_ranges(&self) -> bool {
        match self {
            Ops::One(op) => op.kind == OpKind::DeleteRange,
            Ops::Many(buffer) => buffer.has_ranges,
        }
    }

    /// Returns the operations, in their order. Where speed counts it has one caller, so that it is
    /// inlined.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Op<'a>> {
        let (one, many) = match *self {
            Ops::One(op) => (Some(op), None),
            Ops::Many(buffer) => (None, Some(buffer)),
        };
        one.into_iter().chain(many.into_iter().flat_map(OpBuffer::each))
    }

    /// Fails with `InvalidArgument` if an operation, or the batch, breaks a limit.
    pub(crate) fn check(&self) -> Result<()> {
        let message = match self {
            Ops::One(op) => op.broken_rule(),
            Ops::Many(buffer) => buffer.refusal.clone(),
        };
        message.map_or(Ok(()), |message| Err(Error::new(ErrorKind::InvalidArgument, message)))
    }

    /// Calls `take` with the log record of these operations, in parts to be joined.
    ///
    /// A record is the sequence number of the first operation (`first`), the number of operations,
    /// and for each its kind (a byte), its keyspace, and key and value, each behind its length. All
    /// integers are varints. `buffer` is memory for the parts, and is overwritten.
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
