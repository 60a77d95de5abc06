//! The slices of a run: few in a vector, many in chunks.
//!
//! Where merges keep blocks, a run has tens of thousands of slices, and a merge changes those
//! within a short stretch of keys. Chunks are shared between a run and what it was before, so that
//! a change costs what it touches.

use crate::slice::Slice;
use std::ops::{Index, Range};
use std::sync::Arc;

/// Slices up to which they are held in one vector.
const FLAT_MAX: usize = 256;

/// Slices of a chunk, at most. One that a change leaves with less than half of them is put together
/// with its neighbours when those change.
const CHUNK_MAX: usize = 128;

/// Slices in key order, with counts of their cells.
#[derive(Clone, Debug)]
pub(crate) enum SliceList {
    Flat(Chunk),
    Chunked(Chunks),
}

/// Neighbouring slices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    slices: Vec<Slice>,
    cells: usize,
    /// Cells up to the end of each slice; empty where each slice is one cell, or is the only one.
    cells_upto: Vec<usize>,
}

/// All slices of a run, in chunks.
#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    chunks: Vec<Arc<Chunk>>,
    /// How much there is up to the end of each chunk.
    upto: Vec<Upto>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Upto {
    slices: usize,
    cells: usize,
}

impl Chunk {
    fn new(slices: Vec<Slice>) -> Chunk {
        let cells = slices.iter().map(Slice::cell_count).sum::<u64>();
        Chunk::counted(slices, cells)
    }

    /// A chunk of `slices`, which have so many cells together.
    fn counted(slices: Vec<Slice>, cells: u64) -> Chunk {
        let cells = cells as usize;
        let mut chunk = Chunk { slices, cells, cells_upto: Vec::new() };
        chunk.count_cells();
        chunk
    }

    /// Counts cells slice by slice.
    fn count_cells(&mut self) {
        self.cells_upto.clear();
        if self.slices.len() < 2 || self.cells == self.slices.len() {
            return;
        }
        let mut sum = 0;
        self.cells_upto.extend(self.slices.iter().map(|slice| {
            sum += slice.cell_count() as usize;
            sum
        }));
    }

    fn cells_before(&self, slice: usize) -> usize {
        match self.cells_upto.is_empty() {
            true => slice,
            false => slice.checked_sub(1).map_or(0, |last| self.cells_upto[last]),
        }
    }

    fn slice_of_cell(&self, cell: usize) -> (usize, usize) {
        if self.slices.len() == 1 {
            return (0, cell);
        }
        let slice = match self.cells_upto.is_empty() {
            true => cell,
            false => self.cells_upto.partition_point(|upto| *upto <= cell),
        };
        (slice, cell - self.cells_before(slice))
    }
}

impl Chunks {
    fn new(slices: Vec<Slice>) -> Chunks {
        Chunks::of(cut(slices).collect())
    }

    fn of(chunks: Vec<Arc<Chunk>>) -> Chunks {
        let mut sum = Upto::default();
        let upto = chunks.iter().map(|chunk| {
            sum.slices += chunk.slices.len();
            sum.cells += chunk.cells;
            sum
        });
        let upto = upto.collect();
        Chunks { chunks, upto }
    }

    fn len(&self) -> usize {
        self.upto.last().map_or(0, |upto| upto.slices)
    }

    /// How much there is before a chunk.
    fn before(&self, chunk: usize) -> Upto {
        chunk.checked_sub(1).map_or(Upto::default(), |last| self.upto[last])
    }

    /// The chunk that a slice is in, and its index there; behind all slices the end of the last.
    #[inline]
    fn locate(&self, index: usize) -> (usize, usize) {
        let chunk = self.upto.partition_point(|upto| upto.slices <= index);
        let chunk = chunk.min(self.chunks.len() - 1);
        (chunk, index - self.before(chunk).slices)
    }

    // Kept out of the way of runs of few slices, which are asked for far more often.
    #[inline(never)]
    fn partition_point(
        &self,
        indexes: Range<usize>,
        mut is_before: impl FnMut(&Slice) -> bool,
    ) -> usize {
        // First the chunk in which the border is, by the last slice of each.
        let Range { start: from, end: upto } = indexes;
        let ((first, _), (last, _)) = (self.locate(from), self.locate(upto));
        let inner = &self.chunks[first..last];
        let is_passed = |chunk: &Arc<Chunk>| chunk.slices.last().is_some_and(&mut is_before);
        let chunk = first + inner.partition_point(is_passed);
        let before = self.before(chunk).slices;
        let within = from.max(before)..upto.min(self.upto[chunk].slices);
        let slices = &self.chunks[chunk].slices[within.start - before..within.end - before];
        within.start - from + slices.partition_point(is_before)
    }

    #[inline(never)]
    fn iter(&self, indexes: Range<usize>) -> SlicesIter<'_> {
        let (first, head) = self.locate(indexes.start);
        let (last, tail) = self.locate(indexes.end);
        let slices = |chunk: usize| &self.chunks[chunk].slices[..];
        if first == last {
            let front = slices(first)[head..tail].iter();
            return SlicesIter { front, inner: [].iter(), back: [].iter() };
        }
        SlicesIter {
            front: slices(first)[head..].iter(),
            inner: self.chunks[first + 1..last].iter(),
            back: slices(last)[..tail].iter(),
        }
    }

    fn splice(&mut self, indexes: Range<usize>, slices: Vec<Slice>) {
        let (mut from, head) = self.locate(indexes.start);
        let (last, tail) = self.locate(indexes.end);
        let mut middle = self.chunks[from].slices[..head].to_vec();
        middle.extend(slices);
        middle.extend_from_slice(&self.chunks[last].slices[tail..]);
        let mut upto = last + 1;
        // What has become small is joined by a neighbour.
        if middle.len() < CHUNK_MAX / 2 && upto < self.chunks.len() {
            middle.extend_from_slice(&self.chunks[upto].slices);
            upto += 1;
        } else if middle.len() < CHUNK_MAX / 2 && from > 0 {
            from -= 1;
            middle.splice(0..0, self.chunks[from].slices.iter().cloned());
        }
        self.chunks.splice(from..upto, cut(middle));
        *self = Chunks::of(std::mem::take(&mut self.chunks));
    }
}

/// Chunks of equal size, so that none is small.
fn cut(slices: Vec<Slice>) -> impl Iterator<Item = Arc<Chunk>> {
    let count = slices.len().div_ceil(CHUNK_MAX);
    let size = slices.len().div_ceil(count.max(1));
    let mut rest = slices.into_iter();
    (0..count).map(move |_| Arc::new(Chunk::new(rest.by_ref().take(size).collect())))
}

impl SliceList {
    /// These `slices`, which have so many cells together.
    pub(crate) fn new(slices: Vec<Slice>, cells: u64) -> SliceList {
        match slices.len() > FLAT_MAX {
            true => SliceList::Chunked(Chunks::new(slices)),
            false => SliceList::Flat(Chunk::counted(slices, cells)),
        }
    }

    /// All of them.
    #[inline]
    pub(crate) fn view(&self) -> Slices<'_> {
        match self {
            SliceList::Flat(chunk) => Slices(View::Flat(&chunk.slices)),
            SliceList::Chunked(chunks) => {
                Slices(View::Chunked { chunks, from: 0, upto: chunks.len() })
            }
        }
    }

    pub(crate) fn cells_before(&self, slice: usize) -> usize {
        match self {
            SliceList::Flat(chunk) => chunk.cells_before(slice),
            SliceList::Chunked(chunks) => {
                let (chunk, at) = chunks.locate(slice);
                chunks.before(chunk).cells + chunks.chunks[chunk].cells_before(at)
            }
        }
    }

    pub(crate) fn slice_of_cell(&self, cell: usize) -> (usize, usize) {
        match self {
            SliceList::Flat(chunk) => chunk.slice_of_cell(cell),
            SliceList::Chunked(chunks) => {
                let chunk = chunks.upto.partition_point(|upto| upto.cells <= cell);
                let before = chunks.before(chunk);
                let found = &chunks.chunks[chunk];
                let (slice, cell) = found.slice_of_cell(cell - before.cells);
                (before.slices + slice, cell)
            }
        }
    }

    /// Puts `slices` in the place of those with these indexes; all then have `cells` cells.
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
                    chunk.count_cells();
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

    /// Whether all counts are what the slices come to.
    pub(crate) fn adds_up(&self) -> bool {
        let mut before = 0;
        self.view().iter().enumerate().all(|(index, slice)| {
            let cells = slice.cell_count() as usize;
            let known = self.cells_before(index) == before
                && self.slice_of_cell(before) == (index, 0)
                && self.slice_of_cell(before + cells - 1) == (index, cells - 1);
            before += cells;
            known
        })
    }
}

/// Slices in key order: those of a run, or some that lie next to each other.
#[derive(Clone, Copy, Debug)]
pub struct Slices<'a>(View<'a>);

#[derive(Clone, Copy, Debug)]
enum View<'a> {
    Flat(&'a [Slice]),
    Chunked { chunks: &'a Chunks, from: usize, upto: usize },
}

impl Default for Slices<'_> {
    fn default() -> Self {
        Slices(View::Flat(&[]))
    }
}

impl<'a> Slices<'a> {
    /// How many there are.
    #[inline]
    pub fn len(self) -> usize {
        match self.0 {
            View::Flat(slices) => slices.len(),
            View::Chunked { from, upto, .. } => upto - from,
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The slice with this index.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'a Slice> {
        match self.0 {
            View::Flat(slices) => slices.get(index),
            View::Chunked { chunks, from, upto } => (index < upto - from).then(|| {
                let (chunk, at) = chunks.locate(from + index);
                &chunks.chunks[chunk].slices[at]
            }),
        }
    }

    /// The slice with this index.
    ///
    /// # Panics
    /// There are fewer.
    #[inline]
    pub fn at(self, index: usize) -> &'a Slice {
        self.get(index).expect("the index of a slice")
    }

    /// The one with the least keys.
    #[inline]
    pub fn first(self) -> Option<&'a Slice> {
        self.get(0)
    }

    /// The one with the greatest keys.
    #[inline]
    pub fn last(self) -> Option<&'a Slice> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Those with these indexes.
    ///
    /// # Panics
    /// There are fewer.
    #[inline]
    #[must_use]
    pub fn range(self, indexes: Range<usize>) -> Slices<'a> {
        Slices(match self.0 {
            View::Flat(slices) => View::Flat(&slices[indexes]),
            View::Chunked { chunks, from, upto } => {
                assert!(indexes.start <= indexes.end && indexes.end <= upto - from);
                View::Chunked { chunks, from: from + indexes.start, upto: from + indexes.end }
            }
        })
    }

    /// How many come before the first for which `is_before` says false, where it says true of none
    /// behind that.
    #[inline]
    pub fn partition_point(self, mut is_before: impl FnMut(&Slice) -> bool) -> usize {
        match self.0 {
            View::Flat([]) => 0,
            View::Flat([slice]) => usize::from(is_before(slice)),
            View::Flat(slices) => slices.partition_point(is_before),
            View::Chunked { chunks, from, upto } => chunks.partition_point(from..upto, is_before),
        }
    }

    /// One after the other, in key order.
    #[inline]
    pub fn iter(self) -> SlicesIter<'a> {
        match self.0 {
            View::Flat(slices) => {
                SlicesIter { front: slices.iter(), inner: [].iter(), back: [].iter() }
            }
            View::Chunked { chunks, from, upto } => chunks.iter(from..upto),
        }
    }

    /// Copies of all.
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

/// Walks [`Slices`].
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
