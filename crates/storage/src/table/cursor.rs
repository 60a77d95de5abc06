//! Walks the entries of a table in both directions.

use super::counts::{ReadCount, ReadTally};
use super::read_table::ReadCursor;
use super::reader::Table;
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

/// Says whether a cursor reads blocks through the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheFill {
    /// For readers: blocks are looked up in the cache and added to it. When a reader continues from
    /// block to block, blocks that are not in the cache are read many at once and not added. They
    /// are no more likely to be needed again than the blocks that they would evict.
    Yes,
    /// For merges, which read everything once: the cache is not used, and many blocks are read at
    /// once.
    No,
}

/// The number of blocks in a row after which a reader is expected to continue.
const STREAK_BLOCKS: u32 = 4;

/// Bytes of the first read ahead for a reader; each read ahead is twice as long as the one before.
const READER_BYTES_MIN: u64 = 16 * 1024;

/// The most bytes of a read ahead for a reader. A value in use keeps all of them in memory.
const READER_BYTES_MAX: u64 = 64 * 1024;

/// Bytes that a new cursor reserves for the key under it.
const KEY_USUAL: usize = 64;

/// A cursor over one table.
///
/// The cursor can be [limited](TableCursor::keep_within) to a range of keys. Then it enters no
/// block without a key of the range, because such a block may have been replaced by zeros. Within
/// the blocks at the ends of the range it still shows all entries.
#[derive(Debug)]
pub struct TableCursor {
    table: Arc<Table>,
    fill: CacheFill,
    /// Reads blocks that do not come through the cache.
    ahead: ReadAhead,
    /// The number of blocks entered in a row, forward.
    streak: u32,
    /// Bytes of the next read ahead for a reader.
    reader_bytes: u64,
    /// The end of the bytes of a mapped file that were announced to the system.
    announced: u64,
    place: Option<CursorPlace>,
    range: KeyRange,
    /// The block where the next search probably ends: the one behind the last block left forward.
    likely: usize,
    aim: Aim,
    /// The block that a search has loaded. It stays in place while the aim moves on.
    aimed: Option<Block>,
    /// The key of the entry at `place`.
    key: Vec<u8>,
    /// The entries in front of it, or the last of these, if they are known.
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

/// The progress of a search.
#[derive(Clone, Copy, Debug)]
enum Aim {
    /// The search has not begun.
    Nowhere,
    /// The search has failed. The seek begins anew, and returns the error.
    Astray,
    /// The group of fences to search is known.
    Fences(FenceGroup),
    /// The index of the block is known.
    Number(usize),
    /// The block with this index is loaded.
    Block(usize),
    /// The restart point from which to search in that block is known.
    Restart(usize, usize),
}

/// An entry, and its block.
#[derive(Debug)]
struct CursorPlace {
    index: usize,
    block: Block,
    slot: Slot,
}

impl Table {
    /// Returns a cursor over the entries of the table. `fill` says whether it reads blocks through
    /// the cache.
    #[inline]
    pub fn cursor(self: &Arc<Self>, fill: CacheFill) -> TableCursor {
        TableCursor::new(self.clone(), fill)
    }
}

impl TableCursor {
    #[inline]
    fn new(table: Arc<Table>, fill: CacheFill) -> TableCursor {
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
            aimed: None,
            key: Vec::with_capacity(KEY_USUAL),
            trail: Trail::default(),
            reads: ReadCount::default(),
            tally: None,
        }
    }

    /// Returns the reads of the cursor so far.
    #[cfg(test)]
    pub fn reads(&self) -> ReadCount {
        self.reads
    }

    /// Returns block `index`, which this cursor has neither requested nor touched yet.
    fn fresh_block(&mut self, index: usize) -> Result<Block> {
        if self.fill == CacheFill::Yes && self.table.is_mapped() {
            if self.streak >= STREAK_BLOCKS {
                self.announce(index);
            } else {
                self.table.request_block(index);
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
        let once = self.fill == CacheFill::No;
        let wanted = Wanted { index, end: self.range.end.as_deref(), chunk_bytes, once };
        let Loaded { block, bytes_read } =
            self.ahead.block(&self.table.file, &self.table.fences, wanted)?;
        self.reads.blocks_read += 1;
        self.reads.bytes_read += bytes_read;
        if bytes_read > 0 {
            self.reader_bytes = (self.reader_bytes * 2).min(READER_BYTES_MAX);
        }
        Ok(block)
    }

    /// Announces the bytes of a mapped file behind block `index` to the system, so that it can read
    /// them while the reader works on earlier ones.
    fn announce(&mut self, index: usize) {
        let Range { start, end } = self.table.fences.place(index);
        if end + self.reader_bytes / 2 > self.announced {
            let ahead_end = end + self.reader_bytes;
            self.table.file.announce(start.max(self.announced)..ahead_end);
            self.announced = ahead_end;
            self.reader_bytes = (self.reader_bytes * 2).min(CHUNK_BYTES);
        }
    }

    /// Resets the count of blocks entered in a row.
    fn end_streak(&mut self) {
        self.streak = 0;
        self.reader_bytes = READER_BYTES_MIN;
        self.announced = 0;
    }

    /// Goes to the first entry of block `index`, or past the end if there is no such block.
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
        self.enter_slot(index, block, stepped)?;
        self.note_place();
        Ok(())
    }

    /// Counts a block that was entered forward in vain: its first entry that was looked for lies
    /// beyond the range.
    #[inline]
    fn note_place(&mut self) {
        let is_beyond = self.range.end.as_ref().is_some_and(|end| self.key[..] >= end[..]);
        self.reads.blocks_in_vain += u64::from(is_beyond);
    }

    /// Goes to the entry that ends at `end` of `block`, the block at `index`. For 0, goes to the
    /// last entry of the previous block, or before the start.
    fn enter_ending(&mut self, index: usize, block: Block, end: usize) -> Result<()> {
        self.place = None;
        self.end_streak();
        if end > 0 {
            let slot = block.slot_ending(end, &mut self.key, &mut self.trail);
            return self.enter_slot(index, block, slot);
        }
        if !self.reaches_below(index) {
            return Ok(());
        }
        let Some(index) = index.checked_sub(1) else {
            return Ok(());
        };
        let block = self.fresh_block(index)?;
        let slot = block.slot_ending(block.entries_end(), &mut self.key, &mut self.trail);
        self.enter_slot(index, block, slot)
    }

    /// Returns true if block `index`, or a later one, can have a key below the end of the range.
    fn reaches_up_to(&self, index: usize) -> bool {
        self.range.end.as_ref().is_none_or(|end| self.table.fences.key(index) < &end[..])
    }

    /// Returns true if the block before block `index` can have a key of the range.
    fn reaches_below(&self, index: usize) -> bool {
        let fences = &self.table.fences;
        let start = &self.range.start[..];
        start.is_empty()
            || match fences.key(index).cmp(start) {
                Ordering::Less => false,
                Ordering::Equal => fences.is_continued(index),
                Ordering::Greater => true,
            }
    }

    /// Takes the next step of a search for `key`, after the step that led to `aim`.
    fn next_aim(&mut self, key: &[u8], aim: Aim) -> Result<Aim> {
        Ok(match aim {
            Aim::Nowhere if self.is_likely(key) => self.aim_at_block(self.likely),
            Aim::Nowhere => Aim::Fences(self.table.fences.group_for(key)),
            Aim::Fences(group) => self.aim_at_block(self.table.fences.block_in_group(group, key)),
            Aim::Number(index) => {
                self.end_streak();
                self.aimed = Some(self.block(index)?);
                Aim::Block(index)
            }
            Aim::Block(index) => {
                let Some(block) = &self.aimed else { return Ok(Aim::Nowhere) };
                let below = block.restart_below(key);
                let start = below.map_err(|damage| self.table.damaged(damage, index))?;
                Aim::Restart(index, start)
            }
            found @ (Aim::Restart(..) | Aim::Astray) => found,
        })
    }

    /// Takes the steps that are left of a search for `key`. Returns the block, with its index, and
    /// the restart point from which to search in it.
    fn arrive(&mut self, key: &[u8]) -> Result<(usize, Block, usize)> {
        if matches!(self.aim, Aim::Astray) {
            self.aim = Aim::Nowhere;
        }
        loop {
            if let Aim::Restart(index, start) = self.aim {
                self.aim = Aim::Nowhere;
                if let Some(block) = self.aimed.take() {
                    return Ok((index, block, start));
                }
            }
            // After an error the next search begins anew.
            let last = std::mem::replace(&mut self.aim, Aim::Nowhere);
            self.aim = self.next_aim(key, last)?;
            black_box(self.touch());
        }
    }

    /// Returns the aim of a search that goes to block `index`, and requests the block. So cursors
    /// that approach together have all requested their blocks before one of them reads.
    fn aim_at_block(&self, index: usize) -> Aim {
        if self.fill == CacheFill::Yes {
            self.table.request_block(index);
        }
        Aim::Number(index)
    }

    /// Returns true if `key` should be searched for in the likely block.
    fn is_likely(&self, key: &[u8]) -> bool {
        let fences = &self.table.fences;
        let likely = self.likely;
        // A continued block starts with versions of a key that starts in the previous block.
        let starts = likely > 0
            && likely < fences.count()
            && fences.key(likely) <= key
            && !fences.is_continued(likely);
        starts && (likely + 1 >= fences.count() || key < fences.key(likely + 1))
    }

    fn enter_slot(
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

/// The panic message for a caller that moves a cursor without an entry.
const ON_ENTRY: &str = "the cursor is on an entry";

impl ReadCursor for TableCursor {
    #[inline]
    fn count_in(&mut self, tally: &Arc<ReadTally>) {
        self.tally = Some(Arc::clone(tally));
    }

    #[inline]
    fn keep_within(&mut self, range: KeyRange) {
        self.range = range;
        self.place = None;
    }
}

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

    fn approach(&mut self, key: &[u8]) -> bool {
        self.aim = self.next_aim(key, self.aim).unwrap_or(Aim::Astray);
        !matches!(self.aim, Aim::Restart(..) | Aim::Astray)
    }

    fn approach_before(&mut self, key: &[u8]) -> bool {
        let below = self.table.fences.blocks_below(key).checked_sub(1);
        self.aim = below.map_or(Aim::Nowhere, |index| self.aim_at_block(index));
        false
    }

    #[inline]
    fn touch(&self) -> u64 {
        match (self.aim, &self.aimed) {
            (Aim::Fences(group), _) => self.table.fences.touch(group),
            // Readers past the cache do not use maps.
            (Aim::Number(index), _) if self.fill == CacheFill::Yes => self.table.touch_block(index),
            (Aim::Block(_), Some(block)) => block.touch_restarts(),
            (Aim::Restart(_, start), Some(block)) => block.touch_behind(start),
            _ => 0,
        }
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.place = None;
        self.trail.clear();
        let (index, block, start) = self.arrive(key)?;
        let bound = block.lower_bound_from(start, key);
        let found = bound.map_err(|damage| self.table.damaged(damage, index))?;
        let Some((slot, _)) = found else {
            self.reads.blocks_in_vain += 1;
            return self.enter_start(index + 1);
        };
        // The bytes that the found entry shares with the previous one are bytes of the searched
        // key.
        self.key.clear();
        self.key.extend_from_slice(&key[..slot.shared()]);
        let stepped = block.step(&slot, &mut self.key).map(|()| slot);
        self.enter_slot(index, block, stepped)?;
        self.note_place();
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.place = None;
        if !matches!(self.aim, Aim::Number(_)) {
            self.approach_before(key);
            black_box(self.touch());
        }
        let Aim::Number(index) = std::mem::replace(&mut self.aim, Aim::Nowhere) else {
            return Ok(());
        };
        let block = self.block(index)?;
        let found = block.lower_bound(key).map_err(|damage| self.table.damaged(damage, index))?;
        let end = found.map_or(block.entries_end(), |(slot, _)| slot.start());
        self.enter_ending(index, block, end)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let place = self.place.as_mut().expect(ON_ENTRY);
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

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if let Some(slot) = self.trail.pop(&mut self.key) {
            self.place.as_mut().expect(ON_ENTRY).slot = slot;
            return Ok(());
        }
        let CursorPlace { index, block, slot } = self.place.take().expect(ON_ENTRY);
        self.enter_ending(index, block, slot.start())
    }

    #[inline]
    fn entry(&self) -> Option<EntryRef<'_>> {
        let place = self.place.as_ref()?;
        Some(EntryRef {
            key: &self.key,
            seq: place.slot.seq,
            kind: place.slot.kind,
            value: place.block.value(&place.slot),
        })
    }

    fn value(&self) -> Bytes {
        let place = self.place.as_ref().expect(ON_ENTRY);
        place.block.shared_value(&place.slot)
    }
}
