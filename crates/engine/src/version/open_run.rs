//! A run whose tables are open.
//!
//! If merges keep blocks, a run has tens of thousands of slices, and a plan changes only those in a
//! short key range. So slices are held in chunks, and the versions before and after a plan share
//! all chunks that it did not touch.
//!
//! A *part* is here a slice whose table may have keys in its range, as far as the profile knows.

use super::TableHandle;
use lsmith_storage::format::key_prefix;
use lsmith_tree::{Key, KeyRange, Run, Slice, Slices, TableId};
use std::ops::Range;
use std::sync::Arc;

/// The greatest number of slices in a chunk. A chunk with less than half of that is joined with a
/// neighbour when the neighbour changes.
const CHUNK_MAX: usize = 128;

/// A run whose tables are open.
#[derive(Debug)]
pub(crate) struct OpenRun {
    run: Arc<Run>,
    chunks: Vec<Arc<Chunk>>,
    /// For each chunk, the number of parts in all chunks before it.
    starts: Vec<usize>,
    /// The number of parts.
    len: usize,
}

/// Neighbouring slices of a run.
#[derive(Debug)]
struct Chunk {
    /// The number of slices.
    slices: usize,
    /// From the start of the first slice to the end of the last.
    hull: KeyRange,
    /// The parts, in key order.
    parts: Vec<OpenSlice>,
    /// The table of each part. They lie close together, because searches often read all of them.
    ids: Vec<TableId>,
    /// The prefix of the start of each part, held here for the same reason.
    prefixes: Vec<u64>,
}

/// A slice whose table is open.
#[derive(Debug)]
pub(crate) struct OpenSlice {
    /// The range of the slice, without ends where the table is known to have no keys. Blocks
    /// outside of it are not needed.
    range: KeyRange,
    /// True if the table may have entries outside of the range.
    cut: bool,
    id: TableId,
    table: Arc<TableHandle>,
}

impl Chunk {
    /// Returns a chunk of `slices`, at least one. `find` returns the table of a slice.
    fn new(slices: Slices<'_>, find: &impl Fn(&Slice) -> Arc<TableHandle>) -> Chunk {
        let open = |slice: &Slice| OpenSlice {
            range: slice.filled(),
            cut: !slice.is_whole(),
            id: slice.table().id,
            table: find(slice),
        };
        let (first, last) = (slices[0].range(), slices[slices.len() - 1].range());
        let parts: Vec<_> = slices.iter().map(open).filter(|part| !part.range.is_empty()).collect();
        Chunk {
            slices: slices.len(),
            hull: KeyRange { start: first.start.clone(), end: last.end.clone() },
            ids: parts.iter().map(|part| part.id).collect(),
            prefixes: parts.iter().map(|part| part.range.start.prefix()).collect(),
            parts,
        }
    }

    fn all(slices: Slices<'_>, find: &impl Fn(&Slice) -> Arc<TableHandle>) -> Vec<Arc<Chunk>> {
        // Chunks of equal size, so that none is small.
        let count = slices.len().div_ceil(CHUNK_MAX).max(1);
        let size = slices.len().div_ceil(count).max(1);
        let starts = (0..slices.len()).step_by(size);
        let chunk = |from| slices.range(from..slices.len().min(from + size));
        starts.map(|from| Arc::new(Chunk::new(chunk(from), find))).collect()
    }

    fn is_small(&self) -> bool {
        self.slices < CHUNK_MAX / 2
    }

    /// Returns the number of parts that start at or below `key`.
    fn starts_at_or_below(&self, key: &[u8]) -> usize {
        let prefix = key_prefix(key);
        let below = self.prefixes.partition_point(|start| *start < prefix);
        let ties = self.prefixes[below..].partition_point(|start| *start == prefix);
        let tied = &self.parts[below..below + ties];
        below + tied.partition_point(|part| *part.range.start <= *key)
    }
}

impl OpenRun {
    /// Opens `run`. `find` returns the table of a slice.
    pub(crate) fn new(run: &Arc<Run>, find: impl Fn(&Slice) -> Arc<TableHandle>) -> OpenRun {
        OpenRun::of(run, Chunk::all(run.slices(), &find))
    }

    /// Opens `run`, which differs from the run of `before` only within the range `changed`.
    pub(crate) fn changed(
        before: &OpenRun,
        run: &Arc<Run>,
        changed: &KeyRange,
        find: impl Fn(&Slice) -> Arc<TableHandle>,
    ) -> OpenRun {
        let old = &before.chunks;
        // A slice that is cut at the border of `changed` lies in a chunk that is replaced.
        let mut from = old.partition_point(|chunk| chunk.hull.lies_below(&changed.start));
        let touched = |chunk: &Arc<Chunk>| is_below(&chunk.hull.start, changed.end.as_ref());
        let mut end = old.partition_point(touched).max(from);
        while from > 0 && old[from - 1].is_small() {
            from -= 1;
        }
        while end < old.len() && old[end].is_small() {
            end += 1;
        }
        let count = |chunks: &[Arc<Chunk>]| chunks.iter().map(|chunk| chunk.slices).sum::<usize>();
        let (below, above) = (count(&old[..from]), count(&old[end..]));
        let slices = run.slices();
        let middle = Chunk::all(slices.range(below..slices.len() - above), &find);
        let sides = (old[..from].iter(), old[end..].iter());
        OpenRun::of(run, sides.0.cloned().chain(middle).chain(sides.1.cloned()).collect())
    }

    fn of(run: &Arc<Run>, chunks: Vec<Arc<Chunk>>) -> OpenRun {
        let mut len = 0;
        let starts = chunks.iter().map(|chunk| {
            let start = len;
            len += chunk.parts.len();
            start
        });
        let starts = starts.collect();
        let open = OpenRun { run: Arc::clone(run), chunks, starts, len };
        debug_assert!(open.matches_run(), "the run differs only within the changed range");
        open
    }

    /// Returns true if the parts are those of the slices of the run.
    fn matches_run(&self) -> bool {
        let of = |slice: &Slice| (slice.table().filled(slice.range().clone()), slice.table().id);
        let slices = self.run.slices().iter().map(of).filter(|(range, _)| !range.is_empty());
        slices.eq(self.slices().map(|part| (part.range.clone(), part.id)))
    }

    /// Returns true if every slice is a part: none is known to be empty.
    pub(crate) fn shows_all(&self) -> bool {
        self.len == self.run.slices().len()
    }

    /// Returns the run.
    pub(crate) fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// Returns the table whose part covers `key`, if there is one.
    pub(super) fn table_of(&self, key: &[u8]) -> Option<&Arc<TableHandle>> {
        let (chunk, after) = self.locate(key);
        let part = &self.chunks.get(chunk)?.parts[after.checked_sub(1)?];
        part.ends_above(key).then_some(&part.table)
    }

    /// Returns the number of parts that lie below `key`.
    pub(super) fn parts_below(&self, key: &[u8]) -> usize {
        let (chunk, after) = self.locate(key);
        let Some(last) = after.checked_sub(1) else {
            // All parts of earlier chunks lie below `key`.
            return self.starts.get(chunk).copied().unwrap_or_default();
        };
        let ends_above = self.chunks[chunk].parts[last].ends_above(key);
        self.starts[chunk] + if ends_above { last } else { after }
    }

    /// Returns the index of the chunk of `key`, and the number of its parts that start at or below
    /// `key`.
    fn locate(&self, key: &[u8]) -> (usize, usize) {
        let chunk = match &self.chunks[..] {
            [_] => 0,
            chunks => {
                let after = chunks.partition_point(|chunk| *chunk.hull.start <= *key);
                after.saturating_sub(1)
            }
        };
        (chunk, self.chunks.get(chunk).map_or(0, |chunk| chunk.starts_at_or_below(key)))
    }

    /// Returns the indexes of the parts that overlap `range`.
    pub(super) fn overlap(&self, range: &KeyRange) -> Range<usize> {
        if range.is_all() {
            return 0..self.len;
        }
        let chunk = self.chunks.partition_point(|chunk| chunk.hull.lies_below(&range.start));
        let from = self.chunks.get(chunk).map_or(self.len, |found| {
            let below = |part: &OpenSlice| part.range.lies_below(&range.start);
            self.starts[chunk] + found.parts.partition_point(below)
        });
        let end_key = range.end.as_ref();
        let chunks = self.chunks.partition_point(|chunk| is_below(&chunk.hull.start, end_key));
        let end = chunks.checked_sub(1).map_or(0, |chunk| {
            let begins = |part: &OpenSlice| is_below(&part.range.start, end_key);
            self.starts[chunk] + self.chunks[chunk].parts.partition_point(begins)
        });
        from..end.max(from)
    }

    /// Returns the part at `index`.
    pub(super) fn part(&self, index: usize) -> &OpenSlice {
        if let [chunk] = &self.chunks[..] {
            return &chunk.parts[index];
        }
        let chunk = self.starts.partition_point(|start| *start <= index) - 1;
        &self.chunks[chunk].parts[index - self.starts[chunk]]
    }

    /// Returns the parts that overlap `range`, in key order.
    pub(crate) fn overlapping(
        &self,
        range: &KeyRange,
    ) -> impl DoubleEndedIterator<Item = &OpenSlice> {
        self.overlap(range).map(|index| self.part(index))
    }

    /// Returns the parts whose table is `wanted`, in key order.
    pub(super) fn slices_of(
        &self,
        wanted: impl Fn(TableId) -> bool,
    ) -> impl Iterator<Item = &OpenSlice> {
        self.chunks.iter().flat_map(move |chunk| {
            let mut places = Vec::new();
            let found = |(_, id): &(usize, &TableId)| wanted(**id);
            places.extend(chunk.ids.iter().enumerate().filter(found).map(|(place, _)| place));
            places.into_iter().map(|place| &chunk.parts[place])
        })
    }

    /// Returns all parts, in key order.
    pub(crate) fn slices(&self) -> impl Iterator<Item = &OpenSlice> {
        self.chunks.iter().flat_map(|chunk| &chunk.parts)
    }
}

/// Returns true if `key` is below `end`, the end of a range.
fn is_below(key: &Key, end: Option<&Key>) -> bool {
    end.is_none_or(|end| key < end)
}

impl OpenSlice {
    /// Returns true if `key` is below the end of the range.
    fn ends_above(&self, key: &[u8]) -> bool {
        self.range.end.as_ref().is_none_or(|end| {
            let prefixes = key_prefix(key).cmp(&end.prefix());
            prefixes.then_with(|| key.cmp(end)).is_lt()
        })
    }

    /// Returns the range, without ends where the table is known to have no keys.
    pub(crate) fn range(&self) -> &KeyRange {
        &self.range
    }

    /// Returns true if the table may have entries outside of the range.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns the id of the table.
    pub(super) fn id(&self) -> TableId {
        self.id
    }

    /// Returns the table.
    pub(crate) fn table(&self) -> &Arc<TableHandle> {
        &self.table
    }
}
