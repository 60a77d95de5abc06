//! The block-preserving merge (Thonangi & Yang, section II-B).
//!
//! A newer input and an older one are merged into an open block. If the next entry starts a block
//! of an input that ends before the next entry of the other input, that block can be kept as it is.
//! [`BlockMerge`] decides by sizes which blocks are kept and which are joined.
//!
//! The store and the keyed simulation both use this. Each has a [`BlockInput`] for its inputs, a
//! [`BlockSink`] for its output, and a rule for the versions of a key:
//!
//! 1. [`InputPair::next`] says what comes next.
//! 2. If it is a block, [`PreservingMerge::keep_block`] keeps it, or the caller has the input enter
//!    it.
//! 3. If it is an entry, the caller applies its rule, and passes what is left of the key to
//!    [`PreservingMerge::add`].
//! 4. When both inputs have ended, [`PreservingMerge::finish`] writes the last block.

use super::pair::{Age, BlockInput, InputPair};
use super::{BlockMerge, BlockRules, Front, Write, fits, is_piece, room};
use crate::edit::Outcome;
use crate::key::Key;
use crate::plan::{Input, MergePlan, Place};
use crate::range::KeyRange;
use crate::size::Size;
use std::fmt::Debug;

/// A block of a table, or several neighbouring blocks of one.
pub trait KeptBlock: Clone {
    /// Returns the size of a single block.
    fn size(&self) -> Size;

    /// Returns the keys.
    fn range(&self) -> KeyRange;

    /// Returns true if `next` lies directly behind this in the same table.
    fn is_followed_by(&self, next: &Self) -> bool;

    /// Adds `next`, which lies directly behind.
    fn append(&mut self, next: &Self);

    /// Removes `last`, the last block. Returns false if it is the only one.
    fn remove_last(&mut self, last: &Self) -> bool;
}

/// The output of a merge: it holds the entries of the open block, and writes blocks.
pub trait BlockSink<B> {
    /// Neighbouring blocks that were written.
    type Written: Debug;
    /// What fails when blocks are read or written.
    type Error;

    /// Writes a block of the entries of `front`, of the open block, and of `behind`. The open block
    /// is empty then. If `last` is given, it lies before the new block, which may be added to it.
    /// Otherwise returns the new block.
    ///
    /// # Errors
    /// Fails if `front` or `behind` cannot be read, or the block cannot be written.
    fn write(
        &mut self,
        front: Option<&B>,
        behind: Option<&B>,
        last: Option<&mut Self::Written>,
    ) -> Result<Option<Self::Written>, Self::Error>;
}

/// The blocks of a run on both sides of a key range.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours<B> {
    /// The last block below the range.
    pub before: Option<B>,
    /// The first block above the range.
    pub after: Option<B>,
}

impl<B: KeptBlock> Neighbours<B> {
    /// No blocks.
    pub const NONE: Neighbours<B> = Neighbours { before: None, after: None };

    /// Returns the neighbours of `range`. `below` returns the last block below a key, and `from`
    /// the first one at or above a key.
    pub fn of(
        range: &KeyRange,
        below: impl FnOnce(&Key) -> Option<B>,
        from: impl FnOnce(&Key) -> Option<B>,
    ) -> Neighbours<B> {
        Neighbours { before: below(&range.start), after: range.end.as_ref().and_then(from) }
    }

    /// Returns both blocks, and the range of both, if they fit into one of `block_bytes`.
    pub fn fitting(self, block_bytes: u64) -> Option<(B, B, KeyRange)> {
        let (before, after) = self.before.zip(self.after)?;
        let range = before.range().hull(&after.range());
        fits(block_bytes, before.size().bytes, after.size().bytes).then_some((before, after, range))
    }
}

/// Returns the newest input of `plan`, if its run stays where it is and gets a gap: a window that
/// goes down. The output of other plans takes the place of the input.
pub fn input_with_gap(plan: &MergePlan) -> Option<&Input> {
    let stays = |input: &Input| ![Place::Oldest, Place::Into(input.run)].contains(&plan.place);
    plan.inputs.first().filter(|input| stays(input))
}

/// The settings of a [`PreservingMerge`].
#[derive(Clone, Copy, Debug)]
pub struct PreserveRules<B> {
    /// The rules for blocks. Their `before` need not be set.
    pub rules: BlockRules,
    /// The least bytes of a piece that is kept.
    pub piece_bytes: u64,
    /// True if tombstones are dropped.
    pub bottom: bool,
    /// The blocks of the target next to the output.
    pub beside: Neighbours<B>,
}

/// A part of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPart<B, W> {
    /// Neighbouring blocks of an old table that were kept.
    Kept(B),
    /// Neighbouring blocks that were written.
    Written(W),
}

/// The result of a [`PreservingMerge`].
#[derive(Debug)]
pub struct Preserved<B, K: BlockSink<B>> {
    /// What was written.
    pub sink: K,
    /// The parts of the output, in key order.
    pub parts: Vec<OutputPart<B, K::Written>>,
    /// The size of all blocks that were kept.
    pub kept: Size,
    /// The number of blocks that were kept.
    pub kept_blocks: u64,
    /// The blocks next to the output that were joined with it.
    pub joined: Neighbours<B>,
    /// Empty room in all blocks of the output.
    room_added: u64,
    /// Empty room in the blocks of the target, if it was the older input.
    room_taken: u64,
}

impl<B: KeptBlock, K: BlockSink<B>> Preserved<B, K> {
    /// Adds to the `outcome` of `plan` what was kept, the empty room, and the blocks of the target
    /// that were joined.
    pub fn add_to(&self, outcome: &mut Outcome, plan: &MergePlan) {
        outcome.reused = self.kept;
        outcome.blocks.reused = self.kept_blocks;
        outcome.room_added = self.room_added;
        outcome.room_taken += self.room_taken;
        let Place::Into(run) = plan.place else { return };
        let hull = plan.hull();
        // Includes the gap between the block and the window, which a slice may cover.
        let joined = self.joined.before.as_ref();
        let before = joined.map(|block| KeyRange { end: Some(hull.start), ..block.range() });
        let behind = self.joined.after.as_ref().zip(hull.end);
        let after = behind.map(|(block, start)| KeyRange { start, ..block.range() });
        let ranges = before.into_iter().chain(after);
        outcome.rewritten.extend(ranges.map(|range| (Input { run, range }, Vec::new())));
    }
}

/// A merge that keeps blocks: asks [`BlockMerge`], has blocks written, and notes what comes out.
#[derive(Debug)]
pub struct PreservingMerge<B, K: BlockSink<B>> {
    rules: PreserveRules<B>,
    decisions: BlockMerge,
    older_is_target: bool,
    /// The last block of the output, if it was kept.
    last_kept: Option<B>,
    out: Preserved<B, K>,
}

impl<B: KeptBlock, K: BlockSink<B>> PreservingMerge<B, K> {
    /// Returns the merge of `plan`, before its first entry. New blocks go to `sink`.
    ///
    /// A single input is the newer one. Of several the last is the older one, and all others
    /// together are the newer one.
    pub fn new(plan: &MergePlan, mut rules: PreserveRules<B>, sink: K) -> PreservingMerge<B, K> {
        rules.rules.before = rules.beside.before.as_ref().map(|block| block.size().bytes);
        let older = plan.inputs.last().filter(|_| plan.inputs.len() > 1);
        PreservingMerge {
            decisions: BlockMerge::new(rules.rules),
            rules,
            older_is_target: older.is_some_and(|older| plan.place == Place::Into(older.run)),
            last_kept: None,
            out: Preserved {
                sink,
                parts: Vec::new(),
                kept: Size::default(),
                kept_blocks: 0,
                joined: Neighbours::NONE,
                room_added: 0,
                room_taken: 0,
            },
        }
    }

    /// Makes room for so many more parts of the output.
    pub fn reserve(&mut self, parts: usize) {
        self.out.parts.reserve(parts);
    }

    /// Makes room for an entry of `bytes` in the open block. Returns the sink that takes it.
    ///
    /// # Errors
    /// Fails if the open block is full and cannot be written.
    #[inline]
    pub fn add(&mut self, bytes: u64) -> Result<&mut K, K::Error> {
        if let Some(write) = self.decisions.add(bytes) {
            self.write(write)?;
        }
        Ok(&mut self.out.sink)
    }

    /// Keeps the block of this size that starts at the next entry of one input, if that is possible
    /// and allowed. Returns true if the block was kept: the input is behind it then.
    ///
    /// # Errors
    /// Fails if the open block before it cannot be written.
    #[inline(always)]
    pub fn keep_block<I: BlockInput<Block = B>>(
        &mut self,
        pair: &mut InputPair<I>,
        age: Age,
        size: Size,
    ) -> Result<bool, K::Error> {
        if age == Age::Older && self.older_is_target {
            self.decisions.begin_target(size.bytes);
            self.out.room_taken += self.room(size.bytes);
        }
        let (input, other) = pair.split(age);
        if !input.block_ends_before(other) || self.drops_of(size) || !self.decisions.may_keep(size)
        {
            return Ok(false);
        }
        let Some(block) = input.block() else { return Ok(false) };
        if self.rules.piece_bytes > size.bytes && !self.is_piece(&block, input, other) {
            return Ok(false);
        }
        self.keep(block, size)?;
        input.skip_block();
        Ok(true)
    }

    /// Returns true if entries of a block of this size are dropped.
    #[inline]
    fn drops_of(&self, size: Size) -> bool {
        self.rules.bottom && size.tombstones > 0
    }

    /// Returns true if `block`, which starts at the next entry of `input`, and the blocks that
    /// could be kept behind it are large enough for a piece.
    fn is_piece<I: BlockInput<Block = B>>(&self, block: &B, input: &I, other: &I) -> bool {
        let sizes = input.blocks_before(other).take_while(|size| !self.drops_of(*size));
        is_piece(self.rules.piece_bytes, self.continues(block), sizes.map(|size| size.bytes))
    }

    /// Returns true if `block` lies directly behind the block that was kept last.
    fn continues(&self, block: &B) -> bool {
        !self.decisions.is_open()
            && matches!(self.out.parts.last(), Some(OutputPart::Kept(piece))
                if piece.is_followed_by(block))
    }

    #[inline]
    fn keep(&mut self, block: B, size: Size) -> Result<(), K::Error> {
        if let Some(write) = self.decisions.keep(size) {
            self.write(write)?;
        }
        self.out.kept += size;
        self.out.kept_blocks += 1;
        self.out.room_added += self.room(size.bytes);
        match self.out.parts.last_mut() {
            Some(OutputPart::Kept(piece)) if piece.is_followed_by(&block) => piece.append(&block),
            _ => self.out.parts.push(OutputPart::Kept(block.clone())),
        }
        self.last_kept = Some(block);
        Ok(())
    }

    /// Removes from the output the block that was kept last.
    fn take_back(&mut self) -> Option<B> {
        let last = self.last_kept.take()?;
        if let Some(OutputPart::Kept(piece)) = self.out.parts.last_mut()
            && !piece.remove_last(&last)
        {
            self.out.parts.pop();
        }
        let size = last.size();
        self.out.kept -= size;
        self.out.kept_blocks -= 1;
        self.out.room_added -= self.room(size.bytes);
        Some(last)
    }

    /// Writes the open block, with the blocks that are joined with it.
    fn write(&mut self, write: Write) -> Result<(), K::Error> {
        let front = match write.front {
            Front::Nothing => None,
            Front::Kept => self.take_back(),
            Front::Before => {
                self.out.joined.before = self.rules.beside.before.clone();
                self.rules.beside.before.clone()
            }
        };
        if write.takes_after {
            self.out.joined.after = self.rules.beside.after.clone();
        }
        let last = match self.out.parts.last_mut() {
            Some(OutputPart::Written(last)) => Some(last),
            _ => None,
        };
        let written = self.out.sink.write(front.as_ref(), self.out.joined.after.as_ref(), last)?;
        self.out.parts.extend(written.map(OutputPart::Written));
        self.out.room_added += self.room(write.bytes);
        Ok(())
    }

    fn room(&self, bytes: u64) -> u64 {
        room(self.rules.rules.full_bytes, bytes)
    }

    /// Writes the open block, after the last entry, and returns the result.
    ///
    /// # Errors
    /// Fails if the open block cannot be written.
    pub fn finish(mut self) -> Result<Preserved<B, K>, K::Error> {
        let after = self.rules.beside.after.as_ref().map(|block| block.size().bytes);
        if let Some(write) = self.decisions.clone().end(after) {
            self.write(write)?;
        }
        Ok(self.out)
    }
}
