//! Merges and moves of levels below level 0.

use super::Triangular;
use super::closure::Triangle;
use super::plan::{place, sunk};
use super::score::{Score, best_by_bytes};
use lsmith_tree::{
    Cuts, Input, KeyRange, LevelId, MergePlan, Mode, Place, Reason, Run, Slices, TreeView,
};
use std::sync::Arc;

impl Triangular {
    /// Returns, for each level of several runs, the merge of the first part of its second oldest
    /// run into the oldest. Only another policy leaves such levels.
    pub(super) fn folds(self, view: &TreeView) -> impl Iterator<Item = MergePlan> {
        let levels = view.tree.levels().iter().enumerate().skip(1).rev();
        levels.filter_map(move |(level, here)| match here.runs() {
            [.., source, target] => Some(self.fold(view, level, source, target)),
            _ => None,
        })
    }

    fn fold(self, view: &TreeView, level: usize, source: &Run, target: &Run) -> MergePlan {
        let slices = source.slices();
        let whole = |taken: &KeyRange| match (
            target.overlapping(taken).first(),
            target.overlapping(taken).last(),
        ) {
            (Some(first), Some(last)) => {
                let end = last.range().end.clone();
                Some(taken.hull(&KeyRange { start: first.range().start.clone(), end }))
            }
            _ => None,
        };
        let piece = |count: usize| {
            let start = slices.at(0).range().start.clone();
            KeyRange { start, end: slices.at(count - 1).range().end.clone() }
        };
        let fits = |count: usize| {
            let taken = piece(count);
            let met = whole(&taken);
            let bytes = source.size_within(&taken).bytes;
            let met_bytes = met.as_ref().map_or(0, |met| target.size_within(met).bytes);
            let met_files = met.map_or(0, |met| target.overlapping(&met).len());
            bytes.saturating_add(met_bytes) <= self.max_bytes && count + met_files <= self.max_files
        };
        let count = (2..=slices.len()).take_while(|count| fits(*count)).last().unwrap_or(1);
        let taken = piece(count);
        let mut inputs = vec![Input { run: source.id(), range: taken.clone() }];
        inputs.extend(whole(&taken).map(|range| Input { run: target.id(), range }));
        let numbers = [level as u64, view.tree.runs_at(LevelId::Disk(level)).len() as u64, 0];
        MergePlan {
            mode: if inputs.len() == 1 { Mode::Move } else { Mode::Merge },
            inputs,
            place: Place::Into(target.id()),
            cut_bytes: Some(view.memtable_bytes.max(1)),
            cuts: Cuts::default(),
            reuse: None,
            memo: Vec::new(),
            reason: Reason::new("level {} has {} runs of 1", numbers),
        }
    }

    /// Returns a move of tables that overlap nothing below them, down to where they meet something.
    pub(super) fn sinks(self, view: &TreeView) -> Option<MergePlan> {
        let deepest = Triangular::deepest(view);
        let levels = (0..deepest).filter(|level| *level > 0 || self.score == Score::Bytes);
        levels.into_iter().find_map(|level| {
            let run = view.tree.runs_at(LevelId::Disk(level)).last()?;
            let below = view.tree.runs_at(LevelId::Disk(level + 1));
            if level == 0 {
                return self.sink(view, level, run, &run.hull());
            }
            let group = free_group(run, below)?;
            self.sink(view, level, run, &group)
        })
    }

    fn sink(self, view: &TreeView, from: usize, run: &Run, range: &KeyRange) -> Option<MergePlan> {
        let level = sunk(view, range, from, Triangular::deepest(view));
        if level == from {
            return None;
        }
        let plan = MergePlan {
            inputs: vec![Input { run: run.id(), range: range.clone() }],
            place: place(view, level)?,
            mode: Mode::Move,
            cut_bytes: Some(view.memtable_bytes.max(1)),
            cuts: Cuts::default(),
            reuse: None,
            memo: Vec::new(),
            reason: Reason::new(
                "nothing is met from level {} to level {}",
                [from as u64, level as u64, 0],
            ),
        };
        view.is_free_for(&plan).then_some(plan)
    }

    /// Returns the merge of a whole level that must make room for a merge of level 0, if one is
    /// smaller than that.
    pub(super) fn clear_out(self, view: &TreeView, bytes: u64) -> Option<MergePlan> {
        let deepest = Triangular::deepest(view);
        let is_full = |level: usize| !view.tree.runs_at(LevelId::Disk(level)).is_empty();
        let whole = |level: usize| {
            let runs = view.tree.runs_at(LevelId::Disk(level));
            let hull = runs.iter().map(|run| run.hull()).reduce(|all, hull| all.hull(&hull))?;
            let triangle = Triangle::new(&view.tree, runs, level, hull, deepest);
            let (depth, _) = best_by_bytes(&triangle, |_, _| true)?;
            Some(triangle.down_to(depth))
        };
        let levels = (1..deepest).filter(|level| is_full(*level));
        let triangles = levels.filter_map(whole).filter(|triangle| triangle.bytes() < bytes);
        let least = triangles.min_by_key(Triangle::bytes)?;
        let level = least.layers[0].level as u64;
        let reason = Reason::new("level {} makes room for level 0", [level, 0, 0]);
        let plan = self.plan_of(view, &least, None, reason)?;
        view.is_free_for(&plan).then_some(plan)
    }

    /// Returns the best triangle of all tables below level 0, if it moves more than it meets.
    pub(super) fn best_of_all(self, view: &TreeView) -> Option<MergePlan> {
        let deepest = Triangular::deepest(view);
        let is_within =
            |bytes: u64, files: usize| bytes <= self.max_bytes && files <= self.max_files;
        let mut best: Option<(i128, Triangle<'_>)> = None;
        for level in (1..deepest).rev() {
            let bytes =
                |level: usize| view.tree.levels().get(level).map_or(0, |level| level.bytes());
            if bytes(level) as f64 / curve(level) > bytes(level - 1) as f64 {
                continue;
            }
            let runs = view.tree.runs_at(LevelId::Disk(level));
            for slice in runs.iter().flat_map(|run| run.slices()) {
                let range = slice.range().clone();
                let triangle = Triangle::new(&view.tree, runs, level, range, deepest);
                let Some((depth, score)) = best_by_bytes(&triangle, is_within) else { continue };
                if score < 0 || best.as_ref().is_some_and(|(best, _)| score <= *best) {
                    continue;
                }
                let weighted = score as f64 * factor(level);
                best = Some((weighted.ceil() as i128, triangle.down_to(depth)));
            }
        }
        let (_, triangle) = best?;
        let gathered = triangle.clone().gathered();
        let is_small = is_within(gathered.bytes(), gathered.files());
        let triangle = if is_small { gathered } else { triangle };
        let (from, to) = (triangle.layers[0].level as u64, triangle.last().level as u64);
        let numbers = [triangle.files() as u64, from, to];
        let reason = Reason::new("{} tables from level {} to level {} move most bytes", numbers);
        let plan = self.plan_of(view, &triangle, None, reason)?;
        view.is_free_for(&plan).then_some(plan)
    }
}

/// How many times larger than the level above a level may be and still start triangles.
fn curve(level: usize) -> f64 {
    match level {
        0..=2 => 1.0,
        3..=10 => 2.0,
        _ => 3.0,
    }
}

/// How much a triangle of this level counts, over its score.
fn factor(level: usize) -> f64 {
    let place = level as f64 + 1.0;
    1.0 + place.log2() / place
}

/// Returns the keys of the first slices of `run` in a row that overlap nothing in `below`, in one
/// pass over both.
fn free_group(run: &Run, below: &[Arc<Run>]) -> Option<KeyRange> {
    let mut below: Vec<Slices<'_>> = below.iter().map(|run| run.slices()).collect();
    let mut group: Option<KeyRange> = None;
    for slice in run.slices() {
        let range = slice.range();
        let mut passed_any = false;
        let mut is_free = true;
        for rest in &mut below {
            let passed = rest.iter().take_while(|met| met.range().lies_below(&range.start)).count();
            passed_any |= passed > 0;
            *rest = rest.range(passed..rest.len());
            is_free &= rest.first().is_none_or(|met| range.lies_below(&met.range().start));
        }
        match &mut group {
            // What was passed lies between this slice and the group.
            Some(_) if passed_any || !is_free => break,
            Some(group) => *group = group.hull(range),
            None if is_free => group = Some(range.clone()),
            None => {}
        }
    }
    group
}
