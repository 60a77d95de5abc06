//! The two inputs of a merge that keeps blocks.
//!
//! The walk over both stops where the next entry is the first of a block on storage. The merge then
//! decides whether to keep the block, before any of it is read.

use super::input::{InputCursor, TakenSizes, entry_size};
use super::part::{Block, Cursors, Part};
use crate::version::OpenRun;
use lsmith_storage::cursor::{Cursor, EntryRef, newest_first};
use lsmith_storage::error::{Error, Result};
use lsmith_storage::fold::{Fold, FoldCounts, Walk};
use lsmith_storage::table::{ReadCursor, ReadTally};
use lsmith_tree::blocks::{Age, BlockInput, BlockSink, InputPair, PairNext, PreservingMerge};
use lsmith_tree::{KeyRange, LevelId, SeqNo, Size};
use std::cmp::Ordering;
use std::sync::Arc;

/// The entries of one input, or of several that are folded into one, in order.
pub(super) enum MergeSide {
    /// No entries.
    Empty,
    /// One input in memory, which has no blocks to keep.
    Memory(Box<InputCursor>),
    /// Several inputs.
    Folded(Box<FoldedSide>),
    /// One input on storage.
    Storage(Box<StorageSide>),
}

/// Several inputs, folded into one as if a merge had written them.
pub(super) struct FoldedSide {
    fold: Fold<InputCursor, fn(&[u8]) -> bool>,
    live: bool,
}

impl FoldedSide {
    pub(super) fn new(fold: Fold<InputCursor, fn(&[u8]) -> bool>) -> FoldedSide {
        FoldedSide { fold, live: false }
    }

    fn advance(&mut self) -> Result<()> {
        self.live = self.fold.next_entry()?.is_some();
        Ok(())
    }
}

/// An input on storage, block by block.
pub(super) struct StorageSide {
    parts: Vec<Part>,
    /// The part of the current block, and the index of the block in that part.
    part: usize,
    index: usize,
    block: Option<Block>,
    /// True while the current block is being read. Otherwise the next entry is its first.
    inside: bool,
    cursors: Cursors,
    /// True if all blocks will be read, so that a cursor may read beyond the current one.
    reads_ahead: bool,
    taken: TakenSizes,
}

impl StorageSide {
    /// Returns the entries of `run` within `range`. Adds reads of files to `tally`.
    pub(super) fn new(
        run: &OpenRun,
        range: &KeyRange,
        reads_ahead: bool,
        tally: &Arc<ReadTally>,
    ) -> StorageSide {
        let parts = Part::all(run, range);
        let mut side = StorageSide {
            block: parts.first().map(|part| part.block(0)),
            parts,
            part: 0,
            index: 0,
            inside: false,
            cursors: Cursors::new(tally),
            reads_ahead,
            taken: TakenSizes::default(),
        };
        side.parts.shrink_to_fit();
        side
    }

    /// Returns the block that starts at the next entry.
    fn block(&self) -> Option<&Block> {
        self.block.as_ref().filter(|_| !self.inside)
    }

    /// Returns the sizes of the blocks from the next entry on, in its part, up to the first that
    /// does not end below `key`, if given. Returns none unless the next entry starts a block.
    fn blocks_before(&self, key: Option<&[u8]>) -> impl Iterator<Item = Size> {
        let part = self.block().map(|_| &self.parts[self.part]);
        part.into_iter().flat_map(move |part| {
            let ends_below =
                move |index: &usize| key.is_none_or(|key| part.ends_below(*index, key));
            (self.index..part.len()).take_while(ends_below).map(|index| part.size(index))
        })
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        self.cursors.first().filter(|_| self.inside)?.entry()
    }

    /// Returns the next key. At the start of a block, returns a key that is not above it.
    fn key(&self) -> Option<&[u8]> {
        match &self.block {
            Some(block) if !self.inside => Some(&block.range.start),
            _ => self.entry().map(|entry| entry.key),
        }
    }

    /// Moves to the block behind the current one.
    fn skip(&mut self) {
        self.inside = false;
        self.index += 1;
        if self.index == self.parts[self.part].len() {
            (self.part, self.index) = (self.part + 1, 0);
        }
        self.block = self.parts.get(self.part).map(|part| part.block(self.index));
    }

    /// Begins to read the block that starts at the next entry.
    fn enter(&mut self) -> Result<()> {
        let Some(block) = &self.block else { return Ok(()) };
        self.inside = true;
        if !self.reads_ahead {
            self.cursors.enter(block)?;
        } else if self.index == 0 {
            let part = &self.parts[self.part];
            let cursor = self.cursors.over(part.handle());
            cursor.keep_within(part.range().clone());
            cursor.seek(&part.range().start)?;
        }
        self.leave_at_end();
        Ok(())
    }

    /// Moves to the next block if the cursor has left the current one.
    fn leave_at_end(&mut self) {
        let end = self.block.as_ref().and_then(|block| block.range.end.as_deref());
        let within = |entry: EntryRef<'_>| end.is_none_or(|end| entry.key < end);
        if !self.entry().is_some_and(within) {
            self.skip();
        }
    }

    fn advance(&mut self) -> Result<()> {
        if let Some(entry) = self.entry() {
            let size = entry_size(&entry);
            self.taken.add(LevelId::Disk(0), size);
        }
        if let Some(cursor) = self.cursors.first_mut() {
            cursor.next()?;
        }
        self.leave_at_end();
        Ok(())
    }
}

impl MergeSide {
    fn begin(&mut self) -> Result<()> {
        match self {
            MergeSide::Memory(walk) => walk.begin(),
            // The fold has begun already, and holds no entry yet.
            MergeSide::Folded(side) => side.advance(),
            MergeSide::Empty | MergeSide::Storage(_) => Ok(()),
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            MergeSide::Empty => Ok(()),
            MergeSide::Memory(walk) => walk.advance(),
            MergeSide::Folded(side) => side.advance(),
            MergeSide::Storage(side) => side.advance(),
        }
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        match self {
            MergeSide::Empty => None,
            MergeSide::Memory(walk) => walk.here(),
            MergeSide::Folded(side) => side.live.then(|| side.fold.last_entry()),
            MergeSide::Storage(side) => side.entry(),
        }
    }

    /// Returns the next key. At the start of a block, returns a key that is not above it.
    fn key(&self) -> Option<&[u8]> {
        match self {
            MergeSide::Storage(side) => side.key(),
            other => other.entry().map(|entry| entry.key),
        }
    }

    /// Returns the sequence number of the next entry.
    fn seq(&self) -> Option<SeqNo> {
        self.entry().map(|entry| entry.seq)
    }

    fn taken(&self) -> TakenSizes {
        match self {
            MergeSide::Empty => TakenSizes::default(),
            MergeSide::Memory(walk) => walk.taken(),
            MergeSide::Folded(side) => side.fold.walk().taken(),
            MergeSide::Storage(side) => side.taken,
        }
    }
}

impl BlockInput for MergeSide {
    type Block = Block;

    fn compare(&self, other: &MergeSide) -> Option<Ordering> {
        match (self.key(), other.key()) {
            (None, None) => None,
            (Some(own), Some(other)) => Some(own.cmp(other)),
            (Some(_), None) => Some(Ordering::Less),
            (None, Some(_)) => Some(Ordering::Greater),
        }
    }

    fn block_size(&self) -> Option<Size> {
        let MergeSide::Storage(side) = self else { return None };
        side.block().map(|block| block.size)
    }

    fn block(&self) -> Option<Block> {
        let MergeSide::Storage(side) = self else { return None };
        side.block().cloned()
    }

    fn blocks_before(&self, other: &MergeSide) -> impl Iterator<Item = Size> {
        let side = if let MergeSide::Storage(side) = self { Some(side) } else { None };
        side.into_iter().flat_map(|side| side.blocks_before(other.key()))
    }

    fn skip_block(&mut self) {
        if let MergeSide::Storage(side) = self {
            side.skip();
        }
    }
}

/// A newer input and an older one. The walk has no current entry at the start of a block.
pub(super) struct Sides {
    pair: InputPair<MergeSide>,
    next: PairNext,
    /// The input of the next entry. `None` at the start of a block and at the end.
    at: Option<Age>,
}

impl Sides {
    pub(super) fn new(newer: MergeSide, older: MergeSide) -> Sides {
        Sides { pair: InputPair { newer, older }, next: PairNext::End, at: None }
    }

    /// Lets `merge` keep the block at whose start the walk has stopped, or else enters the block.
    /// Returns false at the end of both inputs.
    pub(super) fn keep_or_enter_block<K: BlockSink<Block, Error = Error>>(
        &mut self,
        merge: &mut PreservingMerge<Block, K>,
    ) -> Result<bool> {
        let PairNext::Block(age, size) = self.next else { return Ok(false) };
        if !merge.keep_block(&mut self.pair, age, size)? {
            let side = match age {
                Age::Newer => &mut self.pair.newer,
                Age::Older => &mut self.pair.older,
            };
            if let MergeSide::Storage(side) = side {
                side.enter()?;
            }
        }
        self.settle();
        Ok(true)
    }

    /// Returns the input with the newer of two entries of one key. Unless the runs are in a knot,
    /// the newer input has it.
    fn newer_of_both(&self) -> Age {
        let seqs = self.pair.newer.seq().zip(self.pair.older.seq());
        match seqs.map(|(newer, older)| newest_first(newer, older)) {
            Some(Ordering::Greater) => Age::Older,
            _ => Age::Newer,
        }
    }

    /// Determines the next entry or block, after one of the inputs has moved.
    fn settle(&mut self) {
        self.next = self.pair.next();
        self.at = match self.next {
            PairNext::End | PairNext::Block(..) => None,
            PairNext::Entry(age) => Some(age),
            PairNext::Both => Some(self.newer_of_both()),
        };
    }

    /// Returns the sizes of the entries that both inputs took.
    pub(super) fn taken(&self) -> TakenSizes {
        let newer = self.pair.newer.taken();
        let older = self.pair.older.taken();
        TakenSizes { memory: newer.memory + older.memory, storage: newer.storage + older.storage }
    }

    /// Returns the counts of the fold in the newer input.
    pub(super) fn folded(&self) -> FoldCounts {
        match &self.pair.newer {
            MergeSide::Folded(side) => side.fold.counts(),
            _ => FoldCounts::default(),
        }
    }
}

impl Walk for Sides {
    fn begin(&mut self) -> Result<()> {
        self.pair.newer.begin()?;
        self.pair.older.begin()?;
        self.settle();
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        match self.at {
            Some(Age::Newer) => self.pair.newer.advance()?,
            Some(Age::Older) => self.pair.older.advance()?,
            None => {}
        }
        self.settle();
        Ok(())
    }

    fn here(&self) -> Option<EntryRef<'_>> {
        match self.at? {
            Age::Newer => self.pair.newer.entry(),
            Age::Older => self.pair.older.entry(),
        }
    }
}
