//! Tables of entries, and their builder.

use super::entry::KeyedEntry;
use super::hiding::Hiding;
use super::rank::{rank_from, rank_key};
use lsmith_tree::{
    EntryKind, Key, KeyRange, NumberPoint, PROFILE_STEP_BYTES, Profile, Size, Slice, Table,
    TableId, blocks,
};
use lsmith_workload::Lives;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Returns the indexes of the `entries`, in key order, whose keys are in `range`.
fn within<E: KeyedEntry>(entries: &[E], range: &KeyRange) -> Range<usize> {
    let place = |key: &[u8]| {
        let rank = rank_from(key);
        entries.partition_point(|entry| u64::from(entry.rank()) < rank)
    };
    let from = if range.start.is_empty() { 0 } else { place(&range.start) };
    from..range.end.as_ref().map_or(entries.len(), |end| place(end).max(from))
}

/// Returns the key range from `first` to `last`, both inclusive.
pub(super) fn range_of<E: KeyedEntry>(first: E, last: E) -> KeyRange {
    let rank = |entry: E| u64::from(entry.rank());
    KeyRange { start: rank_key(rank(first)), end: Some(Key::after_number(rank(last))) }
}

/// A table: its metadata, and its entries in key order.
#[derive(Clone, Debug)]
pub(super) struct KeyedTable<E> {
    pub(super) table: Arc<Table>,
    pub(super) entries: Vec<E>,
    /// The ends of the cells of the table's profile. Merges read little else.
    pub(super) cells: Arc<[NumberPoint]>,
    /// The rank of the first entry.
    first_rank: u32,
    /// True if each cell is a block.
    pub(super) by_block: bool,
    /// The ends of the blocks, in entries, once they are asked for.
    block_ends: OnceLock<Box<[u32]>>,
}

impl<E: KeyedEntry> KeyedTable<E> {
    /// Returns the ends of the data blocks, in entries. `block_bytes` comes from the layout of the
    /// table.
    pub(super) fn block_ends(&self, block_bytes: u64) -> &[u32] {
        self.block_ends.get_or_init(|| {
            if self.by_block {
                return self.cells.iter().map(|cell| cell.entries).collect();
            }
            let mut ends = Vec::new();
            let mut open_bytes = 0;
            for (at, entry) in self.entries.iter().enumerate() {
                if !blocks::fits(block_bytes, open_bytes, entry.bytes()) {
                    ends.push(at as u32);
                    open_bytes = 0;
                }
                open_bytes += entry.bytes();
            }
            ends.push(self.entries.len() as u32);
            ends.into_boxed_slice()
        })
    }

    /// Makes this one root of an append table, whose file has `dead_bytes` besides. The table
    /// must be new.
    pub(super) fn set_root(&mut self, root: u64, dead_bytes: u64) {
        let table = Arc::get_mut(&mut self.table).expect("a new table has one owner");
        table.root = root;
        table.dead_bytes = dead_bytes;
    }

    /// Sets the time at which all entries have expired; 0 if some stay. The table must be new.
    pub(super) fn set_expires(&mut self, expires: u64) {
        Arc::get_mut(&mut self.table).expect("a new table has one owner").expires = expires;
    }

    /// Returns the entries that are visible through `slice`. Reads only the borders of cells if the
    /// slice starts and ends at such borders.
    #[inline]
    pub(super) fn shown(&self, slice: &Slice) -> Part<'_, E> {
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
    pub(super) fn part(&self, range: &KeyRange) -> Part<'_, E> {
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

    /// Returns the size of the entries below a cell.
    #[inline]
    fn below(&self, cell: u32) -> Size {
        cell.checked_sub(1).map_or(Size::default(), |before| self.end(before).below())
    }
}

/// Neighbouring entries of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a, E> {
    held: &'a KeyedTable<E>,
    /// The indexes of the entries.
    pub(super) from: u32,
    pub(super) end: u32,
    /// The index of the cell in which the part starts.
    pub(super) cell: u32,
    /// The index of the cell in which the part ends.
    last: u32,
}

impl<'a, E: KeyedEntry> Part<'a, E> {
    #[inline]
    pub(super) fn entries(&self) -> &'a [E] {
        &self.held.entries[self.from as usize..self.end as usize]
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.end
    }

    /// Returns the parts that a merge visits, which passes over what `hiding` hides together with
    /// all of the table.
    pub(super) fn visited(self, hiding: &Hiding) -> Vec<Part<'a, E>> {
        if self.is_empty() {
            return Vec::new();
        }
        let range = self.range();
        let left = hiding.visited(&self.held.table, &range);
        if let [all] = &left[..]
            && *all == range
        {
            return vec![self];
        }
        let parts = left.iter().map(|range| self.held.part(range));
        parts.filter(|part| !part.is_empty()).collect()
    }

    /// Returns the rank of the first entry. Does not read the entry if a cell starts here.
    #[inline]
    pub(super) fn first_rank(&self) -> u64 {
        match self.cell.checked_sub(1).map(|before| self.held.end(before)) {
            None if self.from == 0 => u64::from(self.held.first_rank),
            Some(before) if before.entries == self.from => before.key,
            _ => u64::from(self.held.entries[self.from as usize].rank()),
        }
    }

    /// Returns the least rank above all entries. Does not read entries if a cell ends here.
    #[inline]
    pub(super) fn end_rank(&self) -> u64 {
        let end = self.held.end(self.last);
        if end.entries == self.end && end.last < end.key {
            end.last + 1
        } else {
            self.entries().last().map_or(0, |last| u64::from(last.rank()) + 1)
        }
    }

    /// Returns the end of the block that starts at `from`.
    #[inline]
    fn block_end(&self) -> u32 {
        self.end.min(self.held.end(self.cell).entries)
    }

    /// Returns true if the part starts with a cell and ends with the last key of a cell.
    fn is_of_cells(&self) -> bool {
        let end = self.held.end(self.last);
        let ends = end.entries == self.end && end.last < end.key;
        ends && self.held.below(self.cell).entries == u64::from(self.from)
    }

    /// Returns the slice that covers the part.
    pub(super) fn slice(&self) -> Option<Slice> {
        let table = Arc::clone(&self.held.table);
        if self.is_of_cells() {
            Some(Slice::of_cells(table, self.cell as usize..self.last as usize + 1))
        } else {
            Slice::whole(table).clip(&self.range())
        }
    }

    /// Returns the name of the table.
    pub(super) fn table_id(&self) -> TableId {
        self.held.table.id
    }

    /// Returns the indexes of the blocks that lie in the part as a whole. `None` if nobody has
    /// asked for the blocks of the table.
    pub(super) fn whole_blocks(&self) -> Option<Range<u32>> {
        let ends = self.held.block_ends.get()?;
        let starts_by = |entry: u32| ends.partition_point(|end| *end < entry) + 1;
        let first = if self.from == 0 { 0 } else { starts_by(self.from) };
        let end = ends.partition_point(|end| *end <= self.end);
        Some(first as u32..end as u32)
    }

    /// Returns the part behind the first block, if it is not empty.
    #[inline]
    pub(super) fn behind_block(self) -> Option<Part<'a, E>> {
        let from = self.block_end();
        (from < self.end).then(|| Part { from, cell: self.cell + 1, ..self })
    }

    /// Returns the first block.
    #[inline]
    pub(super) fn first_block(self) -> Part<'a, E> {
        Part { end: self.block_end(), last: self.cell, ..self }
    }

    /// Returns the last block.
    pub(super) fn last_block(self) -> Part<'a, E> {
        if self.last == self.cell {
            return self;
        }
        Part { from: self.held.end(self.last - 1).entries, cell: self.last, ..self }
    }

    /// Returns true if `next` follows this part directly in the same table.
    #[inline]
    pub(super) fn is_followed_by(&self, next: &Part<'a, E>) -> bool {
        std::ptr::eq(self.held, next.held) && self.end == next.from
    }

    /// Returns this part and `next` as one part. `next` must follow directly in the same table.
    #[inline]
    pub(super) fn with(self, next: Part<'a, E>) -> Part<'a, E> {
        Part { end: next.end, last: next.last, ..self }
    }

    /// Returns the part without its last block.
    pub(super) fn without_last_block(self) -> Part<'a, E> {
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

    /// Returns the size of a part that does not start and end at borders of cells.
    #[inline(never)]
    fn counted_size(&self) -> Size {
        if self.cell == self.last {
            return self.entries().iter().map(|entry| entry.size()).sum();
        }
        let between = self.held.below(self.last) - self.held.end(self.cell).below();
        self.first_block().size() + between + self.last_block().size()
    }

    /// Returns the blocks, each a part.
    pub(super) fn blocks(self) -> impl Iterator<Item = Part<'a, E>> {
        let whole = (!self.is_empty()).then_some(self);
        std::iter::successors(whole, |rest| rest.behind_block()).map(Part::first_block)
    }

    /// Returns the number of blocks.
    #[inline]
    pub(super) fn block_count(&self) -> u64 {
        if self.is_empty() { 0 } else { u64::from(self.last - self.cell) + 1 }
    }

    /// Returns true if `next`, the part behind it, begins in its last block.
    pub(super) fn shares_block_with(&self, next: &Part<'_, E>) -> bool {
        self.held.table.id == next.held.table.id && self.last == next.cell
    }

    /// Returns the room in the blocks; a full block holds `full_bytes`.
    pub(super) fn room(&self, full_bytes: u64) -> u64 {
        self.blocks().map(|block| blocks::room(full_bytes, block.size().bytes)).sum()
    }

    /// Returns the keys.
    pub(super) fn range(&self) -> KeyRange {
        range_of(self.held.entries[self.from as usize], self.held.entries[self.end as usize - 1])
    }
}

/// The layout of new tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Logical bytes of a data block, by the cut rule.
    pub(super) block_bytes: u64,
    /// True if the profile has a point at every block border, not only one per step of the
    /// profile.
    pub(super) by_block: bool,
    /// When entries expire that do.
    pub(super) lives: Lives,
}

/// Builds a table from entries in key order. After `finish`, the next table reuses the buffers.
#[derive(Clone, Debug)]
pub(super) struct Builder<E> {
    layout: Layout,
    entries: Vec<E>,
    /// The size of all entries outside of the block that is not closed.
    sum: Sum,
    /// The starts of blocks or steps, without the first.
    points: Vec<NumberPoint>,
    /// The number of started blocks.
    blocks: u64,
    /// Bytes before the open block.
    block_start: u64,
    /// The bytes at which the next step starts.
    mark_bytes: u64,
    /// The bytes before which neither a block nor a step can start.
    quiet_bytes: u64,
    /// True if a block has entries that were copied unseen.
    has_copies: bool,
}

/// The sum of the sizes of entries.
#[derive(Clone, Copy, Debug)]
struct Sum {
    size: Size,
    /// The least and the greatest [age](KeyedEntry::age).
    age_min: i64,
    age_max: i64,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum { size: Size::default(), age_min: i64::MAX, age_max: i64::MIN }
    }
}

impl Sum {
    #[inline]
    fn add<E: KeyedEntry>(&mut self, entry: E) {
        self.size += entry.size();
        self.age_min = self.age_min.min(entry.age());
        self.age_max = self.age_max.max(entry.age());
    }
}

/// Returns the time at which all of `entries` have expired, deletions aside: 0 if all are
/// deletions. Returns `None` if some stay.
fn expires<E: KeyedEntry>(entries: &[E], lives: &Lives) -> Option<u64> {
    entries.iter().try_fold(0, |latest, entry| later(latest, *entry, lives))
}

/// Returns the time at which `entry` has expired too, if others expire by `latest`; `None` if it
/// stays.
pub(super) fn later<E: KeyedEntry>(latest: u64, entry: E, lives: &Lives) -> Option<u64> {
    match entry.kind() {
        EntryKind::Expiring => lives.end(entry.written().0).map(|end| latest.max(end)),
        _ => entry.is_tombstone().then_some(latest),
    }
}

impl<E: KeyedEntry> Builder<E> {
    pub(super) fn new(layout: Layout) -> Builder<E> {
        Builder {
            entries: Vec::new(),
            sum: Sum::default(),
            points: Vec::new(),
            blocks: 0,
            block_start: 0,
            mark_bytes: if layout.by_block { u64::MAX } else { PROFILE_STEP_BYTES },
            layout,
            quiet_bytes: 0,
            has_copies: false,
        }
    }

    /// Returns a builder with the same buffers and another layout, for a table of at most
    /// `entries_max` entries. The builder must be empty.
    pub(super) fn start(self, layout: Layout, entries_max: usize) -> Builder<E> {
        let Builder { mut entries, points, .. } = self;
        entries.reserve(entries_max);
        Builder { entries, points, ..Builder::new(layout) }
    }

    /// Reserves space for `entries` more entries.
    pub(super) fn reserve(&mut self, entries: usize) {
        self.entries.reserve(entries);
    }

    /// Adds an entry, by the cut rule.
    #[inline]
    pub(super) fn push(&mut self, entry: E) {
        if self.sum.size.bytes + entry.bytes() > self.quiet_bytes {
            self.cut(entry);
        }
        self.sum.add(entry);
        self.entries.push(entry);
    }

    /// Starts a block or a step if the cut rule says so before `entry`.
    #[inline(never)]
    fn cut(&mut self, entry: E) {
        let bytes = self.sum.size.bytes;
        if bytes >= self.mark_bytes {
            let key = u64::from(entry.rank());
            self.points.push(NumberPoint::new(key, key, self.sum.size));
            self.mark_bytes = (bytes / PROFILE_STEP_BYTES + 1) * PROFILE_STEP_BYTES;
        }
        let open_bytes = bytes - self.block_start;
        if self.blocks == 0 || !blocks::fits(self.layout.block_bytes, open_bytes, entry.bytes()) {
            self.begin_block(entry);
        }
        self.quiet_bytes = self.mark_bytes.min(self.block_start + self.layout.block_bytes);
    }

    /// Starts a block with the entry `first`. The size counts all entries before it.
    #[inline]
    fn begin_block(&mut self, first: E) {
        self.blocks += 1;
        self.block_start = self.sum.size.bytes;
        if self.layout.by_block && self.sum.size.entries > 0 {
            let last = self.entries[self.sum.size.entries as usize - 1];
            let [first, last] = [first, last].map(|entry| u64::from(entry.rank()));
            self.points.push(NumberPoint::new(first, last, self.sum.size));
        }
    }

    /// Cuts the entries since the last block into blocks, by the cut rule.
    pub(super) fn cut_all(&mut self) {
        // A local copy, so that the compiler keeps it in registers.
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

    /// Adds an entry to the open block. [`close`](Builder::close) or
    /// [`cut_all`](Builder::cut_all) ends the block.
    #[inline]
    pub(super) fn put(&mut self, entry: E) {
        self.entries.push(entry);
    }

    /// Makes one block of `front`, the entries since the last block, and `behind`.
    pub(super) fn close(&mut self, front: &[E], behind: &[E]) {
        let from = self.sum.size.entries as usize;
        self.has_copies |= !front.is_empty() || !behind.is_empty();
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

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if a block was [closed](Builder::close) with entries that the merge has not
    /// looked at.
    pub(super) fn has_copies(&self) -> bool {
        self.has_copies
    }

    /// Returns the number of blocks so far.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the table, which must have an entry, and empties the builder.
    pub(super) fn finish(&mut self, id: TableId) -> KeyedTable<E> {
        let [first, last] = [0, self.entries.len() - 1].map(|at| self.entries[at]);
        let end = u64::from(last.rank());
        self.points.push(NumberPoint::new(end + 1, end, self.sum.size));
        let cells = Arc::from(&self.points[..]);
        let lives = &self.layout.lives;
        let expires = lives.expire().then(|| expires(&self.entries, lives)).flatten();
        let table = Table {
            id,
            range: range_of(first, last),
            size: self.sum.size,
            seq_min: E::seq_of(self.sum.age_min),
            seq_max: E::seq_of(self.sum.age_max),
            expires: expires.unwrap_or_default(),
            profile: Profile::of_cells(Arc::clone(&cells)),
            ..Table::default()
        };
        self.points.clear();
        let mut entries = std::mem::take(&mut self.entries);
        let mut room = Vec::new();
        if entries.len() > entries.capacity() / 2 {
            // The buffer is about as large as needed, so the table keeps it.
            entries.shrink_to_fit();
        } else {
            let own = entries.clone();
            room = std::mem::replace(&mut entries, own);
            room.clear();
        }
        *self = Builder {
            entries: room,
            points: std::mem::take(&mut self.points),
            ..Builder::new(self.layout.clone())
        };
        KeyedTable {
            table: Arc::new(table),
            entries,
            cells,
            first_rank: first.rank(),
            by_block: self.layout.by_block,
            block_ends: OnceLock::new(),
        }
    }
}

#[cfg(test)]
mod tests;
