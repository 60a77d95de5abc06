//! A chunk: neighbouring slices, with what is looked for among them close together.

use crate::key::Key;
use crate::slice::Slice;
use std::ops::Range;

/// Slices that are looked at one after the other before halves of the rest are.
const NEAR: usize = 16;

/// Neighbouring slices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    pub(super) slices: Vec<Slice>,
    /// The first bytes of the key that each slice begins with; empty where there is only one.
    starts: Vec<u64>,
    pub(super) cells: usize,
    /// Cells up to the end of each slice; empty where each slice is one cell, or is the only one.
    cells_upto: Vec<usize>,
}

impl Chunk {
    pub(super) fn new(slices: Vec<Slice>) -> Chunk {
        let cells = slices.iter().map(Slice::cell_count).sum::<u64>();
        Chunk::counted(slices, cells)
    }

    /// A chunk of `slices`, which have so many cells together.
    pub(super) fn counted(slices: Vec<Slice>, cells: u64) -> Chunk {
        let cells = cells as usize;
        let mut chunk = Chunk { slices, starts: Vec::new(), cells, cells_upto: Vec::new() };
        chunk.index();
        chunk
    }

    /// Brings up to date what is known of the slices.
    pub(super) fn index(&mut self) {
        self.starts.clear();
        if self.slices.len() > 1 {
            self.starts.extend(self.slices.iter().map(|slice| slice.range().start.prefix()));
        }
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

    /// The first bytes of the key that the first slice begins with.
    pub(super) fn start(&self) -> u64 {
        self.slices.first().map_or(0, |slice| slice.range().start.prefix())
    }

    /// How many slices begin below `key`, which is known to lie within these bounds.
    #[inline]
    pub(super) fn begun(&self, key: &Key, within: Range<usize>) -> usize {
        let begins_below = |slice: &Slice| slice.range().start < *key;
        if self.starts.is_empty() {
            return within.start + self.slices[within].partition_point(begins_below);
        }
        let prefix = key.prefix();
        let starts = &self.starts[within.clone()];
        // Who walks along a run comes by a few slices with each step.
        let near = starts.iter().take(NEAR).filter(|start| **start < prefix).count();
        let below = match near {
            NEAR => NEAR + starts[NEAR..].partition_point(|start| *start < prefix),
            _ => near,
        };
        let tied = starts[below..].iter().take_while(|start| **start == prefix).count();
        let from = within.start + below;
        match tied {
            0 => from,
            _ => from + self.slices[from..from + tied].partition_point(begins_below),
        }
    }

    /// How many cells the first slices have, so many of them.
    pub(super) fn cells_before(&self, slice: usize) -> usize {
        match slice.checked_sub(1) {
            None => 0,
            Some(_) if slice == self.slices.len() => self.cells,
            Some(_) if self.cells_upto.is_empty() => slice,
            Some(last) => self.cells_upto[last],
        }
    }

    pub(super) fn slice_of_cell(&self, cell: usize) -> (usize, usize) {
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
