//! Blocks of inputs on their way into the output.

use lsmith_tree::blocks::{BlockMerge, BlockRules, Front, Write, is_piece};
use lsmith_tree::{Reuse, Size};

/// A block of an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Where its first key is.
    pub(super) start: u64,
    /// Just behind its last key.
    pub(super) end: u64,
    pub(super) is_newer: bool,
    pub(super) is_target: bool,
    pub(super) size: Size,
    /// What comes to it; `None` where it goes to blocks of the other side.
    pub(super) visit: Option<Visit>,
}

/// What the other side brings to a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    /// Entries of the block itself that don't go to blocks of the other side.
    pub(super) own: u64,
    /// Entries that come between its first key and its last.
    pub(super) inside: u64,
    /// Entries that come behind its last key.
    pub(super) behind: u64,
    /// True if the block meets nothing, so that it can be kept.
    pub(super) is_alone: bool,
    /// The part of all these entries that goes on where they are written.
    pub(super) goes_on: f64,
}

/// A block of the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// Its first place and the first one behind its last key, if it was kept; `None` if it is new.
    pub(super) kept_at: Option<(u64, u64)>,
}

/// Passes the blocks of the inputs through the rules for keeping them.
pub(super) struct Merger {
    rules: BlockMerge,
    piece_bytes: u64,
    /// Mean bytes of an entry.
    entry_bytes: f64,
    /// Bytes that were to go on, and those that did, which are whole.
    due_bytes: f64,
    written_bytes: u64,
    /// Entries in the open block.
    open: u64,
    /// Part of an entry that is still to go on.
    part: f64,
    made: Vec<Made>,
}

impl Merger {
    /// Entries that go on have `entry_bytes` bytes on average.
    pub(super) fn new(rules: BlockRules, reuse: Reuse, entry_bytes: f64) -> Merger {
        Merger {
            rules: BlockMerge::new(rules),
            piece_bytes: reuse.piece_bytes,
            entry_bytes,
            due_bytes: 0.0,
            written_bytes: 0,
            open: 0,
            part: 0.0,
            made: Vec::new(),
        }
    }

    pub(super) fn run(mut self, blocks: &[Block]) -> Vec<Made> {
        let mut was_kept = false;
        for (index, block) in blocks.iter().enumerate() {
            if block.is_target {
                self.rules.begin_target(block.size.bytes);
            }
            let Some(visit) = block.visit else { continue };
            was_kept = visit.is_alone && self.may_keep(&blocks[index..], was_kept);
            if was_kept {
                if let Some(write) = self.rules.keep(block.size) {
                    self.write(write);
                }
                let Size { entries, bytes, .. } = block.size;
                let kept_at = Some((block.start, block.end));
                self.made.push(Made { entries, bytes, kept_at });
            } else {
                self.write_entries(visit.own + visit.inside, visit.goes_on);
            }
            if visit.behind > 0 {
                self.write_entries(visit.behind, visit.goes_on);
                was_kept = false;
            }
        }
        if let Some(write) = self.rules.clone().end(None) {
            self.write(write);
        }
        self.made
    }

    /// Returns true if the first of `blocks` may be kept, with as many behind it as a piece needs.
    fn may_keep(&self, blocks: &[Block], continues: bool) -> bool {
        let is_newer = blocks[0].is_newer;
        let is_alone = |block: &Block| {
            block.is_newer == is_newer && block.visit.is_some_and(|visit| visit.is_alone)
        };
        let ends = |block: &Block| block.visit.is_none_or(|visit| visit.behind > 0);
        let alone = blocks.iter().take_while(|block| is_alone(block));
        let last = alone.clone().position(ends).map_or(usize::MAX, |last| last + 1);
        self.rules.may_keep(blocks[0].size)
            && is_piece(self.piece_bytes, continues, alone.take(last).map(|block| block.size.bytes))
    }

    /// Writes what goes on of so many entries.
    fn write_entries(&mut self, entries: u64, goes_on: f64) {
        self.part += entries as f64 * goes_on;
        let entries = self.part.floor();
        self.part -= entries;
        for _ in 0..entries as u64 {
            self.due_bytes += self.entry_bytes;
            let bytes = self.due_bytes as u64 - self.written_bytes;
            self.written_bytes += bytes;
            if let Some(write) = self.rules.add(bytes) {
                self.write(write);
            }
            self.open += 1;
        }
    }

    fn write(&mut self, write: Write) {
        let kept = match write.front {
            Front::Kept => self.made.pop().map_or(0, |kept| kept.entries),
            Front::Nothing | Front::Before => 0,
        };
        let entries = self.open + kept;
        self.made.push(Made { entries, bytes: write.bytes, kept_at: None });
        self.open = 0;
    }
}
