//! The seal at the end of every block: a compression tag, and a checksum that includes the place.
//!
//! ```text
//! payload | tag: u8 | checksum: u64
//! ```

use super::codec::Damage;
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

/// Bytes of a seal.
pub const SEAL_BYTES: usize = 1 + CHECKSUM_BYTES;

const CHECKSUM_BYTES: usize = 8;

/// The payload is not compressed.
pub(super) const TAG_PLAIN: u8 = 0;

/// The payload is compressed with LZ4. Only data blocks are.
pub(super) const TAG_LZ4: u8 = 1;

/// The payload is compressed with Zstandard. Only data blocks are.
pub(super) const TAG_ZSTD: u8 = 2;

/// The place of a block. Its checksum fails at any other place.
#[derive(Clone, Copy, Debug)]
pub struct SealedPlace {
    /// The id of the table.
    pub table: u64,
    /// The offset in the file at which the block starts, in bytes.
    pub offset: u64,
}

impl SealedPlace {
    /// Returns the checksum of `bytes` at this place.
    pub fn checksum(self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.seed())
    }

    fn seed(self) -> u64 {
        let mut place = [0; 16];
        let (table, offset) = place.split_at_mut(8);
        table.copy_from_slice(&self.table.to_le_bytes());
        offset.copy_from_slice(&self.offset.to_le_bytes());
        xxh3_64(&place)
    }

    /// Finds the end of the sealed block that starts here, if the index is lost. `bytes` are the
    /// bytes of the file from here on. Returns the length of the block with its seal, or `None` if
    /// no block starts here.
    pub fn find_seal(self, bytes: &[u8]) -> Option<usize> {
        let mut hasher = Xxh3::with_seed(self.seed());
        let mut hashed = 0;
        for (end, rest) in (1..).zip(bytes.windows(SEAL_BYTES)) {
            let Some((tag, checksum)) = rest.split_first() else { continue };
            if *tag > TAG_ZSTD {
                continue;
            }
            hasher.update(bytes.get(hashed..end).unwrap_or_default());
            hashed = end;
            if hasher.digest().to_le_bytes() == *checksum {
                return Some(end + CHECKSUM_BYTES);
            }
        }
        None
    }
}

/// Appends a seal to the block that starts at `start` of `out` and will lie at `place`.
pub fn seal(out: &mut Vec<u8>, start: usize, place: SealedPlace) {
    seal_tagged(out, start, place, TAG_PLAIN);
}

/// Like [`seal`], for a payload that is stored as `tag` says.
pub(super) fn seal_tagged(out: &mut Vec<u8>, start: usize, place: SealedPlace, tag: u8) {
    out.push(tag);
    let checksum = place.checksum(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Checks the sealed block `bytes`, read from `place`, and returns its payload. Fails for a
/// compressed block.
pub fn unseal(bytes: &[u8], place: SealedPlace) -> Result<&[u8], Damage> {
    match unseal_tagged(bytes, place)? {
        (TAG_PLAIN, payload) => Ok(payload),
        _ => Err(Damage::whole("a block is compressed in an unknown way")),
    }
}

/// Checks the sealed block `bytes`, read from `place`. Returns its tag and the bytes in front of
/// it.
pub(super) fn unseal_tagged(bytes: &[u8], place: SealedPlace) -> Result<(u8, &[u8]), Damage> {
    let Some((sealed, checksum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(Damage::whole("a block is too short"));
    };
    if place.checksum(sealed) != u64::from_le_bytes(*checksum) {
        return Err(Damage::whole("a checksum does not match"));
    }
    let (tag, stored) = sealed.split_last().ok_or(Damage::whole("a block is too short"))?;
    Ok((*tag, stored))
}

/// Returns the name of the codec of the sealed block `bytes`, or `None` for an unknown tag.
pub fn codec_name(bytes: &[u8]) -> Option<&'static str> {
    let (tag, _) = bytes.last_chunk::<SEAL_BYTES>()?.split_first()?;
    match *tag {
        TAG_PLAIN => Some("none"),
        TAG_LZ4 => Some("lz4"),
        TAG_ZSTD => Some("zstd"),
        _ => None,
    }
}

/// Returns the payload of the sealed block `bytes`, whose checksum matched before. Returns `None`
/// if it is compressed or too short.
pub(super) fn plain(bytes: &[u8]) -> Option<&[u8]> {
    let (sealed, _) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
    let (tag, payload) = sealed.split_last()?;
    (*tag == TAG_PLAIN).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_passes_at_its_own_place_only() {
        let place = SealedPlace { table: 7, offset: 4096 };
        let mut out = b"before".to_vec();
        out.extend_from_slice(b"payload");
        seal(&mut out, 6, place);
        assert_eq!(unseal(&out[6..], place), Ok(&b"payload"[..]));
        assert!(unseal(&out[6..], SealedPlace { table: 8, ..place }).is_err());
        assert!(unseal(&out[6..], SealedPlace { offset: 0, ..place }).is_err());
        assert!(unseal(&out[6..10], place).is_err());
    }

    #[test]
    fn compressed_block_is_refused_where_none_may_be() {
        let place = SealedPlace { table: 1, offset: 0 };
        let mut out = b"payload".to_vec();
        out.push(1);
        let checksum = place.checksum(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        let damage = unseal(&out, place).expect_err("nothing can read tag 1");
        assert_eq!(damage.what, "a block is compressed in an unknown way");
    }
}
