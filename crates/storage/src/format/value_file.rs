//! Value files: values that tables refer to.
//!
//! ```text
//! start  = magic | version: u32 | features: u32 | file id: u64 | checksum: u64
//! record = value bytes: u32 | checksum: u64 | value
//! file   = start | record ...
//! ```
//!
//! The checksum of a record is the xxh3-64 of its value, with a seed that depends on the file and
//! on the offset of the record. References in tables have it too. So a reader that follows a
//! reference finds out that the value is another one, and a reader of the file alone finds damage.

use super::codec::{Damage, Reader};
use super::footer::FooterFault;
use super::seal::SealedPlace;
use crate::reference::ValueReference;

/// The version of the format of value files.
pub const VALUE_FILE_VERSION: u32 = 1;

/// The first bytes of a value file.
const MAGIC: [u8; 8] = *b"lsmvalue";

/// The bytes of the start that its checksum covers.
const CHECKED_BYTES: usize = 24;

/// Bytes of the start of a value file.
pub const VALUE_START_BYTES: usize = CHECKED_BYTES + 8;

/// Bytes of a record in front of the value.
pub const VALUE_HEAD_BYTES: usize = 12;

/// No value file has more bytes.
pub(super) const VALUE_FILE_BYTES_MAX: u64 = 1 << 56;

/// Why the start of a value file cannot be read.
pub type ValueFileFault = FooterFault;

/// Returns the bytes of the record of a value.
pub fn record_bytes(value_bytes: usize) -> u64 {
    (VALUE_HEAD_BYTES + value_bytes) as u64
}

/// Encodes the start of value file `file`.
pub fn encode_value_start(file: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(VALUE_START_BYTES);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VALUE_FILE_VERSION.to_le_bytes());
    out.extend_from_slice(&0_u32.to_le_bytes());
    out.extend_from_slice(&file.to_le_bytes());
    let checksum = SealedPlace { table: 0, offset: 0 }.checksum(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Decodes the start of a value file. Returns its id.
///
/// # Errors
/// Fails if it is damaged, or if another version of the program wrote it.
pub fn decode_value_start(bytes: &[u8; VALUE_START_BYTES]) -> Result<u64, ValueFileFault> {
    let mut reader = Reader::new(bytes, 0);
    let checked = reader.take(CHECKED_BYTES)?;
    let sum = reader.u64()?;
    let mut fields = Reader::new(checked, 0);
    if fields.array()? != MAGIC {
        return Err(Damage::whole("expected `lsmvalue` at the start of a value file").into());
    }
    if sum != (SealedPlace { table: 0, offset: 0 }).checksum(checked) {
        return Err(Damage::whole("the checksum of the start does not match").into());
    }
    match (fields.u32()?, fields.u32()?) {
        (VALUE_FILE_VERSION, 0) => Ok(fields.u64()?),
        (VALUE_FILE_VERSION, features) => Err(FooterFault::Features(features)),
        (version, _) => Err(FooterFault::Other(version)),
    }
}

/// Appends the head of the record of `value` at `place`. Returns the checksum in it.
pub fn encode_value_head(out: &mut Vec<u8>, place: SealedPlace, value: &[u8]) -> u64 {
    let checksum = place.checksum(value);
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Checks `record`, read from `place`, against its `reference`.
///
/// # Errors
/// Fails if it is another record.
pub fn check_record(
    place: SealedPlace,
    record: &[u8],
    reference: &ValueReference,
) -> Result<(), Damage> {
    let mut reader = Reader::new(record, 0);
    let (value_bytes, checksum) = (reader.u32()?, reader.u64()?);
    if (value_bytes, checksum) != (reference.value_bytes, reference.checksum) {
        return Err(Damage::whole("the record of a value is another than its reference says"));
    }
    let value = record.get(VALUE_HEAD_BYTES..).unwrap_or_default();
    if place.checksum(value) != checksum {
        return Err(Damage::whole("the checksum of a value does not match"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_survives_its_bytes_and_shows_every_change() {
        let start = encode_value_start(77);
        let start: &[u8; VALUE_START_BYTES] = start[..].try_into().unwrap();
        assert_eq!(decode_value_start(start), Ok(77));
        for at in 0..VALUE_START_BYTES {
            let mut changed = *start;
            changed[at] ^= 1;
            assert!(matches!(decode_value_start(&changed), Err(FooterFault::Damage(_))), "{at}");
        }
    }

    #[test]
    fn record_of_another_place_or_value_is_damage() {
        let place = SealedPlace { table: 7, offset: 32 };
        let mut record = Vec::new();
        let checksum = encode_value_head(&mut record, place, b"value");
        assert_eq!(record.len(), VALUE_HEAD_BYTES);
        record.extend_from_slice(b"value");
        assert_eq!(record_bytes(5), record.len() as u64);
        let reference = ValueReference { value_bytes: 5, file: 7, offset: 32, checksum };
        assert_eq!(check_record(place, &record, &reference), Ok(()));
        for at in 0..record.len() {
            let mut changed = record.clone();
            changed[at] ^= 1;
            assert!(check_record(place, &changed, &reference).is_err(), "{at}");
        }
        for other in [SealedPlace { table: 8, ..place }, SealedPlace { offset: 44, ..place }] {
            assert!(check_record(other, &record, &reference).is_err());
        }
    }
}
