//! Windows of neighbouring blocks, chosen by metadata alone.
//!
//! A level can have a million blocks, and the policy is asked on the path of every flush. So blocks
//! are not listed but found by index or by key, and the best window is sought by branch and bound.

use lsmith_tree::{Cell, Key, KeyRange, Run, SlicePlace, Slices};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The blocks of a level, in key order: where each begins, and where the last ends.
pub(super) struct Blocks<'a> {
    starts: Starts<'a>,
    end: Option<&'a Key>,
}

enum Starts<'a> {
    /// The cells of a run.
    Cells(Cells<'a>),
    /// Cells of several runs, which are memtables, packed together from the smallest key.
    Packed(Vec<Key>),
}

/// Neighbouring blocks and what they overlap below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) range: KeyRange,
    /// Blocks below that share keys with the range.
    pub(super) overlap: usize,
}

impl<'a> Blocks<'a> {
    /// The blocks of `runs`.
    pub(super) fn of(runs: &[&'a Arc<Run>], block_bytes: u64) -> Blocks<'a> {
        let ends = runs.iter().filter_map(|run| run.slices().last());
        let ends = ends.map(|slice| slice.range().end.as_ref());
        let end = ends.reduce(|left, right| Some(left?.max(right?))).flatten();
        let starts = match runs {
            [run] => Starts::Cells(Cells::of(run)),
            _ => Starts::Packed(pack(runs, block_bytes)),
        };
        Blocks { starts, end }
    }

    pub(super) fn len(&self) -> usize {
        match &self.starts {
            Starts::Cells(cells) => cells.len,
            Starts::Packed(starts) => starts.len(),
        }
    }

    fn start(&self, index: usize) -> Key {
        match &self.starts {
            Starts::Cells(cells) => cells.start(index),
            Starts::Packed(starts) => starts[index].clone(),
        }
    }

    /// The index of the first block that starts at `key` or above.
    pub(super) fn first_from(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.start(middle)[..] < *key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The border above block `index - 1`: the start of block `index`, or the end of all.
    fn border(&self, index: usize) -> Option<Key> {
        if index < self.len() { Some(self.start(index)) } else { self.end.cloned() }
    }

    fn range(&self, from: usize, upto: usize) -> KeyRange {
        KeyRange { start: self.start(from), end: self.border(upto) }
    }

    /// Up to `count` blocks from index `from` on.
    pub(super) fn window(&self, from: usize, count: usize) -> Window {
        let upto = (from + count).min(self.len());
        Window { range: self.range(from, upto), overlap: 0 }
    }

    /// The window of `count` blocks that overlaps the fewest blocks of `target`, the first of
    /// those that overlap equally few (Thonangi & Yang, section III-C).
    pub(super) fn least_overlap(&self, count: usize, target: Option<&Run>) -> Window {
        let count = count.clamp(1, self.len());
        let Some(target) = target else { return self.window(0, count) };
        let (from, overlap) = Search { blocks: self, below: Cells::of(target), count }.best();
        Window { range: self.range(from, from + count), overlap }
    }
}

/// The search for the window of `count` blocks that overlaps the fewest blocks below.
struct Search<'a> {
    blocks: &'a Blocks<'a>,
    below: Cells<'a>,
    count: usize,
}

impl Search<'_> {
    /// Halves the stretch of windows that promises most, until that is a single window: its first
    /// block, and how many it overlaps.
    fn best(&self) -> (usize, usize) {
        let [none, all] = self.below.run.ends();
        let site = |from, place| Site { from, start: (0, place), end: (0, place) };
        let (first, last) = (site(0, none), site(self.blocks.len() - self.count, all));
        let [first, last] = [0, last.from].map(|from| self.site(from, &first, &last));
        let mut stretches = BinaryHeap::from([Reverse(Stretch::new(first, last))]);
        while let Some(Reverse(Stretch { first, last, .. })) = stretches.pop() {
            match last.from - first.from {
                0 => return (first.from, self.overlap(&first)),
                WALKED.. => {
                    let middle = self.site(usize::midpoint(first.from, last.from), &first, &last);
                    let halves = [Stretch::new(first, middle), Stretch::new(middle, last)];
                    stretches.extend(halves.map(Reverse));
                }
                _ => {
                    let next = |site: &Site| {
                        (site.from < last.from).then(|| self.site(site.from + 1, site, &last))
                    };
                    let windows = std::iter::successors(Some(first), next);
                    stretches.extend(self.best_of(windows).map(Reverse));
                }
            }
        }
        unreachable!("a stretch holds a window")
    }

    /// The one of these windows that overlaps fewest, with how many these are.
    fn best_of(&self, windows: impl Iterator<Item = Site>) -> Option<Stretch> {
        let mut best = None;
        for site in windows {
            let window = Stretch::new(site, site);
            let promises = |best: &Stretch| window.least < best.least;
            if best.as_ref().is_none_or(promises) {
                let window = Stretch { least: self.overlap(&site), ..window };
                best = best.into_iter().chain([window]).min();
            }
        }
        best
    }

    /// How many blocks below a window overlaps.
    fn overlap(&self, site: &Site) -> usize {
        let [start, end] = [site.from, site.from + self.count].map(|at| self.blocks.border(at));
        let Cells { run, len, .. } = self.below;
        let passed = start.map_or(len, |start| run.cells_passed(&start, site.start.1));
        end.map_or(len, |end| run.cells_begun(&end, site.end.1)) - passed
    }

    /// The window that starts at block `from`, between two others.
    fn site(&self, from: usize, left: &Site, right: &Site) -> Site {
        let (start, end) = (self.blocks.border(from), self.blocks.border(from + self.count));
        Site {
            from,
            start: self.below.passed(start.as_ref(), [left.start.1, right.start.1]),
            end: self.below.begun(end.as_ref(), [left.end.1, right.end.1]),
        }
    }
}

/// A window, and how far its ends reach into the blocks below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Site {
    /// The index of its first block.
    from: usize,
    /// At most so many blocks below end where it starts or before, with the place behind the
    /// slices that begin there.
    start: (usize, SlicePlace),
    /// At least so many blocks below begin before it ends, with the place behind the slices that
    /// do.
    end: (usize, SlicePlace),
}

/// The windows from a first to a last one, both included; those that promise more come first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    /// None of the windows overlaps fewer blocks; the best of those that were walked overlaps as
    /// many.
    least: usize,
    first: Site,
    last: Site,
}

impl Stretch {
    /// From where the last window starts to where the first one ends, all of them reach.
    fn new(first: Site, last: Site) -> Stretch {
        Stretch { least: first.end.0.saturating_sub(last.start.0), first, last }
    }
}

/// A stretch of no more windows than this is not halved: they are looked at one by one.
const WALKED: usize = 16;

/// A slice of no more cells than this is not looked into before a window is worth it: its table is
/// somewhere else in memory, which costs more than bounds that are as much too low.
const FEW: usize = 8;

/// The starts of the blocks that the cells of `runs` fill.
fn pack(runs: &[&Arc<Run>], block_bytes: u64) -> Vec<Key> {
    let mut cells: Vec<_> = runs.iter().flat_map(|run| run.cells()).collect();
    cells.sort_by(|left, right| left.start.cmp(&right.start));
    let mut starts = Vec::with_capacity(cells.len());
    let mut packed = block_bytes;
    for Cell { start, size, .. } in cells {
        // Cells of several runs may begin with one key.
        if packed >= block_bytes && starts.last() != Some(&start) {
            starts.push(start);
            packed = 0;
        }
        packed += size.bytes;
    }
    starts
}

/// The cells of a run, by index.
struct Cells<'a> {
    run: &'a Run,
    slices: Slices<'a>,
    len: usize,
}

impl<'a> Cells<'a> {
    fn of(run: &'a Run) -> Cells<'a> {
        Cells { run, slices: run.slices(), len: run.cell_count() as usize }
    }

    fn start(&self, index: usize) -> Key {
        let (slice, cell) = self.run.slice_of_cell(index);
        self.slices.at(slice).cell_start_at(cell)
    }

    /// At most how many cells end at `border` or below, with the place behind the slices that
    /// begin below it, which is known to lie from one place up to another.
    fn passed(&self, border: Option<&Key>, within: [SlicePlace; 2]) -> (usize, SlicePlace) {
        let Some(border) = border else { return (self.len, self.run.ends()[1]) };
        let place = self.run.begun(border, within);
        let [least, most] = self.run.cells_upto(place);
        let is_known = most - least <= FEW;
        (if is_known { most } else { self.run.cells_passed(border, place) }, place)
    }

    /// At least how many cells begin below `border`, with the place behind the slices that do,
    /// which is known to lie from one place up to another.
    fn begun(&self, border: Option<&Key>, within: [SlicePlace; 2]) -> (usize, SlicePlace) {
        let Some(border) = border else { return (self.len, self.run.ends()[1]) };
        let place = self.run.begun(border, within);
        let [least, most] = self.run.cells_upto(place);
        let is_known = most - least <= FEW;
        (if is_known { most.min(least + 1) } else { self.run.cells_begun(border, place) }, place)
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
            let (start, border) = (step(0), step(1));
            let points = match border % 16 {
                0 => FEW as u64 + 2,
                rest => 1 - rest % 2,
            };
            let points = (0..points).map(|point| match point {
                0 => format!("{border} 1B"),
                _ => format!("{} {}B", step(1), point + 1),
            });
            let points = points.collect::<Vec<_>>().join(", ");
            let profile = if points.is_empty() { points } else { format!(" {{{points}}}") };
            let end = step(1);
            let open = index + 1 == count && seed.is_multiple_of(3);
            let end = if open { String::new() } else { end.to_string() };
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
                        let (start, end) = (cell.start.clone(), cell.end.clone());
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
