//! The two inputs of a merge that keeps blocks.
//!
//! The walk over both stops where the next entry would be the first of a block on storage. There
//! the merge decides whether the block is kept, before any of it is read.

use super::input::{InputCursor, Passed, entry_size};
use super::part::{Block, Cursors, Part};
use crate::version::OpenRun;
use lsmith_storage::cursor::{Cursor, EntryRef, newest_first};
use lsmith_storage::error::{Error, Result};
use lsmith_storage::fold::{Fold, FoldCounts, Walk};
use lsmith_storage::table::ReadTally;
use lsmith_tree::blocks::{Age, BlockInput, BlockSink, InputPair, PairNext, PreservingMerge};
use lsmith_tree::{KeyRange, LevelId, SeqNo, Size};
use std::cmp::Ordering;
use std::sync::Arc;

/// Entries in order, one input or several that were folded into one.
pub(super) enum Side {
    /// Nothing.
    Empty,
    /// One input that is in memory: there are no blocks to keep.
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
    /// Where in the parts the current block is.
    part: usize,
    index: usize,
    block: Option<Block>,
    /// Whether the current block is being read; else the next entry is its first.
    inside: bool,
    cursors: Cursors,
    /// Whether blocks behind the current one will be read for sure, and can be read with it.
    reads_ahead: bool,
    passed: Passed,
}

impl StorageSide {
    /// What lies within `range` of `run`.
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
            passed: Passed::default(),
        };
        side.parts.shrink_to_fit();
        side
    }

    /// Returns the block that starts at the next entry.
    fn block(&self) -> Option<&Block> {
        self.block.as_ref().filter(|_| !self.inside)
    }

    /// Returns the sizes of that block and of those behind it in its part, up to the first that
    /// does not end below `key`, or all if there is no key.
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

    /// The next key; at the start of a block not above it.
    fn key(&self) -> Option<&[u8]> {
        match &self.block {
            Some(block) if !self.inside => Some(&block.range.start),
            _ => self.entry().map(|entry| entry.key),
        }
    }

    /// Moves behind the current block.
    fn skip(&mut self) {
        self.inside = false;
        self.index += 1;
        if self.index == self.parts[self.part].len() {
            (self.part, self.index) = (self.part + 1, 0);
        }
        self.block = self.parts.get(self.part).map(|part| part.block(self.index));
    }

    /// Reads the block that starts at the next entry.
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

    /// Goes to the next block where the cursor has left this one.
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
            self.passed.add(LevelId::Disk(0), size);
        }
        if let Some(cursor) = self.cursors.first_mut() {
            cursor.next()?;
        }
        self.leave_at_end();
        Ok(())
    }
}

impl Side {
    fn begin(&mut self) -> Result<()> {
        match self {
            Side::Memory(walk) => walk.begin(),
            // The fold has begun already, and holds no entry yet.
            Side::Folded(side) => side.advance(),
            Side::Empty | Side::Storage(_) => Ok(()),
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            Side::Empty => Ok(()),
            Side::Memory(walk) => walk.advance(),
            Side::Folded(side) => side.advance(),
            Side::Storage(side) => side.advance(),
        }
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        match self {
            Side::Empty => None,
            Side::Memory(walk) => walk.here(),
            Side::Folded(side) => side.live.then(|| side.fold.last_entry()),
            Side::Storage(side) => side.entry(),
        }
    }

    /// The next key; at the start of a block not above it.
    fn key(&self) -> Option<&[u8]> {
        match self {
            Side::Storage(side) => side.key(),
            other => other.entry().map(|entry| entry.key),
        }
    }

    /// The sequence number of the next entry.
    fn seq(&self) -> Option<SeqNo> {
        self.entry().map(|entry| entry.seq)
    }

    fn passed(&self) -> Passed {
        match self {
            Side::Empty => Passed::default(),
            Side::Memory(walk) => walk.passed(),
            Side::Folded(side) => side.fold.walk().passed(),
            Side::Storage(side) => side.passed,
        }
    }
}

impl BlockInput for Side {
    type Block = Block;

    fn compare(&self, other: &Side) -> Option<Ordering> {
        match (self.key(), other.key()) {
            (None, None) => None,
            (Some(own), Some(other)) => Some(own.cmp(other)),
            (Some(_), None) => Some(Ordering::Less),
            (None, Some(_)) => Some(Ordering::Greater),
        }
    }

    fn block_size(&self) -> Option<Size> {
        let Side::Storage(side) = self else { return None };
        side.block().map(|block| block.size)
    }

    fn block(&self) -> Option<Block> {
        let Side::Storage(side) = self else { return None };
        side.block().cloned()
    }

    fn blocks_before(&self, other: &Side) -> impl Iterator<Item = Size> {
        let side = if let Side::Storage(side) = self { Some(side) } else { None };
        side.into_iter().flat_map(|side| side.blocks_before(other.key()))
    }

    fn skip_block(&mut self) {
        if let Side::Storage(side) = self {
            side.skip();
        }
    }
}

/// A newer input over an older one. The walk stands nowhere at the start of a block.
pub(super) struct Sides {
    pair: InputPair<Side>,
    next: PairNext,
    /// The input of the next entry, if that does not start a block.
    at: Option<Age>,
}

impl Sides {
    pub(super) fn new(newer: Side, older: Side) -> Sides {
        Sides { pair: InputPair { newer, older }, next: PairNext::End, at: None }
    }

    /// Has `merge` pass the block at whose start the walk has stopped. Returns false at the end of
    /// both inputs.
    pub(super) fn pass_block<K: BlockSink<Block, Error = Error>>(
        &mut self,
        merge: &mut PreservingMerge<Block, K>,
    ) -> Result<bool> {
        let PairNext::Block(age, size) = self.next else { return Ok(false) };
        if !merge.keep_block(&mut self.pair, age, size)? {
            let side = match age {
                Age::Newer => &mut self.pair.newer,
                Age::Older => &mut self.pair.older,
            };
            if let Side::Storage(side) = side {
                side.enter()?;
            }
        }
        self.settle();
        Ok(true)
    }

    /// Returns the input that has the newer of two entries of one key. That is the newer input,
    /// unless the runs are in a knot.
    fn newer_of_both(&self) -> Age {
        let seqs = self.pair.newer.seq().zip(self.pair.older.seq());
        match seqs.map(|(newer, older)| newest_first(newer, older)) {
            Some(Ordering::Greater) => Age::Older,
            _ => Age::Newer,
        }
    }

    /// Finds out what comes next, after one of the inputs has moved.
    fn settle(&mut self) {
        self.next = self.pair.next();
        self.at = match self.next {
            PairNext::End | PairNext::Block(..) => None,
            PairNext::Entry(age) => Some(age),
            PairNext::Both => Some(self.newer_of_both()),
        };
    }

    /// What went through both sides.
    pub(super) fn passed(&self) -> Passed {
        let (newer, older) = (self.pair.newer.passed(), self.pair.older.passed());
        Passed { memory: newer.memory + older.memory, storage: newer.storage + older.storage }
    }

    /// What became of entries before the sides met.
    pub(super) fn folded(&self) -> FoldCounts {
        match &self.pair.newer {
            Side::Folded(side) => side.fold.counts(),
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
