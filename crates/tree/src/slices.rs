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
mod iter;
mod list;

pub use cell_index::CellIndex;
pub use chunks::CellPlace;
pub use iter::SlicesIter;
pub(crate) use list::SliceList;

use crate::slice::Slice;
use chunks::Chunks;
use std::iter::once;
use std::ops::{Index, Range};

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
            View::Flat(slices) => SlicesIter::of_one(slices),
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

#[cfg(test)]
mod tests;
