//! Value files: values that tables refer to.
//!
//! ```text
//! start      = magic | version: u32 | features: u32 | file id: u64 | checksum: u64
//! record     = stored: u32 | checksum: u64 | value, as it is or compressed
//! stored     = bytes behind the checksum + codec, see `reference.rs`
//! compressed = value bytes: u32 | output of the codec
//! file       = start | record ...
//! ```
//!
//! The checksum of a record is the xxh3-64 of what is behind it, with a seed that depends on the
//! file and on the offset of the record. References in tables have it too. So a reader that follows
//! a reference finds out that the value is another one, and a reader of the file alone finds
//! damage. Files with [`VALUE_FEATURE_COMPRESSED`] may have compressed values, others have none.

use super::codec::{Damage, Reader};
use super::compress::expand_value;
use super::footer::FooterFault;
use super::seal::SealedPlace;
use crate::reference::{Packing, StoredBytes, ValueReference};
use bytes::Bytes;

/// The version of the format of value files.
pub const VALUE_FILE_VERSION: u32 = 1;

/// Some values of the file may be compressed.
pub const VALUE_FEATURE_COMPRESSED: u32 = 1;

/// The first bytes of a value file.
const MAGIC: [u8; 8] = *b"lsmvalue";

/// The bytes of the start that its checksum covers.
const CHECKED_BYTES: usize = 24;

/// Bytes of the start of a value file.
pub const VALUE_START_BYTES: usize = CHECKED_BYTES + 8;

/// Bytes of a record in front of the value.
pub const VALUE_HEAD_BYTES: usize = 12;

/// So many bytes of a record tell how long it and its value are.
pub const VALUE_LOOK_BYTES: usize = VALUE_HEAD_BYTES + 4;

/// No value file has more bytes.
pub(super) const VALUE_FILE_BYTES_MAX: u64 = 1 << 56;

/// Why the start of a value file cannot be read.
pub type ValueFileFault = FooterFault;

/// Returns the bytes of a record with these `stored` bytes.
pub fn record_bytes(stored: StoredBytes) -> u64 {
    VALUE_HEAD_BYTES as u64 + u64::from(stored.bytes)
}

/// Encodes the start of value file `file` with these features: nothing, or
/// [`VALUE_FEATURE_COMPRESSED`].
pub fn encode_value_start(file: u64, features: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(VALUE_START_BYTES);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VALUE_FILE_VERSION.to_le_bytes());
    out.extend_from_slice(&features.to_le_bytes());
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
        (VALUE_FILE_VERSION, 0 | VALUE_FEATURE_COMPRESSED) => Ok(fields.u64()?),
        (VALUE_FILE_VERSION, features) => {
            Err(FooterFault::Features(features & !VALUE_FEATURE_COMPRESSED))
        }
        (version, _) => Err(FooterFault::Other(version)),
    }
}

/// Appends the record of a value at `place`. Its stored bytes are `parts`, one behind the other.
/// Returns their number and their checksum.
pub fn encode_record(
    out: &mut Vec<u8>,
    place: SealedPlace,
    packing: Packing,
    parts: [&[u8]; 2],
) -> (StoredBytes, u64) {
    let bytes = parts.iter().map(|part| part.len()).sum::<usize>() as u32;
    let stored = StoredBytes { packing, bytes };
    out.extend_from_slice(&stored.encode().to_le_bytes());
    let sum_at = out.len();
    out.extend_from_slice(&[0; 8]);
    let start = out.len();
    parts.iter().for_each(|part| out.extend_from_slice(part));
    let checksum = place.checksum(out.get(start..).unwrap_or_default());
    if let Some(sum) = out.get_mut(sum_at..start) {
        sum.copy_from_slice(&checksum.to_le_bytes());
    }
    (stored, checksum)
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
    check_head(record, reference)?;
    let stored = record.get(VALUE_HEAD_BYTES..).unwrap_or_default();
    if place.checksum(stored) != reference.checksum {
        return Err(Damage::whole("the checksum of a value does not match"));
    }
    Ok(())
}

/// Checks the head of `record` against its `reference`.
///
/// # Errors
/// Fails if it is another record.
pub fn check_head(record: &[u8], reference: &ValueReference) -> Result<(), Damage> {
    let mut reader = Reader::new(record, 0);
    if (reader.u32()?, reader.u64()?) == (reference.stored.encode(), reference.checksum) {
        Ok(())
    } else {
        Err(Damage::whole("the record of a value is another than its reference says"))
    }
}

/// Returns the reference to the value of the record at `offset` of value file `file`, which begins
/// with `start`, at most [`VALUE_LOOK_BYTES`] of it. Returns `None` if it is cut off.
pub fn reference_to(file: u64, offset: u64, start: &[u8]) -> Option<ValueReference> {
    let mut reader = Reader::new(start, 0);
    let stored = StoredBytes::decode(reader.u32().ok()?);
    let checksum = reader.u64().ok()?;
    let value_bytes = match stored.packing {
        Packing::Plain => stored.bytes,
        // What is too short for a length is found when the record is read.
        Packing::Lz4 | Packing::Zstd => reader.u32().unwrap_or(0),
    };
    Some(ValueReference { value_bytes, stored, file, offset, checksum })
}

/// Returns the value whose stored bytes, already checked, are `stored`. It shares them if they are
/// not compressed.
///
/// # Errors
/// Fails if they do not expand to as many bytes as `reference` says.
pub fn unpack_value(stored: Bytes, reference: &ValueReference) -> Result<Bytes, Damage> {
    match reference.stored.packing {
        Packing::Plain => Ok(stored),
        packing => expand_value(packing, &stored, reference.value_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Codec, Compressor};
    use lsmith_fuzz::{change, fuzz, peak_bytes};

    const PLACE: SealedPlace = SealedPlace { table: 7, offset: 32 };

    /// Returns the record of `value` at [`PLACE`], and the reference to it.
    fn record(codec: Codec, value: &[u8]) -> (Vec<u8>, ValueReference) {
        let mut record = Vec::new();
        let mut compressor = Compressor::new(codec);
        let (packing, parts) = compressor.pack(value);
        let length = (value.len() as u32).to_le_bytes();
        let parts = if packing == Packing::Plain { [value, b""] } else { [&length, parts] };
        let (stored, checksum) = encode_record(&mut record, PLACE, packing, parts);
        let value_bytes = value.len() as u32;
        (record, ValueReference { value_bytes, stored, file: 7, offset: 32, checksum })
    }

    /// Reads the value of `record` as a reader does.
    fn read(record: &[u8], reference: &ValueReference) -> Result<Bytes, Damage> {
        check_record(PLACE, record, reference)?;
        unpack_value(Bytes::copy_from_slice(&record[VALUE_HEAD_BYTES..]), reference)
    }

    #[test]
    fn start_survives_its_bytes_and_shows_every_change() {
        for features in [0, VALUE_FEATURE_COMPRESSED] {
            let start = encode_value_start(77, features);
            let start: &[u8; VALUE_START_BYTES] = start[..].try_into().unwrap();
            assert_eq!(decode_value_start(start), Ok(77));
            for at in 0..VALUE_START_BYTES {
                let mut changed = *start;
                changed[at] ^= 1;
                assert!(matches!(decode_value_start(&changed), Err(FooterFault::Damage(_))));
            }
        }
        let later = encode_value_start(77, 2 | VALUE_FEATURE_COMPRESSED);
        let later: &[u8; VALUE_START_BYTES] = later[..].try_into().unwrap();
        assert_eq!(decode_value_start(later), Err(FooterFault::Features(2)));
    }

    #[test]
    fn record_of_another_place_or_value_is_damage() {
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd { level: 3 }] {
            let value = b"value ".repeat(20);
            let (record, reference) = record(codec, &value);
            assert_eq!(record_bytes(reference.stored), record.len() as u64);
            assert_eq!(reference_to(7, 32, &record), Some(reference));
            assert_eq!(read(&record, &reference).unwrap(), value);
            for at in 0..record.len() {
                let mut changed = record.clone();
                changed[at] ^= 1;
                assert!(check_record(PLACE, &changed, &reference).is_err(), "{codec:?} {at}");
            }
            for other in [SealedPlace { table: 8, ..PLACE }, SealedPlace { offset: 44, ..PLACE }] {
                assert!(check_record(other, &record, &reference).is_err());
            }
        }
    }

    /// Records keep the form that programs from before compression have written and read.
    #[test]
    fn records_of_values_as_they_are_keep_their_form() {
        let (record, reference) = record(Codec::None, b"value");
        let sum = PLACE.checksum(b"value");
        let parts = [&5_u32.to_le_bytes()[..], &sum.to_le_bytes(), b"value"].concat();
        assert_eq!((record, reference.checksum), (parts, sum));
        assert_eq!(encode_value_start(7, 0)[12..16], [0; 4]);
    }

    /// References and records with correct checksums, and any bytes in them.
    #[test]
    fn fuzz_compressed_values() {
        fuzz!(30_000, |choices| {
            let codec = choices.pick(&[Codec::Lz4, Codec::Zstd { level: 1 }]);
            let (bytes, times) = (1 + choices.below(8), choices.below(300));
            let value = choices.bytes(bytes).repeat(times);
            let (whole, mut reference) = record(codec, &value);
            assert_eq!(read(&whole, &reference).unwrap(), value);
            let mut stored = whole[VALUE_HEAD_BYTES..].to_vec();
            change(&mut stored, choices, true);
            let packing = choices.pick(&[Packing::Plain, Packing::Lz4, Packing::Zstd]);
            let mut changed = Vec::new();
            let parts = [&stored[..], b""];
            (reference.stored, reference.checksum) =
                encode_record(&mut changed, PLACE, packing, parts);
            if choices.chance(30) {
                reference.value_bytes = choices.pick(&[0, 1, 4, 1 << 20, u32::MAX]);
            }
            let (found, peak) = peak_bytes(|| read(&changed, &reference));
            let most = 3 * (reference.value_bytes as usize).max(changed.len()) + (1 << 20);
            assert!(peak < most, "{peak} bytes for {}", reference.value_bytes);
            if packing != Packing::Plain {
                let bytes = reference.value_bytes as usize;
                assert!(found.is_err() || found.is_ok_and(|value| value.len() == bytes));
            }
            let read_alone = reference_to(7, 32, &changed).unwrap();
            let _ = read(&changed, &read_alone);
        });
    }
}
