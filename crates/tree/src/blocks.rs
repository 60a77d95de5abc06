//! Data blocks: where a table is cut into them, and which of them a merge writes or keeps.
//!
//! Everything here counts logical bytes only, so that the store and the simulations decide alike.
//! An entry joins the open block if it [`fits`]; otherwise that block is closed first. A merge that
//! may keep blocks ([`Reuse`]) asks a [`BlockMerge`] at every step. [`PreservingMerge`] carries out
//! its decisions on the inputs and the output of the store or of a simulation.
//!
//! Two constraints bound the waste of partly full blocks (Thonangi & Yang, ICDE 2017, section
//! II-B). Two neighbouring blocks never fit into one. And the empty room of a level stays within an
//! allowance that every merge into the level raises.

mod pair;
mod preserve;

pub use pair::{Age, BlockInput, InputPair, PairNext};
pub use preserve::{
    BlockSink, KeptBlock, Neighbours, OutputPart, PreserveRules, Preserved, PreservingMerge,
    input_with_gap,
};

use crate::plan::{MergePlan, Place, Reuse};
use crate::size::Size;
use crate::tree::{LevelId, Tree};

/// Returns true if `bytes` more, of an entry or of a whole block, fit into a block that holds
/// `open_bytes`. An entry larger than a block gets a block of its own.
#[must_use]
#[inline]
pub fn fits(block_bytes: u64, open_bytes: u64, bytes: u64) -> bool {
    open_bytes == 0 || open_bytes + bytes <= block_bytes
}

/// Returns the logical bytes of a full block of entries whose mean size follows from `size`: as
/// many entries as fit into `block_bytes`, and at least one.
#[must_use]
pub fn full_bytes(block_bytes: u64, size: Size) -> u64 {
    let Some(entry_bytes) = size.bytes.checked_div(size.entries).filter(|mean| *mean > 0) else {
        return block_bytes;
    };
    (block_bytes / entry_bytes).max(1) * entry_bytes
}

/// Returns the empty room in a block of `bytes`, if a full block holds `full_bytes`.
#[must_use]
#[inline]
pub fn room(full_bytes: u64, bytes: u64) -> u64 {
    full_bytes.saturating_sub(bytes)
}

/// Returns true if neighbouring blocks of one table make a piece of at least `piece_bytes`.
/// `keepable` are the bytes of the blocks that no other input overlaps. If `continues` is true, the
/// block before the first one was kept, and the piece is large enough already.
#[must_use]
pub fn is_piece(
    piece_bytes: u64,
    continues: bool,
    keepable: impl IntoIterator<Item = u64>,
) -> bool {
    let mut left = piece_bytes;
    let is_last = |bytes| {
        left = left.saturating_sub(bytes);
        left == 0
    };
    piece_bytes < u64::MAX && (continues || keepable.into_iter().any(is_last))
}

/// The settings of a [`BlockMerge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRules {
    /// Logical bytes at which a block is cut.
    pub block_bytes: u64,
    /// Logical bytes of a full block. The difference to a block's bytes is its empty room.
    pub full_bytes: u64,
    /// Bytes of the target's block before the output, if there is one.
    pub before: Option<u64>,
    /// Empty room that merges into the target have added since its last compaction, minus the room
    /// that they have taken.
    pub empty_bytes: i64,
    /// The most empty room that merges may have added, this one included; `i64::MAX` for no limit.
    pub allowed_bytes: i64,
}

impl BlockRules {
    /// Returns the rules for `plan` on `tree`. The level that the plan merges into gives the empty
    /// room so far. `before` is left empty: the caller sets it.
    pub fn of(tree: &Tree, plan: &MergePlan, reuse: Reuse, block_bytes: u64) -> BlockRules {
        let level = match plan.place {
            Place::Into(target) => tree.run(target).map(|(level, _)| level),
            _ => None,
        };
        let (empty_bytes, allowed_bytes) = match (reuse.slack_bytes, level) {
            (Some(slack), Some(LevelId::Disk(level))) => {
                let counters = tree.levels()[level].counters();
                let empty = counters.room_added as i64 - counters.room_taken as i64;
                (empty, (counters.slack + slack) as i64)
            }
            _ => (0, i64::MAX),
        };
        let full_bytes = reuse.full_bytes;
        BlockRules { block_bytes, full_bytes, before: None, empty_bytes, allowed_bytes }
    }
}

/// A block to be written: the entries of the open block, and the blocks that are joined with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The block that is joined in front of the open block's entries.
    pub front: Front,
    /// True if the block behind the output is joined at the end.
    pub takes_after: bool,
    /// Bytes of the block.
    pub bytes: u64,
}

/// What is joined in front of an open block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// Nothing.
    Nothing,
    /// The block that was kept last. It is not kept after all.
    Kept,
    /// The target's block before the output.
    Before,
}

/// The decisions of a block-preserving merge.
///
/// It never sees an entry. The merge reports sizes and follows the decisions. The entries of the
/// open block wait until the block is written. Of earlier blocks only the last one can be taken
/// back, and only if it was kept.
#[derive(Clone, Debug)]
pub struct BlockMerge {
    rules: BlockRules,
    empty_bytes: i64,
    open_bytes: u64,
    /// The block before the open block.
    last: Last,
}

#[derive(Clone, Copy, Debug)]
enum Last {
    None,
    Before(u64),
    Kept(u64),
    Written(u64),
}

impl BlockMerge {
    /// Returns the state before the first entry.
    #[must_use]
    pub fn new(rules: BlockRules) -> BlockMerge {
        let last = rules.before.map_or(Last::None, Last::Before);
        BlockMerge { empty_bytes: rules.empty_bytes, rules, open_bytes: 0, last }
    }

    /// Notes that the merge has reached the first entry of a block of the target, which frees the
    /// empty room of that block. The caller reports each such block once, before its first entry is
    /// added or the block is kept.
    #[inline]
    pub fn begin_target(&mut self, bytes: u64) {
        self.empty_bytes -= self.room(bytes);
    }

    /// Returns true if the open block has entries.
    #[inline]
    fn is_open(&self) -> bool {
        self.open_bytes > 0
    }

    /// Adds an entry to the open block. If the entry does not fit, the open block is closed first
    /// and returned, to be written.
    #[must_use = "the block has to be written"]
    #[inline]
    pub fn add(&mut self, entry_bytes: u64) -> Option<Write> {
        let full = !fits(self.rules.block_bytes, self.open_bytes, entry_bytes);
        let closed = full.then(|| self.close());
        self.open_bytes += entry_bytes;
        closed
    }

    /// Returns true if an input block of this size may be kept. The block must start where the
    /// merge is, and no other input may have keys within it.
    ///
    /// A block may be kept if afterwards no two neighbours fit into one block, and if the level
    /// stays within its allowance of empty room even when a block of a single entry follows.
    #[must_use]
    #[inline]
    pub fn may_keep(&self, block: Size) -> bool {
        let apart = |left: u64, right: u64| left + right > self.rules.block_bytes;
        let open = self.open_bytes;
        let pairs = match (open, self.last_bytes()) {
            (0, last) => last.is_none_or(|last| apart(last, block.bytes)),
            (_, last) => last.is_none_or(|last| apart(last, open)) && apart(open, block.bytes),
        };
        let open_room = if open > 0 { self.room(open) } else { 0 };
        let entry_bytes = block.bytes.checked_div(block.entries).unwrap_or(0);
        let worst = self.rules.full_bytes.saturating_sub(entry_bytes) as i64;
        pairs
            && self.empty_bytes + open_room + self.room(block.bytes) + worst
                <= self.rules.allowed_bytes
    }

    /// Keeps a block that [may be kept](BlockMerge::may_keep). If there is an open block, it is
    /// closed first and returned, to be written.
    #[must_use = "the open block has to be written"]
    #[inline]
    pub fn keep(&mut self, block: Size) -> Option<Write> {
        let closed = (self.open_bytes > 0).then(|| self.close());
        self.empty_bytes += self.room(block.bytes);
        self.last = Last::Kept(block.bytes);
        closed
    }

    /// Ends the merge. `after` are the bytes of the target's block behind the output.
    ///
    /// Returns the last block to be written, if there is one. That is the open block, or a kept
    /// block or the block before the output that is joined with the block behind it.
    #[must_use = "the block has to be written"]
    pub fn end(mut self, after: Option<u64>) -> Option<Write> {
        let is_open = self.open_bytes > 0;
        let write = match self.last {
            _ if is_open => self.close(),
            Last::Before(bytes) => Write { front: Front::Before, takes_after: false, bytes },
            Last::Kept(bytes) => Write { front: Front::Kept, takes_after: false, bytes },
            Last::None | Last::Written(_) => return None,
        };
        match after.filter(|after| fits(self.rules.block_bytes, write.bytes, *after)) {
            Some(after) => Some(Write { takes_after: true, bytes: write.bytes + after, ..write }),
            None => is_open.then_some(write),
        }
    }

    /// Closes the open block, and joins it with the block before if both fit into one.
    fn close(&mut self) -> Write {
        let joins = |bytes: u64| fits(self.rules.block_bytes, bytes, self.open_bytes);
        let (front, front_bytes) = match self.last {
            Last::Kept(bytes) if joins(bytes) => (Front::Kept, bytes),
            Last::Before(bytes) if joins(bytes) => (Front::Before, bytes),
            _ => (Front::Nothing, 0),
        };
        let bytes = front_bytes + self.open_bytes;
        if front != Front::Nothing {
            self.empty_bytes -= self.room(front_bytes);
        }
        self.empty_bytes += self.room(bytes);
        self.open_bytes = 0;
        self.last = Last::Written(bytes);
        Write { front, takes_after: false, bytes }
    }

    fn last_bytes(&self) -> Option<u64> {
        match self.last {
            Last::None => None,
            Last::Before(bytes) | Last::Kept(bytes) | Last::Written(bytes) => Some(bytes),
        }
    }

    fn room(&self, bytes: u64) -> i64 {
        room(self.rules.full_bytes, bytes) as i64
    }
}

#[cfg(test)]
mod tests;
