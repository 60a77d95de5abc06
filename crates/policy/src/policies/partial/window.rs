//! Windows of neighbouring blocks, chosen by metadata alone.

use lsmith_tree::{Cell, Key, KeyRange, Run};
use std::sync::Arc;

/// The blocks of a level, in key order: where each begins, and where the last ends.
pub(super) struct Blocks<'a> {
    starts: Vec<&'a Key>,
    end: Option<&'a Key>,
}

/// Neighbouring blocks and what they overlap below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) range: KeyRange,
    /// Blocks below that share keys with the range.
    pub(super) overlap: usize,
}

impl<'a> Blocks<'a> {
    /// The blocks of `runs`. Those of one run are its cells; several runs, which are memtables,
    /// are packed together from the smallest key.
    pub(super) fn of(runs: &[&'a Arc<Run>], block_bytes: u64) -> Blocks<'a> {
        let mut cells: Vec<Cell<'a>> = runs.iter().flat_map(|run| run.cells()).collect();
        let ends = cells.iter().map(|cell| cell.end);
        let end = ends.reduce(|left, right| Some(left?.max(right?))).flatten();
        if runs.len() == 1 {
            return Blocks { starts: cells.into_iter().map(|cell| cell.start).collect(), end };
        }
        cells.sort_by(|left, right| left.start.cmp(right.start));
        let mut starts = Vec::with_capacity(cells.len());
        let mut packed = block_bytes;
        for cell in cells {
            if packed >= block_bytes {
                starts.push(cell.start);
                packed = 0;
            }
            packed += cell.size.bytes;
        }
        Blocks { starts, end }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The index of the first block that starts at `key` or above.
    pub(super) fn first_from(&self, key: &[u8]) -> usize {
        self.starts.partition_point(|start| ***start < *key)
    }

    /// The border above block `index - 1`: the start of block `index`, or the end of all.
    fn border(&self, index: usize) -> Option<&'a Key> {
        self.starts.get(index).copied().or(self.end)
    }

    fn range(&self, from: usize, upto: usize) -> KeyRange {
        KeyRange { start: self.starts[from].clone(), end: self.border(upto).cloned() }
    }

    /// Up to `count` blocks from index `from` on.
    pub(super) fn window(&self, from: usize, count: usize) -> Window {
        let upto = (from + count).min(self.len());
        Window { range: self.range(from, upto), overlap: 0 }
    }

    /// The window of `count` blocks that overlaps the fewest blocks of `target`, the first of
    /// those that overlap equally few. One pass over both lists (Thonangi & Yang, section III-C).
    pub(super) fn least_overlap(&self, count: usize, target: Option<&Run>) -> Window {
        let count = count.min(self.len());
        let below: Vec<Cell<'_>> = target.into_iter().flat_map(|run| run.cells()).collect();
        let (mut first, mut after) = (0, 0);
        let mut best = (usize::MAX, 0);
        for from in 0..=self.len() - count {
            let start = self.starts[from];
            while below.get(first).is_some_and(|cell| cell.end.is_some_and(|end| end <= start)) {
                first += 1;
            }
            let end = self.border(from + count);
            let before = |cell: &Cell<'_>| end.is_none_or(|end| cell.start < end);
            while below.get(after).is_some_and(before) {
                after += 1;
            }
            let overlap = after.saturating_sub(first);
            if overlap < best.0 {
                best = (overlap, from);
            }
        }
        Window { range: self.range(best.1, best.1 + count), overlap: best.0 }
    }
}

/// The hull of `range` and of all cells of `run` that share keys with it; `None` where there are
/// none.
pub(super) fn cells_over(run: &Run, range: &KeyRange) -> Option<KeyRange> {
    let slices = run.overlapping(range);
    let first = slices.first()?.cell_start(&range.start);
    let last = slices.last()?;
    let upto = match &range.end {
        Some(end) => last.cell_end(end),
        None => last.range().end.clone(),
    };
    Some(KeyRange { start: first, end: upto }.hull(range))
}
