//! Lucene's TieredMergePolicy, for neighbours.

use crate::pressure::pressure_of_runs;
use crate::{Eager, Largest, Load, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack, StackRun};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::{MergePlan, Reason, Run, TreeView};
use std::sync::Arc;

/// Allows a budget of runs: `tier` of the least size, `tier` that are `at_once` times as large, and
/// so on, as many as all bytes fill. Over budget, merges the best row of up to `at_once`
/// neighbours. The best row has the least score: its largest run over the sum, times the sum to the
/// power of 0.05. So runs of like size go first, and of those the small ones. Runs below `floor`
/// count as that large. No merge writes more than `largest`. A row that this bound ends scores as
/// if it were of like size. A run above half of `largest` is settled: it is neither counted nor
/// merged.
///
/// Lucene merges any segments, since its documents have no order of age, and fills a merge up to
/// its largest size with smaller ones. Here a merge takes neighbours. So a small run between two
/// settled ones can never be merged: it is settled as well. What Lucene does for deleted documents
/// is left out: a policy does not know how much of a run is dead.
///
/// Source: Lucene 9.12, `TieredMergePolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuceneTiered {
    tier: u64,
    at_once: usize,
    floor: u64,
    largest: u64,
    eager: Eager,
}

/// A row of neighbours that could be merged. Indexes count from the newest run.
struct Row {
    from: usize,
    end: usize,
    score: f64,
}

/// How much the size of a row weighs in its score. With 0 it would not matter.
const SIZE_POWER: f64 = 0.05;

/// A merge writes at least this many times its largest run, unless `largest` ends it. Otherwise a
/// large run would be written again for each small one.
const GROWTH_MIN: f64 = 1.5;

impl LuceneTiered {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "lucene_tiered",
        source: "Lucene 9.12, TieredMergePolicy",
        summary: "over a budget of runs by size, merges the neighbours that are most alike",
        params: &[
            ParamInfo {
                name: "tier",
                default: "10",
                meaning: "runs of about one size that are allowed, 2 to 1000",
            },
            ParamInfo {
                name: "at_once",
                default: "10",
                meaning: "most runs of a merge, 2 to 1000; the lesser of this and tier counts",
            },
            ParamInfo { name: "floor", default: "2MiB", meaning: "smaller runs count as so large" },
            ParamInfo {
                name: "largest",
                default: "5GiB",
                meaning: "most bytes that a merge writes; runs above half of it stay",
            },
            Eager::PARAM,
        ],
        build: |params| Ok(Arc::new(LuceneTiered::read(params)?)),
    };

    /// Returns the policy that allows `tier` runs of about one size, from 2 to 1000. Other
    /// parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `tier` is out of range.
    pub fn new(tier: u64) -> Result<LuceneTiered, SpecError> {
        let spec = Spec::bare(LuceneTiered::INFO.name).with("tier", tier);
        LuceneTiered::INFO.read(&spec, LuceneTiered::read)
    }

    fn read(params: &Params<'_>) -> Result<LuceneTiered, SpecError> {
        Ok(LuceneTiered {
            tier: params.count("tier", 10, 2..=1000)?,
            at_once: params.count("at_once", 10, 2..=1000)? as usize,
            floor: params.bytes("floor", 2 << 20, 1..=1 << 50)?,
            largest: params.bytes("largest", 5 << 30, 1..=1 << 60)?,
            eager: Eager::read(params)?,
        })
    }

    /// Returns the most runs of a merge.
    fn row_max(&self) -> usize {
        self.at_once.min(self.tier as usize)
    }

    fn is_large(&self, run: &StackRun) -> bool {
        Largest::of(self.largest).settles(run.bytes)
    }

    /// Returns true if no merge takes the run at `index` as long as the older ones stay as they
    /// are. The newest run gets a neighbour yet.
    fn is_settled(&self, runs: &[StackRun], index: usize) -> bool {
        let neighbours = [index.checked_sub(1), Some(index + 1)];
        let mut neighbours = neighbours.into_iter().flatten().filter_map(|at| runs.get(at));
        self.is_large(&runs[index]) || index > 0 && neighbours.all(|run| self.is_large(run))
    }

    /// Returns the number of runs that count, and how many of them are allowed.
    fn budget(&self, runs: &[StackRun]) -> (u64, u64) {
        let counted = (0..runs.len()).filter(|index| !self.is_settled(runs, *index));
        let (mut count, mut rest) = (0, 0.0);
        for index in counted {
            count += 1;
            rest += runs[index].bytes as f64;
        }
        let least = runs.iter().map(|run| run.bytes).min().unwrap_or(0);
        let (largest, tier) = (self.largest as f64, self.tier as f64);
        let mut size = least.max(self.floor) as f64;
        let mut allowed = 0.0;
        // Sizes are below 2^64, and each is at least twice the last.
        for _ in 0..64 {
            if rest / size < tier || size >= largest {
                break;
            }
            allowed += tier;
            rest -= tier * size;
            size = largest.min(size * self.row_max() as f64);
        }
        (count, ((allowed + (rest / size).ceil()) as u64).max(self.tier))
    }

    /// Returns the row that ends with the run before `end`, and whether it is a whole one: it has
    /// as many runs as a merge may have, or `largest` ends it.
    fn row(&self, runs: &[StackRun], end: usize) -> Option<(Row, bool)> {
        let (mut bytes, mut floored, mut greatest) = (0_u64, 0.0, 0_u64);
        let (mut from, mut is_cut) = (end, false);
        for run in runs[..end].iter().rev().take(self.row_max()) {
            if self.is_large(run) || run.busy {
                break;
            }
            if bytes.saturating_add(run.bytes) > self.largest {
                is_cut = true;
                break;
            }
            from -= 1;
            bytes += run.bytes;
            floored += run.bytes.max(self.floor) as f64;
            greatest = greatest.max(run.bytes);
        }
        let grows = is_cut || bytes as f64 >= GROWTH_MIN * greatest as f64;
        if end - from < 2 || !grows {
            return None;
        }
        let skew = match is_cut {
            true => 1.0 / self.row_max() as f64,
            false => greatest.max(self.floor) as f64 / floored,
        };
        let score = skew * (bytes as f64).powf(SIZE_POWER);
        Some((Row { from, end, score }, is_cut || end - from == self.row_max()))
    }

    /// Returns the row that is to be merged, and why.
    fn due(&self, runs: &[StackRun]) -> Option<(Row, Reason)> {
        let (count, allowed) = self.budget(runs);
        if count <= allowed {
            return None;
        }
        let rows = || (1..=runs.len()).rev().filter_map(|end| self.row(runs, end));
        let least = |best: Row, next: Row| if next.score < best.score { next } else { best };
        let whole = rows().filter(|(_, is_whole)| *is_whole).map(|(row, _)| row).reduce(least);
        let best = whole.or_else(|| rows().map(|(row, _)| row).reduce(least))?;
        let numbers = [count, allowed, (best.end - best.from) as u64];
        Some((best, Reason::new("{} runs, {} allowed; {} neighbours are alike", numbers)))
    }
}

impl MergePolicy for LuceneTiered {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("lucene_tiered")
            .with("tier", self.tier)
            .with("at_once", self.at_once)
            .with("floor", format_bytes(self.floor))
            .with("largest", format_bytes(self.largest));
        self.eager.write(spec)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if Stack::len_max(view) <= self.tier {
            return None;
        }
        let stack = Stack::of(view);
        let (row, reason) = self.due(stack.runs())?;
        stack.merge(row.from, row.end, self.eager, reason)
    }

    /// Settled runs do not hold writers back, and neither do runs that have no like neighbours.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let stack_run = |run: &Arc<Run>| StackRun { id: run.id(), bytes: run.bytes(), busy: false };
        let runs: Vec<StackRun> = view.tree.disk_runs().map(stack_run).collect();
        let (count, allowed) = self.budget(&runs);
        let is_behind = !view.reservations.is_empty() || self.due(Stack::of(view).runs()).is_some();
        pressure_of_runs(view, if is_behind { count as usize } else { 0 }, allowed, load)
    }

    /// There is no bound: settled runs stay.
    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: 1 << 32 }
    }

    fn largest_merge(&self) -> Option<u64> {
        Some(self.largest)
    }
}
