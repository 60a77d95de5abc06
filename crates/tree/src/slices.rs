//! The slices of a run: few in a vector, many in chunks.
//!
//! A block-preserving policy can leave a run with tens of thousands of slices, and a merge changes
//! only the slices in a short key range. So old and new versions of a run share their unchanged
//! chunks, and an edit costs no more than what it changes.
//!
//! A search by key compares the first bytes of start keys, which lie close together. To look at a
//! slice itself is mostly a cache miss.

mod cell_index;
mod chunk;
mod chunks;

pub use cell_index::{CellIndex, CellPlace};

use crate::slice::Slice;
use chunk::Chunk;
use chunks::Chunks;
use std::iter::once;
use std::ops::{Index, Range};
use std::sync::Arc;

/// The most slices that are held in one vector.
const FLAT_MAX: usize = 256;

/// The most slices of a chunk. A chunk that an edit leaves less than half full is joined with a
/// neighbour.
const CHUNK_MAX: usize = 128;

/// Slices in key order, with counts of their cells.
#[derive(Clone, Debug)]
pub(crate) enum SliceList {
    Flat(Chunk),
    Chunked(Chunks),
}

impl SliceList {
    /// Returns a list of `slices`, which must have `cells` cells in total.
    pub(crate) fn new(slices: Vec<Slice>, cells: u64) -> SliceList {
        if slices.len() > FLAT_MAX {
            SliceList::Chunked(Chunks::new(slices))
        } else {
            SliceList::Flat(Chunk::counted(slices, cells))
        }
    }

    /// Returns all slices.
    #[inline]
    pub(crate) fn view(&self) -> Slices<'_> {
        match self {
            SliceList::Flat(chunk) => Slices(View::Flat(&chunk.slices)),
            SliceList::Chunked(chunks) => {
                Slices(View::Chunked { chunks, from: 0, end: chunks.len() })
            }
        }
    }

    /// Returns the number of cells before a slice.
    fn cells_before(&self, slice: usize) -> usize {
        match self {
            SliceList::Flat(chunk) => chunk.cells_before(slice),
            SliceList::Chunked(chunks) => {
                let (chunk, at) = chunks.locate(slice);
                chunks.before(chunk).cells + chunks.chunks[chunk].cells_before(at)
            }
        }
    }

    /// Returns the index of the slice that holds a cell, and the index of the cell in that slice.
    fn slice_of_cell(&self, cell: usize) -> (usize, usize) {
        match self {
            SliceList::Flat(chunk) => chunk.slice_of_cell(cell),
            SliceList::Chunked(chunks) => {
                let chunk = chunks.chunk_of_cell(cell);
                let before = chunks.before(chunk);
                let (slice, inner) = chunks.chunks[chunk].slice_of_cell(cell - before.cells);
                (before.slices + slice, inner)
            }
        }
    }

    /// Replaces the slices with these indexes by `slices`. The new list must have `cells` cells in
    /// total.
    pub(crate) fn splice(
        &mut self,
        indexes: Range<usize>,
        slices: impl IntoIterator<Item = Slice>,
        cells: u64,
    ) {
        match self {
            SliceList::Flat(chunk) => {
                chunk.slices.splice(indexes, slices);
                chunk.cells = cells as usize;
                if chunk.slices.len() > FLAT_MAX {
                    *self = SliceList::new(std::mem::take(&mut chunk.slices), cells);
                } else {
                    chunk.index();
                }
            }
            SliceList::Chunked(chunks) => {
                chunks.splice(indexes, slices.into_iter().collect());
                if chunks.len() <= FLAT_MAX / 2 {
                    *self = SliceList::new(self.view().to_vec(), cells);
                }
            }
        }
    }

    /// Returns true if all counts match the slices.
    pub(crate) fn adds_up(&self) -> bool {
        let mut before = 0;
        self.view().iter().enumerate().all(|(index, slice)| {
            let cells = slice.cell_count() as usize;
            let is_exact = self.cells_before(index) == before
                && self.slice_of_cell(before) == (index, 0)
                && self.slice_of_cell(before + cells - 1) == (index, cells - 1);
            before += cells;
            is_exact
        })
    }
}

/// Neighbouring slices of a run, in key order.
#[derive(Clone, Copy, Debug)]
pub struct Slices<'a>(View<'a>);

#[derive(Clone, Copy, Debug)]
enum View<'a> {
    Flat(&'a [Slice]),
    Chunked { chunks: &'a Chunks, from: usize, end: usize },
}

impl Default for Slices<'_> {
    fn default() -> Self {
        Slices(View::Flat(&[]))
    }
}

impl<'a> Slices<'a> {
    /// Returns the number of slices.
    #[inline]
    pub fn len(self) -> usize {
        match self.0 {
            View::Flat(slices) => slices.len(),
            View::Chunked { from, end, .. } => end - from,
        }
    }

    /// Returns true if there are no slices.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the slice with this index; `None` past the last.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'a Slice> {
        match self.0 {
            View::Flat(slices) => slices.get(index),
            View::Chunked { chunks, from, end } => (index < end - from).then(|| {
                let (chunk, at) = chunks.locate(from + index);
                &chunks.chunks[chunk].slices[at]
            }),
        }
    }

    /// Returns the slice with this index.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Slices::len).
    #[inline]
    pub fn at(self, index: usize) -> &'a Slice {
        self.get(index).expect("the index of a slice")
    }

    /// Returns the slice with the smallest keys.
    #[inline]
    pub fn first(self) -> Option<&'a Slice> {
        self.get(0)
    }

    /// Returns the slice with the greatest keys.
    #[inline]
    pub fn last(self) -> Option<&'a Slice> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Returns the slices with these indexes.
    ///
    /// # Panics
    /// If the range ends beyond [`len`](Slices::len).
    #[inline]
    #[must_use]
    pub fn range(self, indexes: Range<usize>) -> Slices<'a> {
        Slices(match self.0 {
            View::Flat(slices) => View::Flat(&slices[indexes]),
            View::Chunked { chunks, from, end } => {
                assert!(indexes.start <= indexes.end && indexes.end <= end - from);
                View::Chunked { chunks, from: from + indexes.start, end: from + indexes.end }
            }
        })
    }

    /// Returns the number of slices before the first one for which `is_before` returns false.
    /// `is_before` must return false for all slices behind that one.
    #[inline]
    pub fn partition_point(self, mut is_before: impl FnMut(&Slice) -> bool) -> usize {
        match self.0 {
            View::Flat([]) => 0,
            View::Flat([slice]) => usize::from(is_before(slice)),
            View::Flat(slices) => slices.partition_point(is_before),
            View::Chunked { chunks, from, end } => chunks.partition_point(from..end, is_before),
        }
    }

    /// Returns an iterator over the slices, in key order.
    #[inline]
    pub fn iter(self) -> SlicesIter<'a> {
        match self.0 {
            View::Flat(slices) => {
                SlicesIter { front: slices.iter(), inner: [].iter(), back: [].iter() }
            }
            View::Chunked { chunks, from, end } => chunks.iter(from..end),
        }
    }

    /// Returns the slices as they lie in memory, in key order: at least one per chunk. A run of few
    /// slices is one chunk.
    ///
    /// A run before and after an edit shares the chunks that the edit did not touch. These are then
    /// the same memory.
    pub fn chunks(self) -> impl Iterator<Item = &'a [Slice]> {
        let SlicesIter { front, inner, back } = self.iter();
        let inner = inner.map(|chunk| &chunk.slices[..]);
        let chunks = once(front.as_slice()).chain(inner).chain(once(back.as_slice()));
        chunks.filter(|chunk| !chunk.is_empty())
    }

    /// Returns copies of all slices.
    pub fn to_vec(self) -> Vec<Slice> {
        self.iter().cloned().collect()
    }
}

impl Index<usize> for Slices<'_> {
    type Output = Slice;

    #[inline]
    fn index(&self, index: usize) -> &Slice {
        self.at(index)
    }
}

impl<'a> IntoIterator for Slices<'a> {
    type Item = &'a Slice;
    type IntoIter = SlicesIter<'a>;

    #[inline]
    fn into_iter(self) -> SlicesIter<'a> {
        self.iter()
    }
}

/// Iterates over [`Slices`] in key order.
#[derive(Clone, Debug)]
pub struct SlicesIter<'a> {
    front: std::slice::Iter<'a, Slice>,
    inner: std::slice::Iter<'a, Arc<Chunk>>,
    back: std::slice::Iter<'a, Slice>,
}

impl<'a> Iterator for SlicesIter<'a> {
    type Item = &'a Slice;

    #[inline]
    fn next(&mut self) -> Option<&'a Slice> {
        loop {
            if let Some(slice) = self.front.next() {
                return Some(slice);
            }
            match self.inner.next() {
                Some(chunk) => self.front = chunk.slices.iter(),
                None => return self.back.next(),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let inner: usize = self.inner.clone().map(|chunk| chunk.slices.len()).sum();
        let len = self.front.len() + inner + self.back.len();
        (len, Some(len))
    }
}

impl DoubleEndedIterator for SlicesIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(slice) = self.back.next_back() {
                return Some(slice);
            }
            match self.inner.next_back() {
                Some(chunk) => self.back = chunk.slices.iter(),
                None => return self.front.next_back(),
            }
        }
    }
}

impl ExactSizeIterator for SlicesIter<'_> {}

#[cfg(test)]
mod tests;
