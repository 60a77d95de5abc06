//! References to values that lie in value files.
//!
//! ```text
//! value bytes: u32 | file: u64 | offset: u64 | checksum: u64
//! ```
//!
//! All references have one length, so that in a data block only their keys take sizes.

use crate::error::Result;
use bytes::Bytes;

/// Reads the values that references lead to.
pub trait ReadValue: Send + Sync {
    /// Returns the value that the encoded `reference` leads to.
    ///
    /// # Errors
    /// Fails with `Corruption` if another value is there, and with `Io`.
    fn read_value(&self, reference: &[u8]) -> Result<Bytes>;
}

/// Bytes of a reference.
pub const REFERENCE_BYTES: usize = 28;

/// The place of a value in a value file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueReference {
    /// The length of the value in bytes.
    pub value_bytes: u32,
    /// The id of the value file.
    pub file: u64,
    /// The offset in the file at which the value's record starts.
    pub offset: u64,
    /// The checksum of the value at this place.
    pub checksum: u64,
}

impl ValueReference {
    /// Encodes the reference.
    pub fn encode(&self) -> [u8; REFERENCE_BYTES] {
        let mut out = [0; REFERENCE_BYTES];
        out[..4].copy_from_slice(&self.value_bytes.to_le_bytes());
        out[4..12].copy_from_slice(&self.file.to_le_bytes());
        out[12..20].copy_from_slice(&self.offset.to_le_bytes());
        out[20..].copy_from_slice(&self.checksum.to_le_bytes());
        out
    }

    /// Decodes a reference. Returns `None` if `bytes` have another length.
    pub fn decode(bytes: &[u8]) -> Option<ValueReference> {
        let bytes: &[u8; REFERENCE_BYTES] = bytes.try_into().ok()?;
        let u64_at = |at: usize| {
            bytes[at..].first_chunk().map_or(0, |bytes: &[u8; 8]| u64::from_le_bytes(*bytes))
        };
        Some(ValueReference {
            value_bytes: value_bytes(bytes) as u32,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_survive_their_bytes() {
        let reference = ValueReference {
            value_bytes: 70_000,
            file: 1 << 40,
            offset: 1 << 33,
            checksum: u64::MAX - 5,
        };
        let bytes = reference.encode();
        assert_eq!(ValueReference::decode(&bytes), Some(reference));
        assert_eq!(value_bytes(&bytes), 70_000);
        assert_eq!(ValueReference::decode(&bytes[1..]), None);
        assert_eq!(value_bytes(b""), 0);
    }
}
