//! The slices of a run: few in a vector, many in chunks.
//!
//! Where merges keep blocks, a run has tens of thousands of slices, and a merge changes those
//! within a short stretch of keys. Chunks are shared between a run and what it was before, so that
//! a change costs what it touches.
//!
//! Searches by key go by the first bytes of where slices begin, which lie close together: a look at
//! a slice is mostly a look at memory that no cache holds.

mod chunk;

use crate::key::Key;
use crate::slice::Slice;
use chunk::Chunk;
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
    /// The first bytes of the key that the chunk begins with.
    start: u64,
}

/// A place in a run: before all of its slices, or right behind one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlicePlace {
    /// The chunk of that slice.
    chunk: u32,
    /// How many slices of the chunk lie before the place: 0 before all slices of the run.
    at: u32,
}

impl Upto {
    /// With `chunk`, the next.
    fn with(self, chunk: &Chunk) -> Upto {
        let (slices, cells) = (self.slices + chunk.slices.len(), self.cells + chunk.cells);
        Upto { slices, cells, start: chunk.start() }
    }
}

impl Chunks {
    fn new(slices: Vec<Slice>) -> Chunks {
        Chunks::of(cut(slices.len(), slices).collect())
    }

    fn of(chunks: Vec<Arc<Chunk>>) -> Chunks {
        let mut sum = Upto::default();
        let upto = chunks.iter().map(|chunk| {
            sum = sum.with(chunk);
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

    /// The place behind all slices that begin below `key`, which is known to lie from one place up
    /// to another.
    fn begun(&self, key: &Key, [from, upto]: [SlicePlace; 2]) -> SlicePlace {
        let (first, last) = (from.chunk as usize, upto.chunk as usize);
        let chunk = first + self.chunks_begun(key, first + 1..last + 1);
        let found = &self.chunks[chunk];
        let low = if chunk == first { from.at as usize } else { 1 };
        let high = if chunk == last { upto.at as usize } else { found.slices.len() };
        SlicePlace { chunk: chunk as u32, at: found.begun(key, low..high.max(low)) as u32 }
    }

    /// How many of these chunks begin below `key`.
    fn chunks_begun(&self, key: &Key, chunks: Range<usize>) -> usize {
        let prefix = key.prefix();
        let known = &self.upto[chunks.clone()];
        if known.first().is_none_or(|upto| upto.start > prefix) {
            return 0;
        }
        let below = known.partition_point(|upto| upto.start < prefix);
        let tied = known[below..].partition_point(|upto| upto.start == prefix);
        let tied = &self.chunks[chunks][below..below + tied];
        below + tied.partition_point(|chunk| chunk.slices[0].range().start < *key)
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
        let (head, tail) = (&self.chunks[from].slices[..head], &self.chunks[last].slices[tail..]);
        let (mut before, mut after): (&[Slice], &[Slice]) = (&[], &[]);
        let mut upto = last + 1;
        let len = head.len() + slices.len() + tail.len();
        // What has become small is joined by a neighbour.
        if len < CHUNK_MAX / 2 && upto < self.chunks.len() {
            after = &self.chunks[upto].slices;
            upto += 1;
        } else if len < CHUNK_MAX / 2 && from > 0 {
            from -= 1;
            before = &self.chunks[from].slices;
        }
        let len = before.len() + len + after.len();
        let left = before.iter().chain(head).cloned();
        let right = tail.iter().chain(after).cloned();
        let new: Vec<Arc<Chunk>> = cut(len, left.chain(slices).chain(right)).collect();
        let gone = upto - from;
        let count = new.len();
        self.chunks.splice(from..upto, new);
        self.count(from, gone, count);
    }

    /// Brings the counts up to date where `new` chunks from index `from` on have come in the place
    /// of `gone`.
    fn count(&mut self, from: usize, gone: usize, new: usize) {
        let behind = self.before(from + gone);
        let mut sum = self.before(from);
        let counts = self.chunks[from..from + new].iter().map(|chunk| {
            sum = sum.with(chunk);
            sum
        });
        self.upto.splice(from..from + gone, counts);
        for upto in &mut self.upto[from + new..] {
            upto.slices = upto.slices + sum.slices - behind.slices;
            upto.cells = upto.cells + sum.cells - behind.cells;
        }
    }
}

/// Chunks of equal size of so many slices, so that none is small.
fn cut(len: usize, slices: impl IntoIterator<Item = Slice>) -> impl Iterator<Item = Arc<Chunk>> {
    let count = len.div_ceil(CHUNK_MAX);
    let size = len.div_ceil(count.max(1));
    let mut rest = slices.into_iter();
    (0..count).map(move |_| {
        let mut chunk = Vec::with_capacity(size);
        chunk.extend(rest.by_ref().take(size));
        Arc::new(Chunk::new(chunk))
    })
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

    /// The places before all slices and behind all.
    pub(crate) fn ends(&self) -> [SlicePlace; 2] {
        let (chunk, at) = match self {
            SliceList::Flat(chunk) => (0, chunk.slices.len()),
            SliceList::Chunked(Chunks { chunks, .. }) => {
                (chunks.len() - 1, chunks.last().map_or(0, |chunk| chunk.slices.len()))
            }
        };
        [SlicePlace::default(), SlicePlace { chunk: chunk as u32, at: at as u32 }]
    }

    /// The place behind all slices that begin below `key`, which is known to lie from one place up
    /// to another.
    #[inline]
    pub(crate) fn begun(&self, key: &Key, within: [SlicePlace; 2]) -> SlicePlace {
        match self {
            SliceList::Flat(chunk) => {
                let [from, upto] = within.map(|place| place.at as usize);
                SlicePlace { chunk: 0, at: chunk.begun(key, from..upto) as u32 }
            }
            SliceList::Chunked(chunks) => chunks.begun(key, within),
        }
    }

    /// The chunk of the slice before `place`, the index of the slice there, and how many cells lie
    /// before the chunk.
    #[inline]
    fn before(&self, place: SlicePlace) -> Option<(&Chunk, usize, usize)> {
        let at = place.at.checked_sub(1)? as usize;
        Some(match self {
            SliceList::Flat(chunk) => (chunk, at, 0),
            SliceList::Chunked(chunks) => {
                let chunk = place.chunk as usize;
                (&*chunks.chunks[chunk], at, chunks.before(chunk).cells)
            }
        })
    }

    /// How many cells the slices before `place` have, without the last of these and with it.
    #[inline]
    pub(crate) fn cells_upto(&self, place: SlicePlace) -> [usize; 2] {
        let Some((chunk, at, before)) = self.before(place) else { return [0, 0] };
        [at, at + 1].map(|slices| before + chunk.cells_before(slices))
    }

    /// How many cells begin below `key`, where the slices that do end at `place`.
    #[inline]
    pub(crate) fn cells_begun(&self, key: &Key, place: SlicePlace) -> usize {
        let Some((chunk, at, before)) = self.before(place) else { return 0 };
        let (from, upto) = (chunk.cells_before(at), chunk.cells_before(at + 1));
        let inner = if upto - from > 1 { chunk.slices[at].cells_begun(key) } else { 0 };
        before + from + inner + 1
    }

    /// How many cells end at or below `key`, where the slices that begin below it end at `place`.
    #[inline]
    pub(crate) fn cells_passed(&self, key: &Key, place: SlicePlace) -> usize {
        let Some((chunk, at, before)) = self.before(place) else { return 0 };
        // Only the last slice can go on beyond the key, and of that a single cell.
        let slice = &chunk.slices[at];
        let cell = slice.cells_begun(key);
        let is_over = slice.cell_end_at(cell).is_none_or(|end| end > *key);
        before + chunk.cells_before(at) + cell + usize::from(!is_over)
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
