//! The batches of the write-ahead log, as bytes.

use super::codec::{Damage, Reader};
use crate::bounds;
use lsmith_tree::{EntryKind, SeqNo};

/// Bytes of the longest key.
pub const KEY_BYTES_MAX: usize = 65_535;
/// Bytes of the longest value: 256 MiB.
pub const VALUE_BYTES_MAX: usize = 1 << 28;
/// One write read back from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedOp<'a> {
    /// The number of its keyspace.
    pub keyspace: u32,
    /// What it does to the key.
    pub kind: EntryKind,
    /// The key: never empty.
    pub key: &'a [u8],
    /// The value; empty for a tombstone.
    pub value: &'a [u8],
}

/// Takes key and value of an entry of `kind`, as they lie in logs and in copies of memory.
pub fn take_pair<'a>(
    reader: &mut Reader<'a>,
    kind: EntryKind,
) -> std::result::Result<(&'a [u8], &'a [u8]), Damage> {
    let key = reader.bytes()?;
    let value = if kind.is_tombstone() { &[][..] } else { reader.bytes()? };
    match (key.len(), value.len()) {
        (1..=KEY_BYTES_MAX, ..=VALUE_BYTES_MAX) => Ok((key, value)),
        _ => Err(reader.damage("a key or a value has a length that none can have")),
    }
}

/// Reads a log record back: the number of its first write, and the writes.
pub fn decode_batch(payload: &[u8]) -> std::result::Result<(SeqNo, Vec<LoggedOp<'_>>), Damage> {
    let mut reader = Reader::new(payload, 0);
    let first = SeqNo(reader.varint()?);
    let count = reader.varint()?;
    // An empty batch stands for a bulk load, whose entries have one number together.
    let last = first.0.checked_add(count.max(1) - 1);
    if first == SeqNo(0) || last.is_none_or(|last| bounds::check_seq(SeqNo(last)).is_err()) {
        return Err(reader.damage("a write has a number that no write can have"));
    }
    let mut ops = Vec::new();
    for _ in 0..count {
        let [kind] = reader.array()?;
        let kind = EntryKind::from_byte(kind).ok_or_else(|| reader.damage("an unknown kind"))?;
        let keyspace = reader.varint()?;
        let keyspace = u32::try_from(keyspace).map_err(|_| reader.damage("an unknown keyspace"))?;
        let (key, value) = take_pair(&mut reader, kind)?;
        ops.push(LoggedOp { keyspace, kind, key, value });
    }
    reader.finish()?;
    Ok((first, ops))
}
