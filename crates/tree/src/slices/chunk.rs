//! A chunk: neighbouring slices, with their search keys close together in memory.

use crate::key::Key;
use crate::slice::Slice;
use std::ops::Range;

/// Slices that a search compares one by one before it halves the rest.
const NEAR: usize = 16;

/// Neighbouring slices of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    pub(super) slices: Vec<Slice>,
    /// The first bytes of each slice's start key. Empty for fewer than two slices.
    starts: Vec<u64>,
    /// Cells of all slices.
    pub(super) cells: usize,
    /// The number of cells up to the end of each slice. Empty if every slice is one cell, and for
    /// fewer than two slices.
    cell_ends: Vec<usize>,
}

impl Chunk {
    pub(super) fn new(slices: Vec<Slice>) -> Chunk {
        let cells = slices.iter().map(Slice::cell_count).sum::<u64>();
        Chunk::counted(slices, cells)
    }

    /// Returns a chunk of `slices`, which must have `cells` cells in total.
    pub(super) fn counted(slices: Vec<Slice>, cells: u64) -> Chunk {
        let cells = cells as usize;
        let mut chunk = Chunk { slices, starts: Vec::new(), cells, cell_ends: Vec::new() };
        chunk.index();
        chunk
    }

    /// Derives the search keys and counts from the slices.
    pub(super) fn index(&mut self) {
        self.starts.clear();
        if self.slices.len() > 1 {
            self.starts.extend(self.slices.iter().map(|slice| slice.range().start.prefix()));
        }
        self.cell_ends.clear();
        if self.slices.len() < 2 || self.cells == self.slices.len() {
            return;
        }
        let mut sum = 0;
        self.cell_ends.extend(self.slices.iter().map(|slice| {
            sum += slice.cell_count() as usize;
            sum
        }));
    }

    /// Returns the first bytes of the first slice's start key.
    pub(super) fn start(&self) -> u64 {
        self.slices.first().map_or(0, |slice| slice.range().start.prefix())
    }

    /// Returns the number of slices that start below `key`. The count must lie within the given
    /// bounds.
    #[inline]
    pub(super) fn seek(&self, key: &Key, within: Range<usize>) -> usize {
        let starts_below = |slice: &Slice| slice.range().start < *key;
        if self.starts.is_empty() {
            return within.start + self.slices[within].partition_point(starts_below);
        }
        let prefix = key.prefix();
        let starts = &self.starts[within.clone()];
        // A search that moves along the run advances by a few slices per step.
        let near = starts.iter().take(NEAR).filter(|start| **start < prefix).count();
        let below = match near {
            NEAR => NEAR + starts[NEAR..].partition_point(|start| *start < prefix),
            _ => near,
        };
        let tied = starts[below..].iter().take_while(|start| **start == prefix).count();
        let from = within.start + below;
        match tied {
            0 => from,
            _ => from + self.slices[from..from + tied].partition_point(starts_below),
        }
    }

    /// Returns the number of cells of the first `slices` slices.
    pub(super) fn cells_before(&self, slices: usize) -> usize {
        match slices.checked_sub(1) {
            None => 0,
            Some(_) if slices == self.slices.len() => self.cells,
            Some(_) if self.cell_ends.is_empty() => slices,
            Some(last) => self.cell_ends[last],
        }
    }

    /// Returns the index of the slice that holds a cell, and the index of the cell in that slice.
    pub(super) fn slice_of_cell(&self, cell: usize) -> (usize, usize) {
        if self.slices.len() == 1 {
            return (0, cell);
        }
        let slice = if self.cell_ends.is_empty() {
            cell
        } else {
            self.cell_ends.partition_point(|end| *end <= cell)
        };
        (slice, cell - self.cells_before(slice))
    }
}
