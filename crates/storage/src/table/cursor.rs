//! Walks the entries of a table in both directions.

use super::reader::{ReadCount, ReadTally, Table};
use super::table_file::{CHUNK_BYTES, Loaded, ReadAhead, Wanted};
use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use crate::format::{Block, Damage, FenceGroup, Slot, Trail};
use bytes::Bytes;
use lsmith_tree::KeyRange;
use std::cmp::Ordering;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

/// Whether the blocks that a cursor reads go through the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheFill {
    /// Blocks are looked up in the cache and kept in it: for readers. Where one goes on from block
    /// to block, those that the cache has not got are read many at once and past it: they are not
    /// more likely to be needed again than what they would drive out.
    Yes,
    /// The cache is neither asked nor changed, and many blocks are read at once: for merges,
    /// which read everything once.
    No,
}

/// Blocks that a reader goes through one after the other before it is taken to go on.
const STREAK_BLOCKS: u32 = 4;

/// Bytes that the first read ahead for a reader takes; each takes twice as many as the one before.
const READER_BYTES_MIN: u64 = 16 * 1024;

/// Bytes that a read ahead for a reader takes at most: values that somebody holds on to keep all of
/// them in memory.
const READER_BYTES_MAX: u64 = 64 * 1024;

/// Bytes that a cursor has room for from the start for the key under it.
const KEY_USUAL: usize = 64;

/// A cursor over one table.
///
/// It can be told to [keep within](TableCursor::keep_within) a range of keys. Then it goes to no
/// block that has no key of the range: such a block may be gone, with nothing in its place but
/// zeros. Within the blocks where the range ends it still shows all entries.
#[derive(Debug)]
pub struct TableCursor {
    table: Arc<Table>,
    fill: CacheFill,
    /// Where blocks come from, if not through the cache.
    ahead: ReadAhead,
    /// Blocks entered one after the other, forward.
    streak: u32,
    /// Bytes that the next read ahead for a reader takes.
    reader_bytes: u64,
    /// Where in a mapped file those bytes end that the system was told to read.
    announced: u64,
    place: Option<CursorPlace>,
    range: KeyRange,
    /// The block where the next search may well end: that behind the last one left forward.
    likely: usize,
    aim: Aim,
    /// The key of the entry at `place`.
    key: Vec<u8>,
    /// The entries in front of it, or the last of them, if they are known.
    trail: Trail,
    reads: ReadCount,
    tally: Option<Arc<ReadTally>>,
}

impl Drop for TableCursor {
    fn drop(&mut self) {
        if let Some(tally) = &self.tally {
            tally.add(self.reads);
        }
    }
}

/// How far a search has come.
#[derive(Debug)]
enum Aim {
    /// It has not begun.
    Nowhere,
    /// The fences are known among which one is searched for.
    Fences(FenceGroup),
    /// The number of the block is known.
    Number(usize),
    /// The block is there.
    Block(usize, Block),
    /// The restart point is known from which on entries are searched.
    Restart(usize, Block, usize),
}

impl Aim {
    /// Loads what the next step looks at. Who reads past the cache does not look into maps.
    #[inline]
    fn touch(&self, table: &Table, fill: CacheFill) -> u64 {
        match self {
            Aim::Nowhere => 0,
            Aim::Fences(group) => table.fences.touch(*group),
            Aim::Number(_) if fill == CacheFill::No => 0,
            Aim::Number(index) => table.touch_block(*index),
            Aim::Block(_, block) => block.touch_restarts(),
            Aim::Restart(_, block, start) => block.touch_behind(*start),
        }
    }
}

/// An entry, and the block that it is in.
#[derive(Debug)]
struct CursorPlace {
    index: usize,
    block: Block,
    slot: Slot,
}

impl TableCursor {
    pub(super) fn new(table: Arc<Table>, fill: CacheFill) -> TableCursor {
        TableCursor {
            table,
            fill,
            ahead: ReadAhead::default(),
            streak: 0,
            reader_bytes: READER_BYTES_MIN,
            announced: 0,
            place: None,
            range: KeyRange::ALL,
            likely: 0,
            aim: Aim::Nowhere,
            key: Vec::with_capacity(KEY_USUAL),
            trail: Trail::default(),
            reads: ReadCount::default(),
            tally: None,
        }
    }

    /// What the cursor has read is added to `tally` when it goes.
    pub fn tallied(mut self, tally: &Arc<ReadTally>) -> TableCursor {
        self.tally = Some(Arc::clone(tally));
        self
    }

    /// What the cursor has read so far.
    #[cfg(test)]
    pub fn reads(&self) -> ReadCount {
        self.reads
    }

    /// From now on the cursor keeps to blocks with keys of `range`, and is asked for keys within
    /// `range` only. It stands nowhere.
    pub fn keep_within(&mut self, range: KeyRange) {
        self.range = range;
        self.place = None;
    }

    /// Block `index`, which this cursor has neither asked for nor touched yet.
    fn fresh_block(&mut self, index: usize) -> Result<Block> {
        if self.fill == CacheFill::Yes && self.table.is_mapped() {
            if self.streak >= STREAK_BLOCKS {
                self.announce(index);
            } else {
                self.table.ask_for(index);
            }
            black_box(self.table.touch_block(index));
        }
        self.block(index)
    }

    fn block(&mut self, index: usize) -> Result<Block> {
        let mut chunk_bytes = CHUNK_BYTES;
        if self.fill == CacheFill::Yes {
            if self.table.is_mapped() || self.streak < STREAK_BLOCKS {
                return self.table.block(index, &mut self.reads);
            }
            if let Some(block) = self.table.near_block(index, &mut self.reads)? {
                return Ok(block);
            }
            chunk_bytes = self.reader_bytes;
        }
        let wanted = Wanted { index, end: self.range.end.as_deref(), chunk_bytes };
        let Loaded { block, bytes_read } =
            self.ahead.block(&self.table.file, &self.table.fences, wanted)?;
        self.reads.blocks_read += 1;
        self.reads.bytes_read += bytes_read;
        if bytes_read > 0 {
            self.reader_bytes = (self.reader_bytes * 2).min(READER_BYTES_MAX);
        }
        Ok(block)
    }

    /// Tells the system which bytes of a mapped file are wanted behind block `index`, so that it
    /// reads them, if it must, while the reader is busy with those before.
    fn announce(&mut self, index: usize) {
        let Range { start, end } = self.table.fences.place(index);
        if end + self.reader_bytes / 2 > self.announced {
            let upto = end + self.reader_bytes;
            self.table.file.announce(start.max(self.announced)..upto);
            self.announced = upto;
            self.reader_bytes = (self.reader_bytes * 2).min(CHUNK_BYTES);
        }
    }

    /// Forgets that blocks were entered one after the other.
    fn end_streak(&mut self) {
        self.streak = 0;
        self.reader_bytes = READER_BYTES_MIN;
        self.announced = 0;
    }

    /// Stands on the first entry of block `index`, or past the end where there is no such block.
    fn enter_start(&mut self, index: usize) -> Result<()> {
        self.place = None;
        self.trail.clear();
        self.likely = index;
        if index >= self.table.fences.count() || !self.reaches_up_to(index) {
            return Ok(());
        }
        let block = self.fresh_block(index)?;
        self.key.clear();
        let slot = block.slot(0);
        let stepped = slot.and_then(|slot| block.step(&slot, &mut self.key).map(|()| slot));
        self.stand(index, block, stepped)
    }

    /// Stands on the entry of `block`, the block at `index`, that ends at `end`; for 0 on the last
    /// entry of the block before, or before the start.
    fn enter_ending(&mut self, index: usize, block: Block, end: usize) -> Result<()> {
        self.place = None;
        self.end_streak();
        if end > 0 {
            let slot = block.slot_ending(end, &mut self.key, &mut self.trail);
            return self.stand(index, block, slot);
        }
        if !self.reaches_below(index) {
            return Ok(());
        }
        let Some(index) = index.checked_sub(1) else {
            return Ok(());
        };
        let block = self.fresh_block(index)?;
        let slot = block.slot_ending(block.entries_end(), &mut self.key, &mut self.trail);
        self.stand(index, block, slot)
    }

    /// Whether block `index`, or one behind it, can have a key below the end of the range.
    fn reaches_up_to(&self, index: usize) -> bool {
        self.range.end.as_ref().is_none_or(|end| self.table.fences.key(index) < &end[..])
    }

    /// Whether the block before block `index` can have a key of the range.
    fn reaches_below(&self, index: usize) -> bool {
        let (fences, start) = (&self.table.fences, &self.range.start[..]);
        start.is_empty()
            || match fences.key(index).cmp(start) {
                Ordering::Less => false,
                Ordering::Equal => fences.is_continued(index),
                Ordering::Greater => true,
            }
    }

    /// The next step of a search for `key`, of which `aim` is what the steps before came to.
    fn aim(&mut self, key: &[u8], aim: Aim) -> Result<Aim> {
        Ok(match aim {
            Aim::Nowhere if self.is_likely(key) => self.aim_at(self.likely),
            Aim::Nowhere => Aim::Fences(self.table.fences.group_for(key)),
            Aim::Fences(group) => self.aim_at(self.table.fences.block_in_group(group, key)),
            Aim::Number(index) => {
                self.end_streak();
                Aim::Block(index, self.block(index)?)
            }
            Aim::Block(index, block) => {
                let start = block.restart_below(key);
                let start = start.map_err(|damage| self.table.damaged(damage, index))?;
                Aim::Restart(index, block, start)
            }
            found @ Aim::Restart(..) => found,
        })
    }

    /// The aim of a search that goes to block `index`: it is asked for here, so that cursors which
    /// approach side by side have all asked before one of them looks.
    fn aim_at(&self, index: usize) -> Aim {
        if self.fill == CacheFill::Yes {
            self.table.ask_for(index);
        }
        Aim::Number(index)
    }

    /// Whether `key` is to be searched for in the likely block.
    fn is_likely(&self, key: &[u8]) -> bool {
        let (fences, likely) = (&self.table.fences, self.likely);
        // A continued block begins with versions of a key that begin in the block before.
        let starts = likely > 0
            && likely < fences.count()
            && fences.key(likely) <= key
            && !fences.is_continued(likely);
        starts && (likely + 1 >= fences.count() || key < fences.key(likely + 1))
    }

    fn stand(
        &mut self,
        index: usize,
        block: Block,
        slot: std::result::Result<Slot, Damage>,
    ) -> Result<()> {
        let slot = slot.map_err(|damage| self.table.damaged(damage, index))?;
        self.place = Some(CursorPlace { index, block, slot });
        Ok(())
    }
}

/// Said where a caller moves a cursor that stands nowhere.
const STANDS: &str = "the cursor stands on an entry";

impl Cursor for TableCursor {
    fn seek_first(&mut self) -> Result<()> {
        if !self.range.start.is_empty() {
            let start = self.range.start.clone();
            return self.seek(&start);
        }
        self.enter_start(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        if let Some(end) = self.range.end.clone() {
            return self.seek_before(&end);
        }
        self.place = None;
        let index = self.table.fences.count() - 1;
        let block = self.fresh_block(index)?;
        let end = block.entries_end();
        self.enter_ending(index, block, end)
    }

    fn approach(&mut self, key: &[u8]) {
        let aim = std::mem::replace(&mut self.aim, Aim::Nowhere);
        // After an error the seek begins anew, and tells it.
        self.aim = self.aim(key, aim).unwrap_or(Aim::Nowhere);
    }

    fn approach_before(&mut self, key: &[u8]) {
        let below = self.table.fences.blocks_below(key).checked_sub(1);
        self.aim = below.map_or(Aim::Nowhere, |index| self.aim_at(index));
    }

    #[inline]
    fn touch(&self) -> u64 {
        self.aim.touch(&self.table, self.fill)
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.place = None;
        self.trail.clear();
        let mut aim = std::mem::replace(&mut self.aim, Aim::Nowhere);
        let (index, block, start) = loop {
            match aim {
                Aim::Restart(index, block, start) => break (index, block, start),
                short => aim = self.aim(key, short)?,
            }
            black_box(aim.touch(&self.table, self.fill));
        };
        let found = block.lower_bound_from(start, key);
        let found = found.map_err(|damage| self.table.damaged(damage, index))?;
        let Some((slot, _)) = found else {
            return self.enter_start(index + 1);
        };
        // What the found entry shares with the one before, it shares with the key sought.
        self.key.clear();
        self.key.extend_from_slice(&key[..slot.shared()]);
        let stepped = block.step(&slot, &mut self.key).map(|()| slot);
        self.stand(index, block, stepped)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.place = None;
        if !matches!(self.aim, Aim::Number(_)) {
            self.approach_before(key);
            black_box(self.touch());
        }
        let aim = std::mem::replace(&mut self.aim, Aim::Nowhere);
        let Aim::Number(index) = aim else { return Ok(()) };
        let block = self.block(index)?;
        let found = block.lower_bound(key).map_err(|damage| self.table.damaged(damage, index))?;
        let end = found.map_or(block.entries_end(), |(slot, _)| slot.start());
        self.enter_ending(index, block, end)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let place = self.place.as_mut().expect(STANDS);
        let end = place.slot.end();
        if end >= place.block.entries_end() {
            let following = place.index + 1;
            self.streak += 1;
            return self.enter_start(following);
        }
        self.trail.clear();
        let slot = place.block.slot(end);
        match slot.and_then(|slot| place.block.step(&slot, &mut self.key).map(|()| slot)) {
            Ok(slot) => place.slot = slot,
            Err(damage) => {
                let error = self.table.damaged(damage, place.index);
                self.place = None;
                return Err(error);
            }
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(slot) = self.trail.pop(&mut self.key) {
            self.place.as_mut().expect(STANDS).slot = slot;
            return Ok(());
        }
        let CursorPlace { index, block, slot } = self.place.take().expect(STANDS);
        self.enter_ending(index, block, slot.start())
    }

    #[inline]
    fn entry(&self) -> Option<EntryRef<'_>> {
        let place = self.place.as_ref()?;
        let (seq, kind) = (place.slot.seq, place.slot.kind);
        Some(EntryRef { key: &self.key, seq, kind, value: place.block.value(&place.slot) })
    }

    fn value(&self) -> Bytes {
        let place = self.place.as_ref().expect(STANDS);
        place.block.shared_value(&place.slot)
    }
}
