//! Universal: RocksDB's tiered style, stopped by total size.

use crate::pressure::pressure_of_runs;
use crate::{
    Eager, Largest, Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape, Stack, StackRun,
};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{
    Input, Key, KeyRange, MergePlan, Mode, Place, Reason, Run, Size, Slice, TreeView, key_after,
};
use std::ops::Range;
use std::sync::Arc;

/// Does nothing below `trigger` runs. From then on merges, whichever applies first: all runs, if
/// the newer ones take more than `space_max` percent of the oldest; the newest row of runs in which
/// each exceeds all newer ones of the row together by at most `size_ratio` percent; or the newest
/// runs, if there are two more than `trigger`.
///
/// With `incremental` runs have tables of the size of a memtable, and the first of the three rules
/// merges a window of keys of all runs in the place of all keys: a row of tables of the oldest run,
/// as short as it can be with 12 memtables in it. Of all such windows it takes the one with the
/// fewest bytes of the oldest run per byte of the newer ones. Windows follow until the newer runs
/// hold no more than they may. So no merge for the sake of space is much larger than a window, and
/// none needs room for a second copy of all data.
///
/// In RocksDB a window has files of the two oldest runs, and newer files that lie within it. If the
/// two oldest runs do not meet well, all files are merged after all. Here a plan can take a part of
/// a file, so that a window takes its keys out of every run. The best window is then never worse
/// than all keys, but newer runs keep files that have lost a part. Where no two tables meet, they
/// change hands unread.
///
/// Source: RocksDB, by the rules that Lim et al., FAST 2016, simulate. For `incremental`: pull
/// request 8655 of RocksDB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Universal {
    trigger: u64,
    size_ratio: f64,
    space_percent_max: f64,
    eager: Eager,
    largest: Largest,
    incremental: bool,
}

/// The memtables that a window has at least. RocksDB takes half of the largest merge, which has 25
/// files by default.
const WINDOW: u64 = 12;

/// The least part of the key space that a window can have.
struct Piece {
    start: Key,
    newer_bytes: u64,
    oldest_bytes: u64,
}

impl Universal {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "universal",
        source: "RocksDB; Lim et al., FAST 2016",
        summary: "from trigger runs on, merges the newest runs of like size, or all",
        params: &[
            ParamInfo {
                name: "trigger",
                default: "12",
                meaning: "runs at which to merge, 2 to 1000",
            },
            ParamInfo {
                name: "size_ratio",
                default: "1",
                meaning: "percent by which a run may be larger than all newer ones together",
            },
            ParamInfo {
                name: "space_max",
                default: "200",
                meaning: "bytes of all newer runs at which all runs are merged, in percent of the \
                          oldest",
            },
            ParamInfo {
                name: "incremental",
                default: "false",
                meaning: "true: merges a window of keys, not all, when the newer runs hold too \
                          much; excludes largest",
            },
            Eager::PARAM,
            Largest::PARAM,
        ],
        build: |params| Ok(Arc::new(Universal::read(params)?)),
    };

    /// Returns the policy that merges from `trigger` runs on, from 2 to 1000. Other parameters
    /// have their defaults.
    ///
    /// # Errors
    /// Fails if `trigger` is out of range.
    pub fn new(trigger: u64) -> Result<Universal, SpecError> {
        Universal::INFO
            .read(&Spec::bare(Universal::INFO.name).with("trigger", trigger), Universal::read)
    }

    fn read(params: &Params<'_>) -> Result<Universal, SpecError> {
        let incremental = params.flag("incremental", false)?;
        if incremental && params.has("largest") {
            let message = "incremental and largest both bound merges: expected one of them";
            return Err(SpecError::conflict(message));
        }
        Ok(Universal {
            incremental,
            trigger: params.count("trigger", 12, 2..=1000)?,
            size_ratio: params.real("size_ratio", 1.0, 0.0..=1000.0)?,
            space_percent_max: params.real("space_max", 200.0, 1.0..=1e6)?,
            eager: Eager::read(params)?,
            largest: Largest::read(params)?,
        })
    }

    /// Returns the end of the row of runs that starts with run `from`.
    fn row_end(&self, runs: &[StackRun], from: usize) -> usize {
        let mut row_bytes = runs[from].bytes as f64;
        let allowed = 1.0 + self.size_ratio / 100.0;
        let mut end = from + 1;
        while end < runs.len() && row_bytes * allowed >= runs[end].bytes as f64 {
            row_bytes += runs[end].bytes as f64;
            end += 1;
        }
        end
    }

    /// Returns why all runs should be merged, if the newer ones hold too much.
    fn excess(&self, runs: &[StackRun]) -> Option<Reason> {
        let (oldest, newer) = runs.split_last()?;
        let newer_bytes: u64 = newer.iter().map(|run| run.bytes).sum();
        let allowed = oldest.bytes as f64 * self.space_percent_max / 100.0;
        let numbers = [newer_bytes, oldest.bytes, 0];
        let reason = || Reason::new("newer runs hold {} bytes, the oldest {}", numbers);
        (newer_bytes as f64 > allowed).then(reason)
    }

    /// Returns the runs to merge, by their indexes, and the reason.
    fn due(&self, runs: &[StackRun]) -> Option<(usize, usize, Reason)> {
        if let Some(reason) = self.excess(runs) {
            return Some((0, runs.len(), reason));
        }
        let ends = (0..runs.len()).map(|from| (from, self.row_end(runs, from)));
        if let Some((from, end)) = ends.into_iter().find(|(from, end)| end - from >= 2) {
            let reason =
                Reason::new("runs {} to {} are of like size", [from as u64, end as u64, 0]);
            return Some((from, end, reason));
        }
        let count = runs.len() as u64;
        let excess = count.checked_sub(self.trigger).filter(|excess| *excess >= 2)?;
        let reason = Reason::new("{} runs, {} trigger a merge", [count, self.trigger, 0]);
        Some((0, excess as usize, reason))
    }
}

/// Returns the merge of the best window of at least `bytes`, if the runs on storage have several.
fn merge_window(view: &TreeView, bytes: u64, reason: Reason) -> Option<MergePlan> {
    // Writers wait for memory to be flushed, so that goes first.
    if view.tree.memory().runs().iter().any(|run| !view.is_reserved(run.id())) {
        return None;
    }
    let runs: Vec<_> = view.tree.disk_runs().collect();
    let (oldest, newer) = runs.split_last().filter(|(_, newer)| !newer.is_empty())?;
    let pieces = pieces(oldest, newer);
    let window = window(&pieces, bytes);
    let start = pieces[window.start].start.clone();
    let range = KeyRange { start, end: pieces.get(window.end).map(|next| next.start.clone()) };
    let inputs: Vec<&Arc<Run>> =
        runs.iter().copied().filter(|run| !run.overlapping(&range).is_empty()).collect();
    let mut taken: Vec<Slice> = inputs.iter().flat_map(|run| run.clip(&range)).collect();
    taken.sort_by(|left, right| left.range().start.cmp(&right.range().start));
    let meet = taken.windows(2).any(|pair| pair[0].range().overlaps(pair[1].range()));
    let mode = if meet { Mode::Merge } else { Mode::Move };
    let inputs = inputs.iter().map(|run| Input { run: run.id(), range: range.clone() }).collect();
    let plan = MergePlan::merge([], Place::Into(oldest.id()), reason);
    Some(MergePlan { inputs, mode, ..plan }).filter(|plan| view.is_free_for(plan))
}

/// Returns the pieces that make up windows, in key order. None begins within a table of the
/// oldest run.
fn pieces(oldest: &Run, newer: &[&Arc<Run>]) -> Vec<Piece> {
    let start = |run: &Run, index: usize| run.slices().at(index).range().start.clone();
    let starts = |run: &Run| (0..run.slices().len()).map(|index| start(run, index)).collect();
    let mut borders: Vec<Key> = starts(oldest);
    for run in newer {
        let starts: Vec<Key> = starts(run);
        let is_apart = |key: &Key| {
            let point = KeyRange { start: key.clone(), end: Some(key_after(key)) };
            oldest.overlapping(&point).is_empty()
        };
        borders.extend(starts.into_iter().filter(is_apart));
    }
    borders.sort_unstable();
    borders.dedup();
    let ends = borders.iter().skip(1).cloned().map(Some).chain([None]);
    let ranges = borders.iter().cloned().zip(ends);
    let pieces = ranges.map(|(start, end)| {
        let range = KeyRange { start, end };
        let newer_bytes = newer.iter().map(|run| run.size_within(&range)).sum::<Size>().bytes;
        let oldest_bytes = oldest.size_within(&range).bytes;
        Piece { start: range.start, newer_bytes, oldest_bytes }
    });
    pieces.collect()
}

/// Returns the row of pieces with the fewest bytes of the oldest run per byte of newer ones. Each
/// row is the shortest from its first piece on that has at least `bytes`. Returns all pieces if no
/// row has bytes of newer runs.
fn window(pieces: &[Piece], bytes: u64) -> Range<usize> {
    let mut best = (f64::INFINITY, 0..pieces.len());
    let (mut end, mut newer, mut oldest) = (0, 0, 0);
    for (from, first) in pieces.iter().enumerate() {
        while newer + oldest < bytes {
            let Some(next) = pieces.get(end) else { return best.1 };
            newer += next.newer_bytes;
            oldest += next.oldest_bytes;
            end += 1;
        }
        let fan_out = oldest as f64 / newer as f64;
        if fan_out < best.0 {
            best = (fan_out, from..end);
        }
        newer -= first.newer_bytes;
        oldest -= first.oldest_bytes;
    }
    best.1
}

impl MergePolicy for Universal {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("universal")
            .with("trigger", self.trigger)
            .with("size_ratio", self.size_ratio)
            .with("space_max", self.space_percent_max);
        let spec = if self.incremental { spec.with("incremental", true) } else { spec };
        self.largest.write(self.eager.write(spec))
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if Stack::len_max(view) < self.trigger {
            return None;
        }
        let stack = Stack::up_to(view, self.largest);
        if (stack.len() as u64) < self.trigger {
            return None;
        }
        let runs = stack.runs();
        let (from, end, reason) = self.due(runs)?;
        if !self.incremental {
            return stack.merge(from, end, self.eager, reason);
        }
        let table_bytes = view.memtable_bytes.max(1);
        let window_bytes = table_bytes.saturating_mul(WINDOW);
        let all_bytes: u64 = runs.iter().map(|run| run.bytes).sum();
        let plan = match all_bytes > window_bytes && self.excess(runs).is_some() {
            true => merge_window(view, window_bytes, reason),
            false => stack.merge(from, end, self.eager, reason),
        };
        plan.map(|plan| MergePlan { cut_bytes: Some(table_bytes), ..plan })
    }

    fn needs(&self) -> Needs {
        Needs { windows: self.incremental, ..Needs::default() }
    }

    /// One run more than trigger a merge may stay.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let runs = view.tree.disk_run_count();
        let is_bounded = self.largest.bytes().is_none();
        let excess = if is_bounded && runs as u64 > self.trigger + 1 { runs } else { 0 };
        pressure_of_runs(view, excess, self.trigger, load)
    }

    fn shape(&self) -> Shape {
        self.largest.shape(self.trigger + 1)
    }

    fn largest_merge(&self) -> Option<u64> {
        self.largest.bytes()
    }
}
