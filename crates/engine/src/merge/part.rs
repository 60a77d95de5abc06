//! Inputs of a merge as blocks.
//!
//! Where blocks are, which keys they hold and how large they are, the profiles of tables say: no
//! block is read to find out.

use crate::version::{OpenRun, OpenSlice, TableHandle};
use lsmith_storage::error::Result;
use lsmith_storage::table::{CacheFill, ReadTally, TableCursor};
use lsmith_tree::blocks::KeptBlock;
use lsmith_tree::{Key, KeyRange, ProfilePoint, Size};
use std::ops::Range;
use std::sync::Arc;

/// What a slice shows within a range, as blocks: from one profile point to the next.
#[derive(Clone, Debug)]
pub(super) struct Part {
    handle: Arc<TableHandle>,
    range: KeyRange,
    /// The profile points between blocks.
    points: Range<usize>,
    /// What the table holds below the range, and up to its end.
    below: Size,
    upto: Size,
}

/// A block of an input, or several neighbouring blocks that are kept.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) handle: Arc<TableHandle>,
    /// From its first key to just above its last, where the profile knows them; else a little
    /// more.
    pub(super) range: KeyRange,
    /// Of several blocks, the size of the first.
    pub(super) size: Size,
}

impl Part {
    /// What `slice` shows within `range`; `None` where that is nothing.
    fn new(slice: &OpenSlice, range: &KeyRange) -> Option<Part> {
        let handle = Arc::clone(slice.table());
        let table = handle.table().tree_table();
        let range = match range.covers(slice.range()) {
            true => slice.range().clone(),
            false => table.filled(slice.range().intersection(range)),
        };
        if range.is_empty() {
            return None;
        }
        let from = table.profile.partition_point(|point| point.key <= range.start);
        let upto = table
            .profile
            .partition_point(|point| range.end.as_ref().is_none_or(|end| point.key < *end));
        let points = from..upto.max(from);
        let below = table.below(&range.start);
        let upto = range.end.as_ref().map_or(table.size, |end| table.below(end));
        Some(Part { handle, points, range, below, upto })
    }

    /// All parts of `run` within `range`, in key order.
    pub(super) fn all(run: &OpenRun, range: &KeyRange) -> Vec<Part> {
        run.overlapping(range).filter_map(|slice| Part::new(slice, range)).collect()
    }

    /// The last block of `run` below `key`.
    pub(super) fn block_below(run: &OpenRun, key: &Key) -> Option<Block> {
        let range = KeyRange { start: Key::new(), end: Some(key.clone()) };
        let part = Part::new(run.overlapping(&range).next_back()?, &range)?;
        Some(part.block(part.len() - 1))
    }

    /// The first block of `run` from `key` on.
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

    /// How many blocks: at least one.
    pub(super) fn len(&self) -> usize {
        self.points.len() + 1
    }

    /// The profile point at which block `index` ends; `None` for the last.
    fn end_point(&self, index: usize) -> Option<&ProfilePoint> {
        let point = self.points.start + index;
        self.points.contains(&point).then(|| &self.handle.table().tree_table().profile[point])
    }

    /// Block `index`.
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

    /// What block `index` holds.
    pub(super) fn size(&self, index: usize) -> Size {
        let start_point = index.checked_sub(1).and_then(|before| self.end_point(before));
        let start = start_point.map_or(self.below, |point| point.below);
        self.end_point(index).map_or(self.upto, |point| point.below) - start
    }

    /// Whether block `index` ends below `key`.
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

/// Cursors that stay open: slices of a run come from few tables in turns.
const CURSORS_MAX: usize = 8;

/// Cursors over the tables that blocks are in.
#[derive(Debug)]
pub(super) struct Cursors {
    open: Vec<(Arc<TableHandle>, TableCursor)>,
    tally: Arc<ReadTally>,
}

impl Cursors {
    /// None yet; what they will read is added to `tally`.
    pub(super) fn new(tally: &Arc<ReadTally>) -> Cursors {
        Cursors { open: Vec::new(), tally: Arc::clone(tally) }
    }

    /// A cursor over `table`, which becomes the [first](Cursors::first).
    pub(super) fn over(&mut self, table: &Arc<TableHandle>) -> &mut TableCursor {
        match self.open.iter().position(|(open, _)| Arc::ptr_eq(open, table)) {
            Some(at) => self.open[..=at].rotate_right(1),
            None => {
                self.open.truncate(CURSORS_MAX - 1);
                let cursor = table.table().cursor(CacheFill::No).tallied(&self.tally);
                self.open.insert(0, (Arc::clone(table), cursor));
            }
        }
        &mut self.open[0].1
    }

    /// The cursor used last.
    pub(super) fn first(&self) -> Option<&TableCursor> {
        self.open.first().map(|(_, cursor)| cursor)
    }

    /// The same, to be moved.
    pub(super) fn first_mut(&mut self) -> Option<&mut TableCursor> {
        self.open.first_mut().map(|(_, cursor)| cursor)
    }

    /// Stands on the first entry of `block`, and will read no other blocks.
    pub(super) fn enter(&mut self, block: &Block) -> Result<&mut TableCursor> {
        use lsmith_storage::cursor::Cursor;
        let cursor = self.over(&block.handle);
        cursor.keep_within(block.range.clone());
        cursor.seek(&block.range.start)?;
        Ok(cursor)
    }
}
