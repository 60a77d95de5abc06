//! Finding data blocks without the index that says where they are.
//!
//! Blocks lie one behind the other, and the seal at the end of each is a checksum that depends on
//! where the block starts. So from the place where a block starts, the place where it ends is the
//! one at which the checksum fits. A byte in front of it says how the block is compressed, which
//! rules out nearly all other places at once. Behind a damaged block it is not known where the next
//! one starts: then the places are tried one after the other at which a block may start.
//!
//! The price: about 20 us for a block of 4 KiB, and up to a second behind each damaged one. Blocks
//! longer than [`BLOCK_BYTES_MAX`] are not found.

use super::table_file::TableFile;
use crate::error::Result;
use crate::format::{Block, SEAL_BYTES, SealedPlace};
use bytes::Bytes;
use std::ops::Range;

/// Bytes of the longest block that is found where its start is known.
const BLOCK_BYTES_MAX: u64 = 1 << 20;

/// The same where its start is not known.
const STRAY_BYTES_MAX: u64 = 64 << 10;

/// Bytes that are read at once.
const WINDOW_BYTES: u64 = 8 << 20;

/// A walk over the blocks of a file.
pub(super) struct BlockSearch<'a> {
    file: &'a TableFile,
    /// Where the data blocks end at the latest.
    end: u64,
    /// Where the next block starts, or behind which.
    next: u64,
    window: Bytes,
    window_start: u64,
}

impl<'a> BlockSearch<'a> {
    /// The blocks of `file` that lie in front of `end`.
    pub(super) fn new(file: &'a TableFile, end: u64) -> BlockSearch<'a> {
        BlockSearch { file, end, next: 0, window: Bytes::new(), window_start: 0 }
    }

    /// The next block that can be found, and where it lies. Of what is sealed right behind the
    /// block before, also what is none of entries: the filter, or another part behind the data.
    pub(super) fn next(&mut self) -> Result<Option<(Range<u64>, Option<Block>)>> {
        let mut longest = BLOCK_BYTES_MAX;
        for start in self.next..self.end.saturating_sub(SEAL_BYTES as u64) {
            let bytes = self.bytes(start, longest)?;
            let is_next = start == self.next;
            let place = SealedPlace { table: self.file.table, offset: start };
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

    /// The bytes from `start` on, `bytes` of them or up to the end.
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

/// Whether a data block may start like this. A plain one starts with an entry that shares nothing,
/// one that is compressed with its length.
fn may_start(bytes: &[u8]) -> bool {
    let Some(&[first, _, third, fourth]) = bytes.first_chunk() else { return false };
    let is_hole = bytes.iter().take(64).all(|byte| *byte == 0);
    !is_hole && (first <= 1 || fourth == 0 && third < 16)
}
