//! Reads a table through a map of its file: blocks in the page cache need no read call.

use super::table_file::TableFile;
use crate::error::Result;
use crate::format::{Block, Damage};
use crate::sync::atomic::{AtomicU64, Ordering};
use bytes::Bytes;
use std::ops::Range;

/// The distance from the end of a block to the bytes that locate its restart points, roughly.
const TAIL_BYTES: u64 = 30;

/// A mapped file. Each block's checksum is checked before its first use.
#[derive(Debug)]
pub(super) struct Mapped {
    bytes: Bytes,
    /// One bit for each block, set once its checksum matched.
    checked: Box<[AtomicU64]>,
}

impl Mapped {
    /// Creates the map of a file with `blocks` data blocks, whose contents are `bytes`.
    pub(super) fn new(bytes: Bytes, blocks: usize) -> Mapped {
        let checked = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Mapped { bytes, checked }
    }

    /// Loads the byte at `at`.
    #[inline]
    pub(super) fn byte(&self, at: u64) -> u64 {
        self.bytes.get(at as usize).copied().map_or(0, u64::from)
    }

    /// Loads the bytes of block `index`, at `place`, that a read needs first. Also makes the system
    /// map their pages. Returns an arbitrary combination of them.
    #[inline]
    pub(super) fn touch(&self, index: usize, place: &Range<u64>) -> u64 {
        let checked = self.checked.get(index / 64).map_or(0, |word| word.load(Ordering::Relaxed));
        checked ^ self.byte(place.start) ^ self.byte(place.end.saturating_sub(TAIL_BYTES))
    }

    /// Returns block `index` of `file`, at `place`.
    pub(super) fn block(&self, file: &TableFile, index: usize, place: Range<u64>) -> Result<Block> {
        if self.bytes.len() as u64 <= place.end {
            let damage = Damage::whole("the file ends too early");
            return Err(file.damaged(damage, place.start));
        }
        let within = place.start as usize..place.end as usize;
        let word = &self.checked[index / 64];
        let bit = 1 << (index % 64);
        if word.load(Ordering::Relaxed) & bit == 0 {
            file.unsealed_block(self.bytes.slice(within.clone()), place.start)?;
            word.fetch_or(bit, Ordering::Relaxed);
        }
        let block = Block::lent(&self.bytes, within);
        Ok(block.map_err(|damage| file.damaged(damage, place.start))?.with_seq_base(file.seq_base))
    }
}
