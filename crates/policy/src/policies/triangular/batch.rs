//! Level 0: its oldest runs go down together, one group of overlapping tables after the other.

use super::closure::Triangle;
use super::plan::InPieces;
use super::score::{Score, best_by_bytes, best_by_ratio, least_bad_by_ratio};
use super::{Triangular, plan::sunk};
use lsmith_spec::format_bytes;
use lsmith_tree::text::{display_key, parse_key};
use lsmith_tree::{Key, KeyRange, LevelId, MemoChange, MergePlan, Reason, Run, RunId, TreeView};
use std::sync::Arc;

/// The name of the note on the batch that is being merged: the newest run, and the level down to
/// which the group at hand is merged, if that is chosen already.
const BATCH: &str = "triangle";

/// The name of the note that holds the key at which to go on.
const NEXT: &str = "triangle_next";

/// Bytes of level 0 at which it is merged with `score=bytes`.
const LEVEL0_BYTES: u64 = 64 << 20;

/// The runs of level 0 that go down together, and how far that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// No newer run belongs to it.
    newest: RunId,
    /// Keys below have gone down.
    from: Key,
    /// The level down to which the group at `from` is merged; `None` if that is to be chosen.
    down_to: Option<usize>,
}

impl Batch {
    /// Returns the batch under way that the memo speaks of.
    fn under_way(view: &TreeView) -> Option<Batch> {
        let mut words = view.memo(BATCH)?.split(' ');
        let newest = RunId(words.next()?.strip_prefix('r')?.parse().ok()?);
        let down_to = words.next().and_then(|level| level.parse().ok());
        let batch = Batch { newest, from: parse_key(view.memo(NEXT)?).ok()?, down_to };
        batch.has_more(view, &batch.from).then_some(batch)
    }

    /// Returns the changes of the memo for a batch that goes on at `next`, or ends. Leaves out
    /// changes without effect.
    pub(super) fn notes(
        &self,
        view: &TreeView,
        next: Option<&Key>,
        down_to: Option<usize>,
    ) -> Vec<MemoChange> {
        let level = down_to.map_or(String::new(), |level| format!(" {level}"));
        let batch = next.map(|_| format!("{}{level}", self.newest));
        let next = next.map(|key| display_key(key).to_string());
        let notes = [(BATCH, batch), (NEXT, next)].into_iter();
        let changed = notes.filter(|(name, text)| view.memo(name) != text.as_deref());
        changed.map(|(name, text)| (name.into(), text)).collect()
    }

    /// Returns the runs of the batch, newest first.
    fn runs<'a>(&self, view: &'a TreeView) -> &'a [Arc<Run>] {
        let runs = view.tree.runs_at(LevelId::Disk(0));
        let first = runs.iter().position(|run| run.id() <= self.newest);
        &runs[first.unwrap_or(runs.len())..]
    }

    /// Returns true if the batch has keys from `from` on.
    pub(super) fn has_more(&self, view: &TreeView, from: &Key) -> bool {
        let rest = KeyRange { start: from.clone(), end: None };
        self.runs(view).iter().any(|run| !run.overlapping(&rest).is_empty())
    }

    /// Returns the keys of the first group of tables that overlap each other, at once or through
    /// others.
    fn first_group(&self, view: &TreeView) -> Option<KeyRange> {
        let runs = self.runs(view);
        let rest = KeyRange { start: self.from.clone(), end: None };
        let firsts = runs.iter().filter_map(|run| run.overlapping(&rest).first());
        let first = firsts.min_by(|left, right| left.range().start.cmp(&right.range().start))?;
        let mut group = first.range().intersection(&rest);
        loop {
            let mut wide = group.clone();
            for run in runs {
                if let Some(last) = run.overlapping(&wide).last() {
                    wide = wide.hull(&last.range().intersection(&rest));
                }
            }
            if wide == group {
                return Some(group);
            }
            group = wide;
        }
    }
}

impl Triangular {
    /// Returns the batch that is due: the one under way, or else a new one.
    fn batch(self, view: &TreeView) -> Option<Batch> {
        let level0 = view.tree.runs_at(LevelId::Disk(0));
        let new = |newest: Option<&Arc<Run>>| {
            newest.map(|run| Batch { newest: run.id(), from: Key::new(), down_to: None })
        };
        Batch::under_way(view).or_else(|| match self.score {
            Score::Ratio => new(level0.get(level0.len().checked_sub(self.level0_runs())?)),
            Score::Bytes => {
                let bytes: u64 = level0.iter().map(|run| run.bytes()).sum();
                let is_full = |level| !view.tree.runs_at(LevelId::Disk(level)).is_empty();
                let is_due = level0.len() >= self.level0_runs()
                    || bytes >= LEVEL0_BYTES
                    || (1..=Triangular::deepest(view)).all(is_full);
                new(level0.first()).filter(|_| is_due)
            }
        })
    }

    /// Returns the triangle of the first group of the batch, through all levels.
    fn group<'a>(self, view: &'a TreeView, batch: &Batch) -> Option<Triangle<'a>> {
        let range = batch.first_group(view)?;
        let deepest = Triangular::deepest(view);
        Some(Triangle::new(&view.tree, batch.runs(view), 0, range, deepest))
    }

    /// Returns how many layers of a triangle of level 0, without its first, a merge takes. Limits
    /// have no say: level 0 must be merged.
    fn depth(self, view: &TreeView, triangle: &Triangle<'_>) -> usize {
        let layers = &triangle.layers;
        match self.score {
            Score::Ratio => best_by_ratio(layers).unwrap_or_else(|| {
                let deepest = Triangular::deepest(view);
                match sunk(view, &layers[0].range, 0, deepest) {
                    0 => least_bad_by_ratio(layers),
                    _ => 0,
                }
            }),
            Score::Bytes => best_by_bytes(triangle, |_, _| true).map_or(1, |(index, _)| index),
        }
    }

    /// Returns the merge of level 0 that is due, or the merge that must make room for it.
    pub(super) fn merge_batch(self, view: &TreeView) -> Option<MergePlan> {
        let batch = self.batch(view)?;
        let triangle = self.group(view, &batch)?;
        let depth = batch.down_to.filter(|depth| *depth < triangle.layers.len());
        let depth = depth.unwrap_or_else(|| self.depth(view, &triangle));
        let bytes: u64 = triangle.layers[..=depth].iter().map(|layer| layer.bytes).sum();
        if self.score == Score::Bytes
            && let Some(plan) = self.clear_out(view, bytes)
        {
            return Some(plan);
        }
        self.merge_down(view, batch, triangle, depth).filter(|plan| view.is_free_for(plan))
    }

    fn merge_down(
        self,
        view: &TreeView,
        batch: Batch,
        triangle: Triangle<'_>,
        depth: usize,
    ) -> Option<MergePlan> {
        let down = triangle.down_to(depth).gathered();
        let numbers = [batch.runs(view).len() as u64, down.files() as u64, depth as u64];
        let text = match depth {
            0 => "level 0 gives {} runs: {} tables, which are merged with no others",
            _ => "level 0 gives {} runs: {} tables, with what lies under them down to level {}",
        };
        let in_pieces = Some(InPieces { batch, down_to: depth });
        self.plan_of(view, &down, in_pieces, Reason::new(text, numbers))
    }

    /// Returns the merges of level 0 down to other levels, with their scores, best first.
    pub(super) fn other_depths(self, view: &TreeView) -> Vec<(MergePlan, String)> {
        let Some(batch) = self.batch(view) else { return Vec::new() };
        let Some(triangle) = self.group(view, &batch) else { return Vec::new() };
        let filled = |depth: &usize| triangle.layers[*depth].files > 0;
        let mut plans: Vec<(u64, MergePlan, String)> = (1..triangle.layers.len())
            .filter(filled)
            .filter_map(|depth| {
                let met = triangle.layers[depth].bytes;
                let moved: u64 = triangle.layers[..depth].iter().map(|layer| layer.bytes).sum();
                let percent = 100 * u128::from(moved) / u128::from(moved + met).max(1);
                let why = format!(
                    "{} would move down and meet {} in level {depth}: {percent} % of the merge",
                    format_bytes(moved),
                    format_bytes(met)
                );
                let plan = self.merge_down(view, batch.clone(), triangle.clone(), depth)?;
                Some((percent as u64, plan, why))
            })
            .collect();
        plans.sort_by_key(|(percent, ..)| std::cmp::Reverse(*percent));
        plans.into_iter().map(|(_, plan, why)| (plan, why)).collect()
    }
}
