//! Encrypts a log again, with the newest key.

use super::frame::{
    Layout, Placing, RECORD_HEADER_BYTES, RecordHead, begin, check_file_header, record_bytes, seal,
};
use super::remains::read_all;
use super::{LogId, LogReader};
use crate::env::Env;
use crate::error::{Error, Result};
use std::path::Path;

/// Returns the bytes of the log `id` at `path` as they are with the newest key of `env`. `None` if
/// it has that key, or none, or no whole header.
///
/// Every record stays at its offset. What is behind the last good record stays as it is, so a torn
/// end is one afterwards.
///
/// # Errors
///
/// As [`LogReader::open`], and if a record is damaged: a repair may find others behind it, with the
/// key that the file has.
pub fn renewed(env: &dyn Env, path: &Path, id: LogId) -> Result<Option<Vec<u8>>> {
    let mut bytes = read_all(env, path)?;
    let Some(old) = check_file_header(env, path, &bytes, id)? else { return Ok(None) };
    if old.is_newest || old.cipher.is_none() {
        return Ok(None);
    }
    let failed = |error| Error::io("encrypt the log", path, error);
    let (header, new) = begin(env, id).map_err(failed)?;
    let mut records = LogReader::open(env, path, id)?;
    while let Some((offset, payload)) = records.next_record()? {
        put(&mut bytes, &new, (id, offset), payload);
    }
    bytes[..header.len()].copy_from_slice(&header);
    Ok(Some(bytes))
}

/// Puts the record with `payload` in place of the one at `offset` of log `id`, which is as long.
fn put(bytes: &mut [u8], layout: &Layout, (id, offset): (LogId, u64), payload: &[u8]) {
    let start = offset as usize;
    let head = RecordHead::read(id.file_id, bytes, start).expect("the record was just read");
    let (file_id, payload_bytes) = (id.file_id, head.payload_bytes);
    let placing = Placing { file_id, offset, payload_bytes, marked: head.marked };
    let mut record = vec![0; RECORD_HEADER_BYTES];
    record.extend_from_slice(payload);
    if let Some(cipher) = &layout.cipher {
        cipher.seal(&mut record, placing.coded(), offset);
    }
    record.resize(record_bytes(payload_bytes), 0);
    seal(&mut record, &placing);
    bytes[start..start + record.len()].copy_from_slice(&record);
}
