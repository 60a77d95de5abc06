//! Inputs of a merge as blocks.
//!
//! The profiles of tables say where blocks are, which keys they hold and how large they are. So no
//! block is read to find out.

use crate::version::{OpenRun, OpenSlice, TableHandle};
use lsmith_storage::error::Result;
use lsmith_storage::table::{CacheFill, OpenCursor, ReadCursor, ReadTable, ReadTally};
use lsmith_tree::blocks::KeptBlock;
use lsmith_tree::{Key, KeyRange, ProfilePoint, Size};
use std::ops::Range;
use std::sync::Arc;

/// The blocks of a slice within a range, each from one profile point to the next.
#[derive(Clone, Debug)]
pub(super) struct Part {
    handle: Arc<TableHandle>,
    range: KeyRange,
    /// The indexes of the profile points between blocks.
    points: Range<usize>,
    /// The size of all entries of the table below the start of the range, and below its end.
    below_start: Size,
    below_end: Size,
}

/// A block of an input, or several neighbouring blocks that are kept.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) handle: Arc<TableHandle>,
    /// From the first key to just above the last, if the profile knows them; else a little wider.
    pub(super) range: KeyRange,
    /// The size of the block; of the first, if there are several.
    pub(super) size: Size,
}

impl Part {
    /// Returns the blocks of `slice` within `range`. Returns `None` if there are none.
    fn new(slice: &OpenSlice, range: &KeyRange) -> Option<Part> {
        let handle = Arc::clone(slice.table());
        let table = handle.table().tree_table();
        let range = if range.covers(slice.range()) {
            slice.range().clone()
        } else {
            table.filled(slice.range().intersection(range))
        };
        if range.is_empty() {
            return None;
        }
        let from = table.profile.partition_point(|point| point.key <= range.start);
        let end = table
            .profile
            .partition_point(|point| range.end.as_ref().is_none_or(|end| point.key < *end));
        let points = from..end.max(from);
        let below_start = table.below(&range.start);
        let below_end = range.end.as_ref().map_or(table.size, |end| table.below(end));
        Some(Part { handle, points, range, below_start, below_end })
    }

    /// Returns the blocks of every slice of `run` within `range`, in key order.
    pub(super) fn all(run: &OpenRun, range: &KeyRange) -> Vec<Part> {
        run.overlapping(range).filter_map(|slice| Part::new(slice, range)).collect()
    }

    /// Returns the last block of `run` below `key`.
    pub(super) fn block_below(run: &OpenRun, key: &Key) -> Option<Block> {
        let range = KeyRange { start: Key::new(), end: Some(key.clone()) };
        let part = Part::new(run.overlapping(&range).next_back()?, &range)?;
        Some(part.block(part.len() - 1))
    }

    /// Returns the first block of `run` at or above `key`.
    pub(super) fn block_from(run: &OpenRun, key: &Key) -> Option<Block> {
        let range = KeyRange { start: key.clone(), end: None };
        Some(Part::new(run.overlapping(&range).next()?, &range)?.block(0))
    }

    pub(super) fn handle(&self) -> &Arc<TableHandle> {
        &self.handle
    }

    pub(super) fn range(&self) -> &KeyRange {
        &self.range
    }

    /// Returns the number of blocks, at least one.
    pub(super) fn len(&self) -> usize {
        self.points.len() + 1
    }

    /// Returns the profile point at which block `index` ends. Returns `None` for the last block.
    fn end_point(&self, index: usize) -> Option<&ProfilePoint> {
        let point = self.points.start + index;
        self.points.contains(&point).then(|| &self.handle.table().tree_table().profile[point])
    }

    /// Returns block `index`.
    pub(super) fn block(&self, index: usize) -> Block {
        let start_point = index.checked_sub(1).and_then(|before| self.end_point(before));
        let end_point = self.end_point(index);
        let start = start_point.map_or(&self.range.start, |point| &point.key).clone();
        let end = match end_point {
            Some(point) => Some(point.after.as_ref().unwrap_or(&point.key).clone()),
            None => self.range.end.clone(),
        };
        let size = self.size(index);
        Block { handle: Arc::clone(&self.handle), range: KeyRange { start, end }, size }
    }

    /// Returns the size of block `index`.
    pub(super) fn size(&self, index: usize) -> Size {
        let start_point = index.checked_sub(1).and_then(|before| self.end_point(before));
        let start = start_point.map_or(self.below_start, |point| point.below);
        self.end_point(index).map_or(self.below_end, |point| point.below) - start
    }

    /// Returns true if block `index` ends below `key`.
    pub(super) fn ends_below(&self, index: usize, key: &[u8]) -> bool {
        let end = match self.end_point(index) {
            Some(point) => Some(point.after.as_ref().unwrap_or(&point.key)),
            None => self.range.end.as_ref(),
        };
        end.is_some_and(|end| &end[..] <= key)
    }
}

impl KeptBlock for Block {
    fn size(&self) -> Size {
        self.size
    }

    fn range(&self) -> KeyRange {
        self.range.clone()
    }

    fn is_followed_by(&self, next: &Block) -> bool {
        let Some(end) = self.range.end.as_ref() else { return false };
        if !Arc::ptr_eq(&self.handle, &next.handle) {
            return false;
        }
        let start = &next.range.start;
        if end == start {
            return true;
        }
        let profile = &self.handle.table().tree_table().profile;
        let at = profile.partition_point(|point| point.key < *start);
        profile.get(at).is_some_and(|point| {
            point.key == *start && point.after.as_ref().is_some_and(|after| after <= end)
        })
    }

    fn append(&mut self, next: &Block) {
        self.range.end = next.range.end.clone();
    }

    fn remove_last(&mut self, last: &Block) -> bool {
        self.range.end = Some(last.range.start.clone());
        !self.range.is_empty()
    }
}

/// The number of cursors that stay open. The slices of a run alternate between few tables.
const CURSORS_MAX: usize = 8;

/// Cursors over the tables that hold blocks, the one used last in front.
#[derive(Debug)]
pub(super) struct Cursors {
    open: Vec<(Arc<TableHandle>, OpenCursor)>,
    tally: Arc<ReadTally>,
}

impl Cursors {
    /// Returns a set without cursors. Its cursors will add their reads to `tally`.
    pub(super) fn new(tally: &Arc<ReadTally>) -> Cursors {
        Cursors { open: Vec::new(), tally: Arc::clone(tally) }
    }

    /// Returns a cursor over `table`, which becomes the [first](Cursors::first).
    pub(super) fn over(&mut self, table: &Arc<TableHandle>) -> &mut OpenCursor {
        match self.open.iter().position(|(open, _)| Arc::ptr_eq(open, table)) {
            Some(at) => self.open[..=at].rotate_right(1),
            None => {
                self.open.truncate(CURSORS_MAX - 1);
                let mut cursor = table.table().cursor(CacheFill::No);
                cursor.count_in(&self.tally);
                self.open.insert(0, (Arc::clone(table), cursor));
            }
        }
        &mut self.open[0].1
    }

    /// Returns the cursor used last.
    pub(super) fn first(&self) -> Option<&OpenCursor> {
        self.open.first().map(|(_, cursor)| cursor)
    }

    /// Returns the cursor used last, to be moved.
    pub(super) fn first_mut(&mut self) -> Option<&mut OpenCursor> {
        self.open.first_mut().map(|(_, cursor)| cursor)
    }

    /// Returns a cursor on the first entry of `block`. It reads no other block.
    pub(super) fn enter(&mut self, block: &Block) -> Result<&mut OpenCursor> {
        use lsmith_storage::cursor::Cursor;
        let cursor = self.over(&block.handle);
        cursor.keep_within(block.range.clone());
        cursor.seek(&block.range.start)?;
        Ok(cursor)
    }
}
