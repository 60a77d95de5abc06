//! The seal at the end of every block: a compression tag and a checksum that knows its place.
//!
//! ```text
//! payload | tag: u8 | checksum: u64
//! ```

use super::codec::Damage;
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

/// Bytes of a seal.
pub const SEAL_BYTES: usize = 1 + CHECKSUM_BYTES;

const CHECKSUM_BYTES: usize = 8;

/// The payload is stored as it is.
pub(super) const TAG_PLAIN: u8 = 0;

/// It is compressed with LZ4. Data blocks only.
pub(super) const TAG_LZ4: u8 = 1;

/// It is compressed with Zstandard. Data blocks only.
pub(super) const TAG_ZSTD: u8 = 2;

/// Where a block belongs. A block that turns up elsewhere does not pass its checksum.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The number of the table.
    pub table: u64,
    /// Where in the file the block starts, in bytes.
    pub offset: u64,
}

impl Place {
    /// The checksum of `bytes` at this place.
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

    /// How many bytes the sealed block has that starts here with `bytes`, more of the file than
    /// the block; `None` where none does. For who has lost the index.
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

/// Puts a seal behind the block that begins at `start` of `out` and shall lie at `place`.
pub fn seal(out: &mut Vec<u8>, start: usize, place: Place) {
    seal_tagged(out, start, place, TAG_PLAIN);
}

/// The same for a payload that is stored as `tag` says.
pub(super) fn seal_tagged(out: &mut Vec<u8>, start: usize, place: Place, tag: u8) {
    out.push(tag);
    let checksum = place.checksum(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// The payload of the sealed block `bytes`, read from `place`, which is none that can be
/// compressed.
pub fn unseal(bytes: &[u8], place: Place) -> Result<&[u8], Damage> {
    match unseal_tagged(bytes, place)? {
        (TAG_PLAIN, payload) => Ok(payload),
        _ => Err(Damage::whole("a block is compressed in an unknown way")),
    }
}

/// What the sealed block `bytes`, read from `place`, holds, and the tag that says how.
pub(super) fn unseal_tagged(bytes: &[u8], place: Place) -> Result<(u8, &[u8]), Damage> {
    let Some((sealed, checksum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(Damage::whole("a block is too short"));
    };
    if place.checksum(sealed) != u64::from_le_bytes(*checksum) {
        return Err(Damage::whole("a checksum does not match"));
    }
    let (tag, stored) = sealed.split_last().ok_or(Damage::whole("a block is too short"))?;
    Ok((*tag, stored))
}

/// How the payload of the sealed block `bytes` is compressed: the name of its codec.
pub fn codec_name(bytes: &[u8]) -> Option<&'static str> {
    let (tag, _) = bytes.last_chunk::<SEAL_BYTES>()?.split_first()?;
    match *tag {
        TAG_PLAIN => Some("none"),
        TAG_LZ4 => Some("lz4"),
        TAG_ZSTD => Some("zstd"),
        _ => None,
    }
}

/// The payload of the sealed block `bytes`, which passed its checksum before; `None` where it is
/// compressed or no block at all.
pub(super) fn plain(bytes: &[u8]) -> Option<&[u8]> {
    let (sealed, _) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
    let (tag, payload) = sealed.split_last()?;
    (*tag == TAG_PLAIN).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_passes_at_its_own_place_only() {
        let place = Place { table: 7, offset: 4096 };
        let mut out = b"before".to_vec();
        out.extend_from_slice(b"payload");
        seal(&mut out, 6, place);
        assert_eq!(unseal(&out[6..], place), Ok(&b"payload"[..]));
        assert!(unseal(&out[6..], Place { table: 8, ..place }).is_err());
        assert!(unseal(&out[6..], Place { offset: 0, ..place }).is_err());
        assert!(unseal(&out[6..10], place).is_err());
    }

    #[test]
    fn a_reserved_compression_tag_is_not_read() {
        let place = Place { table: 1, offset: 0 };
        let mut out = b"payload".to_vec();
        out.push(1);
        let checksum = place.checksum(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        let damage = unseal(&out, place).expect_err("nothing can read tag 1");
        assert_eq!(damage.what, "a block is compressed in an unknown way");
    }
}
