//! ClickHouse's SimpleMergeSelector.

use crate::pressure::pressure_of_runs;
use crate::{Eager, Largest, Load, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack, StackRun};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::ops::Range;
use std::sync::Arc;

/// May merge neighbours whose sum is at least `base` times the largest of them. With more than
/// `few` runs the base falls, down to 2 with `many`. Each run counts `fixed` bytes more than it
/// has. Of all such rows merges the one with the least score: its bytes over its number of runs
/// less 1.9. A row about as large as the run that is next older scores up to a quarter less,
/// because the two can be merged next. Newest runs below a hundredth of the row stay out of it. No
/// merge writes more than `largest`. So runs above half of it stay.
///
/// In ClickHouse the base falls with the age of the row, too, the more slowly the larger it is, so
/// that a table to which nobody writes becomes few parts. A policy reads no clock. Here the base
/// falls with the number of runs alone.
///
/// Source: ClickHouse 24, `SimpleMergeSelector`, and the defaults of its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClickHouse {
    base: f64,
    few: u64,
    many: u64,
    fixed: u64,
    largest: u64,
    eager: Eager,
}

/// The least base.
const BASE_MIN: f64 = 2.0;

/// The most runs of a merge.
const ROW_MAX: usize = 100;

/// What is taken from the number of runs of a row in its score. One run less is what a merge gains
/// at least. More prefers longer rows.
const RUNS_SPENT: f64 = 1.9;

/// A row this many powers of two away from its older neighbour scores as any other.
const ALIKE_POWERS: f64 = 0.5;

/// The factor of the score of a row that is as large as its older neighbour.
const ALIKE_FACTOR: f64 = 0.75;

/// Newest runs below this share of a row are left out.
const SMALL: f64 = 0.01;

impl ClickHouse {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "clickhouse",
        source: "ClickHouse, SimpleMergeSelector",
        summary: "merges the neighbours that cost least per run saved, of those of like size",
        params: &[
            ParamInfo {
                name: "base",
                default: "5",
                meaning: "sum of a row over its largest run, at least, 2 to 100",
            },
            ParamInfo {
                name: "few",
                default: "10",
                meaning: "most runs with which base is as given, 1 to 100k",
            },
            ParamInfo {
                name: "many",
                default: "50",
                meaning: "fewest runs with which base is 2, more than few and up to 1M",
            },
            ParamInfo {
                name: "fixed",
                default: "5MiB",
                meaning: "bytes that each run counts besides its own",
            },
            ParamInfo {
                name: "largest",
                default: "150GiB",
                meaning: "most bytes that a merge writes; runs above half of it stay",
            },
            Eager::PARAM,
        ],
        build: |params| Ok(Arc::new(ClickHouse::read(params)?)),
    };

    /// Returns the policy with `base`, from 2 to 100. Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `base` is out of range.
    pub fn new(base: f64) -> Result<ClickHouse, SpecError> {
        let spec = Spec::bare(ClickHouse::INFO.name).with("base", base);
        ClickHouse::INFO.read(&spec, ClickHouse::read)
    }

    fn read(params: &Params<'_>) -> Result<ClickHouse, SpecError> {
        let few = params.count("few", 10, 1..=100_000)?;
        let many = params.count("many", 50, 1..=1_000_000)?;
        if many <= few {
            return Err(SpecError::conflict(format!("many = {many} is not above few = {few}")));
        }
        Ok(ClickHouse {
            base: params.real("base", 5.0, BASE_MIN..=100.0)?,
            few,
            many,
            fixed: params.bytes("fixed", 5 << 20, 0..=1 << 50)?,
            largest: params.bytes("largest", 150 << 30, 1..=1 << 60)?,
            eager: Eager::read(params)?,
        })
    }

    fn is_large(&self, run: &StackRun) -> bool {
        Largest::of(self.largest).settles(run.bytes)
    }

    /// Returns the base with so many runs.
    fn base_with(&self, runs: usize) -> f64 {
        let over = (runs as f64 - self.few as f64) / (self.many - self.few) as f64;
        self.base + (BASE_MIN - self.base) * over.clamp(0.0, 1.0)
    }

    fn score(&self, count: usize, bytes: u64, older: Option<&StackRun>) -> f64 {
        let fixed = self.fixed as f64 * count as f64;
        let score = (bytes as f64 + fixed) / (count as f64 - RUNS_SPENT);
        let powers = older.map_or(f64::INFINITY, |older| {
            (bytes.max(1) as f64 / older.bytes.max(1) as f64).log2().abs()
        });
        if powers >= ALIKE_POWERS {
            return score;
        }
        score * (ALIKE_FACTOR + (1.0 - ALIKE_FACTOR) * powers / ALIKE_POWERS)
    }

    /// Returns the best row, by the indexes of its runs. Of equal ones, returns the first in this
    /// order: oldest run first, then shortest first.
    fn best(&self, runs: &[StackRun]) -> Option<Range<usize>> {
        let base = self.base_with(runs.len());
        let mut best: Option<(Range<usize>, f64)> = None;
        for end in (2..=runs.len()).rev() {
            let (mut bytes, mut greatest) = (0_u64, 0_u64);
            for (from, run) in runs[..end].iter().enumerate().rev().take(ROW_MAX) {
                bytes = bytes.saturating_add(run.bytes);
                greatest = greatest.max(run.bytes);
                if self.is_large(run) || run.busy || bytes > self.largest {
                    break;
                }
                let count = end - from;
                let sum = bytes as f64 + count as f64 * self.fixed as f64;
                if count < 2 || sum < base * (greatest as f64 + self.fixed as f64) {
                    continue;
                }
                let score = self.score(count, bytes, runs.get(end));
                if best.as_ref().is_none_or(|(_, least)| score < *least) {
                    let is_small = |run: &&StackRun| (run.bytes as f64) < SMALL * bytes as f64;
                    let small = runs[from..end - 2].iter().take_while(is_small).count();
                    best = Some((from + small..end, score));
                }
            }
        }
        best.map(|(row, _)| row)
    }
}

impl MergePolicy for ClickHouse {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("clickhouse")
            .with("base", self.base)
            .with("few", self.few)
            .with("many", self.many)
            .with("fixed", format_bytes(self.fixed))
            .with("largest", format_bytes(self.largest));
        self.eager.write(spec)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if Stack::len_max(view) < 2 {
            return None;
        }
        let stack = Stack::of(view);
        let row = self.best(stack.runs())?;
        let numbers = [stack.len() as u64, row.len() as u64, 0];
        let reason = Reason::new("of {} runs, {} neighbours cost least per run saved", numbers);
        stack.merge(row.start, row.end, self.eager, reason)
    }

    /// Runs that no row can take do not hold writers back. Of others, `few` are allowed, or as many
    /// as levels that grow by `base` would have.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let is_behind =
            !view.reservations.is_empty() || self.best(Stack::of(view).runs()).is_some();
        let counted = view
            .tree
            .disk_runs()
            .filter(|run| !Largest::of(self.largest).settles(run.bytes()))
            .count();
        let memtables = view.tree.disk_bytes() as f64 / view.memtable_bytes.max(1) as f64;
        let levels = memtables.max(1.0).log(self.base);
        let allowed = self.few.max(((self.base - 1.0) * levels) as u64);
        pressure_of_runs(view, if is_behind { counted } else { 0 }, allowed, load)
    }

    /// There is no bound: runs whose sizes grow fast enough stay.
    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: 1 << 32 }
    }

    fn largest_merge(&self) -> Option<u64> {
        Some(self.largest)
    }
}
