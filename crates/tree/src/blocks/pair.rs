//! The two inputs of a merge that keeps blocks.

use crate::size::Size;
use std::cmp::Ordering;

/// An input of a merge that keeps blocks: entries in key order, with marks where blocks start.
///
/// The merge looks at a block before any of its entries is read. Where the input is at the start of
/// a block, its next key is therefore a bound: no entry of the block has a smaller key.
pub trait BlockInput {
    /// A block of the input.
    type Block;

    /// Compares the next keys of two inputs. An input that has ended is greater than any key.
    /// Returns `None` if both have ended.
    fn compare(&self, other: &Self) -> Option<Ordering>;

    /// Returns the size of the block that starts at the next entry. Returns `None` within a block,
    /// and for an input whose blocks cannot be kept.
    fn block_size(&self) -> Option<Size>;

    /// Returns the block that starts at the next entry, if [`block_size`](BlockInput::block_size)
    /// does not return `None`.
    fn block(&self) -> Option<Self::Block>;

    /// Returns true if the block that starts at the next entry ends before the next key of `other`.
    fn block_ends_before(&self, other: &Self) -> bool {
        self.blocks_before(other).next().is_some()
    }

    /// Returns the sizes of the blocks from the next entry on, in the same slice, up to the first
    /// that does not end before the next key of `other`.
    fn blocks_before(&self, other: &Self) -> impl Iterator<Item = Size>;

    /// Moves behind the block that starts at the next entry, without reading it.
    fn skip_block(&mut self);
}

/// One of the two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// The newer one.
    Newer,
    /// The older one.
    Older,
}

/// What comes next in a merge of two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairNext {
    /// Nothing: both inputs have ended.
    End,
    /// A block of this size, which starts at the next entry of one input. The merge keeps the
    /// block, or the caller has the input enter it.
    Block(Age, Size),
    /// An entry of one input. The other input has no entry of its key.
    Entry(Age),
    /// Two entries of one key.
    Both,
}

/// A newer input and an older one.
#[derive(Clone, Debug)]
pub struct InputPair<I> {
    /// The newer one.
    pub newer: I,
    /// The older one.
    pub older: I,
}

impl<I: BlockInput> InputPair<I> {
    /// Returns what comes next. If both inputs start a block at one key, the older one is first.
    #[inline(always)]
    pub fn next(&self) -> PairNext {
        let Some(order) = self.newer.compare(&self.older) else { return PairNext::End };
        if order.is_ge()
            && let Some(size) = self.older.block_size()
        {
            return PairNext::Block(Age::Older, size);
        }
        if order.is_le()
            && let Some(size) = self.newer.block_size()
        {
            return PairNext::Block(Age::Newer, size);
        }
        match order {
            Ordering::Less => PairNext::Entry(Age::Newer),
            Ordering::Greater => PairNext::Entry(Age::Older),
            Ordering::Equal => PairNext::Both,
        }
    }

    /// Returns one of the inputs, and the other one.
    #[inline]
    pub(super) fn split(&mut self, age: Age) -> (&mut I, &I) {
        match age {
            Age::Newer => (&mut self.newer, &self.older),
            Age::Older => (&mut self.older, &self.newer),
        }
    }
}
