//! Reads a table file as far as possible, also if parts of it are damaged.
//!
//! A store opens a table only if everything except its data blocks is intact. Inspection and repair
//! need less, because data blocks are readable on their own. With the index, each block is read at
//! its place. Without it, the blocks are [searched for](super::search).

use super::open_files::OpenFiles;
use super::search::BlockSearch;
use super::table_file::TableFile;
use super::writer::OUTSIDE;
use crate::cursor::EntryRef;
use crate::env::{Env, PAGE_BYTES};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Block, Damage, Fences, Filter, Footer, Slot, TableFacts};
use bytes::Bytes;
use lsmith_tree::{Key, KeyRange, key_after};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A table file, as far as it can be read.
#[derive(Debug)]
pub struct TableRemains {
    file: TableFile,
    file_bytes: u64,
    /// The footer, if it can be read.
    pub footer: Option<Footer>,
    /// The filter, if it can be read and there is one.
    pub filter: Option<Filter>,
    /// The fence pointers, if they can be read.
    pub fences: Option<Fences>,
    /// The facts, if they can be read.
    pub facts: Option<TableFacts>,
    /// All damage outside of the data blocks.
    pub damage: Vec<Error>,
    pieces: Vec<Piece>,
}

/// A data block, or a part of the file whose blocks cannot be found.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The place in the file.
    pub place: Range<u64>,
    /// A range that contains all keys of the piece, as far as that is known.
    pub keys: KeyRange,
    /// True if the piece is known to be one block.
    pub is_block: bool,
}

impl TableRemains {
    /// Reads the file at `path`, which should hold `table`. `files` counts its descriptor.
    ///
    /// # Errors
    /// Fails with `Io` if it cannot be read, and with `Unsupported` if its version or a feature is
    /// unknown. Damage is no error.
    pub fn open(
        env: &dyn Env,
        path: &Path,
        table: u64,
        files: &Arc<OpenFiles>,
    ) -> Result<TableRemains> {
        let file = TableFile::open(env, path, table, files)?;
        let file_bytes = file.bytes()?;
        let mut remains = TableRemains {
            file,
            file_bytes,
            footer: None,
            filter: None,
            fences: None,
            facts: None,
            damage: Vec::new(),
            pieces: Vec::new(),
        };
        let footer = remains.file.footer();
        remains.footer = remains.keep_damage(footer)?;
        if let Some(footer) = remains.footer.clone() {
            remains.file.sealed_as = footer.table;
            remains.read_parts(&footer)?;
        }
        remains.pieces = match &remains.fences {
            Some(fences) => pieces_of(fences, remains.facts.as_ref()),
            None => remains.search()?,
        };
        if remains.footer.is_none() && !remains.pieces.iter().any(|piece| piece.is_block) {
            remains.file.sealed_as = OUTSIDE;
            remains.pieces = remains.search()?;
        }
        Ok(remains)
    }

    /// Returns the value of `found`. Keeps damage in the list, and returns other errors.
    fn keep_damage<T>(&mut self, found: Result<T>) -> Result<Option<T>> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::Corruption => {
                self.damage.push(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn read_parts(&mut self, footer: &Footer) -> Result<()> {
        let tail = self.file.read(footer.filter.start..footer.properties.end)?;
        if !footer.filter.is_empty() {
            let filter = self.file.part(&tail, footer, &footer.filter, Filter::parse);
            self.filter = self.keep_damage(filter)?;
        }
        let parse_index =
            |payload: &[u8]| Fences::parse(payload, footer.filter.start, footer.plain_bytes_max());
        let fences = self.file.part(&tail, footer, &footer.index, parse_index);
        self.fences = self.keep_damage(fences)?;
        let parse_facts = |payload: &[u8]| TableFacts::parse(payload, footer);
        let facts = self.file.part(&tail, footer, &footer.properties, parse_facts);
        let table = self.file.table;
        self.facts = self.keep_damage(facts)?.map(|facts| TableFacts { table, ..facts });
        Ok(())
    }

    /// Returns the data blocks that can be found without the index, and the gaps between them.
    fn search(&self) -> Result<Vec<Piece>> {
        let end = self.footer.as_ref().map_or(self.file_bytes, |footer| footer.filter.start);
        let mut search = BlockSearch::new(&self.file, 0..end);
        let mut pieces: Vec<Piece> = Vec::new();
        while let Some((place, block)) = search.next()? {
            let Some((first, last)) = block.as_ref().and_then(ends_of) else {
                // The data ends where the next part begins.
                return Ok(pieces);
            };
            let keys = KeyRange::inclusive(&first, &last);
            add_gap(&mut pieces, place.start, Some(&keys));
            pieces.push(Piece { place, keys, is_block: true });
        }
        // Without a footer the end of the data is unknown.
        if self.footer.is_none() || pieces.last().is_none_or(|last| last.place.end < end) {
            push_gap(&mut pieces, end, None);
        }
        Ok(pieces)
    }

    /// Returns the length of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns the data blocks in the order of the file, which is the order of their keys.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Reads the block of `piece`.
    ///
    /// # Errors
    /// Fails with `Corruption` if the block is damaged or was not found, and with `Io`.
    pub fn block(&self, piece: &Piece) -> Result<Block> {
        if !piece.is_block {
            let damage = Damage::whole("no data block can be found here");
            return Err(self.file.damaged(damage, piece.place.start));
        }
        self.file.unsealed_block(self.sealed(piece)?, piece.place.start)
    }

    /// Returns the bytes of the file at the place of `piece`.
    pub fn sealed(&self, piece: &Piece) -> Result<Bytes> {
        self.file.read(piece.place.clone())
    }

    /// Returns the error for damage in the block of `piece`.
    pub fn damaged(&self, damage: Damage, piece: &Piece) -> Error {
        self.file.damaged(damage, piece.place.start)
    }

    /// Returns true if a page that `piece` touches is all zeros, as a page is whose space was
    /// freed.
    pub fn touches_hole(&self, piece: &Piece) -> Result<bool> {
        let first = piece.place.start / PAGE_BYTES;
        let end = piece.place.end.min(self.file_bytes / PAGE_BYTES * PAGE_BYTES);
        for page in first..end.div_ceil(PAGE_BYTES) {
            let bytes = self.file.read(page * PAGE_BYTES..(page + 1) * PAGE_BYTES)?;
            if bytes.iter().all(|byte| *byte == 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns the pieces that the index of a table describes.
fn pieces_of(fences: &Fences, facts: Option<&TableFacts>) -> Vec<Piece> {
    let start = |index: usize| match (index, facts) {
        (0, Some(facts)) => facts.first_key.clone(),
        _ => fences.key(index).into(),
    };
    let end = |index: usize| match index + 1 {
        next if next == fences.count() => facts.map(|facts| key_after(&facts.last_key)),
        // Versions of the key lie on both sides.
        next if fences.is_continued(next) => Some(key_after(fences.key(next))),
        next => Some(fences.key(next).into()),
    };
    let piece = |index| Piece {
        place: fences.place(index),
        keys: KeyRange { start: start(index), end: end(index) },
        is_block: true,
    };
    (0..fences.count()).map(piece).collect()
}

/// Adds the gap between the last of `pieces` and `end`, if there is one. `keys` come next.
fn add_gap(pieces: &mut Vec<Piece>, end: u64, keys: Option<&KeyRange>) {
    if pieces.last().map_or(0, |last| last.place.end) < end {
        push_gap(pieces, end, keys);
    }
}

fn push_gap(pieces: &mut Vec<Piece>, end: u64, keys: Option<&KeyRange>) {
    let (from, start) = match pieces.last() {
        Some(last) => (last.place.end, last.keys.end.clone().unwrap_or_default()),
        None => (0, Key::new()),
    };
    // Versions of the first key behind the gap may lie in it.
    let keys_end = keys.map(|keys| key_after(&keys.start));
    let keys = KeyRange { start, end: keys_end };
    pieces.push(Piece { place: from..end, keys, is_block: false });
}

/// Returns the first and the last key of `block`, or `None` if it is no valid block of entries.
pub(super) fn ends_of(block: &Block) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut walk = BlockWalk::new(block.clone());
    walk.next_slot().ok()??;
    let first = walk.key().to_vec();
    while walk.next_slot().ok()?.is_some() {}
    Some((first, walk.key.clone())).filter(|(first, last)| !first.is_empty() && first <= last)
}

/// Walks the entries of a block.
#[derive(Debug)]
pub struct BlockWalk {
    block: Block,
    at: usize,
    key: Vec<u8>,
}

impl BlockWalk {
    /// Returns a walk over the entries of `block`, from the first.
    pub fn new(block: Block) -> BlockWalk {
        BlockWalk { block, at: 0, key: Vec::new() }
    }

    /// Returns the next entry, or `None` at the end.
    pub fn next_slot(&mut self) -> std::result::Result<Option<Slot>, Damage> {
        if self.at >= self.block.entries_end() {
            return Ok(None);
        }
        let slot = self.block.slot(self.at)?;
        self.block.step(&slot, &mut self.key)?;
        self.at = slot.end();
        Ok(Some(slot))
    }

    /// Returns the key of the entry that was returned last.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the complete entry that was returned last, as `slot`.
    pub fn entry(&self, slot: &Slot) -> EntryRef<'_> {
        EntryRef { key: &self.key, seq: slot.seq, kind: slot.kind, value: self.block.value(slot) }
    }
}
