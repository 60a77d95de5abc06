//! The file of a table as memory: blocks that the system has are there without being read.

use super::table_file::TableFile;
use crate::error::Result;
use crate::format::{Block, Damage};
use crate::sync::atomic::{AtomicU64, Ordering};
use bytes::Bytes;
use std::ops::Range;

/// Bytes at the end of a block that say where its restart points are, roughly.
const TAIL_BYTES: u64 = 30;

/// A mapped file. Each block is checked when somebody first looks at it.
#[derive(Debug)]
pub(super) struct Mapped {
    bytes: Bytes,
    /// A bit for each block, set when it has passed its checksum.
    checked: Box<[AtomicU64]>,
}

impl Mapped {
    /// A file that holds `blocks` data blocks, as `bytes`.
    pub(super) fn new(bytes: Bytes, blocks: usize) -> Mapped {
        let checked = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Mapped { bytes, checked }
    }

    /// Loads what is looked at first in block `index`, which lies at `place`, and of what the
    /// system knows about its pages.
    #[inline]
    pub(super) fn touch(&self, index: usize, place: &Range<u64>) -> u64 {
        let byte = |at: u64| self.bytes.get(at as usize).copied().map_or(0, u64::from);
        let checked = self.checked.get(index / 64).map_or(0, |word| word.load(Ordering::Relaxed));
        checked ^ byte(place.start) ^ byte(place.end.saturating_sub(TAIL_BYTES))
    }

    /// Block `index` of `file`, which lies at `place`.
    pub(super) fn block(&self, file: &TableFile, index: usize, place: Range<u64>) -> Result<Block> {
        if self.bytes.len() as u64 <= place.end {
            let damage = Damage::whole("the file ends too early");
            return Err(file.damaged(damage, place.start));
        }
        let within = place.start as usize..place.end as usize;
        let (word, bit) = (&self.checked[index / 64], 1 << (index % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            file.unsealed_block(self.bytes.slice(within.clone()), place.start)?;
            word.fetch_or(bit, Ordering::Relaxed);
        }
        let block = Block::lent(&self.bytes, within);
        Ok(block.map_err(|damage| file.damaged(damage, place.start))?.dated(file.seq_base))
    }
}
