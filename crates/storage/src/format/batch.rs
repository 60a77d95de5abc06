//! Decodes the batches of the write-ahead log.

use super::codec::{Damage, Reader, put_varint};
use crate::bounds;
use lsmith_tree::{EntryKind, Key, KeyRange, SeqNo};

/// The length of the longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 65_535;
/// The length of the longest value, in bytes: 256 MiB.
pub const VALUE_BYTES_MAX: usize = 1 << 28;
/// One write of a batch in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedOp<'a> {
    /// The id of the keyspace.
    pub keyspace: u32,
    /// What the write does.
    pub kind: OpKind,
    /// The key, never empty; of a range delete the start, which may be empty.
    pub key: &'a [u8],
    /// The value, empty for a tombstone; of a range delete the end, empty for none.
    pub value: &'a [u8],
}

/// What a write of a batch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// It adds an entry of this kind.
    Entry(EntryKind),
    /// It deletes a range of keys.
    DeleteRange,
}

/// A range delete in the log. It is no kind of an entry.
const DELETE_RANGE: u8 = 4;

impl OpKind {
    /// Returns the byte that stands for it in the log.
    pub fn to_byte(self) -> u8 {
        match self {
            OpKind::Entry(kind) => kind as u8,
            OpKind::DeleteRange => DELETE_RANGE,
        }
    }

    /// Returns the kind that `byte` stands for, or `None` for an unknown byte.
    pub fn from_byte(byte: u8) -> Option<OpKind> {
        match byte {
            DELETE_RANGE => Some(OpKind::DeleteRange),
            kind => {
                let kind = EntryKind::from_byte(kind).filter(|kind| !kind.is_reference());
                kind.map(OpKind::Entry)
            }
        }
    }

    /// Returns true if writes of this kind have no value in the log.
    pub fn is_tombstone(self) -> bool {
        matches!(self, OpKind::Entry(kind) if kind.is_tombstone())
    }
}

/// Returns the range that a range delete with this `start` and `end` deletes. Without an end the
/// range reaches to the last key.
pub fn deleted_range(start: &[u8], end: &[u8]) -> KeyRange {
    KeyRange {
        start: Key::copy_from_slice(start),
        end: (!end.is_empty()).then(|| Key::copy_from_slice(end)),
    }
}

/// Takes the start and the end of a range delete, in the encoding of logs.
///
/// # Errors
/// `Damage` if they are none.
pub fn take_range<'a>(
    reader: &mut Reader<'a>,
) -> std::result::Result<(&'a [u8], &'a [u8]), Damage> {
    let start = reader.bytes()?;
    let end = reader.bytes()?;
    // The end may lie right above the longest key.
    let are_short = start.len() <= KEY_BYTES_MAX && end.len() <= KEY_BYTES_MAX + 1;
    if are_short && (end.is_empty() || start < end) {
        return Ok((start, end));
    }
    Err(reader.damage("expected a range of keys of at most 65535 bytes"))
}

/// Takes the key and value of an entry of `kind`, in the encoding of logs and spills.
pub fn take_pair<'a>(
    reader: &mut Reader<'a>,
    kind: EntryKind,
) -> std::result::Result<(&'a [u8], &'a [u8]), Damage> {
    let key = reader.bytes()?;
    let value = if kind.is_tombstone() { &[][..] } else { reader.bytes()? };
    match (key.len(), value.len()) {
        (1..=KEY_BYTES_MAX, ..=VALUE_BYTES_MAX) => Ok((key, value)),
        _ => Err(reader.damage("expected 1 to 65535 key bytes and at most 2^28 value bytes")),
    }
}

/// A batch of the log: writes that take effect together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedBatch<'a> {
    /// The sequence number of its first write. Each later write has the next sequence number.
    pub first: SeqNo,
    /// The number of sequence numbers that it takes, at least 1. A batch without writes takes them
    /// for tables from outside.
    pub seq_count: u64,
    /// The writes, in their order.
    pub ops: Vec<LoggedOp<'a>>,
}

impl LoggedBatch<'_> {
    /// Returns the last sequence number that it takes.
    pub fn last(&self) -> SeqNo {
        SeqNo(self.first.0 + self.seq_count - 1)
    }
}

/// Returns the record of a batch without writes that takes `seq_count` sequence numbers from
/// `first` on.
pub fn encode_empty_batch(first: SeqNo, seq_count: u64) -> Vec<u8> {
    let mut record = Vec::new();
    put_varint(&mut record, first.0);
    put_varint(&mut record, 0);
    if seq_count > 1 {
        put_varint(&mut record, seq_count);
    }
    record
}

/// Decodes a log record.
///
/// # Errors
/// Fails with `Damage` if it is no batch.
pub fn decode_batch(payload: &[u8]) -> std::result::Result<LoggedBatch<'_>, Damage> {
    let mut reader = Reader::new(payload, 0);
    let first = SeqNo(reader.varint()?);
    let count = reader.varint()?;
    let seq_count = if count == 0 && !reader.is_at_end() { reader.varint()? } else { count.max(1) };
    if count == 0 && seq_count == 0 {
        return Err(reader.damage("expected an empty batch to take a sequence number"));
    }
    let last = first.0.checked_add(seq_count - 1);
    if first == SeqNo(0) || last.is_none_or(|last| bounds::check_seq(SeqNo(last)).is_err()) {
        return Err(reader.damage("the sequence number of a write is 0 or too large"));
    }
    let mut ops = Vec::new();
    for _ in 0..count {
        let [kind] = reader.array()?;
        let kind = OpKind::from_byte(kind);
        let kind = kind.ok_or_else(|| reader.damage("a write has an unknown kind"))?;
        let id = reader.varint()?;
        let keyspace = u32::try_from(id)
            .map_err(|_| reader.damage("the number of a keyspace is too large"))?;
        let (key, value) = match kind {
            OpKind::Entry(kind) => take_pair(&mut reader, kind)?,
            OpKind::DeleteRange => take_range(&mut reader)?,
        };
        ops.push(LoggedOp { keyspace, kind, key, value });
    }
    reader.finish()?;
    Ok(LoggedBatch { first, seq_count, ops })
}
