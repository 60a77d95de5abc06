//! Writes data blocks. [`Block`](super::Block) says what they look like.

use super::codec::{put_varint, varint_word, zigzag};
use super::compress::Compressor;
use super::seal::{Place, seal_tagged};
use crate::cursor::EntryRef;

/// Entries from one restart point to the next. At a restart point the key is stored in full; a
/// search jumps between these and walks the rest, so fewer would cost bytes, more would cost time.
const RESTART_ENTRIES: usize = 16;

/// Bits that the kind takes below the length of the value.
pub(super) const KIND_BITS: u32 = 3;

/// Builds one data block after the other at the end of a buffer, so that no byte is copied twice.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    start: usize,
    entries: usize,
    restarts: Vec<u32>,
    seq_base: u64,
}

impl BlockBuilder {
    /// Whether the block under construction has no entry yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The bytes of the block's entries so far, at the end of `out`.
    pub(crate) fn bytes(&self, out: &[u8]) -> usize {
        if self.is_empty() { 0 } else { out.len() - self.start }
    }

    /// Appends `entry` to `out`; its key has exactly `shared` bytes in common with the one before.
    pub(crate) fn add(&mut self, out: &mut Vec<u8>, shared: usize, entry: &EntryRef<'_>) {
        if self.is_empty() {
            self.start = out.len();
            self.seq_base = entry.seq.0;
        }
        let restart = self.entries.is_multiple_of(RESTART_ENTRIES);
        if restart {
            let offset = u32::try_from(out.len() - self.start);
            self.restarts.push(offset.expect("a block is cut long before 4 GiB"));
        }
        let shared = if restart { 0 } else { shared };
        let suffix = entry.key.get(shared..).expect("shared is a part of the key");
        let tagged = (entry.value.len() as u64) << KIND_BITS | entry.kind as u64;
        let delta = zigzag(entry.seq.0.wrapping_sub(self.seq_base) as i64);
        let (shared, suffix_bytes) = (shared as u64, suffix.len() as u64);
        Head { shared, suffix_bytes, tagged, delta }.put(out);
        out.extend_from_slice(suffix);
        out.extend_from_slice(entry.value);
        self.entries += 1;
    }

    /// Ends the block without compressing it.
    #[cfg(test)]
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>, place: Place) -> usize {
        self.finish_with(out, place, &mut Compressor::new(super::Codec::None))
    }

    /// Ends the block, which shall lie at `place`, compressed by `compressor`, and gets ready for
    /// the next. The bytes of the whole block.
    ///
    /// # Panics
    ///
    /// If the block is empty.
    pub(crate) fn finish_with(
        &mut self,
        out: &mut Vec<u8>,
        place: Place,
        compressor: &mut Compressor,
    ) -> usize {
        assert!(!self.is_empty(), "a block has at least one entry");
        for offset in &self.restarts {
            out.extend_from_slice(&offset.to_le_bytes());
        }
        out.extend_from_slice(&self.seq_base.to_le_bytes());
        out.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        let tag = compressor.shrink(out, self.start);
        seal_tagged(out, self.start, place, tag);
        self.entries = 0;
        self.restarts.clear();
        out.len() - self.start
    }
}

/// The numbers of an entry.
struct Head {
    shared: u64,
    suffix_bytes: u64,
    /// The length of the value, and the kind.
    tagged: u64,
    delta: u64,
}

impl Head {
    /// Appends all of them as varints. Mostly they are at most eight bytes: these are put together
    /// aside and copied in a length that is always the same, of which what is too much goes again.
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        let Head { shared, suffix_bytes, tagged, delta } = self;
        let short = (shared | suffix_bytes) < 0x80 && tagged < 1 << 14;
        let Some((last, last_bytes)) = varint_word(delta).filter(|_| short) else {
            let numbers = [shared, suffix_bytes, tagged, delta];
            return numbers.into_iter().for_each(|number| put_varint(out, number));
        };
        let (third, third_bytes) = match tagged {
            0..0x80 => (tagged, 1),
            _ => ((tagged & 0x7f) | 0x80 | (tagged >> 7) << 8, 2),
        };
        let word = shared | suffix_bytes << 8 | third << 16 | last << (16 + 8 * third_bytes);
        let start = out.len();
        out.extend_from_slice(&word.to_le_bytes());
        out.truncate(start + 2 + third_bytes + last_bytes as usize);
    }
}
