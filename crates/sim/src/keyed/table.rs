//! Tables of entries: how they are built, and how ranks are written as keys.

use super::entry::Record;
use lsmith_tree::{
    Key, KeyRange, NumberPoint, PROFILE_STEP_BYTES, Profile, SeqNo, Size, Slice, Table, TableId,
    blocks,
};
use std::ops::Range;
use std::sync::Arc;

/// The key that stands for `rank` in trees and plans: its eight bytes, so that order is kept.
pub fn rank_key(rank: u64) -> Key {
    Key::of_number(rank)
}

/// The least rank whose key is at or above `key`.
pub(crate) fn rank_from(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let bytes = key.len().min(8);
    first[..bytes].copy_from_slice(&key[..bytes]);
    u64::from_be_bytes(first).saturating_add(u64::from(key.len() > 8))
}

/// Which of `entries`, in key order, have their keys in `range`.
fn within<R: Record>(entries: &[R], range: &KeyRange) -> Range<usize> {
    let place = |key: &[u8]| {
        let rank = rank_from(key);
        entries.partition_point(|entry| u64::from(entry.rank()) < rank)
    };
    let from = if range.start.is_empty() { 0 } else { place(&range.start) };
    from..range.end.as_ref().map_or(entries.len(), |end| place(end).max(from))
}

/// The keys from that of `first` to that of `last`.
pub(super) fn range_of<R: Record>(first: R, last: R) -> KeyRange {
    let rank = |entry: R| u64::from(entry.rank());
    KeyRange { start: rank_key(rank(first)), end: Some(Key::after_number(rank(last))) }
}

/// A table: what trees know of it, and its entries in key order.
#[derive(Clone, Debug)]
pub(super) struct Held<R> {
    pub(super) table: Arc<Table>,
    pub(super) entries: Vec<R>,
    /// The points of the table's profile.
    points: Arc<[NumberPoint]>,
}

impl<R: Record> Held<R> {
    /// The entries that are visible through `slice`: with a look at the borders of cells only,
    /// where the slice begins and ends at such.
    pub(super) fn shown(&self, slice: &Slice) -> Part<'_, R> {
        if !slice.is_of_cells() {
            return self.part(slice.range());
        }
        let (points, cells) = (&self.points, slice.cell_indexes());
        let from = cells.start.checked_sub(1).map_or(0, |point| points[point].entries());
        let last = cells.end - 1;
        let upto = points.get(last).map_or(self.entries.len(), NumberPoint::entries);
        Part { held: self, from, upto, point: cells.start, last }
    }

    /// The entries that are visible through `range`.
    pub(super) fn part(&self, range: &KeyRange) -> Part<'_, R> {
        let all = range.covers(&self.table.range);
        let found = if all { 0..self.entries.len() } else { within(&self.entries, range) };
        let points = &self.points;
        let point = points.partition_point(|point| point.entries() <= found.start);
        let last = points.partition_point(|point| point.entries() < found.end);
        Part { held: self, from: found.start, upto: found.end, point, last: last.max(point) }
    }
}

/// Neighbouring entries of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a, R> {
    pub(super) held: &'a Held<R>,
    pub(super) from: usize,
    pub(super) upto: usize,
    /// The first profile point of the table that lies behind `from`: the index of the cell that the
    /// part begins in.
    pub(super) point: usize,
    /// The index of the cell that it ends in.
    pub(super) last: usize,
}

impl<'a, R: Record> Part<'a, R> {
    pub(super) fn entries(&self) -> &'a [R] {
        &self.held.entries[self.from..self.upto]
    }

    /// Where the block ends that begins at `from`.
    pub(super) fn block_end(&self) -> usize {
        let point = self.held.points.get(self.point);
        point.map_or(self.upto, |point| self.upto.min(point.entries()))
    }

    /// Whether the part begins where a cell of the table does, and ends with the last key that
    /// another can hold.
    pub(super) fn is_of_cells(&self) -> bool {
        let points = &self.held.points;
        let before = self.point.checked_sub(1).map_or(0, |point| points[point].entries());
        let ends = match points.get(self.last) {
            Some(point) => point.entries() == self.upto && point.last < point.number,
            None => self.upto == self.held.entries.len(),
        };
        ends && before == self.from
    }

    /// The part behind the first block.
    pub(super) fn behind_block(self) -> Part<'a, R> {
        Part { from: self.block_end(), point: self.point + 1, ..self }
    }

    /// The first block.
    pub(super) fn first_block(self) -> Part<'a, R> {
        Part { upto: self.block_end(), last: self.point, ..self }
    }

    /// The last block.
    pub(super) fn last_block(self) -> Part<'a, R> {
        if self.last == self.point {
            return self;
        }
        let before = self.held.points[self.last - 1];
        Part { from: before.entries(), point: self.last, ..self }
    }

    /// The part with `next`, which is the one behind it in its table.
    pub(super) fn with(self, next: Part<'a, R>) -> Part<'a, R> {
        Part { upto: next.upto, last: next.last, ..self }
    }

    /// The part without its last block.
    pub(super) fn without_last_block(self) -> Part<'a, R> {
        Part { upto: self.last_block().from, last: self.last.max(1) - 1, ..self }
    }

    /// What the first block comes to.
    pub(super) fn block_size(&self) -> Size {
        self.first_block().size()
    }

    /// What all of it comes to.
    pub(super) fn size(&self) -> Size {
        let points = &self.held.points;
        let from = self.point.checked_sub(1).map_or(Size::default(), |point| points[point].below());
        let upto = points.get(self.last).map_or_else(|| self.held.table.size, NumberPoint::below);
        if from.entries == self.from as u64 && upto.entries == self.upto as u64 {
            return upto - from;
        }
        if self.point == self.last {
            return self.entries().iter().map(|entry| entry.size()).sum();
        }
        let first = self.first_block();
        let last = self.last_block();
        let between = points[self.last - 1].below() - points[self.point].below();
        first.size() + between + last.size()
    }

    /// The blocks, each a part.
    pub(super) fn blocks(self) -> impl Iterator<Item = Part<'a, R>> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let block = rest.first_block();
            rest = rest.behind_block();
            (block.from < block.upto).then_some(block)
        })
    }

    /// How many blocks.
    pub(super) fn block_count(&self) -> u64 {
        if self.from == self.upto {
            return 0;
        }
        (self.last - self.point) as u64 + 1
    }

    /// The keys.
    pub(super) fn range(&self) -> KeyRange {
        range_of(self.held.entries[self.from], self.held.entries[self.upto - 1])
    }
}

/// How tables are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Logical bytes of a data block, by the cut rule.
    pub(super) block_bytes: u64,
    /// Whether the profile has a point at every border of a block, not only one behind each
    /// multiple of the profile's step.
    pub(super) by_block: bool,
}

/// Entries up to which a table takes its own room for them: that of a larger one becomes its own.
const COPIED_MAX: usize = 1 << 13;

/// A table under construction: entries in key order. When it is finished, the next can be built in
/// the same room.
#[derive(Clone, Debug)]
pub(super) struct Builder<R> {
    layout: Layout,
    entries: Vec<R>,
    /// Bytes of all entries.
    bytes: u64,
    /// What the first entries come to: all but those of the open block.
    size: Size,
    seq_min: SeqNo,
    seq_max: SeqNo,
    /// Where blocks or steps begin, but for the first.
    points: Vec<NumberPoint>,
    /// Blocks begun.
    blocks: u64,
    /// Bytes before the open block.
    block_start: u64,
    /// Bytes from which on the next step begins.
    mark_bytes: u64,
    /// Bytes up to which neither a block nor a step can begin.
    quiet_bytes: u64,
}

impl<R: Record> Builder<R> {
    pub(super) fn new(layout: Layout) -> Builder<R> {
        Builder {
            layout,
            entries: Vec::new(),
            bytes: 0,
            size: Size::default(),
            seq_min: SeqNo::MAX,
            seq_max: SeqNo::default(),
            points: Vec::new(),
            blocks: 0,
            block_start: 0,
            mark_bytes: if layout.by_block { u64::MAX } else { PROFILE_STEP_BYTES },
            quiet_bytes: 0,
        }
    }

    /// The same room for tables of another layout, the next of `entries_max` entries at most.
    /// Nothing has been put into it since the last was finished.
    pub(super) fn begin(self, layout: Layout, entries_max: usize) -> Builder<R> {
        let Builder { mut entries, points, .. } = self;
        entries.reserve(entries_max);
        Builder { entries, points, ..Builder::new(layout) }
    }

    /// Makes room for so many entries more.
    pub(super) fn reserve(&mut self, entries: usize) {
        self.entries.reserve(entries);
    }

    /// Adds an entry, by the cut rule.
    #[inline]
    pub(super) fn push(&mut self, entry: R) {
        let bytes = entry.bytes();
        if self.bytes + bytes > self.quiet_bytes {
            self.cut(entry);
        }
        self.bytes += bytes;
        self.entries.push(entry);
    }

    /// Begins a block or a step, if one begins with `entry`.
    #[inline(never)]
    fn cut(&mut self, entry: R) {
        if self.bytes >= self.mark_bytes {
            self.add_up();
            let number = u64::from(entry.rank());
            self.points.push(NumberPoint::new(number, number, self.size));
            self.mark_bytes = (self.bytes / PROFILE_STEP_BYTES + 1) * PROFILE_STEP_BYTES;
        }
        let open_bytes = self.bytes - self.block_start;
        if self.blocks == 0 || !blocks::fits(self.layout.block_bytes, open_bytes, entry.bytes()) {
            if self.layout.by_block {
                self.add_up();
            }
            self.begin_block(entry);
        }
        self.quiet_bytes = self.mark_bytes.min(self.block_start + self.layout.block_bytes);
    }

    /// Begins a block with the entry `first`, where the size is that of all before.
    #[inline]
    fn begin_block(&mut self, first: R) {
        self.blocks += 1;
        self.block_start = self.bytes;
        if self.layout.by_block && self.size.entries > 0 {
            let last = self.entries[self.size.entries as usize - 1];
            let [first, last] = [first, last].map(|entry| u64::from(entry.rank()));
            self.points.push(NumberPoint::new(first, last, self.size));
        }
    }

    /// Brings the size up to date.
    fn add_up(&mut self) {
        let new = &self.entries[self.size.entries as usize..];
        self.size.tombstones +=
            new.iter().map(|entry| u64::from(entry.is_tombstone())).sum::<u64>();
        for entry in new {
            self.seq_min = self.seq_min.min(entry.seq());
            self.seq_max = self.seq_max.max(entry.seq());
        }
        (self.size.bytes, self.size.entries) = (self.bytes, self.entries.len() as u64);
    }

    /// Adds an entry to a block whose borders the caller sets by [`close`](Builder::close).
    #[inline]
    pub(super) fn put(&mut self, entry: R) {
        self.entries.push(entry);
    }

    /// Makes a block of the entries that were put since the last, with others in front and behind.
    pub(super) fn close(&mut self, front: &[R], behind: &[R]) {
        let from = self.size.entries as usize;
        if !front.is_empty() {
            self.entries.splice(from..from, front.iter().copied());
        }
        self.entries.extend_from_slice(behind);
        self.begin_block(self.entries[from]);
        self.bytes += self.entries[from..].iter().map(|entry| entry.bytes()).sum::<u64>();
        self.add_up();
    }

    /// Logical bytes so far.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Blocks so far.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The table, of at least one entry; the next can begin.
    pub(super) fn finish(&mut self, id: TableId) -> Held<R> {
        self.add_up();
        let points = match self.points.is_empty() {
            true => Arc::default(),
            false => Arc::from(&self.points[..]),
        };
        let mut table = Table {
            id,
            size: self.size,
            seq_min: self.seq_min,
            seq_max: self.seq_max,
            profile: Profile::of_numbers(Arc::clone(&points)),
            ..Table::default()
        };
        if let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) {
            table.range = range_of(*first, *last);
        }
        self.points.clear();
        let mut room = Vec::new();
        let mut entries = std::mem::take(&mut self.entries);
        if entries.len() > COPIED_MAX {
            entries.shrink_to_fit();
        } else {
            let own = entries.clone();
            room = std::mem::replace(&mut entries, own);
            room.clear();
        }
        *self = Builder {
            entries: room,
            points: std::mem::take(&mut self.points),
            ..Builder::new(self.layout)
        };
        Held { table: Arc::new(table), entries, points }
    }
}

#[cfg(test)]
mod tests;
