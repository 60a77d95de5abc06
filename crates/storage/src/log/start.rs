//! The first record of a write-ahead log: what came before it.
//!
//! ```text
//! 0 | before | first | synced        varints
//! ```
//!
//! The 0 stands where other records have the number of their first write, which is never 0.

use crate::bounds;
use crate::format::{Damage, Reader, put_varint};
use lsmith_tree::SeqNo;

/// What a write-ahead log says of itself when it comes into use.
///
/// Logs of earlier versions do not have this record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// The number of the log that came before; 0 where there was none.
    pub before: u64,
    /// The number of the first write that goes into this log.
    pub first: SeqNo,
    /// So many bytes of the log before were known to be synced, and with them everything in older
    /// logs; 0 where nothing was known.
    pub synced: u64,
}

/// The longest payload of a start record, in bytes.
pub const LOG_START_BYTES_MAX: usize = 1 + 3 * 10;

impl LogStart {
    /// The payload of the record.
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(LOG_START_BYTES_MAX);
        for number in [0, self.before, self.first.0, self.synced] {
            put_varint(&mut payload, number);
        }
        payload
    }

    /// Reads a payload back; `None` where it is a batch.
    ///
    /// # Errors
    /// `Damage` where it is neither.
    pub fn decode(payload: &[u8]) -> Result<Option<LogStart>, Damage> {
        let mut reader = Reader::new(payload, 0);
        if reader.varint()? != 0 {
            return Ok(None);
        }
        let (before, first) = (reader.varint()?, SeqNo(reader.varint()?));
        let start = LogStart { before, first, synced: reader.varint()? };
        if first == SeqNo(0) || bounds::check_seq(first).is_err() {
            return Err(reader.damage("a log starts with a number that no write can have"));
        }
        reader.finish()?;
        Ok(Some(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_survives_its_bytes_and_a_batch_is_none() {
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
