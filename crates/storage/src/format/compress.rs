//! Compression of data blocks, and of values in value files.
//!
//! ```text
//! compressed payload = bytes of the payload: u32 | output of the codec
//! ```
//!
//! The tag in the seal of a block, or the length in front of a value, says which codec it was. A
//! payload that would not shrink by at least a sixteenth, or a value by an eighth, is stored
//! uncompressed.

mod lz4;
mod zstd;

use super::codec::{Damage, NO_LZ4, NO_ZSTD};
use super::seal::{TAG_LZ4, TAG_PLAIN, TAG_ZSTD};
use crate::reference::Packing;
use bytes::Bytes;
use std::fmt;

/// Bytes of the length in front of the output of the codec.
const LENGTH_BYTES: usize = 4;

/// A payload must shrink by one part in this many. Otherwise it is not worth the time of its
/// readers.
const SAVED_SHARE: usize = 16;

/// A value must shrink by one part in this many. Readers of mapped value files get a value that is
/// not compressed without a copy.
const VALUE_SAVED_SHARE: usize = 8;

/// The most bytes that one byte of LZ4 can produce: a length continues in bytes that count up to
/// 255.
const LZ4_BYTES_PER_BYTE: u64 = 255;

/// The most bytes that one byte of Zstandard can produce: 128 KiB from a block of four bytes.
const ZSTD_BYTES_PER_BYTE: u64 = 32 << 10;

/// The most bytes that one byte can produce with any codec.
pub(super) const PLAIN_BYTES_PER_BYTE: u64 = ZSTD_BYTES_PER_BYTE;

/// The compression of new data blocks of a table. Readers find the codec in each block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// No compression.
    #[default]
    None,
    /// LZ4, which is fast.
    Lz4,
    /// Zstandard, which is small. The level is 1 to 19. A higher level slows writers down, not
    /// readers.
    Zstd {
        /// The level.
        level: u8,
    },
}

impl Codec {
    /// Returns true if this build has the codec.
    pub fn is_built(self) -> bool {
        match self {
            Codec::None => true,
            Codec::Lz4 => lz4::IS_BUILT,
            Codec::Zstd { .. } => zstd::IS_BUILT,
        }
    }

    /// Returns how values are stored that this codec makes shorter.
    pub fn packing(self) -> Packing {
        match self {
            Codec::None => Packing::Plain,
            Codec::Lz4 => Packing::Lz4,
            Codec::Zstd { .. } => Packing::Zstd,
        }
    }
}

/// Compresses blocks one after the other.
pub struct Compressor {
    codec: Codec,
    scratch: Vec<u8>,
    zstd: Option<zstd::Compressor>,
    used: bool,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("codec", &self.codec).finish_non_exhaustive()
    }
}

impl Compressor {
    /// Creates a compressor for `codec`.
    pub fn new(codec: Codec) -> Compressor {
        let zstd = match codec {
            Codec::Zstd { level } => Some(zstd::Compressor::new(level)),
            Codec::None | Codec::Lz4 => None,
        };
        Compressor { codec, scratch: Vec::new(), zstd, used: false }
    }

    /// Returns true if any block was compressed.
    pub fn used(&self) -> bool {
        self.used
    }

    /// Compresses the payload that starts at `start` of `out`, if it shrinks enough. Returns the
    /// tag for the seal.
    pub(super) fn shrink(&mut self, out: &mut Vec<u8>, start: usize) -> u8 {
        let payload = out.get(start..).unwrap_or_default();
        let Ok(length) = u32::try_from(payload.len()) else { return TAG_PLAIN };
        let Some(made) = self.compress(payload, SAVED_SHARE) else { return TAG_PLAIN };
        out.truncate(start);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(self.scratch.get(..made).unwrap_or_default());
        self.used = true;
        tag_of(self.codec.packing())
    }

    /// Compresses `value`, if it shrinks enough. Returns how it is stored, and the output of the
    /// codec, or nothing if it is stored as it is.
    pub fn pack(&mut self, value: &[u8]) -> (Packing, &[u8]) {
        match self.compress(value, VALUE_SAVED_SHARE) {
            Some(made) => (self.codec.packing(), self.scratch.get(..made).unwrap_or_default()),
            None => (Packing::Plain, &[]),
        }
    }

    /// Frees memory, if there are more than `bytes` that were needed for a huge payload.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.scratch.capacity() > bytes {
            self.scratch = Vec::new();
        }
    }

    /// Compresses `payload` into `scratch`, and returns the bytes of the output, or `None` if it
    /// does not save one part in `saved_share`.
    fn compress(&mut self, payload: &[u8], saved_share: usize) -> Option<usize> {
        let made = match self.codec {
            Codec::None => None,
            Codec::Lz4 => lz4::compress(payload, &mut self.scratch),
            // A failing codec costs only space.
            Codec::Zstd { .. } => self.zstd.as_mut()?.compress(payload, &mut self.scratch),
        }?;
        let bytes_max = payload.len() - payload.len() / saved_share;
        (made + LENGTH_BYTES <= bytes_max).then_some(made)
    }
}

/// Returns the tag in the seal of a block that is stored so.
fn tag_of(packing: Packing) -> u8 {
    match packing {
        Packing::Plain => TAG_PLAIN,
        Packing::Lz4 => TAG_LZ4,
        Packing::Zstd => TAG_ZSTD,
    }
}

/// Decompresses the `stored` bytes of a value of `value_bytes` bytes. They are compressed.
pub(super) fn expand_value(
    packing: Packing,
    stored: &[u8],
    value_bytes: u32,
) -> Result<Bytes, Damage> {
    // Checked before any memory is allocated.
    if stored.first_chunk() != Some(&value_bytes.to_le_bytes()) {
        return Err(Damage::whole("a compressed value has another length than its reference says"));
    }
    expand(tag_of(packing), stored).map_err(|damage| match damage.what {
        NO_LZ4 | NO_ZSTD => damage,
        _ => Damage::whole("a compressed value cannot be decompressed"),
    })
}

/// Decompresses the stored payload of a block. `tag` names its codec; it is not the tag of plain
/// blocks.
pub(super) fn expand(tag: u8, stored: &[u8]) -> Result<Bytes, Damage> {
    let unknown = Damage::whole("a block is compressed in an unknown way");
    let short = Damage::whole("a compressed block is too short");
    let (length, made) = stored.split_first_chunk::<LENGTH_BYTES>().ok_or(short)?;
    let bytes = u32::from_le_bytes(*length);
    let per_byte = match tag {
        TAG_LZ4 if !lz4::IS_BUILT => return Err(Damage::whole(NO_LZ4)),
        TAG_ZSTD if !zstd::IS_BUILT => return Err(Damage::whole(NO_ZSTD)),
        TAG_LZ4 => LZ4_BYTES_PER_BYTE,
        TAG_ZSTD => ZSTD_BYTES_PER_BYTE,
        _ => return Err(unknown),
    };
    // Checked before any memory is allocated.
    if u64::from(bytes) > made.len() as u64 * per_byte {
        return Err(Damage::whole("the length in a compressed block is larger than it can be"));
    }
    let mut payload = vec![0; bytes as usize];
    let filled = match tag {
        TAG_LZ4 => lz4::decompress(made, &mut payload),
        _ => zstd::decompress(made, &mut payload),
    };
    if filled == Some(payload.len()) {
        Ok(Bytes::from(payload))
    } else {
        Err(Damage::whole("a compressed block cannot be decompressed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A build without a codec must not take its blocks for damage.
    #[test]
    fn block_of_a_codec_that_is_not_built_is_no_damage() {
        use crate::error::ErrorKind;
        let made = [8, 0, 0, 0, 1, 2, 3, 4];
        for (tag, codec) in [(TAG_LZ4, Codec::Lz4), (TAG_ZSTD, Codec::Zstd { level: 1 })] {
            let error = expand(tag, &made).unwrap_err().within("/t".as_ref(), 0);
            let expected =
                if codec.is_built() { ErrorKind::Corruption } else { ErrorKind::Unsupported };
            assert_eq!(error.kind(), expected, "{error}");
        }
    }
}

#[cfg(all(test, feature = "lz4", feature = "zstd"))]
mod codec_tests {
    use super::*;

    const CODECS: [Codec; 4] =
        [Codec::None, Codec::Lz4, Codec::Zstd { level: 1 }, Codec::Zstd { level: 19 }];

    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    /// Returns the tag and the stored bytes of `payload`.
    fn shrunk(codec: Codec, payload: &[u8]) -> (u8, Vec<u8>) {
        let mut out = b"before".to_vec();
        out.extend_from_slice(payload);
        let tag = Compressor::new(codec).shrink(&mut out, 6);
        assert_eq!(&out[..6], b"before");
        (tag, out.split_off(6))
    }

    #[test]
    fn compressed_payload_is_read_back() {
        let text = b"sphinx of black quartz, judge my vow; ".repeat(200);
        for codec in CODECS {
            for payload in [&text[..], &text[..100], &[7; 1 << 20], b"x", b""] {
                let (tag, stored) = shrunk(codec, payload);
                if tag == TAG_PLAIN {
                    assert_eq!(stored, payload);
                    continue;
                }
                assert!(stored.len() < payload.len(), "{codec:?}");
                assert_eq!(expand(tag, &stored).unwrap(), payload, "{codec:?}");
            }
            let (tag, _) = shrunk(codec, &text);
            assert_eq!(tag == TAG_PLAIN, codec == Codec::None);
        }
    }

    #[test]
    fn payload_that_does_not_shrink_stays_uncompressed() {
        for codec in CODECS {
            let payload = noise(4096);
            assert_eq!(shrunk(codec, &payload), (TAG_PLAIN, payload));
        }
    }

    #[test]
    fn impossible_length_allocates_nothing() {
        for tag in [TAG_LZ4, TAG_ZSTD] {
            let mut stored = u32::MAX.to_le_bytes().to_vec();
            stored.extend_from_slice(&[0; 100]);
            let damage = expand(tag, &stored).unwrap_err();
            assert_eq!(damage.what, "the length in a compressed block is larger than it can be");
        }
    }

    #[test]
    fn other_bytes_are_damage_and_no_panic() {
        let text = b"sphinx of black quartz, judge my vow; ".repeat(20);
        for codec in CODECS {
            let (tag, stored) = shrunk(codec, &text);
            if tag == TAG_PLAIN {
                continue;
            }
            for length in 0..stored.len() {
                assert!(expand(tag, &stored[..length]).is_err(), "{codec:?} cut to {length}");
            }
            for at in 0..stored.len() {
                let mut wrong = stored.clone();
                wrong[at] ^= 0x55;
                // The output may even have the right length; the checksum must find that.
                let _ = expand(tag, &wrong);
            }
            let rest = noise(3000);
            assert!(expand(tag, &[&stored[..4], &rest].concat()).is_err(), "{codec:?}");
            assert!(expand(7, &stored).is_err());
        }
    }
}
