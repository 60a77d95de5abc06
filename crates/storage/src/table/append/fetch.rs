//! Gets the blocks that a cursor needs: from the map, from the cache, from what was read ahead, or
//! from the file.

use super::ahead::Ahead;
use super::reader::AppendTable;
use super::refs::RefWalk;
use crate::error::Result;
use crate::format::{Block, Slot, Span, ValueRef};
use crate::table::cursor::CacheFill;
use crate::table::reader::ReadCount;
use std::sync::Arc;

/// The most data blocks that a cursor holds on to. In the order of keys the values of a tree come
/// from as many places of the file as there were batches, and from each in order.
const HELD_MAX: usize = 64;

/// How a cursor came to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By a search or backward.
    Alone,
    /// From the entry in front of it.
    Forward,
}

/// A value: the index of its block among those that are held, and its entry there.
pub(super) type HeldValue = (usize, Slot);

/// Gets and holds the blocks of one cursor.
#[derive(Debug)]
pub(super) struct Fetch {
    table: Arc<AppendTable>,
    fill: CacheFill,
    /// The data blocks that were entered last, and where they start.
    held: Vec<Block>,
    starts: Vec<u64>,
    /// The index of the block that is replaced next.
    oldest: usize,
    ahead: Ahead,
    pub(super) reads: ReadCount,
}

impl Fetch {
    pub(super) fn new(table: Arc<AppendTable>, fill: CacheFill) -> Fetch {
        Fetch {
            table,
            fill,
            held: Vec::new(),
            starts: Vec::new(),
            oldest: 0,
            ahead: Ahead::default(),
            reads: ReadCount::default(),
        }
    }

    /// Forgets what was read ahead, because the cursor goes elsewhere.
    pub(super) fn end(&mut self) {
        self.ahead.end();
    }

    /// Returns the node at `span`.
    pub(super) fn node(&mut self, span: Span) -> Result<Block> {
        if let Some(leaf) = self.ahead.leaf(&self.table, span) {
            self.reads.blocks_read += 1;
            return leaf;
        }
        match self.fill {
            CacheFill::Yes => self.table.awaited_block(span, &mut self.reads),
            CacheFill::No => self.fresh(span),
        }
    }

    /// Makes the values of coming entries ready for [`enter`](Fetch::enter), if the file is mapped:
    /// loads from main memory overlap if they are not made entry by entry. `here` is in front of
    /// these entries.
    pub(super) fn prepare(
        &mut self,
        coming: impl Iterator<Item = ValueRef> + Clone,
        here: impl FnOnce() -> RefWalk,
    ) {
        if self.fill == CacheFill::No || !self.table.is_mapped() {
            return;
        }
        if self.ahead.must_announce(&self.table, coming.clone().count() as u64) {
            self.ahead.announce(&self.table, here);
        }
        let is_watching = self.ahead.is_watching();
        for value in coming {
            if value.value_bytes > 0 && !self.starts.contains(&value.block.offset) {
                self.table.touch_value(&value, is_watching);
            }
        }
    }

    /// Gets the value that `value` leads to. `here` is in front of its entry.
    #[inline]
    pub(super) fn enter(
        &mut self,
        value: &ValueRef,
        way: Way,
        here: impl FnOnce() -> RefWalk,
    ) -> Result<Option<HeldValue>> {
        if value.value_bytes == 0 {
            return Ok(None);
        }
        let held = self.starts.iter().position(|start| *start == value.block.offset);
        let at = match held {
            Some(at) => at,
            None => {
                let block = self.block(value.block, way, here)?;
                self.hold(value.block, block)
            }
        };
        Ok(Some((at, self.table.value_slot(&self.held[at], value)?)))
    }

    /// Returns the block of a value that was [entered](Fetch::enter) last.
    #[inline]
    pub(super) fn held(&self, at: usize) -> &Block {
        &self.held[at]
    }

    /// Keeps `block`, which is at `span`, and returns its index.
    fn hold(&mut self, span: Span, block: Block) -> usize {
        // A tree of few batches needs few.
        let most = (self.table.batches() as usize).clamp(2, HELD_MAX - 1) + 1;
        if self.held.len() < most {
            self.held.push(block);
            self.starts.push(span.offset);
            return self.held.len() - 1;
        }
        let at = self.oldest;
        self.oldest = (at + 1) % most;
        (self.held[at], self.starts[at]) = (block, span.offset);
        at
    }

    fn block(&mut self, span: Span, way: Way, here: impl FnOnce() -> RefWalk) -> Result<Block> {
        let through = self.fill == CacheFill::Yes;
        if way == Way::Alone {
            return match self.fill {
                CacheFill::Yes => self.table.awaited_block(span, &mut self.reads),
                CacheFill::No => self.fresh(span),
            };
        }
        if let Some(block) = self.ahead.value(&self.table, span) {
            self.reads.blocks_read += 1;
            return block;
        }
        if through {
            if let Some(block) = self.table.near_block(span, &mut self.reads)? {
                return Ok(block);
            }
            if !self.ahead.is_streak() {
                return self.table.block(span, &mut self.reads);
            }
        }
        // The memory of pieces can be used again if nobody holds a block of them.
        self.held.clear();
        self.starts.clear();
        self.oldest = 0;
        let table = &self.table;
        let is_known = |span: Span| through && table.is_cached(span);
        self.reads.bytes_read += self.ahead.read(table, here(), is_known);
        match self.ahead.value(table, span) {
            Some(block) => {
                self.reads.blocks_read += 1;
                block
            }
            // The bytes could not be read. This returns the error.
            None => self.fresh(span),
        }
    }

    /// Reads the block at `span` from the file.
    fn fresh(&mut self, span: Span) -> Result<Block> {
        self.reads.blocks_read += 1;
        self.reads.bytes_read += span.bytes;
        self.table.fresh_block(span)
    }
}
