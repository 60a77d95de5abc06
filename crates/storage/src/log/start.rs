//! The first record of a write-ahead log, which names the log before it.
//!
//! ```text
//! 0 | before | first | synced        varints
//! ```
//!
//! The 0 takes the place of the first sequence number of a batch, which is never 0.

use crate::bounds;
use crate::format::{Damage, Reader, put_varint};
use lsmith_tree::SeqNo;

/// The start record, which is written when a write-ahead log comes into use.
///
/// Logs of earlier versions do not have this record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// The file id of the previous log, or 0 if there was none.
    pub before: u64,
    /// The sequence number of the first write in this log.
    pub first: SeqNo,
    /// The number of bytes of the previous log that were known to be synced, or 0 if none were. If
    /// it is not 0, all older logs were synced too.
    pub synced: u64,
}

/// The longest payload of a start record, in bytes.
pub const LOG_START_BYTES_MAX: usize = 1 + 3 * 10;

impl LogStart {
    /// Returns the payload of the record.
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(LOG_START_BYTES_MAX);
        for field in [0, self.before, self.first.0, self.synced] {
            put_varint(&mut payload, field);
        }
        payload
    }

    /// Decodes a payload. Returns `None` if it is a batch.
    ///
    /// # Errors
    /// Fails with `Damage` if it is neither.
    pub fn decode(payload: &[u8]) -> Result<Option<LogStart>, Damage> {
        let mut reader = Reader::new(payload, 0);
        if reader.varint()? != 0 {
            return Ok(None);
        }
        let before = reader.varint()?;
        let first = SeqNo(reader.varint()?);
        let start = LogStart { before, first, synced: reader.varint()? };
        if first == SeqNo(0) || bounds::check_seq(first).is_err() {
            return Err(reader.damage("the first sequence number of a log is 0 or too large"));
        }
        reader.finish()?;
        Ok(Some(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_record_survives_encoding_and_a_batch_is_none() {
        let start = LogStart { before: 12, first: bounds::SEQ_MAX, synced: 4096 };
        let payload = start.encode();
        assert!(payload.len() <= LOG_START_BYTES_MAX);
        assert_eq!(LogStart::decode(&payload), Ok(Some(start)));
        assert_eq!(LogStart::decode(&[7, 0]), Ok(None));
        for damaged in [&[][..], &[0], &[0, 1, 1], &[0, 1, 0, 0], &[0, 1, 1, 0, 0]] {
            assert!(LogStart::decode(damaged).is_err(), "{damaged:?}");
        }
    }
}
