//! Merges blocks of inputs into blocks of the output.

use lsmith_tree::blocks::{BlockMerge, BlockRules, Front, Write, is_piece};
use lsmith_tree::{Reuse, Size};

/// A block of an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// The place of the first key.
    pub(super) start: u64,
    /// The place directly behind the last key.
    pub(super) end: u64,
    pub(super) is_newer: bool,
    pub(super) is_target: bool,
    pub(super) size: Size,
    /// The overlap; `None` if all of the block is merged into blocks of the other side.
    pub(super) visit: Option<Visit>,
}

/// The entries of the other side that are merged with a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    /// Entries of the block that are not merged into blocks of the other side.
    pub(super) own: u64,
    /// Entries of the other side between the first and the last key.
    pub(super) inside: u64,
    /// Entries of the other side behind the last key.
    pub(super) behind: u64,
    /// True if the block overlaps nothing, so that it can be kept.
    pub(super) is_alone: bool,
    /// The part of all these entries that is written.
    pub(super) goes_on: f64,
}

/// A block of the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// The place of the first key and the place behind the last one, if the block was kept; `None`
    /// for a new block.
    pub(super) kept_at: Option<(u64, u64)>,
}

/// Applies the rules for keeping blocks to the blocks of the inputs.
pub(super) struct Merger {
    rules: BlockMerge,
    piece_bytes: u64,
    /// Mean bytes of an entry.
    entry_bytes: f64,
    /// The expected bytes of the output, and the bytes written so far, which are whole.
    due_bytes: f64,
    written_bytes: u64,
    /// Entries in the open block.
    open: u64,
    /// The fraction of an entry that is not written yet.
    part: f64,
    made: Vec<Made>,
}

impl Merger {
    /// Returns a merger for output entries of `entry_bytes` bytes on average.
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
        // Of the last part of an entry nothing is lost on average.
        if self.part >= 0.5 {
            self.part = 1.0;
            self.write_entries(0, 1.0);
        }
        if let Some(write) = self.rules.clone().end(None) {
            self.write(write);
        }
        self.made
    }

    /// Returns true if the first of `blocks` may be kept, together with enough blocks for a piece.
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

    /// Writes the surviving part of `entries` entries.
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
