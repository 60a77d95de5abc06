//! The cells of a run by rank and by key.

use super::chunk::Chunk;
use super::chunks::CellPlace;
use super::list::SliceList;
use crate::key::Key;

/// Finds the cells of a run by rank and by key. Ranks count cells from 0, in key order.
///
/// Searches that move along a run go in two steps. [`seek`](CellIndex::seek) finds the slice, by
/// integers that lie close together in memory. [`rank_bounds`](CellIndex::rank_bounds) then bounds
/// the rank without a look at the slice. The exact ranks,
/// [`cells_starting_below`](CellIndex::cells_starting_below) and
/// [`cells_ending_by`](CellIndex::cells_ending_by), look into the profile of the slice's table.
#[derive(Clone, Copy, Debug)]
pub struct CellIndex<'a> {
    slices: &'a SliceList,
    cells: u64,
}

impl<'a> CellIndex<'a> {
    #[inline]
    pub(crate) fn new(slices: &'a SliceList, cells: u64) -> CellIndex<'a> {
        CellIndex { slices, cells }
    }

    /// Returns the number of cells.
    #[inline]
    pub fn len(self) -> usize {
        self.cells as usize
    }

    /// Returns true if the run has no cells.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.cells == 0
    }

    /// Returns the key at which the cell with this rank starts.
    ///
    /// # Panics
    /// If `rank` is not below [`len`](CellIndex::len).
    #[inline]
    pub fn key(self, rank: usize) -> Key {
        let (slice, cell) = self.slices.slice_of_cell(rank);
        self.slices.view().at(slice).cell_start_at(cell)
    }

    /// Returns the places before the first slice and behind the last.
    pub fn ends(self) -> [CellPlace; 2] {
        let (chunk, at) = match self.slices {
            SliceList::Flat(chunk) => (0, chunk.slices.len()),
            SliceList::Chunked(chunks) => {
                let last = chunks.chunks.len() - 1;
                (last, chunks.chunks[last].slices.len())
            }
        };
        [CellPlace::default(), CellPlace { chunk: chunk as u32, at: at as u32 }]
    }

    /// Returns the place behind all slices that start below `key`. The place must lie within the
    /// two given ones; the search is the faster, the closer these are.
    #[inline]
    pub fn seek(self, key: &Key, within: [CellPlace; 2]) -> CellPlace {
        match self.slices {
            SliceList::Flat(chunk) => {
                let [from, end] = within.map(|place| place.at as usize);
                CellPlace { chunk: 0, at: chunk.seek(key, from..end) as u32 }
            }
            SliceList::Chunked(chunks) => chunks.seek(key, within),
        }
    }

    /// Returns the number of cells of all slices before `place`, first without the last of these
    /// slices and then with it.
    ///
    /// For any key that `place` was sought by, the number of cells that start below the key, or end
    /// at or below it, lies between the two.
    #[inline]
    pub fn rank_bounds(self, place: CellPlace) -> [usize; 2] {
        let Some(slice) = self.slice_before(place) else { return [0, 0] };
        [slice.at, slice.at + 1].map(|slices| slice.cells_before + slice.chunk.cells_before(slices))
    }

    /// Returns the number of cells that start below `key`. `place` must come from a
    /// [`seek`](CellIndex::seek) of `key`.
    #[inline]
    pub fn cells_starting_below(self, key: &Key, place: CellPlace) -> usize {
        let Some(slice) = self.slice_before(place) else { return 0 };
        let (from, end) =
            (slice.chunk.cells_before(slice.at), slice.chunk.cells_before(slice.at + 1));
        // A slice of one cell need not be looked at.
        let inner = if end - from > 1 { slice.chunk.slices[slice.at].cell_below(key) } else { 0 };
        slice.cells_before + from + inner + 1
    }

    /// Returns the number of cells that end at or below `key`. `place` must come from a
    /// [`seek`](CellIndex::seek) of `key`.
    #[inline]
    pub fn cells_ending_by(self, key: &Key, place: CellPlace) -> usize {
        let Some(found) = self.slice_before(place) else { return 0 };
        // Only the last slice can reach beyond the key, and with one of its cells only.
        let slice = &found.chunk.slices[found.at];
        let cell = slice.cell_below(key);
        let is_beyond = slice.cell_end_at(cell).is_none_or(|end| end > *key);
        let complete = cell + usize::from(!is_beyond);
        found.cells_before + found.chunk.cells_before(found.at) + complete
    }

    /// Returns the slice before `place`; `None` at the start of the run.
    #[inline]
    fn slice_before(self, place: CellPlace) -> Option<SliceInChunk<'a>> {
        let at = place.at.checked_sub(1)? as usize;
        Some(match self.slices {
            SliceList::Flat(chunk) => SliceInChunk { chunk, at, cells_before: 0 },
            SliceList::Chunked(chunks) => {
                let chunk = place.chunk as usize;
                let cells_before = chunks.before(chunk).cells;
                SliceInChunk { chunk: &chunks.chunks[chunk], at, cells_before }
            }
        })
    }
}

/// A slice by its place in a chunk.
struct SliceInChunk<'a> {
    chunk: &'a Chunk,
    /// The index of the slice in the chunk.
    at: usize,
    /// Cells of all chunks before this one.
    cells_before: usize,
}

#[cfg(test)]
mod tests {
    use crate::tree::Tree;

    #[test]
    fn cells_are_found_in_their_slices() {
        let text = "tree\nL0 r1[t1:a..c 9B {b 4B}, t2:c..d 9B, t3:e..z 9B {f 1B, g 2B}]";
        for (text, cells) in [
            (text, vec![(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2)]),
            ("tree\nL0 r1[t1:a..c 9B, t2:c..d 9B]", vec![(0, 0), (1, 0)]),
            ("tree\nL0 r1[t3:e..z 9B {f 1B, g 2B}]", vec![(0, 0), (0, 1), (0, 2)]),
        ] {
            let tree: Tree = text.parse().expect(text);
            let run = &tree.levels()[0].runs()[0];
            let index = run.cell_index();
            assert_eq!(index.len(), cells.len());
            let found: Vec<_> = (0..index.len())
                .map(|rank| index.slices.slice_of_cell(rank))
                .inspect(|(slice, _)| assert!(run.slices().len() > *slice))
                .collect();
            assert_eq!(found, cells);
            let starts: Vec<_> = (0..index.len()).map(|rank| index.key(rank)).collect();
            assert_eq!(starts, run.cells().map(|cell| cell.start).collect::<Vec<_>>(), "{text}");
            for (rank, (slice, _)) in cells.iter().enumerate().filter(|(_, (_, cell))| *cell == 0) {
                let start = &run.slices().at(*slice).range().start;
                let place = index.seek(start, index.ends());
                assert_eq!(index.cells_starting_below(start, place), rank, "{text}");
            }
        }
    }
}
