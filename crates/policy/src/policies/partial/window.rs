//! Windows of neighbouring blocks, chosen by metadata alone.
//!
//! A level can have a million blocks, and the store asks the policy on the path of every flush. So
//! nothing lists the blocks of a level: they are found by rank or by key, and the best window is
//! sought by branch and bound.

use lsmith_tree::{Cell, CellIndex, CellPlace, Key, KeyRange, Run};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The blocks of a level, in key order.
pub(super) struct Blocks<'a> {
    starts: BlockStarts<'a>,
    /// The end of the last block; `None` for no bound.
    end: Option<&'a Key>,
}

enum BlockStarts<'a> {
    /// The cells of one run.
    Cells(CellIndex<'a>),
    /// Blocks that the cells of several memtables fill, packed from the smallest key on.
    Packed(Vec<Key>),
}

/// Neighbouring blocks, and how many blocks below they overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) range: KeyRange,
    /// Blocks below that share keys with the range.
    pub(super) overlap: usize,
}

impl<'a> Blocks<'a> {
    /// Returns the blocks of `runs`.
    pub(super) fn of(runs: &[&'a Arc<Run>], block_bytes: u64) -> Blocks<'a> {
        let slices = runs.iter().filter_map(|run| run.slices().last());
        let ends = slices.map(|slice| slice.range().end.as_ref());
        let end = ends.reduce(|left, right| Some(left?.max(right?))).flatten();
        let starts = match runs {
            [run] => BlockStarts::Cells(run.cell_index()),
            _ => BlockStarts::Packed(pack(runs, block_bytes)),
        };
        Blocks { starts, end }
    }

    pub(super) fn len(&self) -> usize {
        match &self.starts {
            BlockStarts::Cells(cells) => cells.len(),
            BlockStarts::Packed(starts) => starts.len(),
        }
    }

    fn start(&self, rank: usize) -> Key {
        match &self.starts {
            BlockStarts::Cells(cells) => cells.key(rank),
            BlockStarts::Packed(starts) => starts[rank].clone(),
        }
    }

    /// Returns the rank of the first block that starts at or above `key`.
    pub(super) fn first_from(&self, key: &[u8]) -> usize {
        let mut low = 0;
        let mut high = self.len();
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.start(middle)[..] < *key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the start of the block with this rank, or the end of the last block if `rank` is the
    /// number of blocks.
    fn border(&self, rank: usize) -> Option<Key> {
        if rank < self.len() { Some(self.start(rank)) } else { self.end.cloned() }
    }

    fn range(&self, from: usize, end: usize) -> KeyRange {
        KeyRange { start: self.start(from), end: self.border(end) }
    }

    /// Returns the window of `count` blocks from rank `from` on, or of as many as there are.
    pub(super) fn window(&self, from: usize, count: usize) -> Window {
        let end = (from + count).min(self.len());
        Window { range: self.range(from, end), overlap: 0 }
    }

    /// Returns the window of `count` blocks that overlaps the fewest blocks of `target`. Of several
    /// such windows, returns the first (Thonangi & Yang, section III-C).
    pub(super) fn least_overlap(&self, count: usize, target: Option<&Run>) -> Window {
        let count = count.clamp(1, self.len());
        let Some(target) = target else { return self.window(0, count) };
        let search = WindowSearch { blocks: self, below: target.cell_index(), count };
        let (from, overlap) = search.best();
        Window { range: self.range(from, from + count), overlap }
    }
}

/// The search for the window of `count` blocks that overlaps the fewest blocks below.
struct WindowSearch<'a> {
    blocks: &'a Blocks<'a>,
    below: CellIndex<'a>,
    count: usize,
}

impl WindowSearch<'_> {
    /// Returns the rank of the best window's first block, and how many blocks it overlaps.
    ///
    /// Halves the most promising row of windows until that row is a single window.
    fn best(&self) -> (usize, usize) {
        let [none, all] = self.below.ends();
        let site = |from, place| WindowSite { from, start: (0, place), end: (0, place) };
        let lowest = site(0, none);
        let highest = site(self.blocks.len() - self.count, all);
        let [first, last] = [0, highest.from].map(|from| self.site(from, &lowest, &highest));
        let mut rows = BinaryHeap::from([Reverse(WindowRow::new(first, last))]);
        while let Some(Reverse(WindowRow { first, last, .. })) = rows.pop() {
            match last.from - first.from {
                0 => return (first.from, self.overlap(&first)),
                WALKED.. => {
                    let middle = self.site(usize::midpoint(first.from, last.from), &first, &last);
                    let halves = [WindowRow::new(first, middle), WindowRow::new(middle, last)];
                    rows.extend(halves.map(Reverse));
                }
                _ => {
                    let next = |site: &WindowSite| {
                        (site.from < last.from).then(|| self.site(site.from + 1, site, &last))
                    };
                    let windows = std::iter::successors(Some(first), next);
                    rows.extend(self.best_of(windows).map(Reverse));
                }
            }
        }
        unreachable!("a row holds a window")
    }

    /// Returns the window that overlaps the fewest blocks, as a row of its own with that number.
    fn best_of(&self, windows: impl Iterator<Item = WindowSite>) -> Option<WindowRow> {
        let mut best = None;
        for site in windows {
            let window = WindowRow::new(site, site);
            let promises = |best: &WindowRow| window.least < best.least;
            if best.as_ref().is_none_or(promises) {
                let exact = WindowRow { least: self.overlap(&site), ..window };
                best = best.into_iter().chain([exact]).min();
            }
        }
        best
    }

    /// Returns how many blocks below a window overlaps.
    fn overlap(&self, site: &WindowSite) -> usize {
        let [start, end] = [site.from, site.from + self.count].map(|rank| self.blocks.border(rank));
        let below = self.below;
        let ended = start.map_or(below.len(), |key| below.cells_ending_by(&key, site.start.1));
        let started = end.map_or(below.len(), |key| below.cells_starting_below(&key, site.end.1));
        started - ended
    }

    /// Returns the window that starts at block `from`, which lies between two other windows.
    fn site(&self, from: usize, left: &WindowSite, right: &WindowSite) -> WindowSite {
        let start = self.blocks.border(from);
        let end = self.blocks.border(from + self.count);
        WindowSite {
            from,
            start: self.most_ended(start.as_ref(), [left.start.1, right.start.1]),
            end: self.least_started(end.as_ref(), [left.end.1, right.end.1]),
        }
    }

    /// Returns an upper bound of how many blocks below end at or below `border`, with the place of
    /// `border`, which must lie within the two given ones.
    fn most_ended(&self, border: Option<&Key>, within: [CellPlace; 2]) -> (usize, CellPlace) {
        let Some(border) = border else { return (self.below.len(), self.below.ends()[1]) };
        let place = self.below.seek(border, within);
        let [least, most] = self.below.rank_bounds(place);
        let is_close = most - least <= FEW;
        (if is_close { most } else { self.below.cells_ending_by(border, place) }, place)
    }

    /// Returns a lower bound of how many blocks below start below `border`, with the place of
    /// `border`, which must lie within the two given ones.
    fn least_started(&self, border: Option<&Key>, within: [CellPlace; 2]) -> (usize, CellPlace) {
        let Some(border) = border else { return (self.below.len(), self.below.ends()[1]) };
        let place = self.below.seek(border, within);
        let [least, most] = self.below.rank_bounds(place);
        let is_close = most - least <= FEW;
        let started = if is_close {
            most.min(least + 1)
        } else {
            self.below.cells_starting_below(border, place)
        };
        (started, place)
    }
}

/// A window, and how far its ends reach into the blocks below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WindowSite {
    /// The rank of its first block.
    from: usize,
    /// An upper bound of how many blocks below end at or below its start, and the place of its
    /// start.
    start: (usize, CellPlace),
    /// A lower bound of how many blocks below start below its end, and the place of its end.
    end: (usize, CellPlace),
}

/// The windows from a first to a last one, both included. The more promising row is the smaller.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct WindowRow {
    /// A lower bound of how many blocks each of the windows overlaps. Exact for a single window
    /// that was looked at.
    least: usize,
    first: WindowSite,
    last: WindowSite,
}

impl WindowRow {
    /// Returns the row of windows from `first` to `last`. Every window of the row covers the keys
    /// from the start of `last` to the end of `first`, which gives the lower bound.
    fn new(first: WindowSite, last: WindowSite) -> WindowRow {
        WindowRow { least: first.end.0.saturating_sub(last.start.0), first, last }
    }
}

/// A row of fewer windows than this is not halved: its windows are looked at one by one.
const WALKED: usize = 16;

/// A slice of at most this many cells is not looked into for bounds. Its table lies elsewhere in
/// memory, and that cache miss costs more than bounds that are off by so little.
const FEW: usize = 8;

/// Returns the start keys of the blocks that the cells of `runs` fill.
fn pack(runs: &[&Arc<Run>], block_bytes: u64) -> Vec<Key> {
    let mut cells: Vec<_> = runs.iter().flat_map(|run| run.cells()).collect();
    cells.sort_by(|left, right| left.start.cmp(&right.start));
    let mut starts = Vec::with_capacity(cells.len());
    let mut packed = block_bytes;
    for Cell { start, size, .. } in cells {
        // Cells of several runs may start at the same key.
        if packed >= block_bytes && starts.last() != Some(&start) {
            starts.push(start);
            packed = 0;
        }
        packed += size.bytes;
    }
    starts
}

/// Returns the least range that covers `range` and all cells of `run` that overlap it; `None` if no
/// slice of `run` overlaps it.
pub(super) fn cells_over(run: &Run, range: &KeyRange) -> Option<KeyRange> {
    let slices = run.overlapping(range);
    let first = slices.first()?.cell_start(&range.start);
    let last = slices.last()?;
    let end = match &range.end {
        Some(end) => last.cell_end(end),
        None => last.range().end.clone(),
    };
    Some(KeyRange { start: first, end }.hull(range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_tree::{LevelId, TreeView};

    #[test]
    fn memtables_that_begin_with_one_key_make_no_empty_block() {
        let view: TreeView =
            "tree\nmem r3[t3:b..z 50B] r2[t2:b..x 50B] r1[t1:c..d 50B]".parse().unwrap();
        let runs: Vec<&Arc<Run>> = view.tree.runs_at(LevelId::Memory).iter().collect();
        let blocks = Blocks::of(&runs, 40);
        let windows = (0..blocks.len()).map(|from| blocks.window(from, 1).range.to_string());
        assert_eq!(windows.collect::<Vec<_>>(), ["b..c", "c..z"]);
        assert!((0..blocks.len()).all(|from| !blocks.window(from, 1).range.is_empty()));
    }

    /// Slices of one or two cells, some of more than a [`FEW`], with gaps between some of them, the
    /// same for each seed; the last may have no end.
    fn slices(seed: u64, count: u64) -> String {
        let mut state = seed;
        let mut at = 1000;
        let mut step = |least: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            at += least + (state >> 40) % 4;
            at
        };
        let slices = (0..count).map(|index| {
            let start = step(0);
            let border = step(1);
            let points = match border % 16 {
                0 => FEW as u64 + 2,
                rest => 1 - rest % 2,
            };
            let each = (0..points).map(|point| match point {
                0 => format!("{border} 1B"),
                _ => format!("{} {}B", step(1), point + 1),
            });
            let points = each.collect::<Vec<_>>().join(", ");
            let profile = if points.is_empty() { points } else { format!(" {{{points}}}") };
            let border_behind = step(1);
            let open = index + 1 == count && seed.is_multiple_of(3);
            let end = if open { String::new() } else { border_behind.to_string() };
            format!("t{}:{start}..{end} 20B{profile}", seed * 1000 + index)
        });
        slices.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn no_window_overlaps_fewer_blocks_and_none_before_it_as_few() {
        for seed in 0..300 {
            let (above, below) =
                (slices(2 * seed, 1 + seed % 90), slices(2 * seed + 1, 1 + seed / 3));
            let text = format!("tree\nL1 r1[{above}]\nL2 r0[{below}]");
            let view: TreeView = text.parse().expect(&text);
            let [source, target] = [1, 2].map(|level| &view.tree.runs_at(LevelId::Disk(level))[0]);
            let blocks = Blocks::of(&[source], 1);
            for count in [1, 2, 7, 1000] {
                let starts = 0..=blocks.len() - count.min(blocks.len());
                let windows = starts.map(|from| {
                    let range = blocks.window(from, count).range;
                    let is_over = |cell: &Cell| {
                        let start = cell.start.clone();
                        let end = cell.end.clone();
                        range.overlaps(&KeyRange { start, end })
                    };
                    Window { overlap: target.cells().filter(is_over).count(), range }
                });
                let expected = windows.min_by_key(|window| window.overlap).expect("a window");
                assert_eq!(blocks.least_overlap(count, Some(target)), expected, "{count}: {text}");
            }
        }
    }
}
