//! A table, block by block.

use super::{Entry, FileType};
use bytes::Bytes;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::{FEATURE_COMPRESSED, FEATURE_UNDATED, FORMAT_VERSION, codec_name};
use lsmith_storage::table::{BlockWalk, Piece, TableRemains};
use lsmith_tree::{KeyRange, SeqNo};
use std::ops::Range;
use std::path::Path;

/// The file of a table.
#[derive(Debug)]
pub struct TableFile {
    number: u64,
    remains: TableRemains,
}

/// What the end of the file says: where its parts are, in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footer {
    /// The version of the format.
    pub version: u32,
    /// Whether data blocks are compressed.
    pub compressed: bool,
    /// Whether entries have the number 0 in the file, and the tree says which it is.
    pub undated: bool,
    /// Where data blocks end and the filter starts, which may be empty.
    pub filter: Range<u64>,
    /// The index.
    pub index: Range<u64>,
    /// The properties.
    pub properties: Range<u64>,
}

/// What the table says about all that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Properties {
    /// Data blocks.
    pub blocks: u64,
    /// Entries, tombstones included.
    pub entries: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Logical bytes: key + value + 8 for each entry.
    pub logical_bytes: u64,
    /// The least sequence number in the file.
    pub seq_min: SeqNo,
    /// The greatest.
    pub seq_max: SeqNo,
    /// The first key.
    pub first_key: Bytes,
    /// The last key.
    pub last_key: Bytes,
    /// Points of the profile.
    pub profile_points: usize,
}

/// The size of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// Bytes of it.
    pub bytes: u64,
    /// Bits that each key has in it, at most.
    pub probes: u8,
}

/// A data block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableBlock {
    /// How it is compressed: `none`, `lz4` or `zstd`.
    pub codec: &'static str,
    /// Bytes of it when it is not compressed.
    pub payload_bytes: u64,
    /// Its entries, in their order.
    pub entries: Vec<Entry>,
}

impl TableFile {
    /// Looks at the file at `path`, which has the name of a table. Data blocks are not read yet,
    /// unless the index is damaged: then they are searched for.
    ///
    /// # Errors
    /// `InvalidArgument` for another name, `Unsupported`, `Io`; not for damage.
    pub fn open(env: &dyn Env, path: &Path) -> Result<TableFile> {
        let (_, number) = FileType::number(path, &[FileType::Table])?;
        Ok(TableFile { number, remains: TableRemains::open(env, path, number)? })
    }

    /// The number in its name.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.remains.file_bytes()
    }

    /// The footer, unless it is damaged.
    pub fn footer(&self) -> Option<Footer> {
        self.remains.footer.as_ref().map(|footer| Footer {
            version: FORMAT_VERSION,
            compressed: footer.features & FEATURE_COMPRESSED != 0,
            undated: footer.features & FEATURE_UNDATED != 0,
            filter: footer.filter.clone(),
            index: footer.index.clone(),
            properties: footer.properties.clone(),
        })
    }

    /// The properties, unless they are damaged.
    pub fn properties(&self) -> Option<Properties> {
        self.remains.facts.as_ref().map(|facts| Properties {
            blocks: facts.data_blocks,
            entries: facts.size.entries,
            tombstones: facts.size.tombstones,
            logical_bytes: facts.size.bytes,
            seq_min: facts.seq_min,
            seq_max: facts.seq_max,
            first_key: Bytes::copy_from_slice(&facts.first_key),
            last_key: Bytes::copy_from_slice(&facts.last_key),
            profile_points: facts.profile.len(),
        })
    }

    /// The filter, if the table has one and it is not damaged.
    pub fn filter(&self) -> Option<Filter> {
        self.remains
            .filter
            .as_ref()
            .map(|filter| Filter { bytes: filter.memory_bytes() as u64, probes: filter.probes() })
    }

    /// What is damaged besides data blocks.
    pub fn damage(&self) -> &[Error] {
        &self.remains.damage
    }

    pub(super) fn take_damage(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.remains.damage)
    }

    /// How many data blocks there are. Where the index is damaged, a stretch of the file in which
    /// none can be found counts as one.
    pub fn block_count(&self) -> usize {
        self.remains.pieces().len()
    }

    /// Where block `index` lies in the file.
    ///
    /// # Panics
    /// There are fewer blocks.
    pub fn block_place(&self, index: usize) -> Range<u64> {
        self.piece(index).place.clone()
    }

    /// The key range that all keys of block `index` lie in, as the fence pointers say it: from that
    /// of the block up to that of the next. Without the index, that of the keys found.
    ///
    /// # Panics
    /// There are fewer blocks.
    pub fn block_keys(&self, index: usize) -> KeyRange {
        self.piece(index).keys.clone()
    }

    fn piece(&self, index: usize) -> &Piece {
        &self.remains.pieces()[index]
    }

    /// Block `index`; `None` where its place reads as zeros, as it does where it was given back to
    /// the device because no slice shows it.
    ///
    /// # Errors
    /// `Corruption` where it is not what was written; `Io`.
    ///
    /// # Panics
    /// There are fewer blocks.
    pub fn block(&self, index: usize) -> Result<Option<TableBlock>> {
        let piece = self.piece(index);
        match self.read_block(piece) {
            Ok(block) => Ok(Some(block)),
            Err(error) if error.kind() == ErrorKind::Corruption => {
                match self.remains.touches_hole(piece)? {
                    true => Ok(None),
                    false => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn read_block(&self, piece: &Piece) -> Result<TableBlock> {
        let block = self.remains.block(piece)?;
        let codec = codec_name(&self.remains.sealed(piece)?).unwrap_or("none");
        let mut entries = Vec::new();
        let payload_bytes = block.bytes() as u64;
        let mut walk = BlockWalk::new(block);
        let damaged = |damage| self.remains.damaged(damage, piece);
        while let Some(slot) = walk.next_slot().map_err(damaged)? {
            entries.push(walk.entry(&slot).into());
        }
        Ok(TableBlock { codec, payload_bytes, entries })
    }
}
