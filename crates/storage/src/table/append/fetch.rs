//! Gets the blocks that a cursor needs: from the map, from the cache, from what was read ahead, or
//! from the file.

use super::ahead::Ahead;
use super::parts::PIECE_BYTES;
use super::reader::AppendTable;
use super::refs::RefWalk;
use crate::error::Result;
use crate::format::{Block, Slot, Span, ValueRef};
use crate::table::counts::ReadCount;
use crate::table::cursor::CacheFill;
use crate::table::mapped::{Lines, Mapped};
use bytes::Bytes;
use std::hint::black_box;
use std::sync::Arc;

/// The most data blocks that a cursor holds on to. In the order of keys the values of a table come
/// from as many places of the file as there were batches, and from each in order.
const HELD_MAX: usize = 64;

/// The number of blocks that are remembered while a cursor walks a mapped file.
const REACHED_MAX: usize = 32;

/// How a cursor came to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By a search.
    Alone,
    /// From the entry in front of it.
    Forward,
    /// From the entry behind it.
    Back,
}

/// The place of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValuePlace {
    /// In the map of the file, by its bounds there.
    Mapped(usize, usize),
    /// In a held block, by the index of the block and the entry there.
    Held(usize, Slot),
}

/// The blocks with values that a cursor over a mapped file has reached last.
#[derive(Debug)]
struct Reached {
    /// Their offsets in the file, in units of [`PIECE_BYTES`].
    pieces: [u32; REACHED_MAX],
    oldest: usize,
}

impl Reached {
    /// Adds the block at `offset`. Returns true if it was not there.
    #[inline]
    fn add(&mut self, offset: u64) -> bool {
        // Blocks that are 128 GiB apart have equal remainders. Then one of them is not counted.
        let piece = (offset / PIECE_BYTES) as u32;
        // Without an early end the numbers are compared many at once.
        let is_there = self.pieces.iter().fold(false, |found, at| found | (*at == piece));
        if !is_there {
            self.pieces[self.oldest] = piece;
            self.oldest = (self.oldest + 1) % REACHED_MAX;
        }
        !is_there
    }
}

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
    /// What was read ahead, and how to go on with that.
    ahead: Option<Box<Ahead>>,
    /// The direction in which this was read.
    way: Way,
    /// The bytes of the map of the file, if this reads through it. A walk that asks the table for
    /// them at each entry takes 5 % longer.
    map: Option<Bytes>,
    reached: Reached,
    /// What to load of coming values.
    lines: Vec<Lines>,
    pub(super) reads: ReadCount,
}

impl Fetch {
    pub(super) fn new(table: Arc<AppendTable>, fill: CacheFill) -> Fetch {
        Fetch {
            map: map_for(&table, fill).map(|mapped| mapped.bytes().clone()),
            reached: Reached { pieces: [u32::MAX; REACHED_MAX], oldest: 0 },
            lines: Vec::new(),
            table,
            fill,
            held: Vec::new(),
            starts: Vec::new(),
            oldest: 0,
            ahead: None,
            way: Way::Alone,
            reads: ReadCount::default(),
        }
    }

    /// Forgets what was read ahead, because the cursor goes elsewhere.
    pub(super) fn end(&mut self) {
        self.ahead = None;
    }

    /// Forgets what was read ahead for another direction than `way`.
    pub(super) fn go(&mut self, way: Way) {
        if self.way != way {
            self.end();
            self.way = way;
        }
    }

    /// Returns the node at `span`.
    pub(super) fn node(&mut self, span: Span) -> Result<Block> {
        self.request_node(span);
        black_box(self.touch_node(span));
        self.ready_node(span)
    }

    /// Requests the node at `span` from the device, if reads of the mapped file wait for it.
    pub(super) fn request_node(&self, span: Span) {
        if self.fill == CacheFill::Yes {
            self.table.request_block(span);
        }
    }

    /// Loads the bytes of the node at `span` that a search needs first, if the file is mapped.
    #[inline]
    pub(super) fn touch_node(&self, span: Span) -> u64 {
        if self.fill == CacheFill::Yes { self.table.touch_block(span) } else { 0 }
    }

    /// Returns the node at `span`, which was requested and touched.
    pub(super) fn ready_node(&mut self, span: Span) -> Result<Block> {
        let ahead = self.ahead.as_ref();
        if let Some(leaf) = ahead.and_then(|ahead| ahead.leaf(&self.table, span)) {
            self.reads.blocks_read += 1;
            return leaf;
        }
        match self.fill {
            CacheFill::Yes => self.table.block(span, &mut self.reads),
            CacheFill::No => self.fresh(span),
        }
    }

    /// Makes the values of coming entries ready for [`enter`](Fetch::enter), if the file is mapped:
    /// loads from main memory overlap if they are not made entry by entry. `here` is in front of
    /// these entries.
    #[inline]
    pub(super) fn prepare(
        &mut self,
        coming: impl ExactSizeIterator<Item = ValueRef>,
        here: impl FnOnce() -> RefWalk,
    ) {
        let Some(mapped) = map_for(&self.table, self.fill) else { return };
        let mut is_timed = announce(&mut self.ahead, &self.table, coming.len() as u64, here);
        self.lines.clear();
        self.lines.reserve(coming.len());
        for value in coming.filter(|value| value.value_bytes > 0) {
            let lines = self.table.lines_of(&value);
            if self.reached.add(value.block.offset) {
                self.reads.count_mapped(value.block.bytes);
                is_timed |= self.table.must_time(&lines);
            }
            self.lines.push(lines);
        }
        black_box(self.table.load(mapped, &self.lines, is_timed));
    }

    /// Makes the value of one entry ready as [`prepare`](Fetch::prepare) does. It looks further
    /// only on the way back, where entries come one by one.
    pub(super) fn prepare_one(
        &mut self,
        value: &ValueRef,
        way: Way,
        here: impl FnOnce() -> RefWalk,
    ) {
        let Some(mapped) = map_for(&self.table, self.fill) else { return };
        let is_watching = way == Way::Back && announce(&mut self.ahead, &self.table, 1, here);
        if value.value_bytes == 0 || !self.reached.add(value.block.offset) {
            return;
        }
        // On the way back it is announced already.
        if way != Way::Back {
            self.table.request_block(value.block);
        }
        self.reads.count_mapped(value.block.bytes);
        let lines = [self.table.lines_of(value)];
        let is_timed = is_watching || self.table.must_time(&lines[0]);
        black_box(self.table.load(mapped, &lines, is_timed));
    }

    /// Requests a value from the device, if reads of the mapped file wait for it. Returns true if
    /// the value should be [touched](Fetch::touch_value) next.
    pub(super) fn request_value(&mut self, value: &ValueRef) -> bool {
        let is_mapped = map_for(&self.table, self.fill).is_some();
        let is_new = is_mapped && value.value_bytes > 0 && self.reached.add(value.block.offset);
        if is_new {
            self.table.request_block(value.block);
            self.reads.count_mapped(value.block.bytes);
        }
        is_new
    }

    /// Loads a value from the map.
    #[inline]
    pub(super) fn touch_value(&self, value: &ValueRef) -> u64 {
        map_for(&self.table, self.fill).map_or(0, |mapped| self.table.touch_value(mapped, value))
    }

    /// Gets the value that `value` leads to, and that belongs to a key of `key_bytes` bytes. `here`
    /// is in front of its entry.
    #[inline]
    pub(super) fn enter(
        &mut self,
        value: &ValueRef,
        key_bytes: usize,
        way: Way,
        here: impl FnOnce() -> RefWalk,
    ) -> Result<Option<ValuePlace>> {
        if value.value_bytes == 0 {
            return Ok(None);
        }
        if let Some(mapped) = map_for(&self.table, self.fill) {
            let place = self.table.mapped_value(mapped, value, key_bytes)?;
            return Ok(Some(ValuePlace::Mapped(place.start, place.end)));
        }
        let held = self.starts.iter().position(|start| *start == value.block.offset);
        let at = match held {
            Some(at) => at,
            None => {
                let block = self.block(value.block, way, here)?;
                self.hold(value.block, block)
            }
        };
        Ok(Some(ValuePlace::Held(at, self.table.value_slot(&self.held[at], value)?)))
    }

    /// Returns the value at `place`, which was [entered](Fetch::enter) last.
    #[inline]
    pub(super) fn value(&self, place: ValuePlace) -> &[u8] {
        match place {
            ValuePlace::Mapped(start, end) => {
                self.map.as_deref().and_then(|map| map.get(start..end)).unwrap_or_default()
            }
            ValuePlace::Held(at, slot) => self.held[at].value(&slot),
        }
    }

    /// Returns the same. It shares the memory of a block that is not mapped.
    pub(super) fn shared_value(&self, place: ValuePlace) -> Bytes {
        match place {
            ValuePlace::Mapped(..) => Bytes::copy_from_slice(self.value(place)),
            ValuePlace::Held(at, slot) => self.held[at].shared_value(&slot),
        }
    }

    /// Keeps `block`, which is at `span`, and returns its index.
    fn hold(&mut self, span: Span, block: Block) -> usize {
        // A table of few batches needs few.
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
        let ahead = self.ahead.get_or_insert_default();
        if let Some(block) = ahead.value(&self.table, span) {
            self.reads.blocks_read += 1;
            return block;
        }
        if through {
            if let Some(block) = self.table.near_block(span, &mut self.reads)? {
                return Ok(block);
            }
            if !ahead.is_streak() {
                return self.table.block(span, &mut self.reads);
            }
        }
        // The memory of pieces can be used again if nobody holds a block of them.
        self.held.clear();
        self.starts.clear();
        self.oldest = 0;
        let table = &self.table;
        let is_known = |span: Span| through && table.is_cached(span);
        self.reads.bytes_read += ahead.read(table, here(), is_known);
        match ahead.value(table, span) {
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

/// Announces what comes behind the next `entries` of a mapped file, if reads wait for the device.
/// `here` is in front of them. Returns true if the cursor looks closely whether they wait.
fn announce(
    ahead: &mut Option<Box<Ahead>>,
    table: &AppendTable,
    entries: u64,
    here: impl FnOnce() -> RefWalk,
) -> bool {
    if ahead.is_none() && !table.waits_are_recent() {
        return false;
    }
    let ahead = ahead.get_or_insert_default();
    if ahead.must_announce(table, entries) {
        ahead.announce(table, here);
    }
    ahead.is_watching()
}

/// Returns the map of the file, if a cursor reads through it.
#[inline]
fn map_for(table: &AppendTable, fill: CacheFill) -> Option<&Mapped> {
    table.mapped.as_ref().filter(|_| fill == CacheFill::Yes)
}
