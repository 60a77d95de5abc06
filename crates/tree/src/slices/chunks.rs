//! The slices of a long run, in chunks that old and new versions of the run share.

use super::chunk::Chunk;
use super::iter::SlicesIter;
use crate::key::Key;
use crate::slice::Slice;
use std::ops::Range;
use std::sync::Arc;

/// The most slices of a chunk. A chunk that an edit leaves less than half full is joined with a
/// neighbour.
pub(super) const CHUNK_MAX: usize = 128;

/// A place between two slices of a run: what [`CellIndex::seek`](super::CellIndex::seek) returns.
/// Places are ordered as the keys are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellPlace {
    /// The chunk of the slice before the place.
    pub(super) chunk: u32,
    /// How many slices of the chunk lie before the place. 0 only at the start of the run.
    pub(super) at: u32,
}

/// The slices of a run in chunks, in key order.
#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    pub(super) chunks: Vec<Arc<Chunk>>,
    /// One element per chunk: the counts up to and including that chunk.
    ends: Vec<ChunkEnd>,
}

/// Counts of a row of chunks, and where the last of these chunks starts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkEnd {
    pub(super) slices: usize,
    pub(super) cells: usize,
    /// The first bytes of the start key of the last chunk.
    start: u64,
}

impl ChunkEnd {
    /// Returns the counts with the next chunk added.
    fn with(self, chunk: &Chunk) -> ChunkEnd {
        ChunkEnd {
            slices: self.slices + chunk.slices.len(),
            cells: self.cells + chunk.cells,
            start: chunk.start(),
        }
    }
}

impl Chunks {
    pub(super) fn new(slices: Vec<Slice>) -> Chunks {
        Chunks::of(cut(slices.len(), slices).collect())
    }

    fn of(chunks: Vec<Arc<Chunk>>) -> Chunks {
        let mut sum = ChunkEnd::default();
        let mut ends = Vec::with_capacity(chunks.len());
        for chunk in &chunks {
            sum = sum.with(chunk);
            ends.push(sum);
        }
        Chunks { chunks, ends }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.last().map_or(0, |end| end.slices)
    }

    /// Returns the counts of all chunks before this one.
    pub(super) fn before(&self, chunk: usize) -> ChunkEnd {
        chunk.checked_sub(1).map_or(ChunkEnd::default(), |last| self.ends[last])
    }

    /// Returns the index of the chunk that holds a slice, and the index of the slice in that chunk.
    /// For the index past the last slice, returns the end of the last chunk.
    #[inline]
    pub(super) fn locate(&self, index: usize) -> (usize, usize) {
        let holder = self.ends.partition_point(|end| end.slices <= index);
        let chunk = holder.min(self.chunks.len() - 1);
        (chunk, index - self.before(chunk).slices)
    }

    /// Returns the index of the chunk that holds a cell.
    pub(super) fn chunk_of_cell(&self, cell: usize) -> usize {
        self.ends.partition_point(|end| end.cells <= cell)
    }

    /// Returns the place behind all slices that start below `key`. The place must lie within the
    /// two given ones.
    pub(super) fn seek(&self, key: &Key, [from, end]: [CellPlace; 2]) -> CellPlace {
        let first = from.chunk as usize;
        let last = end.chunk as usize;
        let chunk = first + self.chunks_below(key, first + 1..last + 1);
        let holder = &self.chunks[chunk];
        let low = if chunk == first { from.at as usize } else { 1 };
        let high = if chunk == last { end.at as usize } else { holder.slices.len() };
        CellPlace { chunk: chunk as u32, at: holder.seek(key, low..high.max(low)) as u32 }
    }

    /// Returns how many of these chunks start below `key`.
    fn chunks_below(&self, key: &Key, chunks: Range<usize>) -> usize {
        let prefix = key.prefix();
        let known = &self.ends[chunks.clone()];
        if known.first().is_none_or(|end| end.start > prefix) {
            return 0;
        }
        let below = known.partition_point(|end| end.start < prefix);
        let equal = known[below..].partition_point(|end| end.start == prefix);
        let tied = &self.chunks[chunks][below..below + equal];
        below + tied.partition_point(|chunk| chunk.slices[0].range().start < *key)
    }

    // Not inlined: runs of few slices are searched far more often, and their code stays small.
    #[inline(never)]
    pub(super) fn partition_point(
        &self,
        indexes: Range<usize>,
        mut is_before: impl FnMut(&Slice) -> bool,
    ) -> usize {
        let ((first, _), (last, _)) = (self.locate(indexes.start), self.locate(indexes.end));
        // The last slice of each chunk says which chunk holds the border.
        let inner = &self.chunks[first..last];
        let ends_before = |chunk: &Arc<Chunk>| chunk.slices.last().is_some_and(&mut is_before);
        let chunk = first + inner.partition_point(ends_before);
        let before = self.before(chunk).slices;
        let within = indexes.start.max(before)..indexes.end.min(self.ends[chunk].slices);
        let slices = &self.chunks[chunk].slices[within.start - before..within.end - before];
        within.start - indexes.start + slices.partition_point(is_before)
    }

    #[inline(never)]
    pub(super) fn iter(&self, indexes: Range<usize>) -> SlicesIter<'_> {
        let (first, head) = self.locate(indexes.start);
        let (last, tail) = self.locate(indexes.end);
        let slices = |chunk: usize| &self.chunks[chunk].slices[..];
        if first == last {
            return SlicesIter::of_one(&slices(first)[head..tail]);
        }
        SlicesIter {
            front: slices(first)[head..].iter(),
            inner: self.chunks[first + 1..last].iter(),
            back: slices(last)[..tail].iter(),
        }
    }

    pub(super) fn splice(&mut self, indexes: Range<usize>, slices: Vec<Slice>) {
        let (first, head) = self.locate(indexes.start);
        let (last, tail) = self.locate(indexes.end);
        let left = &self.chunks[first].slices[..head];
        let right = &self.chunks[last].slices[tail..];
        let left_over = left.len() + slices.len() + right.len();
        // A chunk that has become small is joined with a neighbour.
        let is_small = left_over < CHUNK_MAX / 2;
        let joins_next = is_small && last + 1 < self.chunks.len();
        let joins_previous = is_small && !joins_next && first > 0;
        let previous = if joins_previous { &self.chunks[first - 1].slices[..] } else { &[] };
        let next = if joins_next { &self.chunks[last + 1].slices[..] } else { &[] };
        let head = previous.iter().chain(left).cloned();
        let tail = right.iter().chain(next).cloned();
        let len = previous.len() + left_over + next.len();
        let new: Vec<Arc<Chunk>> = cut(len, head.chain(slices).chain(tail)).collect();
        let from = first - usize::from(joins_previous);
        let end = last + 1 + usize::from(joins_next);
        let count = new.len();
        self.chunks.splice(from..end, new);
        self.count(from, end - from, count);
    }

    /// Updates the counts after `new` chunks have replaced `old` chunks from index `from` on.
    fn count(&mut self, from: usize, old: usize, new: usize) {
        let before_rest = self.before(from + old);
        let mut sum = self.before(from);
        let counts = self.chunks[from..from + new].iter().map(|chunk| {
            sum = sum.with(chunk);
            sum
        });
        self.ends.splice(from..from + old, counts);
        for end in &mut self.ends[from + new..] {
            end.slices = end.slices + sum.slices - before_rest.slices;
            end.cells = end.cells + sum.cells - before_rest.cells;
        }
    }
}

/// Cuts `len` slices into chunks of equal size, so that no chunk is small.
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
