//! Encodes and decodes integers and byte strings, and describes damaged ones.

use crate::error::{Error, ErrorKind};
use std::path::Path;

/// Damage that is none: this build has no LZ4.
pub(super) const NO_LZ4: &str =
    "data is compressed with lz4, which this build lacks: the cargo feature `lz4` is off";

/// The same for Zstandard.
pub(super) const NO_ZSTD: &str =
    "data is compressed with zstd, which this build lacks: the cargo feature `zstd` is off";

/// Bytes that do not follow the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What is wrong, as text for an error message.
    pub what: &'static str,
    /// The place of the damage, in bytes from the start of the decoded bytes.
    pub at: usize,
}

impl Damage {
    /// Creates damage that concerns all of the decoded bytes.
    pub fn whole(what: &'static str) -> Damage {
        Damage { what, at: 0 }
    }

    /// Converts to an error. The decoded bytes start at `offset` of the file at `path`. The kind is
    /// `Unsupported` if this build lacks the codec of a block or value, otherwise `Corruption`.
    pub fn within(self, path: &Path, offset: u64) -> Error {
        if [NO_LZ4, NO_ZSTD].contains(&self.what) {
            return Error::new(ErrorKind::Unsupported, self.what).at(path);
        }
        Error::corruption(path, offset.saturating_add(self.at as u64), self.what)
    }
}

/// The longest varint: ten times seven bits hold a `u64`.
const VARINT_BYTES_MAX: usize = 10;

/// Appends `value` as a varint: seven bits per byte, the lowest first, the top bit set in every
/// byte but the last.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Encodes `value` like [`put_varint`]. Returns the bytes as the low bytes of a word, and their
/// count, or `None` if there are more than four. No branch depends on the length.
#[inline]
pub(super) fn varint_word(value: u64) -> Option<(u64, u32)> {
    if value >= 1 << 28 {
        return None;
    }
    let twos = (value & 0x3fff) | (value & 0x0fff_c000) << 2;
    let sevens = (twos & 0x007f_007f) | (twos & 0x3f80_3f80) << 1;
    // One byte for every seven bits, and one byte for zero.
    let bytes = (u64::BITS + 6 - (value | 1).leading_zeros()) / 7;
    let more = 0x8080_8080 & ((1 << (8 * bytes - 8)) - 1);
    Some((sevens | more, bytes))
}

/// Decodes the varint at the start of `word`. Returns the integer and the length in bytes, or
/// `None` if the length is more than eight.
///
/// Most integers of an entry have one to four bytes, and the length is hard to predict. So no
/// branch depends on it.
#[inline]
pub(super) fn short_varint(word: u64) -> Option<(u64, usize)> {
    let lasts = !word & 0x8080_8080_8080_8080;
    if lasts == 0 {
        return None;
    }
    let bits = lasts.trailing_zeros() + 1;
    let sevens = word & (u64::MAX >> (u64::BITS - bits)) & 0x7f7f_7f7f_7f7f_7f7f;
    let twos = (sevens & 0x007f_007f_007f_007f) | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (twos & 0x3fff_0000_3fff) | (twos & 0x3fff_0000_3fff_0000) >> 2;
    let value = (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4;
    Some((value, bits as usize / 8))
}

/// Decodes a varint of one or two bytes at the start of `word`. Returns `None` for a longer one.
#[inline(always)]
pub(super) fn varint_of_two(word: u64) -> Option<(u64, usize)> {
    let more = (word >> 7) & 1;
    let second = ((word >> 1) & 0x3f80) * more;
    let value = (word & 0x7f) | second;
    (word & 0x8080 != 0x8080).then_some((value, 1 + more as usize))
}

/// Appends the length of `bytes`, then `bytes`.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Encodes a signed integer, so that small integers of either sign become small.
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Reverses [`zigzag`].
pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The number of bytes of a key that are copied at once. Keys are mostly at least this long.
const KEY_SHORT: usize = 16;

/// Appends `key` to `bytes`. Short keys are copied without a call.
#[inline]
pub fn append_key(bytes: &mut Vec<u8>, key: &[u8]) {
    match key.split_first_chunk::<KEY_SHORT>() {
        Some((chunk, rest)) => {
            bytes.extend_from_slice(chunk);
            if !rest.is_empty() {
                bytes.extend_from_slice(rest);
            }
        }
        None => bytes.extend_from_slice(key),
    }
}

/// Returns the number of bytes that `left` and `right` have in common at their starts.
#[inline]
pub fn common_prefix_bytes(left: &[u8], right: &[u8]) -> usize {
    // The first words are usually enough.
    if let (Some(left), Some(right)) = (left.first_chunk(), right.first_chunk()) {
        let differing = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
        if differing != 0 {
            return differing.trailing_zeros() as usize / 8;
        }
    }
    let words = left.as_chunks::<8>().0.iter().zip(right.as_chunks::<8>().0);
    let whole = words.take_while(|(l, r)| l == r).count() * 8;
    let rest = |bytes| <[u8]>::get(bytes, whole..).unwrap_or_default();
    whole + rest(left).iter().zip(rest(right)).take_while(|(l, r)| l == r).count()
}

/// Returns the first eight bytes of `key` as an integer; a shorter key is padded with zeros. The
/// integers have the same order as their keys, except for ties.
#[inline]
pub fn key_prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded.iter_mut().zip(key).for_each(|(place, byte)| *place = *byte);
    u64::from_be_bytes(padded)
}

/// Returns the varint at offset `at` of `bytes`, and its end.
#[inline(always)]
fn varint_at(bytes: &[u8], at: usize) -> Result<(u64, usize), Damage> {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(&byte) = rest.first()
        && byte < 0x80
    {
        return Ok((u64::from(byte), at + 1));
    }
    if let Some(word) = rest.first_chunk()
        && let Some((value, bytes)) = short_varint(u64::from_le_bytes(*word))
    {
        return Ok((value, at + bytes));
    }
    long_varint_at(bytes, at)
}

/// Like [`varint_at`], for a varint of any length at any offset.
#[cold]
#[inline(never)]
fn long_varint_at(bytes: &[u8], at: usize) -> Result<(u64, usize), Damage> {
    let rest = bytes.get(at..).unwrap_or_default();
    let mut value = 0;
    for (index, &byte) in rest.iter().take(VARINT_BYTES_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index + 1 == VARINT_BYTES_MAX && bits > 1 {
            break;
        }
        value |= bits << (7 * index);
        if byte < 0x80 {
            return Ok((value, at + index + 1));
        }
    }
    Err(Damage { what: "a number is cut off or too large", at })
}

/// Takes integers and byte strings from the front of bytes with arbitrary contents.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from offset `at` on.
    #[inline]
    pub fn new(bytes: &'a [u8], at: usize) -> Reader<'a> {
        Reader { bytes, at }
    }

    /// Returns the offset of the next byte.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the next byte, without taking it; `None` at the end.
    pub fn next_byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Creates damage at the next byte.
    #[cold]
    pub fn damage(&self, what: &'static str) -> Damage {
        Damage { what, at: self.at }
    }

    /// Takes a varint.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Damage> {
        // A call that is not inlined must not borrow the reader, which would then live in memory.
        let (value, at) = varint_at(self.bytes, self.at)?;
        self.at = at;
        Ok(value)
    }

    /// Takes a varint that is a length or a count in memory.
    #[inline]
    pub fn size(&mut self) -> Result<usize, Damage> {
        let value = self.varint()?;
        usize::try_from(value).map_err(|_| self.damage("a length is out of range"))
    }

    /// Takes a byte string with its length in front.
    pub fn bytes(&mut self) -> Result<&'a [u8], Damage> {
        let length = self.size()?;
        self.take(length)
    }

    /// Takes `length` bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Damage> {
        let end = self.at.checked_add(length);
        let Some(taken) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            return Err(self.damage("a length reaches beyond the end of the data"));
        };
        self.at += length;
        Ok(taken)
    }

    /// Takes `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| self.damage("a number is cut off or too large"))
    }

    /// Takes a `u32`, little endian.
    pub fn u32(&mut self) -> Result<u32, Damage> {
        self.array().map(u32::from_le_bytes)
    }

    /// Takes a `u64`, little endian.
    pub fn u64(&mut self) -> Result<u64, Damage> {
        self.array().map(u64::from_le_bytes)
    }

    /// Returns true if all bytes are decoded.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Fails if bytes are left.
    pub fn finish(self) -> Result<(), Damage> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        Err(self.damage("unexpected bytes follow the data"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn number_of_more_than_64_bits_is_damage() {
        let mut bytes = vec![0xff; 9];
        bytes.push(0x02);
        assert!(Reader::new(&bytes, 0).varint().is_err());
        bytes[9] = 0x01;
        assert_eq!(Reader::new(&bytes, 0).varint(), Ok(u64::MAX));
        assert!(Reader::new(&bytes[..9], 0).varint().is_err());
    }

    proptest! {
        #[test]
        fn numbers_survive(value: u64, shift in 0..64, signed: i64) {
            let value = value >> shift;
            let signed = signed >> shift;
            let mut out = Vec::new();
            put_varint(&mut out, value);
            put_varint(&mut out, zigzag(signed));
            let mut reader = Reader::new(&out, 0);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert_eq!(reader.varint().map(unzigzag), Ok(signed));
            prop_assert!(reader.finish().is_ok());
        }

        #[test]
        fn word_holds_the_appended_bytes(value: u64, shift in 0..64) {
            let value = value >> shift;
            let mut out = Vec::new();
            put_varint(&mut out, value);
            match varint_word(value) {
                Some((word, bytes)) => {
                    prop_assert_eq!(&word.to_le_bytes()[..bytes as usize], &out[..]);
                    prop_assert_eq!(word >> (8 * bytes), 0);
                }
                None => prop_assert!(out.len() > 4),
            }
        }

        #[test]
        fn prefixes_are_ordered_as_keys_are(
            left in prop::collection::vec(0..3u8, 0..12),
            right in prop::collection::vec(0..3u8, 0..12),
        ) {
            let prefixes = key_prefix(&left).cmp(&key_prefix(&right));
            prop_assert!(prefixes.is_eq() || prefixes == left.cmp(&right));
        }

        #[test]
        fn the_common_prefix_is_the_longest(
            prefix in prop::collection::vec(any::<u8>(), 0..40),
            left in prop::collection::vec(0..3u8, 0..20),
            right in prop::collection::vec(0..3u8, 0..20),
        ) {
            let left = [&prefix[..], &left].concat();
            let right = [&prefix[..], &right].concat();
            let common = common_prefix_bytes(&left, &right);
            prop_assert_eq!(&left[..common], &right[..common]);
            prop_assert!(left.get(common).is_none() || left.get(common) != right.get(common));
        }
    }
}
