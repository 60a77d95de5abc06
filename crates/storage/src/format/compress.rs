//! Compression of data blocks.
//!
//! ```text
//! compressed payload = bytes of the payload: u32 | what the codec made of it
//! ```
//!
//! Which codec it was the tag in the seal says. A payload that would not become smaller by a
//! sixteenth at least is stored as it is.

use super::codec::Damage;
use super::seal::{TAG_LZ4, TAG_PLAIN, TAG_ZSTD};
use bytes::Bytes;
use std::cell::RefCell;
use std::fmt;

/// Bytes of the length in front of what a codec made.
const LENGTH_BYTES: usize = 4;

/// A payload must become smaller by this part of it, or it is not worth the time of its readers.
const SAVED_SHARE: usize = 16;

/// What a byte of LZ4 can come to, at most: a length goes on in bytes that count up to 255 each.
const LZ4_BYTES_PER_BYTE: u64 = 255;

/// What a byte of Zstandard can come to, at most: 128 KiB for a block of four bytes.
const ZSTD_BYTES_PER_BYTE: u64 = 32 << 10;

/// What a byte can come to, at most, whatever the codec.
pub(super) const PLAIN_BYTES_PER_BYTE: u64 = ZSTD_BYTES_PER_BYTE;

/// How the blocks of a table are compressed when they are written. Reading needs no choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    #[default]
    None,
    /// LZ4: quick.
    Lz4,
    /// Zstandard: small. The level is 1 to 19; more takes writers longer, readers not.
    Zstd {
        /// The level.
        level: u8,
    },
}

/// Compresses one block after the other.
pub struct Compressor {
    codec: Codec,
    scratch: Vec<u8>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    used: bool,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("codec", &self.codec).finish_non_exhaustive()
    }
}

impl Compressor {
    /// A compressor that works with `codec`.
    pub fn new(codec: Codec) -> Compressor {
        let zstd = match codec {
            Codec::Zstd { level } => zstd::bulk::Compressor::new(i32::from(level)).ok(),
            Codec::None | Codec::Lz4 => None,
        };
        Compressor { codec, scratch: Vec::new(), zstd, used: false }
    }

    /// Whether any block was compressed.
    pub fn used(&self) -> bool {
        self.used
    }

    /// Compresses the payload that begins at `start` of `out`, where that is worth it; the tag that
    /// says what it is now.
    pub(super) fn shrink(&mut self, out: &mut Vec<u8>, start: usize) -> u8 {
        let payload = out.get(start..).unwrap_or_default();
        let Ok(length) = u32::try_from(payload.len()) else { return TAG_PLAIN };
        let (tag, made) = match self.codec {
            Codec::None => return TAG_PLAIN,
            Codec::Lz4 => (TAG_LZ4, self.lz4(payload)),
            Codec::Zstd { .. } => (TAG_ZSTD, self.zstd(payload)),
        };
        // A codec that gives up has its reasons: nothing is lost but room.
        let Some(made) = made.and_then(|made| self.scratch.get(..made)) else { return TAG_PLAIN };
        if made.len() + LENGTH_BYTES > payload.len() - payload.len() / SAVED_SHARE {
            return TAG_PLAIN;
        }
        out.truncate(start);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(made);
        self.used = true;
        tag
    }

    /// What LZ4 makes of `payload`, in the scratch: how many bytes.
    fn lz4(&mut self, payload: &[u8]) -> Option<usize> {
        self.scratch.resize(lz4_flex::block::get_maximum_output_size(payload.len()), 0);
        lz4_flex::block::compress_into(payload, &mut self.scratch).ok()
    }

    /// The same of Zstandard.
    fn zstd(&mut self, payload: &[u8]) -> Option<usize> {
        self.scratch.resize(zstd::zstd_safe::compress_bound(payload.len()), 0);
        self.zstd.as_mut()?.compress_to_buffer(payload, &mut self.scratch[..]).ok()
    }
}

crate::sync::thread_local! {
    /// Making one takes longer than reading a block with it.
    static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The payload that was stored as `stored`, with a tag other than the plain one.
pub(super) fn expand(tag: u8, stored: &[u8]) -> Result<Bytes, Damage> {
    let unknown = Damage::whole("a block is compressed in an unknown way");
    let short = Damage::whole("a compressed block is too short");
    let (length, made) = stored.split_first_chunk::<LENGTH_BYTES>().ok_or(short)?;
    let bytes = u32::from_le_bytes(*length);
    let per_byte = match tag {
        TAG_LZ4 => LZ4_BYTES_PER_BYTE,
        TAG_ZSTD => ZSTD_BYTES_PER_BYTE,
        _ => return Err(unknown),
    };
    // Before anything is allocated.
    if u64::from(bytes) > made.len() as u64 * per_byte {
        return Err(Damage::whole("a compressed block says it is longer than it can be"));
    }
    let mut payload = vec![0; bytes as usize];
    let filled = match tag {
        TAG_LZ4 => lz4_flex::block::decompress_into(made, &mut payload).ok(),
        _ => ZSTD.with(|zstd| {
            let zstd = &mut *zstd.borrow_mut();
            if zstd.is_none() {
                *zstd = zstd::bulk::Decompressor::new().ok();
            }
            zstd.as_mut()?.decompress_to_buffer(made, &mut payload[..]).ok()
        }),
    };
    match filled == Some(payload.len()) {
        true => Ok(Bytes::from(payload)),
        false => Err(Damage::whole("a compressed block cannot be read back")),
    }
}

#[cfg(test)]
mod tests {
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

    /// The tag and what is stored of `payload`.
    fn shrunk(codec: Codec, payload: &[u8]) -> (u8, Vec<u8>) {
        let mut out = b"before".to_vec();
        out.extend_from_slice(payload);
        let tag = Compressor::new(codec).shrink(&mut out, 6);
        assert_eq!(&out[..6], b"before");
        (tag, out.split_off(6))
    }

    #[test]
    fn what_is_compressed_is_read_back() {
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
    fn what_does_not_shrink_stays_as_it_is() {
        for codec in CODECS {
            let payload = noise(4096);
            assert_eq!(shrunk(codec, &payload), (TAG_PLAIN, payload));
        }
    }

    #[test]
    fn nothing_is_allocated_for_a_length_that_cannot_be() {
        for tag in [TAG_LZ4, TAG_ZSTD] {
            let mut stored = u32::MAX.to_le_bytes().to_vec();
            stored.extend_from_slice(&[0; 100]);
            let damage = expand(tag, &stored).unwrap_err();
            assert_eq!(damage.what, "a compressed block says it is longer than it can be");
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
                // What comes out may even be as long: the checksum has to tell.
                let _ = expand(tag, &wrong);
            }
            let rest = noise(3000);
            assert!(expand(tag, &[&stored[..4], &rest].concat()).is_err(), "{codec:?}");
            assert!(expand(7, &stored).is_err());
        }
    }
}
