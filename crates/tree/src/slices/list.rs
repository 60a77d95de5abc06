//! The slices that a run owns: few in a vector, many in chunks.

use super::chunk::Chunk;
use super::chunks::Chunks;
use super::{Slices, View};
use crate::slice::Slice;
use std::ops::Range;

/// The most slices that are held in one vector.
const FLAT_MAX: usize = 256;

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
    pub(super) fn cells_before(&self, slice: usize) -> usize {
        match self {
            SliceList::Flat(chunk) => chunk.cells_before(slice),
            SliceList::Chunked(chunks) => {
                let (chunk, at) = chunks.locate(slice);
                chunks.before(chunk).cells + chunks.chunks[chunk].cells_before(at)
            }
        }
    }

    /// Returns the index of the slice that holds a cell, and the index of the cell in that slice.
    pub(super) fn slice_of_cell(&self, cell: usize) -> (usize, usize) {
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
