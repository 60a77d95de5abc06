//! Finds data blocks without the index.
//!
//! Blocks lie without gaps, and each ends with a checksum that depends on the start of the block.
//! So from the start of a block, its end is where the checksum matches. The byte in front of a
//! checksum is the compression tag, which excludes nearly all other offsets at once. Behind a
//! damaged block the start of the next one is unknown. Then the search tries each offset where a
//! block may start.
//!
//! The price is about 20 us for a block of 4 KiB, and up to a second behind each damaged block.
//! Blocks longer than [`BLOCK_BYTES_MAX`] are not found.

use super::table_file::TableFile;
use crate::error::Result;
use crate::format::{Block, SEAL_BYTES, SealedPlace};
use bytes::Bytes;
use std::ops::Range;

/// Bytes of the longest block that is found if its start is known.
const BLOCK_BYTES_MAX: u64 = 1 << 20;

/// Bytes of the longest block that is found if its start is unknown.
const STRAY_BYTES_MAX: u64 = 64 << 10;

/// Bytes of one read.
const WINDOW_BYTES: u64 = 8 << 20;

/// A walk over the blocks of a file.
pub(super) struct BlockSearch<'a> {
    file: &'a TableFile,
    /// The greatest offset at which the data blocks can end.
    end: u64,
    /// The start of the next block, or an offset in front of it.
    next: u64,
    window: Bytes,
    window_start: u64,
}

impl<'a> BlockSearch<'a> {
    /// Searches the blocks at `place` of `file`.
    pub(super) fn new(file: &'a TableFile, place: Range<u64>) -> BlockSearch<'a> {
        let Range { start, end } = place;
        BlockSearch { file, end, next: start, window: Bytes::new(), window_start: 0 }
    }

    /// Returns the place of the next block that can be found, and the block. The block is `None` if
    /// sealed bytes directly behind the previous block hold no entries: the filter, or another part
    /// behind the data.
    pub(super) fn next(&mut self) -> Result<Option<(Range<u64>, Option<Block>)>> {
        let mut longest = BLOCK_BYTES_MAX;
        for start in self.next..self.end.saturating_sub(SEAL_BYTES as u64) {
            let bytes = self.bytes(start, longest)?;
            let is_next = start == self.next;
            let place = SealedPlace { table: self.file.sealed_as, offset: start };
            let is_likely = is_next || may_start(&bytes);
            let found = if is_likely { place.find_seal(&bytes) } else { None };
            if let Some(sealed_bytes) = found {
                let end = start + sealed_bytes as u64;
                let block = Block::open(bytes.slice(..sealed_bytes), place).ok();
                if is_next || block.is_some() {
                    self.next = end;
                    return Ok(Some((start..end, block)));
                }
            }
            longest = STRAY_BYTES_MAX;
        }
        self.next = self.end;
        Ok(None)
    }

    /// Returns the `bytes` bytes from `start` on, or fewer at the end.
    fn bytes(&mut self, start: u64, bytes: u64) -> Result<Bytes> {
        let end = self.end.min(start + bytes);
        let window_end = self.window_start + self.window.len() as u64;
        if start < self.window_start || end > window_end {
            self.window_start = start;
            self.window = self.file.read(start..self.end.min(start + WINDOW_BYTES))?;
        }
        let from = (start - self.window_start) as usize;
        Ok(self.window.slice(from..from + (end - start) as usize))
    }
}

/// Returns true if a data block may start like this. An uncompressed one starts with an entry that
/// shares no bytes, a compressed one with its length.
fn may_start(bytes: &[u8]) -> bool {
    let Some(&[first, _, third, fourth]) = bytes.first_chunk() else { return false };
    let is_hole = bytes.iter().take(64).all(|byte| *byte == 0);
    !is_hole && (first <= 1 || fourth == 0 && third < 16)
}
