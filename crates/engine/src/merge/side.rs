//! The two sides of a merge that keeps blocks.
//!
//! Such a merge stops wherever the next entry of all would be the first of a block on storage, so
//! that somebody can look whether the block may be kept before any of it is read.

use super::input::{InputCursor, Passed, entry_size};
use super::part::{Block, Cursors, Part};
use crate::version::OpenRun;
use lsmith_storage::cursor::{Cursor, EntryRef, newest_first};
use lsmith_storage::error::Result;
use lsmith_storage::fold::{Fold, FoldCounts, Walk};
use lsmith_storage::table::ReadTally;
use lsmith_tree::{KeyRange, LevelId, RunId, SeqNo};
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
    run: RunId,
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
            run: run.run().id(),
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

    /// The run that the side is a part of.
    pub(super) fn run(&self) -> RunId {
        self.run
    }

    /// The block whose first entry is next, with its part and its place in that.
    pub(super) fn block(&self) -> Option<(&Block, &Part, usize)> {
        let block = self.block.as_ref().filter(|_| !self.inside)?;
        Some((block, &self.parts[self.part], self.index))
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

    /// Passes over the block that begins here.
    pub(super) fn skip(&mut self) {
        self.inside = false;
        self.index += 1;
        if self.index == self.parts[self.part].len() {
            (self.part, self.index) = (self.part + 1, 0);
        }
        self.block = self.parts.get(self.part).map(|part| part.block(self.index));
    }

    /// Reads the block that begins here.
    pub(super) fn enter(&mut self) -> Result<()> {
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

    fn begins_block(&self) -> bool {
        matches!(self, Side::Storage(side) if side.block().is_some())
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

/// Where a merge of two sides has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Both sides have ended.
    End,
    /// The newer side is at the start of a block.
    Newer,
    /// The older side is, and the newer one is not before it.
    Older,
}

/// Where the next entry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Newer,
    Older,
    Stopped(Stop),
}

/// A newer side over an older one. It stands nowhere where it has [stopped](Sides::stop).
pub(super) struct Sides {
    newer: Side,
    older: Side,
    next: Next,
}

impl Sides {
    pub(super) fn new(newer: Side, older: Side) -> Sides {
        Sides { newer, older, next: Next::Stopped(Stop::End) }
    }

    /// Where it has stopped, if it has.
    pub(super) fn stop(&self) -> Option<Stop> {
        match self.next {
            Next::Stopped(stop) => Some(stop),
            Next::Newer | Next::Older => None,
        }
    }

    /// The side that has stopped at the start of a block.
    pub(super) fn stopped(&self, stop: Stop) -> Option<&StorageSide> {
        match (stop, &self.newer, &self.older) {
            (Stop::Newer, Side::Storage(side), _) | (Stop::Older, _, Side::Storage(side)) => {
                Some(side)
            }
            _ => None,
        }
    }

    /// The next key of the side other than `stop`'s; `None` where that has ended.
    pub(super) fn other_key(&self, stop: Stop) -> Option<&[u8]> {
        match stop {
            Stop::Newer => self.older.key(),
            Stop::Older => self.newer.key(),
            Stop::End => None,
        }
    }

    /// Goes on behind the block where it has stopped, or into it.
    pub(super) fn go_on(&mut self, stop: Stop, over: bool) -> Result<()> {
        let side = match stop {
            Stop::Newer => &mut self.newer,
            Stop::Older => &mut self.older,
            Stop::End => return Ok(()),
        };
        if let Side::Storage(side) = side {
            if over { side.skip() } else { side.enter()? }
        }
        self.settle();
        Ok(())
    }

    /// The order of the next entries of both sides, which have one key. Those of the newer side are
    /// newer, but for those of runs in a knot.
    fn order_of_age(&self) -> Ordering {
        let seqs = self.newer.seq().zip(self.older.seq());
        seqs.map_or(Ordering::Equal, |(newer, older)| newest_first(newer, older))
    }

    /// Finds out where the next entry comes from.
    fn settle(&mut self) {
        let order = match (self.newer.key(), self.older.key()) {
            (None, None) => {
                self.next = Next::Stopped(Stop::End);
                return;
            }
            (Some(newer), Some(older)) => newer.cmp(older),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        self.next = if order.is_ge() && self.older.begins_block() {
            Next::Stopped(Stop::Older)
        } else if order.is_le() && self.newer.begins_block() {
            Next::Stopped(Stop::Newer)
        } else if order.then_with(|| self.order_of_age()).is_le() {
            Next::Newer
        } else {
            Next::Older
        };
    }

    /// What went through both sides.
    pub(super) fn passed(&self) -> Passed {
        let (newer, older) = (self.newer.passed(), self.older.passed());
        Passed { memory: newer.memory + older.memory, storage: newer.storage + older.storage }
    }

    /// What became of entries before the sides met.
    pub(super) fn folded(&self) -> FoldCounts {
        match &self.newer {
            Side::Folded(side) => side.fold.counts(),
            _ => FoldCounts::default(),
        }
    }
}

impl Walk for Sides {
    fn begin(&mut self) -> Result<()> {
        self.newer.begin()?;
        self.older.begin()?;
        self.settle();
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        match self.next {
            Next::Newer => self.newer.advance()?,
            Next::Older => self.older.advance()?,
            Next::Stopped(_) => {}
        }
        self.settle();
        Ok(())
    }

    fn here(&self) -> Option<EntryRef<'_>> {
        match self.next {
            Next::Newer => self.newer.entry(),
            Next::Older => self.older.entry(),
            Next::Stopped(_) => None,
        }
    }
}
