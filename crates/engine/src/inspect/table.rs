//! Reads a sorted table block by block.

use super::entry::Entry;
use super::file_type::FileType;
use bytes::Bytes;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::{
    self, FEATURE_COMPRESSED, FEATURE_EXPIRING, FEATURE_OUTSIDE, FEATURE_UNDATED, FORMAT_VERSION,
    TABLE_MAGIC, codec_name,
};
use lsmith_storage::table::{BlockWalk, OUTSIDE, OpenFiles, Piece, TableRemains};
use lsmith_tree::{KeyRange, SeqNo};
use std::ops::Range;
use std::path::Path;

/// The file of a sorted table, whole or damaged.
#[derive(Debug)]
pub struct TableFile {
    file_id: u64,
    remains: TableRemains,
}

/// The footer of a table. Ranges are offsets in the file, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footer {
    /// The version of the format.
    pub version: u32,
    /// True if data blocks are compressed.
    pub compressed: bool,
    /// True if the table is from a bulk load: its entries have sequence number 0 in the file, and
    /// the tree has their real sequence number.
    pub undated: bool,
    /// True if the table was written outside of a store.
    pub outside: bool,
    /// True if the table was written outside of a store, and has entries that expire.
    pub expiring: bool,
    /// The filter, which starts where the data blocks end. Empty if there is no filter.
    pub filter: Range<u64>,
    /// The index block.
    pub index: Range<u64>,
    /// The properties.
    pub properties: Range<u64>,
}

/// The properties of a table: sums over all its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Properties {
    /// The number of data blocks.
    pub blocks: u64,
    /// The number of entries, tombstones included.
    pub entries: u64,
    /// The number of tombstones.
    pub tombstones: u64,
    /// Logical bytes: key + value + 8 per entry.
    pub logical_bytes: u64,
    /// The least sequence number in the file.
    pub seq_min: SeqNo,
    /// The greatest sequence number in the file.
    pub seq_max: SeqNo,
    /// The first key.
    pub first_key: Bytes,
    /// The last key.
    pub last_key: Bytes,
    /// The number of points of the profile.
    pub profile_points: usize,
    /// The name of the operator of the operands, if the table was written outside of a store and
    /// has some.
    pub operator: Option<String>,
}

/// The size of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// The bytes of the filter.
    pub bytes: u64,
    /// The most bits that a key sets.
    pub probes: u8,
}

/// A data block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableBlock {
    /// The codec: `none`, `lz4` or `zstd`.
    pub codec: &'static str,
    /// The bytes of the block after decompression.
    pub payload_bytes: u64,
    /// The entries, in their order.
    pub entries: Vec<Entry>,
}

/// Returns true if the file at `path` is a table, of a store or written outside of one: if its name
/// ends with `.table`, or if it ends with the magic bytes. A damaged table is a table too.
///
/// # Errors
/// `Io` if the file cannot be read.
pub fn is_table(env: &dyn Env, path: &Path) -> Result<bool> {
    let failed = |error| Error::io("read", path, error);
    let file = env.open(path).map_err(failed)?;
    if path.extension().is_some_and(|extension| extension == "table") {
        return Ok(true);
    }
    let mut end = TABLE_MAGIC.map(|_| 0);
    let Some(start) = file.bytes().map_err(failed)?.checked_sub(end.len() as u64) else {
        return Ok(false);
    };
    file.read_exact_at(&mut end, start).map_err(failed)?;
    Ok(end == TABLE_MAGIC)
}

impl TableFile {
    /// Opens the file at `path`: a table of a store, with the name of one, or any other
    /// [table](is_table), which must have been written outside of a store. Reads no data blocks
    /// yet. But if the index is damaged, searches the file for data blocks.
    ///
    /// # Errors
    /// `InvalidArgument` if the file is no table; `Unsupported` if it has a newer format or is an
    /// append table, for which there is [`AppendFile`](super::AppendFile); `Io` if it cannot be
    /// read. Damage is not an error here: see [`damage`](TableFile::damage).
    pub fn open(env: &dyn Env, path: &Path) -> Result<TableFile> {
        let file_id = match FileType::one_of(&[FileType::Table], path) {
            Ok((_, file_id)) => file_id,
            Err(_) if is_table(env, path)? => OUTSIDE,
            Err(error) => return Err(error),
        };
        let remains = TableRemains::open(env, path, file_id, &OpenFiles::few())?;
        Ok(TableFile { file_id, remains })
    }

    /// Returns the id in the name of the file; 0 for a table outside of a store.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// Returns the length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.remains.file_bytes()
    }

    /// Returns the footer, unless it is damaged.
    pub fn footer(&self) -> Option<Footer> {
        self.remains.footer.as_ref().map(footer_of)
    }

    /// Returns the properties, unless they are damaged.
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
            operator: facts.operator.clone(),
        })
    }

    /// Returns the size of the filter, if the table has one that is not damaged.
    pub fn filter(&self) -> Option<Filter> {
        self.remains
            .filter
            .as_ref()
            .map(|filter| Filter { bytes: filter.memory_bytes() as u64, probes: filter.probes() })
    }

    /// Returns the damage of all parts but the data blocks.
    pub fn damage(&self) -> &[Error] {
        &self.remains.damage
    }

    pub(super) fn take_damage(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.remains.damage)
    }

    /// Returns the number of data blocks. If the index is damaged, each part of the file in which
    /// no block can be found counts as one block.
    pub fn block_count(&self) -> usize {
        self.remains.pieces().len()
    }

    /// Returns the bytes of block `index` as a range of offsets in the file.
    ///
    /// # Panics
    /// Panics if there are fewer blocks.
    pub fn block_place(&self, index: usize) -> Range<u64> {
        self.piece(index).place.clone()
    }

    /// Returns a key range that holds all keys of block `index`: from its fence pointer up to the
    /// next one. Without an index, the range covers the keys that were found.
    ///
    /// # Panics
    /// Panics if there are fewer blocks.
    pub fn block_keys(&self, index: usize) -> KeyRange {
        self.piece(index).keys.clone()
    }

    fn piece(&self, index: usize) -> &Piece {
        &self.remains.pieces()[index]
    }

    /// Reads block `index`. Returns `None` if the block touches a page of zeros, as it does after a
    /// hole was punched because no slice needs it.
    ///
    /// # Errors
    /// `Corruption` if the block is damaged; `Io` if it cannot be read.
    ///
    /// # Panics
    /// Panics if there are fewer blocks.
    pub fn block(&self, index: usize) -> Result<Option<TableBlock>> {
        let piece = self.piece(index);
        match self.read_block(piece) {
            Ok(block) => Ok(Some(block)),
            Err(error) if error.kind() == ErrorKind::Corruption => {
                let is_hole = self.remains.touches_hole(piece)?;
                if is_hole { Ok(None) } else { Err(error) }
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

pub(super) fn footer_of(footer: &format::Footer) -> Footer {
    Footer {
        version: FORMAT_VERSION,
        compressed: footer.features & FEATURE_COMPRESSED != 0,
        undated: footer.features & FEATURE_UNDATED != 0,
        outside: footer.features & FEATURE_OUTSIDE != 0,
        expiring: footer.features & FEATURE_EXPIRING != 0,
        filter: footer.filter.clone(),
        index: footer.index.clone(),
        properties: footer.properties.clone(),
    }
}
