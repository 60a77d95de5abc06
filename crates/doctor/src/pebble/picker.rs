//! How Pebble picks compactions.

use super::LEVELS;
use crate::rocks::{Level, Pri};
use lsmith_policy::{MergePolicy, Needs, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{Input, Key, KeyRange, MergePlan, Run, TreeView};
use std::sync::Arc;

/// The deepest level.
const LAST: usize = LEVELS - 1;

/// The least score that the score of the level above is divided by.
const SCORE_MIN: f64 = 0.01;

/// A compaction whose inputs have more bytes than this many tables takes in no further level
/// (`expandedCompactionByteSizeLimit`).
const COMPACTION_TABLES: u64 = 25;

/// Pebble's compactions.
///
/// Source: `compactionPickerByScore` and `L0Sublevels` of Pebble 1.1.5.
///
/// Pebble cuts flushes into tables, and takes all tables in one stretch of keys down together. In a
/// simulation a flush is one table, so the stretches are cut here: as many as a flush has tables,
/// at borders of the level that takes level 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picker {
    level: Level,
    /// Bytes of tables by level, where 1 is the level that takes level 0.
    table_bytes: [u64; LEVELS],
    /// Tables that a flush is cut into.
    parts: usize,
}

/// The levels that compactions write to, and how much they may hold.
struct Targets {
    base: usize,
    bytes: [f64; LEVELS],
}

impl Picker {
    /// Returns the picker with the sizes of `level`, where a flush has `parts` tables.
    pub(crate) fn new(level: Level, table_bytes: [u64; LEVELS], parts: usize) -> Picker {
        let level = Level {
            is_dynamic: false,
            aligns: true,
            moves_max: 1,
            pri: Pri::MinOverlappingRatio,
            takes_within: false,
            // Deletes weigh nothing until statistics of their table are loaded.
            value_bytes: 0.0,
            ..level
        };
        Picker { level, table_bytes, parts: parts.max(1) }
    }

    /// `initLevelMaxBytes`: the sizes follow from the bytes of the whole tree, and grow from
    /// `LBaseMaxBytes` by a factor that is the same between any two levels.
    fn targets(&self, view: &TreeView) -> Targets {
        let held = |level: usize| held(view, level) as f64;
        let mut targets = Targets { base: LAST, bytes: [f64::INFINITY; LEVELS] };
        let Some(first) = (1..=LAST).find(|level| held(*level) > 0.0) else { return targets };
        let all: f64 = (0..=LAST).map(held).sum();
        let ratio = self.level.ratio;
        let bottom = all - all / ratio;
        let mut bytes = (first..LAST).fold(bottom, |bytes, _| bytes / ratio);
        targets.base = first;
        while targets.base > 1 && bytes > self.level.base_bytes {
            targets.base -= 1;
            bytes /= ratio;
        }
        let steps = (LAST - targets.base) as f64;
        let factor =
            if steps > 0.0 { (bottom / self.level.base_bytes).powf(1.0 / steps) } else { 1.0 };
        let mut bytes = self.level.base_bytes;
        for level in targets.base..=LAST {
            targets.bytes[level] = bytes;
            bytes *= factor;
        }
        targets
    }

    /// Returns the levels whose compaction is due, the most urgent first (`calculateLevelScores`):
    /// the score of a level counts over the score of the next one.
    fn due(&self, targets: &Targets, view: &TreeView, depth: usize) -> Vec<usize> {
        let score = |level: usize| match level {
            0 => depth as f64 / self.level.trigger as f64,
            _ => held(view, level) as f64 / targets.bytes[level],
        };
        let mut due = Vec::new();
        let mut above = 0;
        for level in targets.base..=LAST {
            let mut ratio = score(above);
            if ratio >= 1.0 {
                ratio /= score(level).max(SCORE_MIN);
            }
            if ratio >= 1.0 {
                due.push((ratio, above));
            }
            above = level;
        }
        due.sort_by(|left, right| right.0.total_cmp(&left.0));
        due.into_iter().map(|(_, level)| level).collect()
    }

    /// Returns the settings of a compaction into level `to`, whose tables have their own size.
    fn sized_for(&self, to: usize, base: usize) -> Level {
        let table_bytes = self.table_bytes[(to + 1).saturating_sub(base).min(LAST)];
        let compaction_bytes = table_bytes.saturating_mul(COMPACTION_TABLES);
        Level { table_bytes, compaction_bytes, ..self.level.clone() }
    }

    /// Returns the stretches of keys that compactions of level 0 take.
    fn stretches(&self, view: &TreeView, base: usize) -> Vec<KeyRange> {
        let below = self.level.run_at(view, base);
        let borders = below.map_or(Vec::new(), |run| {
            let slices = run.slices();
            let parts = self.parts.min(slices.len()).max(1);
            let borders = (1..parts).filter_map(|part| slices.get(part * slices.len() / parts));
            borders.map(|slice| slice.range().start.clone()).collect()
        });
        let mut stretches = Vec::new();
        let mut start = Key::default();
        for border in borders.into_iter().map(Some).chain([None]) {
            stretches.push(KeyRange { start: start.clone(), end: border.clone() });
            start = border.unwrap_or_default();
        }
        stretches
    }

    /// Returns the stretch in which level 0 is deepest, and its depth.
    fn deepest(&self, view: &TreeView, base: usize) -> (usize, KeyRange) {
        let runs = view.tree.levels().first().map_or(&[][..], |level| level.runs());
        let depth =
            |range: &KeyRange| runs.iter().filter(|run| !run.overlapping(range).is_empty()).count();
        let mut best = (0, KeyRange::ALL);
        for stretch in self.stretches(view, base) {
            let depth = depth(&stretch);
            if depth > best.0 {
                best = (depth, stretch);
            }
        }
        best
    }

    /// Returns the plan that takes the part of level 0 in `stretch` down.
    fn level0_down(&self, view: &TreeView, stretch: &KeyRange, base: usize) -> Option<MergePlan> {
        let runs = view.tree.levels().first()?.runs();
        let part = |run: &Arc<Run>| run.hull().intersection(stretch);
        let taken = runs.iter().filter(|run| !run.overlapping(stretch).is_empty());
        let inputs: Vec<Input> =
            taken.map(|run| Input { run: run.id(), range: part(run) }).collect();
        let hull = inputs.iter().map(|input| input.range.clone());
        let hull = hull.reduce(|hull, range| hull.hull(&range))?;
        Some(self.sized_for(base, base).plan(view, inputs, &hull, base, super::REASON))
    }

    /// Returns the plan that takes a table of `level` down, through the next level into the one
    /// below it if that is predicted to write less per byte (`WriteAmpHeuristic`).
    fn table_down(&self, view: &TreeView, level: usize, base: usize) -> Option<MergePlan> {
        let plan = self.sized_for(level + 1, base).table_down(view, level)?;
        let bytes = |inputs: &[Input]| -> Vec<f64> {
            let sizes = inputs.iter().filter_map(|input| {
                Some(view.tree.run(input.run)?.1.size_within(&input.range).bytes as f64)
            });
            sizes.collect()
        };
        let to = level + 2;
        let single = bytes(&plan.inputs);
        let limit = self.sized_for(level + 1, base).compaction_bytes as f64;
        if to > LAST || single.len() < 2 || single.iter().sum::<f64>() > limit {
            return Some(plan);
        }
        let hull = plan.hull();
        let deeper =
            self.sized_for(to, base).plan(view, plan.inputs.clone(), &hull, to, super::REASON);
        let double = bytes(&deeper.inputs);
        let amplification = |sizes: &[f64]| {
            let higher: f64 = sizes[..sizes.len() - 1].iter().sum();
            sizes.iter().sum::<f64>() / higher.max(1.0)
        };
        let is_better =
            double.len() > single.len() && amplification(&double) <= amplification(&single);
        Some(if is_better { deeper } else { plan })
    }
}

fn held(view: &TreeView, level: usize) -> u64 {
    view.tree.levels().get(level).map_or(0, |level| level.bytes())
}

impl MergePolicy for Picker {
    fn spec(&self) -> Spec {
        Spec::bare("Pebble")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let targets = self.targets(view);
        let (depth, stretch) = self.deepest(view, targets.base);
        self.due(&targets, view, depth).into_iter().find_map(|level| match level {
            0 => self.level0_down(view, &stretch, targets.base),
            LAST => None,
            _ => self.table_down(view, level, targets.base),
        })
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn shape(&self) -> Shape {
        Shape::Leveled { ratio: self.level.ratio, level0_runs: self.level.trigger }
    }
}
