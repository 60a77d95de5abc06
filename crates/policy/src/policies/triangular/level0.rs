//! Level 0: when its oldest runs go down together, and how deep.

use super::Triangular;
use super::batch::Batch;
use super::closure::Triangle;
use super::plan::{InPieces, sunk};
use super::score::{Score, best_by_bytes, best_by_ratio, least_bad_by_ratio};
use lsmith_spec::format_bytes;
use lsmith_tree::{Key, LevelId, MergePlan, Reason, Run, TreeView};
use std::sync::Arc;

/// Bytes of level 0 at which it is merged with `score=bytes`.
const LEVEL0_BYTES: u64 = 64 << 20;

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
