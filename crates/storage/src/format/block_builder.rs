//! Writes data blocks. [`Block`](super::Block) documents their format.

use super::codec::zigzag;
use super::compress::Compressor;
use super::entry_head::{EntryHead, KIND_BITS, Usual};
use super::seal::{SEAL_BYTES, SealedPlace, seal_tagged};
use crate::cursor::EntryRef;

/// The number of entries from one restart point to the next. A restart point stores its key in
/// full. A search jumps to a restart point and walks from there: a smaller number costs bytes, a
/// larger one costs time.
pub(super) const RESTART_ENTRIES: usize = 16;

/// Bytes of the lengths of usual entries, the sequence base and the number of restart points.
pub(super) const TAIL_BYTES: usize = 18;

/// Bytes of the offset of a restart point.
pub(super) const RESTART_BYTES: usize = 4;

/// The most bytes of the head of an entry: four integers. One of them has up to ten bytes.
const HEAD_BYTES_MAX: usize = 25;

/// Bytes of a block behind its restart points, with the seal.
const END_BYTES: usize = TAIL_BYTES + SEAL_BYTES;

/// Builds data blocks one after the other at the end of a buffer, so that no byte is copied twice.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    start: usize,
    entries: usize,
    restarts: Vec<u32>,
    seq_base: u64,
    usual: Usual,
}

impl BlockBuilder {
    /// Returns true if the open block has no entry yet.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Returns the bytes of the entries of the open block at the end of `out`.
    pub fn bytes(&self, out: &[u8]) -> usize {
        if self.is_empty() { 0 } else { out.len() - self.start }
    }

    /// Returns the most bytes of the open block with its seal, if an entry of `entry_bytes` (key
    /// and value) is added to `out`. Its key shares `shared` bytes with the previous key.
    pub fn bytes_with(&self, out: &[u8], shared: usize, entry_bytes: usize) -> usize {
        let is_restart = self.entries.is_multiple_of(RESTART_ENTRIES);
        let more = if is_restart { entry_bytes } else { entry_bytes - shared };
        let restarts = self.entries / RESTART_ENTRIES + 1;
        self.bytes(out) + HEAD_BYTES_MAX + more + restarts * RESTART_BYTES + END_BYTES
    }

    /// Appends `entry` to `out`. Its key shares exactly `shared` bytes with the previous key.
    #[inline(always)]
    pub fn add(&mut self, out: &mut Vec<u8>, shared: usize, entry: &EntryRef<'_>) {
        let tagged = (entry.value.len() as u64) << KIND_BITS | entry.kind as u64;
        if self.is_empty() {
            self.start = out.len();
            self.seq_base = entry.seq.0;
            self.usual = Usual::like(entry.key.len(), tagged);
        }
        let restart = self.entries.is_multiple_of(RESTART_ENTRIES);
        if restart {
            let offset = u32::try_from(out.len() - self.start);
            self.restarts.push(offset.expect("a block is cut long before 4 GiB"));
        }
        let shared = if restart { 0 } else { shared };
        let suffix = entry.key.get(shared..).expect("shared is a part of the key");
        let delta = zigzag(entry.seq.0.wrapping_sub(self.seq_base) as i64);
        let suffix_bytes = suffix.len() as u64;
        EntryHead { shared: shared as u64, suffix_bytes, tagged, delta }.put(self.usual, out);
        out.extend_from_slice(suffix);
        out.extend_from_slice(entry.value);
        self.entries += 1;
    }

    /// Ends the block without compression.
    #[cfg(test)]
    pub fn finish(&mut self, out: &mut Vec<u8>, place: SealedPlace) -> usize {
        self.finish_with(out, place, &mut Compressor::new(super::Codec::None))
    }

    /// Ends the block, which will lie at `place`, compresses it with `compressor`, and prepares for
    /// the next one. Returns the bytes of the whole block.
    ///
    /// # Panics
    ///
    /// Panics if the block is empty.
    pub fn finish_with(
        &mut self,
        out: &mut Vec<u8>,
        place: SealedPlace,
        compressor: &mut Compressor,
    ) -> usize {
        self.finish_payload(out);
        let tag = compressor.shrink(out, self.start);
        seal_tagged(out, self.start, place, tag);
        out.len() - self.start
    }

    /// Ends the block without a seal, and prepares for the next one.
    ///
    /// # Panics
    ///
    /// Panics if the block is empty.
    pub fn finish_payload(&mut self, out: &mut Vec<u8>) {
        assert!(!self.is_empty(), "a block has at least one entry");
        for offset in &self.restarts {
            out.extend_from_slice(&offset.to_le_bytes());
        }
        out.extend_from_slice(&self.usual.key_bytes.to_le_bytes());
        out.extend_from_slice(&self.usual.tagged.to_le_bytes());
        out.extend_from_slice(&self.seq_base.to_le_bytes());
        out.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.entries = 0;
        self.restarts.clear();
    }
}
