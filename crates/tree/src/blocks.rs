//! Data blocks: where a table is cut into them, and which of them a merge writes or keeps.
//!
//! Sizes only, in logical bytes, so that the store and simulations decide alike. An entry joins the
//! open block if it [`fits`], else that block is closed first. A merge that may keep blocks
//! ([`Reuse`]) asks a [`BlockMerge`] at every step.
//!
//! Two constraints bound what partly full blocks waste (Thonangi & Yang, ICDE 2017, section II-B):
//! two neighbouring blocks never fit into one, and the empty room of a level stays within an
//! allowance that every merge into it raises.

use crate::plan::{MergePlan, Place, Reuse};
use crate::slice::Size;
use crate::tree::{LevelId, Tree};

/// Whether an entry, or a whole block, of `bytes` joins a block that holds `open_bytes`. An entry
/// larger than a block is a block by itself.
#[must_use]
#[inline]
pub fn fits(block_bytes: u64, open_bytes: u64, bytes: u64) -> bool {
    open_bytes == 0 || open_bytes + bytes <= block_bytes
}

/// Logical bytes of a full block, where entries are as large as the mean of all that `size` counts:
/// as many of them as fit, at least one.
#[must_use]
pub fn full_bytes(block_bytes: u64, size: Size) -> u64 {
    let Some(entry_bytes) = size.bytes.checked_div(size.entries).filter(|mean| *mean > 0) else {
        return block_bytes;
    };
    (block_bytes / entry_bytes).max(1) * entry_bytes
}

/// Empty room in a block of `bytes`, where a full one holds `full_bytes`.
#[must_use]
#[inline]
pub fn room(full_bytes: u64, bytes: u64) -> u64 {
    full_bytes.saturating_sub(bytes)
}

/// Whether blocks of `keepable` bytes, neighbours in one table that meet nothing, make a piece of
/// at least `piece_bytes`, or go on with one (`continues`): the block before the first was kept.
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

/// What a [`BlockMerge`] is told at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRules {
    /// Logical bytes that a block takes, by the cut rule.
    pub block_bytes: u64,
    /// Logical bytes of a full block: what is missing from it is empty room.
    pub full_bytes: u64,
    /// Bytes of the block of the target that lies before the output, if there is one.
    pub before: Option<u64>,
    /// Empty room that merges into the target have added since it was last compacted, less what
    /// they took.
    pub empty_bytes: i64,
    /// Empty room that they may have added, with this one; `i64::MAX` for no limit.
    pub allowed_bytes: i64,
}

impl BlockRules {
    /// Those of `plan` on `tree`, with the account of empty room of the level that it merges into.
    /// Nothing is known yet of a block before the output.
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

/// A block to be written: the entries of the open block, and of others that join it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// What comes in front of the open block's entries, and stays no block of its own.
    pub front: Front,
    /// Whether the block behind the output comes behind them.
    pub takes_after: bool,
    /// Bytes of the block.
    pub bytes: u64,
}

/// What joins an open block in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// Nothing.
    Nothing,
    /// The block that was kept last: it is taken back.
    Kept,
    /// The block of the target before the output.
    Before,
}

/// The decisions of a block-preserving merge.
///
/// It never sees an entry: whoever merges tells it sizes and does what it says. The entries of the
/// open block wait until it is written; of earlier blocks only the last can be called back, and
/// only if it was kept.
#[derive(Clone, Debug)]
pub struct BlockMerge {
    rules: BlockRules,
    empty_bytes: i64,
    open_bytes: u64,
    /// The block before the open one.
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
    /// Nothing has been merged yet.
    #[must_use]
    pub fn new(rules: BlockRules) -> BlockMerge {
        let last = rules.before.map_or(Last::None, Last::Before);
        BlockMerge { empty_bytes: rules.empty_bytes, rules, open_bytes: 0, last }
    }

    /// The merge comes to the first entry of a block of the target: its empty room goes. Told once
    /// for each, before its first entry is added or it is kept.
    #[inline]
    pub fn begin_target(&mut self, bytes: u64) {
        self.empty_bytes -= self.room(bytes);
    }

    /// An entry goes on, as the last of the open block; where that must be closed first, it is to
    /// be written before.
    #[must_use = "the block has to be written"]
    #[inline]
    pub fn add(&mut self, entry_bytes: u64) -> Option<Write> {
        let full = !fits(self.rules.block_bytes, self.open_bytes, entry_bytes);
        let closed = full.then(|| self.close());
        self.open_bytes += entry_bytes;
        closed
    }

    /// Whether an input block of this size, which begins where the merge is and ends before any
    /// other input goes on, may be kept: then no two neighbours would fit into one block, and with
    /// a block of a single entry still to come the level would keep to its allowance.
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

    /// A block that [may be kept](BlockMerge::may_keep) is: behind the open block, which is to be
    /// written before, if there is one.
    #[must_use = "the open block has to be written"]
    #[inline]
    pub fn keep(&mut self, block: Size) -> Option<Write> {
        let closed = (self.open_bytes > 0).then(|| self.close());
        self.empty_bytes += self.room(block.bytes);
        self.last = Last::Kept(block.bytes);
        closed
    }

    /// No more entries. `after` are the bytes of the block of the target behind the output. What
    /// comes out is the last block to be written, if there is one: the open block, or a kept one or
    /// the block before the output, which joins the one behind it.
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

    /// Closes the open block, joined with the one before it where they fit into one.
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
        (self.open_bytes, self.last) = (0, Last::Written(bytes));
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
