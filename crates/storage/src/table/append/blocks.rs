//! Gets the blocks of an append table: from the map, from the cache, or from the file.

use super::parts::PIECE_BYTES;
use super::reader::AppendTable;
use crate::error::Result;
use crate::format::{Block, Span, ValueRef};
use crate::table::mapped::Mapped;
use crate::table::reader::ReadCount;
use std::hint::black_box;
use std::ops::Range;

impl AppendTable {
    /// Returns true if the file is mapped.
    pub(super) fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }

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
        if let Some(mapped) = &self.mapped {
            if self.waits_are_recent() {
                self.request(span.offset..span.end());
            }
            self.touch_block(mapped, span, false, || 0);
        }
        self.block(span, reads)
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

    /// Loads the bytes that are needed first of the block with `value` and of its entry there, if
    /// the file is mapped. Always notices whether that waits if `is_watching`, or else sometimes.
    #[inline]
    pub(super) fn touch_value(&self, value: &ValueRef, is_watching: bool) {
        if let Some(mapped) = &self.mapped {
            let entry = value.block.offset + value.start.min(value.block.bytes);
            self.touch_block(mapped, value.block, is_watching, || mapped.byte(entry));
        }
    }

    #[inline]
    fn touch_block(
        &self,
        mapped: &Mapped,
        span: Span,
        is_watching: bool,
        entry: impl FnOnce() -> u64,
    ) {
        let piece = (span.offset / PIECE_BYTES) as usize;
        let place = span.offset..span.end();
        if is_watching || self.cache.waits.must_time(self.file.table, piece) {
            let start = self.env.now();
            black_box(mapped.touch(piece, &place) ^ entry());
            self.cache.waits.count_read(self.env.now().saturating_sub(start));
        } else {
            black_box(mapped.touch(piece, &place) ^ entry());
        }
    }

    /// Returns the block at `span` if it is in the map or the cache.
    pub(super) fn near_block(&self, span: Span, reads: &mut ReadCount) -> Result<Option<Block>> {
        if let Some(mapped) = &self.mapped {
            reads.blocks_mapped += 1;
            reads.bytes_read += span.bytes;
            let piece = (span.offset / PIECE_BYTES) as usize;
            return mapped.block(&self.file, piece, span.offset..span.end()).map(Some);
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
