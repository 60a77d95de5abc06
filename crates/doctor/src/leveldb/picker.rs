//! How LevelDB picks compactions.

use crate::rocks::{Level, Pri};
use lsmith_policy::{MergePolicy, Needs, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{Input, MergePlan, Overlap, TreeView};

/// The deepest level.
const LAST: usize = 6;

/// The deepest level that a flush may go to (`kMaxMemCompactLevel`).
const FLUSH_LEVEL_MAX: usize = 2;

/// The most tables' worth of bytes that one table overlaps two levels below
/// (`MaxGrandParentOverlapBytes`).
const OVERLAP_TABLES: u64 = 10;

/// LevelDB's compactions by size. It goes by what levels hold alone, and takes tables in turn.
///
/// Source: `VersionSet::Finalize`, `VersionSet::PickCompaction`, `VersionSet::SetupOtherInputs`,
/// `Compaction::ShouldStopBefore` and `Version::PickLevelForMemTableOutput` of LevelDB 1.22.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picker {
    level: Level,
}

impl Picker {
    /// Returns the picker with the sizes of `level`.
    pub(crate) fn new(level: Level) -> Picker {
        let level = Level {
            is_dynamic: false,
            aligns: false,
            moves_max: 1,
            pri: Pri::Onward,
            takes_within: false,
            ..level
        };
        Picker { level }
    }

    /// Returns the scores of the levels, the highest first: 1 and more asks for a compaction.
    fn scores(&self, view: &TreeView) -> Vec<(f64, usize)> {
        let mut room = self.level.base_bytes;
        let mut scores = Vec::new();
        for (at, level) in view.tree.levels().iter().enumerate().take(LAST) {
            if at == 0 {
                scores.push((level.runs().len() as f64 / self.level.trigger as f64, at));
            } else {
                scores.push((level.bytes() as f64 / room, at));
                room *= self.level.ratio;
            }
        }
        scores.sort_by(|left, right| right.0.total_cmp(&left.0));
        scores
    }

    /// Returns the move of a flush that overlaps nothing above the level that it goes to.
    fn flushed_deeper(&self, view: &TreeView) -> Option<MergePlan> {
        let (newest, others) = view.tree.levels().first()?.runs().split_first()?;
        let hull = newest.hull();
        if others.iter().any(|run| run.hull().overlaps(&hull)) {
            return None;
        }
        let overlap = |level: usize| {
            let below = self.level.run_at(view, level).into_iter();
            below.flat_map(|run| run.overlapping(&hull).iter()).map(|slice| slice.size().bytes)
        };
        let bytes_max = self.level.table_bytes.saturating_mul(OVERLAP_TABLES);
        let fits = |level: &usize| {
            overlap(*level).next().is_none() && overlap(level + 1).sum::<u64>() <= bytes_max
        };
        let to = (1..=FLUSH_LEVEL_MAX).take_while(fits).last()?;
        let inputs = vec![Input { run: newest.id(), range: hull.clone() }];
        Some(self.level.plan(view, inputs, &hull, to, "Flush"))
    }
}

impl MergePolicy for Picker {
    fn spec(&self) -> Spec {
        Spec::bare("LevelDB")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if let Some(plan) = self.flushed_deeper(view) {
            return Some(plan);
        }
        let due = self.scores(view).into_iter().filter(|(score, _)| *score >= 1.0);
        due.map(|(_, level)| level).find_map(|level| {
            let mut plan = match level {
                0 => self.level.level0_down(view, 1)?,
                _ => self.level.table_down(view, level)?,
            };
            let bytes = self.level.table_bytes.saturating_mul(OVERLAP_TABLES);
            let below = self.level.run_at(view, level + 2);
            plan.cuts.overlap = below.map(|run| Overlap { run: run.id(), bytes });
            Some(plan)
        })
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn shape(&self) -> Shape {
        Shape::Leveled { ratio: self.level.ratio, level0_runs: self.level.trigger }
    }
}
