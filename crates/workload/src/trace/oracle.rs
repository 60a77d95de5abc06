//! Binary traces of libCacheSim in the format oracleGeneral: 24 bytes for each request.

use super::input::Fields;
use super::record::{Record, checked_size};

/// The length of a request.
pub(super) const ENTRY_BYTES: u64 = 24;

/// Parses a request: time (4 bytes), object (8), size (4), place of the next request (8), all with
/// the lowest byte first. Neither time nor next request play a part.
pub(super) fn request(entry: &[u8]) -> Result<Record<'static>, String> {
    let mut fields = Fields(entry);
    fields.u32("time")?;
    let object = fields.u64("object")?;
    let size = checked_size("size", u64::from(fields.u32("size")?))?;
    fields.u64("next request")?;
    Ok(Record::request(number_key(object), size))
}

/// Returns the key of an object with a number: its eight bytes, the highest first.
pub(super) fn number_key(object: u64) -> Vec<u8> {
    object.to_be_bytes().to_vec()
}
