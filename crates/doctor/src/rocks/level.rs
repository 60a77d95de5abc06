//! `kCompactionStyleLevel`.

use super::compensated;
use lsmith_policy::{MergePolicy, Needs, Shape};
use lsmith_spec::Spec;
use lsmith_tree::text::{display_key, parse_key};
use lsmith_tree::{
    Cuts, Input, Key, KeyRange, MergePlan, Mode, Place, Reason, Run, Slice, Slices, TreeView,
};
use std::sync::Arc;

/// The deepest level of a store with seven levels, which is the default.
const LAST: usize = 6;

/// With level sizes that follow from the tree, scores of levels that are too large count more
/// (`kScoreScale`), so that they come before levels that only wait.
const SCORE_SCALE: f64 = 10.0;

/// `compaction_pri`: which table of a level goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pri {
    /// `kMinOverlappingRatio`: the least overlap per byte.
    MinOverlappingRatio,
    /// `kByCompensatedSize`: the largest.
    ByCompensatedSize,
    /// `kOldestLargestSeqFirst`: the one whose newest entry is the oldest.
    OldestLargestSeqFirst,
    /// LevelDB's: the first one that ends behind the key at which the one before ended. It may
    /// begin in front of that key, where the level has become sparse.
    Onward,
    /// `kRoundRobin`, and `kOldestSmallestSeqFirst`, which comes to the same: the next one in key
    /// order.
    RoundRobin,
}

impl Pri {
    /// Returns what `compaction_pri` names.
    pub(crate) fn read(name: &str) -> Pri {
        match name {
            "kByCompensatedSize" => Pri::ByCompensatedSize,
            "kOldestLargestSeqFirst" => Pri::OldestLargestSeqFirst,
            "kRoundRobin" | "kOldestSmallestSeqFirst" => Pri::RoundRobin,
            _ => Pri::MinOverlappingRatio,
        }
    }
}

/// RocksDB's leveled style.
///
/// Source: `VersionStorageInfo::ComputeCompactionScore`, `CalculateBaseBytes` and
/// `LevelCompactionBuilder` of RocksDB 7.8.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Level {
    /// Runs of level 0 that start a compaction.
    pub(crate) trigger: u64,
    /// `max_bytes_for_level_base`.
    pub(crate) base_bytes: f64,
    /// `max_bytes_for_level_multiplier`.
    pub(crate) ratio: f64,
    /// `target_file_size_base`.
    pub(crate) table_bytes: u64,
    /// `max_compaction_bytes`.
    pub(crate) compaction_bytes: u64,
    /// `level_compaction_dynamic_level_bytes`.
    pub(crate) is_dynamic: bool,
    /// `level_compaction_dynamic_file_size`: tables are cut where tables of the level below end.
    pub(crate) aligns: bool,
    /// The most tables that move to the next level together, at least 1.
    pub(crate) moves_max: usize,
    pub(crate) pri: Pri,
    /// True if tables that lie wholly over the overlap go down with one that does not
    /// (`GetCleanInputsWithinInterval`).
    pub(crate) takes_within: bool,
    /// Bytes of a value, which a delete may hide.
    pub(crate) value_bytes: f64,
}

/// The levels that compactions write to, and how much they may hold.
struct Targets {
    /// The level that takes level 0.
    base: usize,
    bytes: [f64; LAST + 1],
}

impl Level {
    fn targets(&self, view: &TreeView) -> Targets {
        let held = |level: usize| view.tree.levels().get(level).map_or(0, |level| level.bytes());
        let mut targets = Targets { base: 1, bytes: [self.base_bytes; LAST + 1] };
        let largest = (1..=LAST).map(held).max().unwrap_or(0) as f64;
        let first = (1..=LAST).find(|level| held(*level) > 0);
        let mut level_bytes = self.base_bytes;
        if self.is_dynamic {
            let Some(first) = first else {
                targets.base = LAST;
                return targets;
            };
            targets.base = first;
            level_bytes = (first..LAST).fold(largest, |bytes, _| bytes / self.ratio);
            if level_bytes <= self.base_bytes / self.ratio {
                level_bytes = self.base_bytes / self.ratio + 1.0;
            } else {
                while targets.base > 1 && level_bytes > self.base_bytes {
                    targets.base -= 1;
                    level_bytes /= self.ratio;
                }
                level_bytes = level_bytes.min(self.base_bytes);
            }
        }
        for level in targets.base..=LAST {
            // No level is smaller than the base, so that level 0 does not starve.
            let least = if self.is_dynamic { self.base_bytes } else { 0.0 };
            targets.bytes[level] = level_bytes.max(least);
            level_bytes *= self.ratio;
        }
        targets
    }

    /// Returns the score of each level: 1 and more asks for a compaction.
    fn scores(&self, view: &TreeView, targets: &Targets) -> Vec<(f64, usize)> {
        let levels = view.tree.levels();
        let slices = |level: usize| {
            let runs = levels.get(level).map_or(&[][..], |level| level.runs());
            runs.iter().flat_map(|run| run.slices().iter())
        };
        let weigh = |level| {
            slices(level).map(|slice| compensated(slice.size(), self.value_bytes)).sum::<f64>()
        };
        let level0 = weigh(0);
        let count = levels.first().map_or(0, |level| level.runs().len());
        let mut score = count as f64 / self.trigger as f64;
        if self.is_dynamic {
            if level0 >= self.base_bytes {
                score = score.max(1.01);
            }
            if level0 > targets.bytes[targets.base] {
                score = score.max(level0 / weigh(targets.base).max(targets.bytes[targets.base]));
            }
            score *= if score > 1.0 { SCORE_SCALE } else { 1.0 };
        } else {
            score = score.max(level0 / self.base_bytes);
        }
        let mut scores = vec![(if count > 0 { score } else { 0.0 }, 0)];
        let mut coming = 0.0;
        for level in targets.base.max(1)..LAST {
            let (bytes, may_hold) = (weigh(level), targets.bytes[level]);
            let score = if self.is_dynamic && bytes >= may_hold {
                bytes / (may_hold + coming) * SCORE_SCALE
            } else {
                bytes / may_hold
            };
            let held = levels.get(level).map_or(0, |level| level.bytes()) as f64;
            coming += (held - may_hold).max(0.0);
            scores.push((score, level));
        }
        scores.sort_by(|left, right| right.0.total_cmp(&left.0));
        scores
    }

    /// Returns the plan that takes level 0 down: its oldest run, and all that overlap.
    pub(crate) fn level0_down(&self, view: &TreeView, base: usize) -> Option<MergePlan> {
        let runs = view.tree.levels().first()?.runs();
        let mut hull = runs.last()?.hull();
        let mut taken: Vec<&Arc<Run>> = Vec::new();
        loop {
            let reached: Vec<&Arc<Run>> =
                runs.iter().filter(|run| run.hull().overlaps(&hull)).collect();
            hull = reached.iter().fold(hull, |hull, run| hull.hull(&run.hull()));
            if reached.len() == taken.len() {
                break;
            }
            taken = reached;
        }
        let inputs = taken.iter().map(|run| Input { run: run.id(), range: hull.clone() }).collect();
        Some(self.plan(view, inputs, &hull, base, "LevelL0FilesNum"))
    }

    /// Returns the plan that takes a table of `level` down.
    pub(crate) fn table_down(&self, view: &TreeView, level: usize) -> Option<MergePlan> {
        let source = view.tree.levels().get(level)?.runs().first()?;
        let target = self.run_at(view, level + 1);
        let below =
            |range: &KeyRange| target.map_or(Slices::default(), |run| run.overlapping(range));
        let bytes = |slices: Slices<'_>| slices.iter().map(|slice| slice.size().bytes).sum::<u64>();
        let cursor = view.memo(&cursor_name(level)).and_then(|text| parse_key(text).ok());
        let rank = |slice: &Slice| {
            let weight = compensated(slice.size(), self.value_bytes).max(1.0);
            match self.pri {
                Pri::MinOverlappingRatio => bytes(below(slice.range())) as f64 / weight,
                Pri::ByCompensatedSize => -weight,
                Pri::OldestLargestSeqFirst => slice.table().seq_max.0 as f64,
                Pri::Onward => match (&cursor, &slice.range().end) {
                    (Some(cursor), Some(end)) if end <= cursor => 1.0,
                    _ => 0.0,
                },
                Pri::RoundRobin => match &cursor {
                    Some(cursor) if slice.range().start < *cursor => 1.0,
                    _ => 0.0,
                },
            }
        };
        let slices = source.slices();
        let first = slices.iter().min_by(|left, right| rank(left).total_cmp(&rank(right)))?;
        let piece = self.widened(source, first.range(), &below);
        let inputs = vec![Input { run: source.id(), range: piece.clone() }];
        let mut plan = self.plan(view, inputs, &piece, level + 1, "LevelMaxLevelSize");
        if matches!(self.pri, Pri::RoundRobin | Pri::Onward) {
            let end = piece.end.clone().unwrap_or_default();
            plan.memo.push((cursor_name(level).into(), Some(display_key(&end).to_string())));
        }
        Some(plan)
    }

    /// Returns `piece` with the neighbours that can go down without another table of the next level
    /// (`SetupOtherInputs`).
    fn widened<'a>(
        &self,
        source: &Run,
        piece: &KeyRange,
        below: &dyn Fn(&KeyRange) -> Slices<'a>,
    ) -> KeyRange {
        let overlap = below(piece);
        let (Some(first), Some(last)) = (overlap.first(), overlap.last()) else {
            return self.moved(source, piece, below);
        };
        let whole = KeyRange { start: first.range().start.clone(), end: last.range().end.clone() }
            .hull(piece);
        let hull = |slices: &[&Slice]| {
            slices.iter().fold(piece.clone(), |hull, slice| hull.hull(slice.range()))
        };
        let reached: Vec<&Slice> = source.overlapping(&whole).iter().collect();
        let within: Vec<&Slice> =
            reached.iter().copied().filter(|slice| whole.covers(slice.range())).collect();
        let overlap_bytes: u64 = overlap.iter().map(|slice| slice.size().bytes).sum();
        [reached, within]
            .iter()
            .take(if self.takes_within { 2 } else { 1 })
            .find(|slices| {
                let bytes: u64 = slices.iter().map(|slice| slice.size().bytes).sum();
                below(&hull(slices)).len() == overlap.len()
                    && bytes + overlap_bytes < self.compaction_bytes
            })
            .map_or(piece.clone(), |slices| hull(slices))
    }

    /// Returns `piece`, a table that overlaps nothing, with neighbours on one side that overlap
    /// nothing either (`TryExtendNonL0TrivialMove`).
    fn moved<'a>(
        &self,
        source: &Run,
        piece: &KeyRange,
        below: &dyn Fn(&KeyRange) -> Slices<'a>,
    ) -> KeyRange {
        let slices = source.slices();
        let at = slices.partition_point(|slice| slice.range().start < piece.start);
        let widened = |neighbours: &mut dyn Iterator<Item = usize>| {
            let mut hull = piece.clone();
            for next in neighbours.filter_map(|next| slices.get(next)).take(self.moves_max - 1) {
                let wider = hull.hull(next.range());
                if !below(&wider).is_empty() {
                    break;
                }
                hull = wider;
            }
            hull
        };
        let right = widened(&mut (at + 1..slices.len()));
        if right == *piece { widened(&mut (0..at).rev()) } else { right }
    }

    /// Returns the borders of `below`, the tables of the level under the output, at which the
    /// output is cut: where a table has half of its size, and for each border that it has passed
    /// 5 % more, up to 90 % (`CompactionOutputs::ShouldStopBefore`).
    fn cut_keys(&self, view: &TreeView, inputs: &[Input], below: Slices<'_>) -> Vec<Key> {
        let runs: Vec<_> = inputs
            .iter()
            .filter_map(|input| Some((view.tree.run(input.run)?.1, &input.range)))
            .collect();
        let bytes_between = |from: &Key, end: &Key| {
            let range = KeyRange { start: from.clone(), end: Some(end.clone()) };
            let within =
                runs.iter().map(|(run, taken)| run.size_within(&range.intersection(taken)));
            within.map(|size| size.bytes).sum::<u64>()
        };
        let mut keys = Vec::new();
        let (mut bytes, mut passed) = (0, 0_u32);
        let mut from = Key::default();
        for border in below.iter().map(|slice| &slice.range().start) {
            if *border > from {
                bytes = (bytes + bytes_between(&from, border))
                    % self.table_bytes.saturating_mul(2).max(1);
                from = border.clone();
            }
            if bytes as f64
                >= self.table_bytes as f64 * f64::from(50 + 5 * passed).min(90.0) / 100.0
            {
                keys.push(border.clone());
                (bytes, passed) = (0, 0);
            } else {
                passed += 1;
            }
        }
        keys
    }

    pub(crate) fn run_at<'a>(&self, view: &'a TreeView, level: usize) -> Option<&'a Arc<Run>> {
        view.tree.levels().get(level)?.runs().first()
    }

    /// Returns the plan that merges `inputs`, which lie in `hull`, into level `to`, or moves them
    /// if nothing is in the way.
    pub(crate) fn plan(
        &self,
        view: &TreeView,
        mut inputs: Vec<Input>,
        hull: &KeyRange,
        to: usize,
        reason: &'static str,
    ) -> MergePlan {
        let target = self.run_at(view, to);
        let overlap = target.map_or(Slices::default(), |run| run.overlapping(hull));
        if let (Some(target), Some(first), Some(last)) = (target, overlap.first(), overlap.last()) {
            let whole =
                KeyRange { start: first.range().start.clone(), end: last.range().end.clone() };
            inputs.push(Input { run: target.id(), range: whole.hull(hull) });
        }
        let grandparent = self.run_at(view, to + 1);
        let below = grandparent.map_or(Slices::default(), |run| run.overlapping(hull));
        let aligns = self.aligns && !below.is_empty();
        let keys = if aligns { self.cut_keys(view, &inputs, below) } else { Vec::new() };
        MergePlan {
            mode: if inputs.len() == 1 { Mode::Move } else { Mode::Merge },
            cut_bytes: Some(self.table_bytes.saturating_mul(if aligns { 2 } else { 1 })),
            cuts: Cuts { keys, overlap: None },
            reuse: None,
            reason: Reason::new(reason, [0; 3]),
            inputs,
            place: target.map_or(Place::NewRun(to), |run| Place::Into(run.id())),
            memo: Vec::new(),
        }
    }
}

fn cursor_name(level: usize) -> String {
    format!("next_{level}")
}

impl MergePolicy for Level {
    fn spec(&self) -> Spec {
        Spec::bare("kCompactionStyleLevel")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let targets = self.targets(view);
        let due = self.scores(view, &targets).into_iter().filter(|(score, _)| *score >= 1.0);
        due.map(|(_, level)| level).find_map(|level| match level {
            0 => self.level0_down(view, targets.base),
            _ => self.table_down(view, level),
        })
    }

    fn needs(&self) -> Needs {
        let sequence_numbers = self.pri == Pri::OldestLargestSeqFirst;
        Needs { sequence_numbers, ..Needs::default() }
    }

    fn shape(&self) -> Shape {
        Shape::Leveled { ratio: self.ratio, level0_runs: self.trigger }
    }
}
