//! References to values that lie in value files.
//!
//! ```text
//! value bytes: u32 | file: u64 | offset: u64 | checksum: u64 | [stored: u32]
//! stored = bytes + codec: nothing, or 1 << 31 for LZ4, or 3 << 30 for Zstandard
//! ```
//!
//! `stored` exists if the value is compressed. The length of a reference tells. So references to
//! values as they are have one length, and in a data block of these only keys take sizes.

use crate::error::Result;
use bytes::Bytes;
use std::ops::Deref;

/// Reads the values that references lead to.
pub trait ReadValue: Send + Sync {
    /// Returns the value that the encoded `reference` leads to, which may be announced already.
    ///
    /// # Errors
    /// Fails with `Corruption` if another value is there, and with `Io`.
    fn read_value(&self, reference: &[u8], is_announced: bool) -> Result<ReadBytes>;

    /// Announces that the value of `reference` will soon be read.
    fn announce(&self, reference: &[u8]);

    /// Returns true if reads have waited for a device recently, so that it pays to announce values.
    fn waits(&self) -> bool;
}

/// A value that was read.
#[derive(Clone, Debug)]
pub struct ReadBytes {
    bytes: Bytes,
    is_lent: bool,
}

impl ReadBytes {
    /// Returns bytes that belong to a map of a file. While they are held, the space of the file is
    /// not freed. So values that live longer than a read must be copies.
    pub fn lent(bytes: Bytes) -> ReadBytes {
        ReadBytes { bytes, is_lent: true }
    }

    /// Returns the value as bytes that may be kept. Copies them if they are lent.
    pub fn into_shared(self) -> Bytes {
        if self.is_lent { Bytes::copy_from_slice(&self.bytes) } else { self.bytes }
    }
}

impl From<Bytes> for ReadBytes {
    fn from(bytes: Bytes) -> ReadBytes {
        ReadBytes { bytes, is_lent: false }
    }
}

impl Deref for ReadBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes of a reference to a value that is stored as it is.
const PLAIN_REFERENCE_BYTES: usize = 28;

/// Bytes of a reference to a compressed value. No reference is longer.
const REFERENCE_BYTES_MAX: usize = PLAIN_REFERENCE_BYTES + 4;

/// The bit of an encoded [`StoredBytes`] that says that the value is compressed.
const COMPRESSED_BIT: u32 = 1 << 31;

/// The bit that says, with the one above, that the codec is Zstandard. A value that is not
/// compressed may have so many bytes.
const ZSTD_BIT: u32 = 1 << 30;

/// How the bytes of a value are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// As they are.
    #[default]
    Plain,
    /// Compressed with LZ4.
    Lz4,
    /// Compressed with Zstandard.
    Zstd,
}

impl Packing {
    /// Returns the name of the codec.
    pub fn name(self) -> &'static str {
        match self {
            Packing::Plain => "none",
            Packing::Lz4 => "lz4",
            Packing::Zstd => "zstd",
        }
    }
}

/// The bytes of a value as they are stored in a value file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBytes {
    /// How they are stored.
    pub packing: Packing,
    /// Their number. Compressed values have fewer than 1 << 30.
    pub bytes: u32,
}

impl StoredBytes {
    /// Returns the bytes of a value of `bytes` bytes that is stored as it is.
    pub fn plain(bytes: u32) -> StoredBytes {
        StoredBytes { packing: Packing::Plain, bytes }
    }

    /// Encodes the number and the packing. Plain bytes are just their number.
    pub fn encode(self) -> u32 {
        match self.packing {
            Packing::Plain => self.bytes,
            Packing::Lz4 => self.bytes | COMPRESSED_BIT,
            Packing::Zstd => self.bytes | COMPRESSED_BIT | ZSTD_BIT,
        }
    }

    /// Decodes what [`encode`](StoredBytes::encode) returns. Every number is valid.
    pub fn decode(word: u32) -> StoredBytes {
        if word & COMPRESSED_BIT == 0 {
            return StoredBytes::plain(word);
        }
        let packing = if word & ZSTD_BIT == 0 { Packing::Lz4 } else { Packing::Zstd };
        StoredBytes { packing, bytes: word & !(COMPRESSED_BIT | ZSTD_BIT) }
    }
}

/// The place of a value in a value file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueReference {
    /// The length of the value in bytes.
    pub value_bytes: u32,
    /// What of it is stored.
    pub stored: StoredBytes,
    /// The id of the value file.
    pub file: u64,
    /// The offset in the file at which the value's record starts.
    pub offset: u64,
    /// The checksum of the stored bytes at this place.
    pub checksum: u64,
}

/// An encoded reference.
#[derive(Clone, Copy, Debug, Default)]
pub struct EncodedReference {
    bytes: [u8; REFERENCE_BYTES_MAX],
    length: u8,
}

impl EncodedReference {
    /// Returns a copy of `bytes`, or `None` if no reference has as many.
    pub fn copy_of(bytes: &[u8]) -> Option<EncodedReference> {
        let mut copy = EncodedReference { length: bytes.len() as u8, ..Default::default() };
        copy.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(copy)
    }
}

impl Deref for EncodedReference {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl ValueReference {
    /// Encodes the reference.
    pub fn encode(&self) -> EncodedReference {
        let mut bytes = [0; REFERENCE_BYTES_MAX];
        bytes[..4].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.file.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.offset.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[28..].copy_from_slice(&self.stored.encode().to_le_bytes());
        let is_plain = self.stored.packing == Packing::Plain;
        let length = if is_plain { PLAIN_REFERENCE_BYTES } else { REFERENCE_BYTES_MAX };
        EncodedReference { bytes, length: length as u8 }
    }

    /// Decodes a reference. Returns `None` if `bytes` have another length, or if a compressed value
    /// is not shorter than before.
    pub fn decode(bytes: &[u8]) -> Option<ValueReference> {
        let (places, rest) = bytes.split_first_chunk::<PLAIN_REFERENCE_BYTES>()?;
        let value_bytes = value_bytes(places) as u32;
        let stored = match rest {
            [] => StoredBytes::plain(value_bytes),
            _ => {
                let stored = StoredBytes::decode(u32::from_le_bytes(rest.try_into().ok()?));
                let is_packed = stored.packing != Packing::Plain && stored.bytes < value_bytes;
                Some(stored).filter(|_| is_packed)?
            }
        };
        let u64_at = |at: usize| {
            places[at..].first_chunk().map_or(0, |bytes: &[u8; 8]| u64::from_le_bytes(*bytes))
        };
        Some(ValueReference {
            value_bytes,
            stored,
            file: u64_at(4),
            offset: u64_at(12),
            checksum: u64_at(20),
        })
    }
}

/// Returns the length of the value that the encoded `reference` leads to; 0 if it is too short.
#[cold]
pub fn value_bytes(reference: &[u8]) -> usize {
    reference.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
}

/// Returns the bytes that are stored for the value of the encoded `reference`; 0 if it is none.
pub fn stored_bytes(reference: &[u8]) -> usize {
    ValueReference::decode(reference).map_or(0, |reference| reference.stored.bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_fuzz::{change, fuzz};

    const PLAIN: ValueReference = ValueReference {
        value_bytes: 70_000,
        stored: StoredBytes { packing: Packing::Plain, bytes: 70_000 },
        file: 1 << 40,
        offset: 1 << 33,
        checksum: u64::MAX - 5,
    };

    #[test]
    fn references_survive_their_bytes() {
        let bytes = PLAIN.encode();
        assert_eq!(bytes.len(), 28);
        assert_eq!(ValueReference::decode(&bytes), Some(PLAIN));
        assert_eq!((value_bytes(&bytes), stored_bytes(&bytes)), (70_000, 70_000));
        assert_eq!(ValueReference::decode(&bytes[1..]), None);
        assert_eq!((value_bytes(b""), stored_bytes(b"")), (0, 0));
        for packing in [Packing::Lz4, Packing::Zstd] {
            let stored = StoredBytes { packing, bytes: 4_000 };
            let packed = ValueReference { stored, ..PLAIN };
            let bytes = packed.encode();
            assert_eq!(bytes.len(), 32);
            assert_eq!(ValueReference::decode(&bytes), Some(packed));
            assert_eq!((value_bytes(&bytes), stored_bytes(&bytes)), (70_000, 4_000));
            assert_eq!(&**EncodedReference::copy_of(&bytes).as_ref().unwrap(), &*bytes);
            for length in [0, 27, 29, 30, 31] {
                assert_eq!(ValueReference::decode(&bytes[..length]), None, "{length} bytes");
            }
        }
        assert!(EncodedReference::copy_of(&[0; 33]).is_none());
    }

    /// Programs from before compression have written all references with 28 bytes.
    #[test]
    fn references_to_values_as_they_are_keep_their_form() {
        let mut bytes = 70_000_u32.to_le_bytes().to_vec();
        for word in [1 << 40, 1 << 33, u64::MAX - 5] {
            bytes.extend_from_slice(&u64::to_le_bytes(word));
        }
        assert_eq!(&*PLAIN.encode(), &bytes[..]);
    }

    #[test]
    fn compressed_value_that_is_not_shorter_is_no_reference() {
        for (packing, bytes, is_one) in [
            (Packing::Lz4, 69_999, true),
            (Packing::Lz4, 70_000, false),
            (Packing::Zstd, 70_000, false),
            (Packing::Zstd, (1 << 30) - 1, false),
        ] {
            let stored = StoredBytes { packing, bytes };
            let bytes = ValueReference { stored, ..PLAIN }.encode();
            assert_eq!(ValueReference::decode(&bytes).is_some(), is_one, "{stored:?}");
        }
        let long_and_plain = [&PLAIN.encode()[..], &[0; 4]].concat();
        assert_eq!(ValueReference::decode(&long_and_plain), None);
    }

    #[test]
    fn fuzz_references() {
        fuzz!(300_000, |choices| {
            let packing = choices.pick(&[Packing::Plain, Packing::Lz4, Packing::Zstd]);
            let bytes = choices.pick(&[0, 4, 5, 69_999, 70_000, (1 << 30) - 1]);
            let stored = StoredBytes { packing, bytes };
            let mut bytes = ValueReference { stored, ..PLAIN }.encode().to_vec();
            change(&mut bytes, choices, true);
            if let Some(read) = ValueReference::decode(&bytes) {
                assert_eq!(&*read.encode(), &bytes[..]);
                assert!(read.stored.bytes <= read.value_bytes);
                assert_eq!(value_bytes(&bytes), read.value_bytes as usize);
            }
        });
    }
}
