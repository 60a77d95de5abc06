//! The file of a table as memory: blocks that the system has are there without being read.

use super::table_file::TableFile;
use crate::error::Result;
use crate::format::{Block, Damage};
use bytes::Bytes;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

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

    /// Block `index` of `file`, which lies at `place`.
    pub(super) fn block(&self, file: &TableFile, index: usize, place: Range<u64>) -> Result<Block> {
        if self.bytes.len() as u64 <= place.end {
            let damage = Damage::whole("the file ends too early");
            return Err(file.damaged(damage, place.start));
        }
        let sealed = self.bytes.slice(place.start as usize..place.end as usize);
        let (word, bit) = (&self.checked[index / 64], 1 << (index % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            file.unsealed_block(sealed.clone(), place.start)?;
            word.fetch_or(bit, Ordering::Relaxed);
        }
        let block = Block::lent(&sealed).map_err(|damage| file.damaged(damage, place.start))?;
        Ok(block.dated(file.seq_base))
    }
}
