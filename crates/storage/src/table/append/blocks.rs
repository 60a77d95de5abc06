//! Gets the blocks of an append table: from the map, from the cache, or from the file.

use super::parts::PIECE_BYTES;
use super::reader::AppendTable;
use crate::error::Result;
use crate::format::{Block, Span, ValueRef};
use crate::table::counts::ReadCount;
use crate::table::mapped::{Lines, Mapped, TAIL_BYTES};
use std::hint::black_box;
use std::ops::Range;
use std::slice;

/// A lower bound on the bytes of an entry in front of its value, for entries with short keys.
const HEAD_BYTES: u64 = 32;

/// The most bytes of a value that are loaded ahead. A processor loads the rest by itself, once it
/// has seen a few lines.
const TOUCHED_BYTES_MAX: u64 = 1024;

/// Returns the index of the piece in which the block at `span` starts.
#[inline]
fn piece(span: Span) -> usize {
    (span.offset / PIECE_BYTES) as usize
}

impl AppendTable {
    /// Returns the block at `span` from the map or the cache, or reads it from the file into the
    /// cache.
    pub(super) fn block(&self, span: Span, reads: &mut ReadCount) -> Result<Block> {
        if let Some(block) = self.near_block(span, reads)? {
            return Ok(block);
        }
        reads.blocks_read += 1;
        reads.bytes_read += span.bytes;
        let buffer = self.cache.buffer(span.bytes as usize);
        let read = self.file.fill(buffer, span.offset)?;
        let block = self.file.unsealed_block(read, span.offset)?;
        self.cache.insert(self.name, span.offset, block.clone());
        Ok(block)
    }

    /// Returns the block at `span` as [`block`](AppendTable::block) does. If the file is mapped and
    /// reads of maps have waited recently, requests the whole block from the device first.
    pub(super) fn awaited_block(&self, span: Span, reads: &mut ReadCount) -> Result<Block> {
        self.request_block(span);
        black_box(self.touch_block(span));
        self.block(span, reads)
    }

    /// Requests the block at `span` from the device, if the file is mapped and reads of maps have
    /// waited recently.
    #[inline]
    pub(super) fn request_block(&self, span: Span) {
        if self.mapped.is_some() && self.waits_are_recent() {
            self.request(span.offset..span.end());
        }
    }

    /// Loads the bytes of the block at `span` that a read needs first, if the file is mapped.
    #[inline]
    pub(super) fn touch_block(&self, span: Span) -> u64 {
        let Some(mapped) = &self.mapped else { return 0 };
        let tail = span.end().saturating_sub(TAIL_BYTES) as usize;
        let lines = [span.offset as usize, tail]
            .map(|start| Lines { index: piece(span), bytes: start..start + 1 });
        self.load(mapped, &lines, self.must_time(&lines[0]))
    }

    /// Makes ready a value that is needed at once, in a mapped file, as
    /// [`awaited_block`](AppendTable::awaited_block) does.
    pub(super) fn await_value(&self, mapped: &Mapped, value: &ValueRef, reads: &mut ReadCount) {
        self.request_block(value.block);
        black_box(self.touch_value(mapped, value));
        reads.count_mapped(value.block.bytes);
    }

    /// Loads the value that `value` leads to from the map.
    #[inline]
    pub(super) fn touch_value(&self, mapped: &Mapped, value: &ValueRef) -> u64 {
        let lines = self.lines_of(value);
        self.load(mapped, slice::from_ref(&lines), self.must_time(&lines))
    }

    /// Returns true if reads of maps have waited recently.
    #[inline]
    pub(super) fn waits_are_recent(&self) -> bool {
        self.cache.waits.are_recent()
    }

    /// Requests the bytes at `place` from the device.
    pub(super) fn request(&self, place: Range<u64>) {
        self.cache.waits.count_request();
        self.file.announce(place);
    }

    /// Returns what to load of the block with the value that `value` leads to.
    #[inline]
    pub(super) fn lines_of(&self, value: &ValueRef) -> Lines {
        let start = value.block.offset + value.start.min(value.block.bytes);
        let bytes = HEAD_BYTES + value.value_bytes.min(TOUCHED_BYTES_MAX);
        let end = (start + bytes).min(value.block.end());
        Lines { index: piece(value.block), bytes: start as usize..end as usize }
    }

    /// Returns true if it must be noticed whether the first read of a block with these lines waits.
    #[inline]
    pub(super) fn must_time(&self, lines: &Lines) -> bool {
        self.cache.waits.must_time(self.file.table, lines.index)
    }

    /// Loads lines from the map, and notices whether that waits if `is_timed`. Returns an arbitrary
    /// combination of them.
    #[inline]
    pub(super) fn load(&self, mapped: &Mapped, lines: &[Lines], is_timed: bool) -> u64 {
        if !is_timed {
            return mapped.load(lines);
        }
        let start = self.env.now();
        let loaded = black_box(mapped.load(lines));
        self.cache.waits.count_read(self.env.now().saturating_sub(start));
        loaded
    }

    /// Returns the place in the map of the value that `value` leads to, and that belongs to a key
    /// of `key_bytes` bytes.
    #[inline]
    pub(super) fn mapped_value(
        &self,
        mapped: &Mapped,
        value: &ValueRef,
        key_bytes: usize,
    ) -> Result<Range<usize>> {
        let ValueRef { block, start, value_bytes } = value;
        mapped.check(&self.file, piece(*block), &(block.offset..block.end()))?;
        let payload = block.offset as usize..block.end() as usize;
        let (start, bytes) = (*start as usize, *value_bytes as usize);
        let place = Block::value_place(mapped.bytes(), payload, start, key_bytes, bytes);
        place.map_err(|damage| self.file.damaged(damage, block.offset))
    }

    /// Returns the block at `span` if it is in the map or the cache.
    pub(super) fn near_block(&self, span: Span, reads: &mut ReadCount) -> Result<Option<Block>> {
        if let Some(mapped) = &self.mapped {
            reads.count_mapped(span.bytes);
            return mapped.block(&self.file, piece(span), span.offset..span.end()).map(Some);
        }
        let block = self.cache.block(self.name, span.offset);
        reads.blocks_cached += u64::from(block.is_some());
        Ok(block)
    }

    /// Returns true if the block at `span` is in the cache.
    pub(super) fn is_cached(&self, span: Span) -> bool {
        self.cache.has_block(self.name, span.offset)
    }

    /// Returns the block at `span` from the map or the cache, or reads it, past the cache.
    pub(super) fn passing_block(&self, span: Span) -> Result<Block> {
        match self.near_block(span, &mut ReadCount::default())? {
            Some(block) => Ok(block),
            None => self.fresh_block(span),
        }
    }

    /// Reads the block at `span` from the file, past map and cache.
    pub(super) fn fresh_block(&self, span: Span) -> Result<Block> {
        let read = self.file.read(span.offset..span.end())?;
        self.file.unsealed_block(read, span.offset)
    }
}
