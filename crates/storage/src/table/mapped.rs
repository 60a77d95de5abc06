//! Reads a table through a map of its file: blocks in the page cache need no read call.

use super::table_file::TableFile;
use crate::error::Result;
use crate::format::{Block, Damage};
use crate::sync::atomic::{AtomicU64, Ordering};
use bytes::Bytes;
use std::ops::Range;

/// The distance from the end of a block to the bytes that locate its restart points, roughly.
pub(super) const TAIL_BYTES: u64 = 30;

/// Bytes of a line of memory.
const LINE_BYTES: usize = 64;

/// A mapped file. Each block's checksum is checked before its first use.
#[derive(Debug)]
pub(super) struct Mapped {
    bytes: Bytes,
    /// One bit for each block, set once its checksum matched.
    checked: Box<[AtomicU64]>,
}

/// Bytes of a mapped file that are to be loaded together.
#[derive(Debug)]
pub(super) struct Lines {
    /// The index of their block.
    pub(super) index: usize,
    /// Their place in the file.
    pub(super) bytes: Range<usize>,
}

impl Mapped {
    /// Creates the map of a file with `blocks` data blocks, whose contents are `bytes`.
    pub(super) fn new(bytes: Bytes, blocks: usize) -> Mapped {
        let checked = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Mapped { bytes, checked }
    }

    /// Loads the byte at `at`.
    #[inline]
    fn byte(&self, at: u64) -> u64 {
        self.bytes.get(at as usize).copied().map_or(0, u64::from)
    }

    /// Loads the bytes of block `index`, at `place`, that a read needs first. Also makes the system
    /// map their pages. Returns an arbitrary combination of them.
    #[inline]
    pub(super) fn touch(&self, index: usize, place: &Range<u64>) -> u64 {
        self.touch_check(index)
            ^ self.byte(place.start)
            ^ self.byte(place.end.saturating_sub(TAIL_BYTES))
    }

    /// Loads what says whether the checksum of block `index` was checked.
    #[inline]
    fn touch_check(&self, index: usize) -> u64 {
        self.checked.get(index / 64).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Loads `lines`. Returns an arbitrary combination of them. A processor looks a few hundred
    /// instructions ahead, so this does nothing else, and waits for main memory overlap.
    #[inline]
    pub(super) fn load(&self, lines: &[Lines]) -> u64 {
        let mut all = 0;
        for Lines { index, bytes } in lines {
            all ^= self.touch_check(*index);
            let bytes = self.bytes.get(bytes.clone()).unwrap_or_default();
            bytes.iter().step_by(LINE_BYTES).for_each(|byte| all ^= u64::from(*byte));
            all ^= u64::from(bytes.last().copied().unwrap_or(0));
        }
        all
    }

    /// Returns the bytes of the file.
    #[inline]
    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns block `index` of `file`, at `place`.
    pub(super) fn block(&self, file: &TableFile, index: usize, place: Range<u64>) -> Result<Block> {
        self.check(file, index, &place)?;
        let within = place.start as usize..place.end as usize;
        let block = Block::lent(&self.bytes, within);
        Ok(block.map_err(|damage| file.damaged(damage, place.start))?.with_seq_base(file.seq_base))
    }

    /// Checks the checksum of block `index` of `file`, at `place`, before its first use.
    #[inline]
    pub(super) fn check(&self, file: &TableFile, index: usize, place: &Range<u64>) -> Result<()> {
        if self.touch_check(index) & 1 << (index % 64) == 0 {
            self.check_first(file, index, place)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn check_first(&self, file: &TableFile, index: usize, place: &Range<u64>) -> Result<()> {
        if self.bytes.len() as u64 <= place.end {
            let damage = Damage::whole("the file ends too early");
            return Err(file.damaged(damage, place.start));
        }
        let within = place.start as usize..place.end as usize;
        file.unsealed_block(self.bytes.slice(within), place.start)?;
        self.checked[index / 64].fetch_or(1 << (index % 64), Ordering::Relaxed);
        Ok(())
    }
}
