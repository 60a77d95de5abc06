//! Tables of entries: how they are built, and how ranks are written as keys.

use super::entry::Record;
use lsmith_tree::{
    Key, KeyRange, NumberPoint, PROFILE_STEP_BYTES, Profile, SeqNo, Size, Slice, Table, TableId,
    blocks,
};
use std::ops::Range;
use std::sync::Arc;

/// Returns the key that stands for `rank` in trees and plans: its eight bytes, so that order is
/// kept.
pub fn rank_key(rank: u64) -> Key {
    Key::of_number(rank)
}

/// Returns the least rank whose key is at or above `key`.
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

/// Returns the keys from that of `first` to that of `last`.
pub(super) fn range_of<R: Record>(first: R, last: R) -> KeyRange {
    let rank = |entry: R| u64::from(entry.rank());
    KeyRange { start: rank_key(rank(first)), end: Some(Key::after_number(rank(last))) }
}

/// A table: its metadata, and its entries in key order.
#[derive(Clone, Debug)]
pub(super) struct KeyedTable<R> {
    pub(super) table: Arc<Table>,
    pub(super) entries: Vec<R>,
    /// The ends of its cells, as the table's profile has them. Merges look at little else.
    cells: Arc<[NumberPoint]>,
    /// The rank of the first entry.
    first_rank: u32,
}

impl<R: Record> KeyedTable<R> {
    /// Returns the entries that are visible through `slice`: with a look at the borders of cells
    /// only, where the slice begins and ends at such.
    #[inline]
    pub(super) fn shown(&self, slice: &Slice) -> Part<'_, R> {
        if !slice.is_of_cells() {
            return self.part(slice.range());
        }
        let cells = slice.cell_indexes();
        let cell = cells.start as u32;
        let last = cells.end as u32 - 1;
        let from = self.below(cell).entries as u32;
        Part { held: self, from, end: self.end(last).entries, cell, last }
    }

    /// Returns the entries that are visible through `range`.
    pub(super) fn part(&self, range: &KeyRange) -> Part<'_, R> {
        let all = range.covers(&self.table.range);
        let found = if all { 0..self.entries.len() } else { within(&self.entries, range) };
        let from = found.start as u32;
        let end = found.end as u32;
        let inner = &self.cells[..self.cells.len() - 1];
        let cell = inner.partition_point(|end| end.entries <= from) as u32;
        let last = inner.partition_point(|point| point.entries < end) as u32;
        Part { held: self, from, end, cell, last: last.max(cell) }
    }

    /// Returns the end of a cell.
    #[inline]
    fn end(&self, cell: u32) -> &NumberPoint {
        &self.cells[cell as usize]
    }

    /// Returns what lies below a cell.
    #[inline]
    fn below(&self, cell: u32) -> Size {
        cell.checked_sub(1).map_or(Size::default(), |before| self.end(before).below())
    }
}

/// Neighbouring entries of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a, R> {
    held: &'a KeyedTable<R>,
    /// The indexes of its entries.
    pub(super) from: u32,
    pub(super) end: u32,
    /// The index of the cell that it begins in.
    pub(super) cell: u32,
    /// The index of the cell that it ends in.
    last: u32,
}

impl<'a, R: Record> Part<'a, R> {
    #[inline]
    pub(super) fn entries(&self) -> &'a [R] {
        &self.held.entries[self.from as usize..self.end as usize]
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.end
    }

    /// Returns the rank of the first entry: where a cell begins here, without a look at the entry.
    #[inline]
    pub(super) fn first_rank(&self) -> u64 {
        match self.cell.checked_sub(1).map(|before| self.held.end(before)) {
            None if self.from == 0 => u64::from(self.held.first_rank),
            Some(before) if before.entries == self.from => before.number,
            _ => u64::from(self.held.entries[self.from as usize].rank()),
        }
    }

    /// Returns the least rank above all entries: where a cell ends here, without a look at them.
    #[inline]
    pub(super) fn end_rank(&self) -> u64 {
        let end = self.held.end(self.last);
        if end.entries == self.end && end.last < end.number {
            end.last + 1
        } else {
            self.entries().last().map_or(0, |last| u64::from(last.rank()) + 1)
        }
    }

    /// Returns where the block ends that begins at `from`.
    #[inline]
    fn block_end(&self) -> u32 {
        self.end.min(self.held.end(self.cell).entries)
    }

    /// Returns true if the part begins where a cell of the table does, and ends with the last key
    /// that another can hold.
    fn is_of_cells(&self) -> bool {
        let end = self.held.end(self.last);
        let ends = end.entries == self.end && end.last < end.number;
        ends && self.held.below(self.cell).entries == u64::from(self.from)
    }

    /// Returns the slice that shows it.
    pub(super) fn slice(&self) -> Option<Slice> {
        let table = Arc::clone(&self.held.table);
        if self.is_of_cells() {
            Some(Slice::of_cells(table, self.cell as usize..self.last as usize + 1))
        } else {
            Slice::whole(table).clip(&self.range())
        }
    }

    /// Returns the part behind the first block, if there is anything.
    #[inline]
    pub(super) fn behind_block(self) -> Option<Part<'a, R>> {
        let from = self.block_end();
        (from < self.end).then(|| Part { from, cell: self.cell + 1, ..self })
    }

    /// Returns the first block.
    #[inline]
    pub(super) fn first_block(self) -> Part<'a, R> {
        Part { end: self.block_end(), last: self.cell, ..self }
    }

    /// Returns the last block.
    pub(super) fn last_block(self) -> Part<'a, R> {
        if self.last == self.cell {
            return self;
        }
        Part { from: self.held.end(self.last - 1).entries, cell: self.last, ..self }
    }

    /// Returns true if `next` is what lies behind this in the same table.
    #[inline]
    pub(super) fn is_followed_by(&self, next: &Part<'a, R>) -> bool {
        std::ptr::eq(self.held, next.held) && self.end == next.from
    }

    /// Returns the part with `next`, which is the one behind it in its table.
    #[inline]
    pub(super) fn with(self, next: Part<'a, R>) -> Part<'a, R> {
        Part { end: next.end, last: next.last, ..self }
    }

    /// Returns the part without its last block.
    pub(super) fn without_last_block(self) -> Part<'a, R> {
        Part { end: self.last_block().from, last: self.last.max(1) - 1, ..self }
    }

    /// Returns the size of all entries of the part.
    #[inline]
    pub(super) fn size(&self) -> Size {
        let from = self.held.below(self.cell);
        let end = self.held.end(self.last).below();
        if (from.entries, end.entries) == (u64::from(self.from), u64::from(self.end)) {
            end - from
        } else {
            self.counted_size()
        }
    }

    /// Returns the size of a part that does not begin and end where cells do.
    #[inline(never)]
    fn counted_size(&self) -> Size {
        if self.cell == self.last {
            return self.entries().iter().map(|entry| entry.size()).sum();
        }
        let between = self.held.below(self.last) - self.held.end(self.cell).below();
        self.first_block().size() + between + self.last_block().size()
    }

    /// Returns the blocks, each a part.
    pub(super) fn blocks(self) -> impl Iterator<Item = Part<'a, R>> {
        let whole = (!self.is_empty()).then_some(self);
        std::iter::successors(whole, |rest| rest.behind_block()).map(Part::first_block)
    }

    /// Returns how many blocks.
    #[inline]
    pub(super) fn block_count(&self) -> u64 {
        if self.is_empty() { 0 } else { u64::from(self.last - self.cell) + 1 }
    }

    /// Empty room in its blocks, where a full one holds `full_bytes`.
    pub(super) fn room(&self, full_bytes: u64) -> u64 {
        self.blocks().map(|block| blocks::room(full_bytes, block.size().bytes)).sum()
    }

    /// Returns the keys.
    pub(super) fn range(&self) -> KeyRange {
        range_of(self.held.entries[self.from as usize], self.held.entries[self.end as usize - 1])
    }
}

/// How tables are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Logical bytes of a data block, by the cut rule.
    pub(super) block_bytes: u64,
    /// True if the profile has a point at every border of a block, not only one behind each
    /// multiple of the profile's step.
    pub(super) by_block: bool,
}

/// A table under construction: entries in key order. When it is finished, the next can be built in
/// the same room.
#[derive(Clone, Debug)]
pub(super) struct Builder<R> {
    layout: Layout,
    entries: Vec<R>,
    /// What the entries come to, but for those that were put into a block which is not closed.
    sum: Sum,
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

/// What entries come to.
#[derive(Clone, Copy, Debug)]
struct Sum {
    size: Size,
    seq_min: SeqNo,
    seq_max: SeqNo,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum { size: Size::default(), seq_min: SeqNo::MAX, seq_max: SeqNo::default() }
    }
}

impl Sum {
    #[inline]
    fn add<R: Record>(&mut self, entry: R) {
        self.size += entry.size();
        self.seq_min = self.seq_min.min(entry.seq());
        self.seq_max = self.seq_max.max(entry.seq());
    }
}

impl<R: Record> Builder<R> {
    pub(super) fn new(layout: Layout) -> Builder<R> {
        Builder {
            layout,
            entries: Vec::new(),
            sum: Sum::default(),
            points: Vec::new(),
            blocks: 0,
            block_start: 0,
            mark_bytes: if layout.by_block { u64::MAX } else { PROFILE_STEP_BYTES },
            quiet_bytes: 0,
        }
    }

    /// Returns the same room for tables of another layout, the next of `entries_max` entries at
    /// most. Nothing has been put into it since the last was finished.
    pub(super) fn start(self, layout: Layout, entries_max: usize) -> Builder<R> {
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
        if self.sum.size.bytes + entry.bytes() > self.quiet_bytes {
            self.cut(entry);
        }
        self.sum.add(entry);
        self.entries.push(entry);
    }

    /// Begins a block or a step, if one begins with `entry`.
    #[inline(never)]
    fn cut(&mut self, entry: R) {
        let bytes = self.sum.size.bytes;
        if bytes >= self.mark_bytes {
            let number = u64::from(entry.rank());
            self.points.push(NumberPoint::new(number, number, self.sum.size));
            self.mark_bytes = (bytes / PROFILE_STEP_BYTES + 1) * PROFILE_STEP_BYTES;
        }
        let open_bytes = bytes - self.block_start;
        if self.blocks == 0 || !blocks::fits(self.layout.block_bytes, open_bytes, entry.bytes()) {
            self.begin_block(entry);
        }
        self.quiet_bytes = self.mark_bytes.min(self.block_start + self.layout.block_bytes);
    }

    /// Begins a block with the entry `first`, where the size is that of all before.
    #[inline]
    fn begin_block(&mut self, first: R) {
        self.blocks += 1;
        self.block_start = self.sum.size.bytes;
        if self.layout.by_block && self.sum.size.entries > 0 {
            let last = self.entries[self.sum.size.entries as usize - 1];
            let [first, last] = [first, last].map(|entry| u64::from(entry.rank()));
            self.points.push(NumberPoint::new(first, last, self.sum.size));
        }
    }

    /// Makes blocks of all entries that were put since the last, by the cut rule.
    pub(super) fn cut_all(&mut self) {
        // On its own, so that it is kept in registers.
        let mut sum = self.sum;
        for at in sum.size.entries as usize..self.entries.len() {
            let entry = self.entries[at];
            if sum.size.bytes + entry.bytes() > self.quiet_bytes {
                self.sum = sum;
                self.cut(entry);
            }
            sum.add(entry);
        }
        self.sum = sum;
    }

    /// Adds an entry to a block that is yet to be [closed](Builder::close), or
    /// [cut](Builder::cut_all).
    #[inline]
    pub(super) fn put(&mut self, entry: R) {
        self.entries.push(entry);
    }

    /// Makes a block of the entries that were put since the last, with others in front and behind.
    pub(super) fn close(&mut self, front: &[R], behind: &[R]) {
        let from = self.sum.size.entries as usize;
        if !front.is_empty() {
            self.entries.splice(from..from, front.iter().copied());
        }
        self.entries.extend_from_slice(behind);
        self.begin_block(self.entries[from]);
        let mut sum = self.sum;
        self.entries[from..].iter().for_each(|entry| sum.add(*entry));
        self.sum = sum;
    }

    /// Returns the logical bytes so far.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.sum.size.bytes
    }

    /// Returns how many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Blocks so far.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the table, of at least one entry; the next can begin.
    pub(super) fn finish(&mut self, id: TableId) -> KeyedTable<R> {
        let [first, last] = [0, self.entries.len() - 1].map(|at| self.entries[at]);
        let end = u64::from(last.rank());
        self.points.push(NumberPoint::new(end + 1, end, self.sum.size));
        let cells = Arc::from(&self.points[..]);
        let table = Table {
            id,
            range: range_of(first, last),
            size: self.sum.size,
            seq_min: self.sum.seq_min,
            seq_max: self.sum.seq_max,
            profile: Profile::of_cells(Arc::clone(&cells)),
            ..Table::default()
        };
        self.points.clear();
        let mut entries = std::mem::take(&mut self.entries);
        let mut room = Vec::new();
        if entries.len() > entries.capacity() / 2 {
            // It is about as large as needed: the table takes it over.
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
        KeyedTable { table: Arc::new(table), entries, cells, first_rank: first.rank() }
    }
}

#[cfg(test)]
mod tests;
