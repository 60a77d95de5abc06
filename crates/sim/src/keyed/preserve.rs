//! The inputs and the output of a merge that keeps blocks, and the merge of entries.
//!
//! [`PreservingMerge`] says which blocks are kept and joined, as it does in the store.

use super::entry::KeyedEntry;
use super::merge::{Changes, Dropped, Dropping};
use super::table::{Builder, Part};
use lsmith_tree::blocks::{
    Age, BlockInput, BlockSink, InputPair, KeptBlock, PairNext, PreserveRules, Preserved,
    PreservingMerge,
};
use lsmith_tree::{KeyRange, MergePlan, Size};
use std::cmp::Ordering;
use std::convert::Infallible;
use std::ops::Range;

/// Above every rank.
const END: u64 = u64::MAX;

/// An input of a merge: entries in key order.
#[derive(Debug)]
pub(super) struct MergeSide<'a, E> {
    /// The pieces behind the current one, in reverse order.
    rest: Vec<Part<'a, E>>,
    /// The rest of the current piece, from the current block on.
    part: Option<Part<'a, E>>,
    /// True if the next entry starts a block.
    begins: bool,
    /// The rest of the current block, if the next entry does not start it.
    open: &'a [E],
    /// The rank of the next entry.
    rank: u64,
    /// True if blocks of this input can be kept. Those in memory cannot.
    keeps: bool,
}

impl<'a, E: KeyedEntry> MergeSide<'a, E> {
    pub(super) fn new(mut rest: Vec<Part<'a, E>>, keeps: bool) -> MergeSide<'a, E> {
        rest.retain(|piece| !piece.is_empty());
        rest.reverse();
        let mut side = MergeSide { rest, part: None, begins: false, open: &[], rank: END, keeps };
        side.next_block();
        side
    }

    /// Returns an input without entries.
    pub(super) fn empty() -> MergeSide<'a, E> {
        MergeSide::new(Vec::new(), false)
    }

    /// Removes and returns the next entry, which must exist.
    #[inline]
    fn take(&mut self) -> Option<E> {
        let open = self.open_block();
        self.advance(open, 1);
        open.first().copied()
    }

    /// Returns the rest of the current block.
    #[inline]
    fn open_block(&self) -> &'a [E] {
        match self.part {
            Some(part) if self.begins => part.first_block().entries(),
            _ => self.open,
        }
    }

    /// Skips `count` entries of the [open block](MergeSide::open_block).
    #[inline]
    fn advance(&mut self, open: &'a [E], count: usize) {
        match open.get(count) {
            Some(next) => {
                self.rank = u64::from(next.rank());
                self.open = &open[count..];
                self.begins = false;
            }
            None => self.next_block(),
        }
    }

    /// Moves to the next block. Mostly reads no entry, since that would be a cache miss and the
    /// block may be kept without it.
    #[inline]
    fn next_block(&mut self) {
        self.part = self.part.and_then(Part::behind_block).or_else(|| self.rest.pop());
        self.begins = self.part.is_some();
        self.rank = self.part.map_or(END, |part| part.first_rank());
    }
}

impl<'a, E: KeyedEntry> BlockInput for MergeSide<'a, E> {
    type Block = Part<'a, E>;

    #[inline]
    fn compare(&self, other: &Self) -> Option<Ordering> {
        let order = self.rank.cmp(&other.rank);
        (order.is_ne() || self.rank != END).then_some(order)
    }

    #[inline]
    fn block_size(&self) -> Option<Size> {
        self.block().map(|block| block.size())
    }

    #[inline]
    fn block(&self) -> Option<Part<'a, E>> {
        self.part.filter(|_| self.begins && self.keeps).map(Part::first_block)
    }

    #[inline]
    fn block_ends_before(&self, other: &Self) -> bool {
        self.block().is_some_and(|block| block.end_rank() <= other.rank)
    }

    fn blocks_before(&self, other: &Self) -> impl Iterator<Item = Size> {
        let blocks = self.part.into_iter().flat_map(Part::blocks);
        blocks.take_while(|block| block.end_rank() <= other.rank).map(|block| block.size())
    }

    #[inline]
    fn skip_block(&mut self) {
        self.next_block();
    }
}

impl<E: KeyedEntry> KeptBlock for Part<'_, E> {
    #[inline]
    fn size(&self) -> Size {
        self.size()
    }

    fn range(&self) -> KeyRange {
        self.range()
    }

    #[inline]
    fn is_followed_by(&self, next: &Self) -> bool {
        self.is_followed_by(next)
    }

    #[inline]
    fn append(&mut self, next: &Self) {
        *self = self.with(*next);
    }

    fn remove_last(&mut self, last: &Self) -> bool {
        let is_left = self.from < last.from;
        if is_left {
            *self = self.without_last_block();
        }
        is_left
    }
}

/// Written blocks go to the table under construction. They are known by their indexes in it.
impl<E: KeyedEntry> BlockSink<Part<'_, E>> for &mut Builder<E> {
    type Written = Range<usize>;
    type Error = Infallible;

    fn write(
        &mut self,
        front: Option<&Part<'_, E>>,
        behind: Option<&Part<'_, E>>,
        last: Option<&mut Range<usize>>,
    ) -> Result<Option<Range<usize>>, Infallible> {
        let start = self.blocks() as usize;
        self.close(front.map_or(&[], Part::entries), behind.map_or(&[], Part::entries));
        let end = self.blocks() as usize;
        Ok(match last {
            Some(last) => {
                last.end = end;
                None
            }
            None => Some(start..end),
        })
    }
}

/// A merge on its way.
struct Merger<'a, 'b, E: KeyedEntry, M> {
    blocks: PreservingMerge<Part<'a, E>, &'b mut Builder<E>>,
    dropping: Dropping<M>,
}

/// Merges two inputs, as `plan` and `rules` say. New blocks go to the table `new`, which must be
/// empty. Returns the output, and what was dropped.
pub(super) fn merge<'a, 'b, E: KeyedEntry>(
    pair: InputPair<MergeSide<'a, E>>,
    plan: &MergePlan,
    rules: PreserveRules<Part<'a, E>>,
    dropping: Dropping,
    new: &'b mut Builder<E>,
) -> (Preserved<Part<'a, E>, &'b mut Builder<E>>, Dropped) {
    let mut blocks = PreservingMerge::new(plan, rules, new);
    // Kept pieces alternate with new ones.
    blocks.reserve(pair.older.rest.len() + pair.newer.rest.len() + 2);
    match dropping.plain() {
        Some(plain) => Merger { blocks, dropping: plain }.merge(pair),
        None => Merger { blocks, dropping }.merge(pair),
    }
}

impl<'a, 'b, E: KeyedEntry, M: Changes> Merger<'a, 'b, E, M> {
    fn merge(
        mut self,
        mut pair: InputPair<MergeSide<'a, E>>,
    ) -> (Preserved<Part<'a, E>, &'b mut Builder<E>>, Dropped) {
        loop {
            let age = match pair.next() {
                PairNext::End => break,
                PairNext::Block(age, size) => {
                    let Ok(is_kept) = self.blocks.keep_block(&mut pair, age, size);
                    if is_kept {
                        continue;
                    }
                    age
                }
                PairNext::Entry(age) => age,
                PairNext::Both => {
                    let newer = pair.newer.take().and_then(|entry| self.dropping.shown(entry));
                    let older = pair.older.take().and_then(|entry| self.dropping.shown(entry));
                    let net = match (newer, older) {
                        (Some(newer), Some(older)) => self.dropping.fold(newer, older),
                        (newer, older) => newer.or(older),
                    };
                    if let Some(net) = net.and_then(|net| self.dropping.survivor(net)) {
                        self.put(net);
                    }
                    continue;
                }
            };
            match age {
                Age::Newer => self.write_block(&mut pair.newer, pair.older.rank),
                Age::Older => self.write_block(&mut pair.older, pair.newer.rank),
            }
        }
        let Ok(output) = self.blocks.finish();
        (output, self.dropping.dropped)
    }

    /// Writes the entries of the current block of `side` that lie below the next entry of the other
    /// input, whose rank is `other`.
    fn write_block(&mut self, side: &mut MergeSide<'a, E>, other: u64) {
        let entries = side.open_block();
        let below = entries.iter().take_while(|entry| u64::from(entry.rank()) < other);
        let alone = below.map(|entry| {
            if let Some(entry) = self.dropping.alone(*entry) {
                self.put(entry);
            }
        });
        let count = alone.count();
        side.advance(entries, count);
    }

    #[inline(always)]
    fn put(&mut self, entry: E) {
        let Ok(new) = self.blocks.add(entry.bytes());
        new.put(entry);
    }
}
