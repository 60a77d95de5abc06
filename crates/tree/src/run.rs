//! Runs: slices in key order that share no key.

use crate::key::{Key, key_after};
use crate::range::{KeyRange, cmp_ends};
use crate::size::Size;
use crate::slice::{Cell, Slice};
use crate::slices::{CellIndex, SliceList, Slices};
use std::fmt;
use std::ops::Range;

/// The name of a run. A tree never uses a name twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// Marks runs whose entries interleave in time, so that their order says nothing about age. Such
/// runs arise when tables that have sequence numbers of their own are ingested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KnotId(pub u64);

impl fmt::Display for KnotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k{}", self.0)
    }
}

/// A sorted run: disjoint slices in key order.
#[doc(alias = "sorted run")]
#[derive(Clone, Debug)]
pub struct Run {
    id: RunId,
    knot: Option<KnotId>,
    slices: SliceList,
    size: Size,
    cells: u64,
    dead_bytes: u64,
}

impl PartialEq for Run {
    fn eq(&self, other: &Run) -> bool {
        (self.id, self.knot, self.size) == (other.id, other.knot, other.size)
            && self.slices().iter().eq(other.slices())
    }
}

impl Eq for Run {}

impl Run {
    /// Returns a run of `slices`, which must be in key order and disjoint.
    /// [`check_tree`](crate::check_tree) finds violations.
    pub fn new(id: RunId, slices: Vec<Slice>) -> Run {
        let size = slices.iter().map(Slice::size).sum();
        let cells = slices.iter().map(Slice::cell_count).sum();
        let dead_bytes = slices.iter().map(Slice::dead_bytes).fold(0, u64::saturating_add);
        Run { id, knot: None, slices: SliceList::new(slices, cells), size, cells, dead_bytes }
    }

    /// Returns true if the stored size and counts match the slices.
    pub(crate) fn adds_up(&self) -> bool {
        let size: Size = self.slices().iter().map(Slice::size).sum();
        let cells: u64 = self.slices().iter().map(Slice::cell_count).sum();
        let dead = self.slices().iter().map(Slice::dead_bytes).fold(0, u64::saturating_add);
        (size, cells, dead) == (self.size, self.cells, self.dead_bytes) && self.slices.adds_up()
    }

    /// Returns the same run as a member of `knot`.
    #[must_use]
    pub fn in_knot(mut self, knot: Option<KnotId>) -> Run {
        self.knot = knot;
        self
    }

    /// Returns the name of the run.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Returns the knot that the run belongs to.
    pub fn knot(&self) -> Option<KnotId> {
        self.knot
    }

    /// Returns all slices, in key order.
    #[inline]
    pub fn slices(&self) -> Slices<'_> {
        self.slices.view()
    }

    /// Returns the size of all slices together.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns the number of cells of all slices. A cell is a data block if tables have a profile
    /// point per block.
    pub fn cell_count(&self) -> u64 {
        self.cells
    }

    /// Returns the index of the cells of all slices, by rank and by key.
    #[inline]
    pub fn cell_index(&self) -> CellIndex<'_> {
        CellIndex::new(&self.slices, self.cells)
    }

    /// Returns the cells of all slices, in key order.
    pub fn cells(&self) -> impl Iterator<Item = Cell> {
        self.slices().iter().flat_map(Slice::cells)
    }

    /// Returns the logical bytes of all slices.
    pub fn bytes(&self) -> u64 {
        self.size.bytes
    }

    /// Returns the logical bytes that files of append tables hold besides the slices.
    pub fn dead_bytes(&self) -> u64 {
        self.dead_bytes
    }

    /// Returns the least range that covers all slices; empty for a run without slices.
    pub fn hull(&self) -> KeyRange {
        match (self.slices().first(), self.slices().last()) {
            (Some(first), Some(last)) => {
                KeyRange { start: first.range().start.clone(), end: last.range().end.clone() }
            }
            _ => KeyRange { start: Key::new(), end: Some(Key::new()) },
        }
    }

    /// Returns true if every key of the run lies within `range`.
    pub fn lies_within(&self, range: &KeyRange) -> bool {
        let (Some(first), Some(last)) = (self.slices().first(), self.slices().last()) else {
            return true;
        };
        range.is_all()
            || (range.start <= first.range().start
                && cmp_ends(&last.range().end, &range.end).is_le())
    }

    /// Returns the slices that share a key with `range`, found by binary search.
    pub fn overlapping(&self, range: &KeyRange) -> Slices<'_> {
        self.slices().range(self.overlap(range))
    }

    /// Returns the indexes of the slices that share a key with `range`.
    fn overlap(&self, range: &KeyRange) -> Range<usize> {
        let slices = self.slices();
        if range.is_all() {
            return 0..slices.len();
        }
        if range.is_empty() {
            return 0..0;
        }
        let from = slices.partition_point(|slice| slice.range().lies_below(&range.start));
        let end = match &range.end {
            Some(end) => slices.partition_point(|slice| slice.range().start < *end),
            None => slices.len(),
        };
        from..end.max(from)
    }

    /// Returns the parts of the slices that lie within `range`, in key order.
    pub fn clip<'a>(&'a self, range: &'a KeyRange) -> impl Iterator<Item = Slice> + 'a {
        self.overlapping(range).iter().filter_map(|slice| slice.clip(range))
    }

    /// Returns the size of what lies within `range`, to the precision of the profiles.
    pub fn size_within(&self, range: &KeyRange) -> Size {
        if self.lies_within(range) {
            return self.size;
        }
        self.overlapping(range).iter().map(|slice| slice.size_within(range)).sum()
    }

    /// Returns `key`, or the end of the gap that `key` lies in: if no entry is known from `key` up
    /// to the next cell, the start of that cell or the end of the slice. A cut there leaves no cell
    /// without entries.
    pub(crate) fn next_cell(&self, key: &Key) -> Key {
        let range = KeyRange { start: key.clone(), end: Some(key_after(key)) };
        let Some(slice) = self.overlapping(&range).first() else { return key.clone() };
        let profile = &slice.table().profile;
        let next = profile.count(0..profile.len(), key, true);
        if next == profile.len() || profile.after(next).is_none_or(|after| after > *key) {
            return key.clone();
        }
        let border = profile.key(next);
        slice.range().end.as_ref().map_or(border.clone(), |end| border.min(end.clone()))
    }

    /// Cuts `range` out of the run, and inserts `slices` in its place. `slices` must lie within
    /// `range`, in key order. Both happen in one step, because all slices behind the range move.
    pub(crate) fn replace(&mut self, range: &KeyRange, slices: Vec<Slice>) {
        if self.lies_within(range) {
            *self = Run::new(self.id, slices).in_knot(self.knot);
            return;
        }
        let overlap = self.overlap(range);
        let from = overlap.start;
        let end = overlap.end;
        if overlap.is_empty() {
            return self.insert(slices);
        }
        let taken = self.slices().range(from..end);
        let left = taken[0].range().without(range)[0].clone();
        let right = taken[taken.len() - 1].range().without(range)[1].clone();
        let edges = [taken[0].clip(&left), taken[taken.len() - 1].clip(&right)];
        let gone: Size = taken.iter().map(Slice::size).sum();
        let kept: Size = edges.iter().flatten().chain(&slices).map(Slice::size).sum();
        let dead = |slices: &mut dyn Iterator<Item = &Slice>| -> u64 {
            slices.map(Slice::dead_bytes).fold(0, u64::saturating_add)
        };
        let dead_gone = dead(&mut taken.iter());
        let dead_kept = dead(&mut edges.iter().flatten().chain(&slices));
        let cells = |slices: &mut dyn Iterator<Item = &Slice>| -> u64 {
            slices.map(Slice::cell_count).sum()
        };
        self.cells -= cells(&mut taken.iter());
        self.cells += cells(&mut edges.iter().flatten().chain(&slices));
        self.dead_bytes = self.dead_bytes.saturating_sub(dead_gone).saturating_add(dead_kept);
        let [left, right] = edges;
        let slices = left.into_iter().chain(slices).chain(right);
        self.slices.splice(from..end, slices, self.cells);
        self.size -= gone;
        self.size = self.size.saturating_add(kept);
    }

    /// Inserts `slices`, which must be in key order and fit between two neighbours.
    pub(crate) fn insert(&mut self, slices: Vec<Slice>) {
        let Some(first) = slices.first() else { return };
        if self.slices().is_empty() {
            *self = Run::new(self.id, slices).in_knot(self.knot);
            return;
        }
        let start = &first.range().start;
        let at = self.slices().partition_point(|s| s.range().start < *start);
        self.size = self.size.saturating_add(slices.iter().map(Slice::size).sum());
        self.cells += slices.iter().map(Slice::cell_count).sum::<u64>();
        let dead = slices.iter().map(Slice::dead_bytes).fold(0, u64::saturating_add);
        self.dead_bytes = self.dead_bytes.saturating_add(dead);
        self.slices.splice(at..at, slices, self.cells);
    }
}
