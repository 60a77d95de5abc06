//! The head of an entry in a block: the integers in front of its key and value.
//!
//! ```text
//! head  = shared << 2 + numbered << 1 + unusual | unusual: sizes | numbered: sequence delta
//! sizes = suffix bytes | value bytes << 3 + kind
//! ```
//!
//! All integers are varints. Most entries of a block are like its first: same length of the key,
//! same length of the value, same kind. The block stores these once, and an entry only if it
//! differs. So usual entries have a head of one byte.

use super::codec::{Damage, Reader, put_varint, short_varint, varint_word};

/// The number of bits below the length of the value that hold the kind.
pub(super) const KIND_BITS: u32 = 3;

const UNUSUAL: u64 = 1;
const NUMBERED: u64 = 2;
const FLAG_BITS: u32 = 2;

/// The lengths and the kind of the usual entries of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usual {
    pub(super) key_bytes: u16,
    /// The length of the value, shifted by [`KIND_BITS`], and the kind.
    pub(super) tagged: u32,
}

impl Usual {
    /// Describes entries like one with these lengths, or no real entry if the lengths are too
    /// large.
    pub(super) fn like(key_bytes: usize, tagged: u64) -> Usual {
        match (u16::try_from(key_bytes), u32::try_from(tagged)) {
            (Ok(key_bytes), Ok(tagged)) => Usual { key_bytes, tagged },
            _ => Usual::default(),
        }
    }
}

/// The integers of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryHead {
    /// The number of bytes that the key shares with the previous key.
    pub(super) shared: u64,
    /// The number of other bytes of the key.
    pub(super) suffix_bytes: u64,
    /// The length of the value, shifted by [`KIND_BITS`], and the kind.
    pub(super) tagged: u64,
    /// The zigzag-encoded difference between the sequence integers of the entry and of the block.
    pub(super) delta: u64,
}

impl EntryHead {
    /// Appends the head to `out`, in a block with these `usual` entries.
    #[inline(always)]
    pub(super) fn put(self, usual: Usual, out: &mut Vec<u8>) {
        let EntryHead { shared, suffix_bytes, tagged, delta } = self;
        let is_usual = shared + suffix_bytes == u64::from(usual.key_bytes)
            && tagged == u64::from(usual.tagged);
        let numbered = if delta == 0 { 0 } else { NUMBERED };
        let first = shared << FLAG_BITS | numbered | if is_usual { 0 } else { UNUSUAL };
        put_varint(out, first);
        if !is_usual {
            put_short(out, suffix_bytes);
            put_short(out, tagged);
        }
        if delta != 0 {
            put_short(out, delta);
        }
    }

    /// Reads the head that starts at `start` of `entries`. Returns the head and its end.
    ///
    /// The whole head is usually in the next 16 bytes and has no long integers.
    #[inline(always)]
    pub(super) fn read(
        entries: &[u8],
        start: usize,
        usual: Usual,
    ) -> Result<(EntryHead, usize), Damage> {
        let bytes = entries.get(start..).and_then(|rest| rest.first_chunk());
        let near = bytes.map(|near| u128::from_le_bytes(*near));
        match near.and_then(|near| EntryHead::read_near(near, start, usual)) {
            Some(read) => Ok(read),
            None => EntryHead::read_slowly(entries, start, usual),
        }
    }

    #[inline(always)]
    fn read_near(near: u128, start: usize, usual: Usual) -> Option<(EntryHead, usize)> {
        let first = near as u64 & 0xff;
        if first & 0x80 != 0 {
            return None;
        }
        let shared = first >> FLAG_BITS;
        let mut rest = near >> 8;
        let mut end = start + 1;
        let (suffix_bytes, tagged) = if first & UNUSUAL == 0 {
            (u64::from(usual.key_bytes).checked_sub(shared)?, u64::from(usual.tagged))
        } else {
            let low = rest as u64;
            let tagged_bytes = 1 + (low >> 15 & 1);
            if low & 0x80 != 0 || low & 0x0080_8000 == 0x0080_8000 {
                return None;
            }
            let second_seven = (low >> 9 & 0x3f80) * (tagged_bytes - 1);
            rest >>= 8 + 8 * tagged_bytes;
            end += 1 + tagged_bytes as usize;
            (low & 0x7f, (low >> 8 & 0x7f) | second_seven)
        };
        let delta = if first & NUMBERED == 0 {
            0
        } else {
            let (delta, bytes) = short_varint(rest as u64)?;
            end += bytes;
            delta
        };
        Some((EntryHead { shared, suffix_bytes, tagged, delta }, end))
    }

    /// Returns the offset of the value of the entry that starts at `start` of `entries`, and has a
    /// key of `key_bytes` bytes. That length is given in place of the usual one.
    #[inline(always)]
    pub(super) fn value_start(
        entries: &[u8],
        start: usize,
        key_bytes: usize,
    ) -> Result<usize, Damage> {
        let near = entries.get(start..).and_then(|rest| rest.first_chunk());
        let near = near.map(|near| u128::from_le_bytes(*near));
        let (shared, end) = match near.and_then(EntryHead::passed_near) {
            Some((shared, bytes)) => (shared, start + bytes),
            None => EntryHead::passed_slowly(entries, start)?,
        };
        let suffix_bytes = (key_bytes as u64).checked_sub(shared);
        let what = "an entry shares more bytes than its key has";
        let suffix_bytes = suffix_bytes.ok_or(Damage { what, at: start })?;
        Ok(end + suffix_bytes as usize)
    }

    /// Returns the number of shared bytes and the length of the head that `near` begins with.
    #[inline(always)]
    fn passed_near(near: u128) -> Option<(u64, usize)> {
        let first = near as u64 & 0xff;
        let count = count_behind(first);
        // A bit is set in the last byte of each integer.
        let mut lasts = !(near >> 8) as u64 & 0x8080_8080_8080_8080;
        for _ in 1..count {
            lasts &= lasts.wrapping_sub(1);
        }
        let is_near = first & 0x80 == 0 && (count == 0 || lasts != 0);
        let bytes = if count == 0 { 0 } else { (lasts.trailing_zeros() as usize + 1) / 8 };
        is_near.then_some((first >> FLAG_BITS, 1 + bytes))
    }

    #[cold]
    #[inline(never)]
    fn passed_slowly(entries: &[u8], start: usize) -> Result<(u64, usize), Damage> {
        let mut reader = Reader::new(entries, start);
        let first = reader.varint()?;
        for _ in 0..count_behind(first) {
            reader.varint()?;
        }
        Ok((first >> FLAG_BITS, reader.at()))
    }

    /// Reads any head.
    #[cold]
    #[inline(never)]
    fn read_slowly(
        entries: &[u8],
        start: usize,
        usual: Usual,
    ) -> Result<(EntryHead, usize), Damage> {
        let mut reader = Reader::new(entries, start);
        let first = reader.varint()?;
        let shared = first >> FLAG_BITS;
        let (suffix_bytes, tagged) = if first & UNUSUAL == 0 {
            let rest = u64::from(usual.key_bytes).checked_sub(shared);
            let suffix_bytes = rest.ok_or(Damage {
                what: "an entry shares more bytes than a usual key has",
                at: start,
            })?;
            (suffix_bytes, u64::from(usual.tagged))
        } else {
            (reader.varint()?, reader.varint()?)
        };
        let delta = if first & NUMBERED == 0 { 0 } else { reader.varint()? };
        Ok((EntryHead { shared, suffix_bytes, tagged, delta }, reader.at()))
    }
}

/// Returns how many integers of a head follow the `first`.
#[inline(always)]
fn count_behind(first: u64) -> u64 {
    let sizes = if first & UNUSUAL == 0 { 0 } else { 2 };
    sizes + u64::from(first & NUMBERED != 0)
}

/// Appends a varint. A varint of at most four bytes is appended as four bytes and then cut, so that
/// no branch depends on its length.
#[inline]
fn put_short(out: &mut Vec<u8>, value: u64) {
    let Some((word, bytes)) = varint_word(value) else { return put_varint(out, value) };
    let start = out.len();
    out.extend_from_slice(&(word as u32).to_le_bytes());
    out.truncate(start + bytes as usize);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates integers of all lengths.
    fn value() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..64u32).prop_map(|(value, shift)| value >> shift)
    }

    proptest! {
        #[test]
        fn heads_survive(
            shared in value().prop_map(|shared| shared >> FLAG_BITS),
            key_bytes: u16,
            tagged in value(),
            delta in value(),
            suffix_bytes in value(),
            is_usual: bool,
            behind in 0..20usize,
        ) {
            let usual = Usual::like(usize::from(key_bytes), tagged);
            let fits = is_usual && usual != Usual::default();
            let shared = if fits { shared % (u64::from(key_bytes) + 1) } else { shared };
            let rest = if fits { u64::from(key_bytes) - shared } else { suffix_bytes };
            prop_assume!(shared.checked_add(rest).is_some());
            let head = EntryHead { shared, suffix_bytes: rest, tagged, delta };
            let mut out = vec![7; 3];
            head.put(usual, &mut out);
            let end = out.len();
            out.resize(end + behind, 0xff);
            prop_assert_eq!(EntryHead::read(&out, 3, usual), Ok((head, end)));
            if let Ok(key_bytes) = usize::try_from(shared + rest) {
                let value_start = end.checked_add(rest as usize);
                prop_assume!(value_start.is_some());
                prop_assert_eq!(EntryHead::value_start(&out, 3, key_bytes).ok(), value_start);
            }
        }
    }

    #[test]
    fn usual_entry_has_a_head_of_one_byte() {
        let usual = Usual::like(16, 100 << KIND_BITS);
        let head = EntryHead { shared: 3, suffix_bytes: 13, tagged: 100 << KIND_BITS, delta: 0 };
        let mut out = Vec::new();
        head.put(usual, &mut out);
        assert_eq!(out.len(), 1);
        EntryHead { delta: 1, ..head }.put(usual, &mut out);
        assert_eq!(out.len(), 3);
    }

    #[test]
    fn sharing_more_than_a_usual_key_is_damage() {
        let usual = Usual::like(4, 0);
        for behind in [0, 20] {
            let mut entries = vec![5 << FLAG_BITS];
            entries.resize(1 + behind, 0);
            assert!(EntryHead::read(&entries, 0, usual).is_err());
        }
    }
}
