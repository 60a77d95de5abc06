//! Triangles: some keys of a level, and all that lies under them, level by level.

use lsmith_tree::{Input, Key, KeyRange, LevelId, Run, Tree};
use std::sync::Arc;

/// What a triangle takes from one level.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    /// The level.
    pub(super) level: usize,
    /// The keys taken. They cover the keys of the layer above, and end at borders of tables.
    pub(super) range: KeyRange,
    /// Logical bytes of the slices in the range.
    pub(super) bytes: u64,
    /// How many slices these are.
    pub(super) files: usize,
}

/// Some keys of one level, and the transitive closure of what overlaps them below: each layer takes
/// whole slices, and everything that overlaps the layer above. So no merge of a triangle passes
/// over a table, and none makes a knot.
#[derive(Clone, Debug)]
pub(super) struct Triangle<'a> {
    tree: &'a Tree,
    /// The runs at the top, newest first. No older run of their level is left out.
    top: &'a [Arc<Run>],
    /// Never empty. The levels follow each other without a gap.
    pub(super) layers: Vec<Layer>,
}

/// The range, bytes and number of all slices that overlap `range`, with `range` itself.
fn widened(runs: &[Arc<Run>], mut range: KeyRange) -> (KeyRange, u64, usize) {
    loop {
        let mut wide = range.clone();
        let (mut bytes, mut files) = (0_u64, 0);
        for run in runs {
            let slices = run.overlapping(&range);
            let (Some(first), Some(last)) = (slices.first(), slices.last()) else { continue };
            let whole =
                KeyRange { start: first.range().start.clone(), end: last.range().end.clone() };
            wide = wide.hull(&whole);
            files += slices.len();
            bytes = bytes.saturating_add(match run.lies_within(&range) {
                true => run.bytes(),
                false => slices.iter().map(|slice| slice.size().bytes).sum(),
            });
        }
        // One sorted run cannot reach a slice that it did not reach before.
        if wide == range || runs.len() < 2 {
            return (wide, bytes, files);
        }
        range = wide;
    }
}

impl<'a> Triangle<'a> {
    /// Returns the triangle of the keys `range` of `top`, which are the oldest runs of `level`,
    /// down to the level `deepest`.
    pub(super) fn new(
        tree: &'a Tree,
        top: &'a [Arc<Run>],
        level: usize,
        range: KeyRange,
        deepest: usize,
    ) -> Triangle<'a> {
        let mut triangle = Triangle { tree, top, layers: Vec::new() };
        triangle.layers.push(top_layer(top, level, range));
        for level in level + 1..=deepest {
            triangle.push(level);
        }
        triangle
    }

    /// Adds the layer of the next level.
    fn push(&mut self, level: usize) {
        let above = self.layers.last().map_or(KeyRange::ALL, |layer| layer.range.clone());
        let (range, bytes, files) = widened(self.tree.runs_at(LevelId::Disk(level)), above);
        self.layers.push(Layer { level, range, bytes, files });
    }

    /// Returns the triangle without the layers below index `last`.
    pub(super) fn down_to(mut self, last: usize) -> Triangle<'a> {
        self.layers.truncate(last + 1);
        self
    }

    /// Returns the layer of the output.
    pub(super) fn last(&self) -> &Layer {
        self.layers.last().expect("a triangle has a layer")
    }

    /// Returns the bytes of all layers.
    pub(super) fn bytes(&self) -> u64 {
        self.layers.iter().fold(0, |bytes, layer| bytes.saturating_add(layer.bytes))
    }

    /// Returns the slices of all layers.
    pub(super) fn files(&self) -> usize {
        self.layers.iter().map(|layer| layer.files).sum()
    }

    /// Returns the runs of the layer with this index, newest first.
    pub(super) fn runs(&self, index: usize) -> &'a [Arc<Run>] {
        match index {
            0 => self.top,
            _ => self.tree.runs_at(LevelId::Disk(self.layers[index].level)),
        }
    }

    /// Returns the triangle with all slices of its upper layers that lie within the keys of the
    /// output: the output is rewritten there anyway. A slice that sticks out is left where it is,
    /// and so is every older one that it covers: the output would pass below them.
    pub(super) fn gathered(self) -> Triangle<'a> {
        let mut triangle = self;
        // Each round takes at least one slice more. Few rounds take nearly all there is.
        for _ in 0..4 {
            let within = triangle.last().range.clone();
            let deepest = triangle.last().level;
            let mut wider = triangle.clone();
            let Layer { level, range: narrow, .. } = triangle.layers[0].clone();
            let inner = triangle.top.iter().map(|run| inner_hull(run, &within));
            let wide = inner.fold(narrow.clone(), |all, inner| all.hull(&inner));
            let sticks_out = |run: &Arc<Run>| {
                run.overlapping(&wide).iter().any(|slice| !wide.covers(slice.range()))
            };
            let range = if triangle.top.iter().any(sticks_out) { narrow } else { wide };
            wider.layers = vec![top_layer(triangle.top, level, range)];
            for level in level + 1..=deepest {
                let above = wider.last().range.clone();
                let runs = triangle.tree.runs_at(LevelId::Disk(level));
                let inner = runs.iter().map(|run| inner_hull(run, &within));
                let above = inner.fold(above, |all, inner| all.hull(&inner));
                let (range, bytes, files) = widened(runs, above);
                wider.layers.push(Layer { level, range, bytes, files });
            }
            // What sticks out must not make the output larger.
            if wider.last().range != within || wider.bytes() == triangle.bytes() {
                break;
            }
            triangle = wider;
        }
        triangle
    }

    /// Returns the inputs of a merge of the whole triangle, newest first.
    pub(super) fn inputs(&self) -> Vec<Input> {
        let layers = self.layers.iter().enumerate();
        layers.flat_map(|(index, layer)| inputs_of(self.runs(index), &layer.range)).collect()
    }

    /// Returns the inputs of a merge of the keys `piece` alone, newest first.
    pub(super) fn inputs_within(&self, piece: &KeyRange) -> Vec<Input> {
        let layers = 0..self.layers.len();
        layers.flat_map(|index| inputs_of(self.runs(index), piece)).collect()
    }

    /// Returns the bytes and the number of slices within `piece`, in all layers.
    fn size_within(&self, piece: &KeyRange) -> (u64, usize) {
        let runs = (0..self.layers.len()).flat_map(|index| self.runs(index));
        runs.fold((0, 0), |(bytes, files), run| {
            let more = run.size_within(piece).bytes;
            (bytes.saturating_add(more), files + run.overlapping(piece).len())
        })
    }

    /// Returns the first keys of the triangle that hold at most `max_bytes` in `max_files` slices:
    /// all of them, or those up to a border between two tables. They always have keys of the top,
    /// so that the merge of a piece brings something down.
    pub(super) fn first_piece(&self, max_bytes: u64, max_files: usize) -> Option<KeyRange> {
        if self.bytes() <= max_bytes && self.files() <= max_files {
            return None;
        }
        let all = &self.last().range;
        let runs = (0..self.layers.len()).flat_map(|index| self.runs(index));
        let cut = runs.max_by_key(|run| run.overlapping(all).len())?;
        let top_start = self.layers[0].range.start.clone();
        let slices = cut.overlapping(all);
        let piece = |count: usize| -> Option<KeyRange> {
            let end: Option<Key> = slices.at(count - 1).range().end.clone();
            Some(KeyRange { start: all.start.clone(), end })
        };
        // The first piece that reaches keys of the top.
        let least = 1 + slices.partition_point(|slice| slice.range().lies_below(&top_start));
        let fits = |count: usize| {
            let (bytes, files) = piece(count).map_or((0, 0), |piece| self.size_within(&piece));
            bytes <= max_bytes && files <= max_files
        };
        let (mut count, mut over) = (least, slices.len());
        while count < over {
            let middle = count + (over - count).div_ceil(2);
            match fits(middle) {
                true => count = middle,
                false => over = middle - 1,
            }
        }
        if count >= slices.len() {
            return None;
        }
        piece(count).filter(|piece| {
            let reached = self.top.iter().any(|run| !run.overlapping(piece).is_empty());
            reached && !self.layers[0].range.is_empty()
        })
    }
}

/// Returns the layer of the keys `range` of `top`.
fn top_layer(top: &[Arc<Run>], level: usize, range: KeyRange) -> Layer {
    let bytes = top.iter().map(|run| run.size_within(&range).bytes);
    let files = top.iter().map(|run| run.overlapping(&range).len()).sum();
    Layer { level, bytes: bytes.fold(0, u64::saturating_add), files, range }
}

/// Returns the least range of the slices of `run` that lie within `range`.
fn inner_hull(run: &Run, range: &KeyRange) -> KeyRange {
    let inside = |slice: &&lsmith_tree::Slice| range.covers(slice.range());
    let slices = run.overlapping(range);
    let first = slices.iter().find(inside);
    let last = (0..slices.len()).rev().map(|index| slices.at(index)).find(inside);
    match (first, last) {
        (Some(first), Some(last)) => {
            KeyRange { start: first.range().start.clone(), end: last.range().end.clone() }
        }
        _ => KeyRange { start: Key::new(), end: Some(Key::new()) },
    }
}

/// Returns an input for each run that has keys within `range`.
fn inputs_of<'a>(runs: &'a [Arc<Run>], range: &'a KeyRange) -> impl Iterator<Item = Input> + 'a {
    let has_keys = |run: &&Arc<Run>| !run.overlapping(range).is_empty();
    let runs = runs.iter().filter(has_keys);
    runs.map(|run| Input { run: run.id(), range: range.clone() })
}
