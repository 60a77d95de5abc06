//! The block-preserving merge (Thonangi & Yang, section II-B), carried out on entries.
//!
//! Two inputs are merged entry by entry into an open block. If the next entry starts an input block
//! that ends before the next entry of the other input, that block can be kept unchanged.
//! [`BlockMerge`] decides which blocks are kept and joined.

use super::entry::Record;
use super::merge::Dropped;
use super::table::{Builder, Part};
use lsmith_tree::Size;
use lsmith_tree::blocks::{BlockMerge, BlockRules, Front, Write, is_piece, room};

/// Above every rank.
const END: u64 = u64::MAX;

/// An input of a merge: entries in key order.
#[derive(Debug)]
pub(super) struct MergeSide<'a, R> {
    /// The pieces behind the current one, in reverse order.
    rest: Vec<Part<'a, R>>,
    /// The rest of the current piece, from the current block on.
    part: Option<Part<'a, R>>,
    /// True if the next entry starts a block.
    begins: bool,
    /// The rest of the current block, if the next entry does not start it.
    open: &'a [R],
    /// The rank of the next entry.
    rank: u64,
    /// True if blocks of this input can be kept. Those in memory cannot.
    keeps: bool,
    /// True if the input is the run that the output goes into.
    is_target: bool,
}

impl<'a, R: Record> MergeSide<'a, R> {
    pub(super) fn new(
        mut rest: Vec<Part<'a, R>>,
        keeps: bool,
        is_target: bool,
    ) -> MergeSide<'a, R> {
        rest.retain(|piece| !piece.is_empty());
        rest.reverse();
        let (part, begins, open, rank) = (None, false, &[][..], END);
        let mut side = MergeSide { rest, part, begins, open, rank, keeps, is_target };
        side.skip_block();
        side
    }

    /// Returns an input without entries.
    pub(super) fn empty() -> MergeSide<'a, R> {
        MergeSide::new(Vec::new(), false, false)
    }

    /// Removes and returns the next entry, which must exist.
    #[inline]
    fn take(&mut self) -> Option<R> {
        let open = self.open_block();
        self.advance(open, 1);
        open.first().copied()
    }

    /// Returns the rest of the current block.
    #[inline]
    fn open_block(&self) -> &'a [R] {
        match self.part {
            Some(part) if self.begins => part.first_block().entries(),
            _ => self.open,
        }
    }

    /// Skips `count` entries of the [open block](MergeSide::open_block).
    #[inline]
    fn advance(&mut self, open: &'a [R], count: usize) {
        match open.get(count) {
            Some(next) => {
                self.rank = u64::from(next.rank());
                self.open = &open[count..];
                self.begins = false;
            }
            None => self.skip_block(),
        }
    }

    /// Moves to the next block. Mostly reads no entry, since that would be a cache miss and the
    /// block may be kept without it.
    #[inline]
    fn skip_block(&mut self) {
        self.part = self.part.and_then(Part::behind_block).or_else(|| self.rest.pop());
        self.begins = self.part.is_some();
        self.rank = self.part.map_or(END, |part| part.first_rank());
    }

    /// Returns the block that starts at the next entry.
    #[inline]
    fn block(&self) -> Option<Block<'a, R>> {
        self.part.filter(|_| self.begins).map(|part| Block::of(part.first_block()))
    }
}

/// A block of an input, with its size.
#[derive(Clone, Copy, Debug)]
struct Block<'a, R> {
    part: Part<'a, R>,
    size: Size,
}

impl<'a, R: Record> Block<'a, R> {
    #[inline]
    fn of(part: Part<'a, R>) -> Block<'a, R> {
        Block { part, size: part.size() }
    }
}

/// The settings of a merge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orders<'a, R> {
    pub(super) rules: BlockRules,
    /// The least bytes of a piece that is kept.
    pub(super) piece_bytes: u64,
    /// True if tombstones are dropped.
    pub(super) bottom: bool,
    /// The blocks of the target next to the output, before and after it.
    pub(super) before: Option<Part<'a, R>>,
    pub(super) after: Option<Part<'a, R>>,
}

/// A part of the output.
#[derive(Debug)]
pub(super) enum OutputPart<'a, R> {
    /// Blocks of the new table, from an index up to, not including, another.
    New(usize, usize),
    /// Blocks of an old table that were kept.
    Old(Part<'a, R>),
}

/// The result of a merge.
#[derive(Debug)]
pub(super) struct Output<'a, R> {
    pub(super) parts: Vec<OutputPart<'a, R>>,
    pub(super) kept: Size,
    pub(super) kept_blocks: u64,
    /// True if the block before the output was joined with it. The next field says so of the block
    /// after it.
    pub(super) took_before: bool,
    pub(super) took_after: bool,
    /// Empty room in all blocks.
    pub(super) room: u64,
    /// Empty room in the blocks of the target, if it was the older input.
    pub(super) room_taken: u64,
    pub(super) dropped: Dropped,
}

struct Merger<'a, 'b, R> {
    orders: Orders<'a, R>,
    new: &'b mut Builder<R>,
    blocks: BlockMerge,
    /// True if there is an open block: entries behind the new blocks.
    is_open: bool,
    out: Output<'a, R>,
}

/// Merges `newer` over `older`. New blocks go to the table `new`, which must be empty.
pub(super) fn merge<'a, R: Record>(
    mut newer: MergeSide<'a, R>,
    mut older: MergeSide<'a, R>,
    orders: Orders<'a, R>,
    new: &mut Builder<R>,
) -> Output<'a, R> {
    let mut merger = Merger::new(orders, new);
    // Kept pieces alternate with new ones.
    merger.out.parts.reserve(older.rest.len() + newer.rest.len() + 2);
    loop {
        let (up, down) = (newer.rank, older.rank);
        if down < up {
            let block = merger.start_block(&older);
            if !merger.keep(&mut older, block, up) {
                merger.write_block(&mut older, up);
            }
        } else if up < down {
            let block = if newer.keeps { newer.block() } else { None };
            if !merger.keep(&mut newer, block, down) {
                merger.write_block(&mut newer, down);
            }
        } else if up == END {
            return merger.finish();
        } else {
            merger.start_block(&older);
            if let (Some(newer), Some(older)) = (newer.take(), older.take())
                && let Some(net) = merger.out.dropped.fold(newer, older)
            {
                merger.add(net);
            }
        }
    }
}

impl<'a, 'b, R: Record> Merger<'a, 'b, R> {
    fn new(orders: Orders<'a, R>, new: &'b mut Builder<R>) -> Merger<'a, 'b, R> {
        let out = Output {
            parts: Vec::new(),
            kept: Size::default(),
            kept_blocks: 0,
            took_before: false,
            took_after: false,
            room: 0,
            room_taken: 0,
            dropped: Dropped::default(),
        };
        let blocks = BlockMerge::new(orders.rules);
        Merger { blocks, orders, new, is_open: false, out }
    }

    /// Returns the block of the older input that starts here. If it belongs to the target, reports
    /// it to the [`BlockMerge`].
    #[inline]
    fn start_block(&mut self, older: &MergeSide<'a, R>) -> Option<Block<'a, R>> {
        let block = older.block()?;
        if older.is_target {
            self.blocks.begin_target(block.size.bytes);
            self.out.room_taken += room(self.orders.rules.full_bytes, block.size.bytes);
        }
        Some(block)
    }

    /// Writes the entries of the current block of `side` that lie below the next entry of the other
    /// input, whose rank is `other`.
    fn write_block(&mut self, side: &mut MergeSide<'a, R>, other: u64) {
        let entries = side.open_block();
        let below = entries.iter().take_while(|entry| u64::from(entry.rank()) < other);
        let count = below.map(|entry| self.add(*entry)).count();
        side.advance(entries, count);
    }

    #[inline]
    fn add(&mut self, entry: R) {
        let Some(entry) = self.out.dropped.survivor(entry, self.orders.bottom) else { return };
        if let Some(write) = self.blocks.add(entry.bytes()) {
            self.write(write);
        }
        self.new.put(entry);
        self.is_open = true;
    }

    /// Keeps `block`, which starts here on `side`, if that is possible and allowed. `other` is the
    /// rank of the next entry of the other input. Returns true if the block was kept.
    #[inline(always)]
    fn keep(
        &mut self,
        side: &mut MergeSide<'a, R>,
        block: Option<Block<'a, R>>,
        other: u64,
    ) -> bool {
        let Some(block) = block.filter(|_| side.keeps) else { return false };
        let Block { part, size } = block;
        if !self.is_alone(&block, other) || !self.blocks.may_keep(size) {
            return false;
        }
        let rest = side.part.unwrap_or(part);
        if self.orders.piece_bytes > size.bytes && !self.is_piece(&part, rest, other) {
            return false;
        }
        if let Some(write) = self.blocks.keep(size) {
            self.write(write);
        }
        self.note_kept(part);
        self.out.kept += size;
        self.out.kept_blocks += 1;
        self.out.room += room(self.orders.rules.full_bytes, size.bytes);
        side.skip_block();
        true
    }

    /// Returns true if no entry of the other input falls into `block`, and no entry of the block is
    /// dropped.
    #[inline]
    fn is_alone(&self, block: &Block<'a, R>, other: u64) -> bool {
        block.part.end_rank() <= other && !(self.orders.bottom && block.size.tombstones > 0)
    }

    /// Returns true if `block`, the first of `rest`, and the blocks that could be kept behind it
    /// are large enough for a piece.
    fn is_piece(&self, block: &Part<'a, R>, rest: Part<'a, R>, other: u64) -> bool {
        let continues = matches!(self.out.parts.last(), Some(OutputPart::Old(kept))
            if !self.is_open && kept.is_followed_by(block));
        let blocks = rest.blocks().map(Block::of);
        let alone = blocks.take_while(|block| self.is_alone(block, other));
        is_piece(self.orders.piece_bytes, continues, alone.map(|block| block.size.bytes))
    }

    fn note_kept(&mut self, block: Part<'a, R>) {
        match self.out.parts.last_mut() {
            Some(OutputPart::Old(kept)) if kept.is_followed_by(&block) => *kept = kept.with(block),
            _ => self.out.parts.push(OutputPart::Old(block)),
        }
    }

    /// Removes from the output the block that was kept last.
    fn take_back(&mut self) -> Option<Part<'a, R>> {
        let Some(OutputPart::Old(part)) = self.out.parts.pop() else { return None };
        let block = part.last_block();
        if part.from < block.from {
            self.out.parts.push(OutputPart::Old(part.without_last_block()));
        }
        let size = block.size();
        self.out.kept -= size;
        self.out.kept_blocks -= 1;
        self.out.room -= room(self.orders.rules.full_bytes, size.bytes);
        Some(block)
    }

    fn write(&mut self, write: Write) {
        let front = match write.front {
            Front::Nothing => None,
            Front::Kept => self.take_back(),
            Front::Before => {
                self.out.took_before = true;
                self.orders.before
            }
        };
        let behind = self.orders.after.filter(|_| write.takes_after);
        self.out.took_after = write.takes_after;
        let from = self.new.blocks() as usize;
        let entries = |part: Option<Part<'a, R>>| part.map_or(&[][..], |part| part.entries());
        self.new.close(entries(front), entries(behind));
        let end = self.new.blocks() as usize;
        self.is_open = false;
        self.out.room += room(self.orders.rules.full_bytes, write.bytes);
        match self.out.parts.last_mut() {
            Some(OutputPart::New(_, last)) => *last = end,
            _ => self.out.parts.push(OutputPart::New(from, end)),
        }
    }

    fn finish(mut self) -> Output<'a, R> {
        let after = self.orders.after.map(|part| part.size().bytes);
        if let Some(write) = self.blocks.clone().end(after) {
            self.write(write);
        }
        self.out
    }
}
