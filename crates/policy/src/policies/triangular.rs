//! Triangular: tables move down several levels in one merge.

mod batch;
mod closure;
mod level0;
mod plan;
mod score;
mod search;

pub use score::Score;

use crate::pressure::pressure_of_runs;
use crate::{Explanation, Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::{LEVELS_MAX, LevelId, MergePlan, TreeView};
use std::sync::Arc;

/// Level 0 takes flushed runs. Each level below is one run, cut into tables. A merge takes a
/// *triangle*: some tables of one level, all that they overlap in the next level, all that these
/// overlap in the one after it, and so on. The output goes to the last of these levels, or further
/// down as long as it meets nothing. So a table passes many levels in one merge.
///
/// With `score=ratio`, all of level 0 goes down when it has eight runs. Tables that overlap each
/// other, at once or through others, go together. Their merge reaches down to the level where the
/// bytes that move make up the largest part of the merge, the deepest of equal ones. If they make
/// up less than a half everywhere, the tables are merged with each other alone, as low down as they
/// meet nothing. With keys at random, this counts in binary: after `8 * 2^L` flushes, each byte was
/// written `1 + L/2` times by merges.
///
/// With `score=bytes`, tables of every level start triangles. The best triangle moves the most
/// bytes down per byte that it meets. Level 0 goes down when it has four runs or 64 MiB.
///
/// No merge takes more than `max_bytes` or `max_files` tables, except for one table and what it
/// overlaps. A triangle of level 0 that is larger is merged piece by piece, in key order: a limit
/// makes merges smaller, it never keeps level 0 from being merged.
///
/// Source: the text on triangular compaction in lsmtk (`score=ratio`), and lsmtk's later code
/// (`score=bytes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangular {
    max_bytes: u64,
    max_files: usize,
    score: Score,
}

/// The level that data sink to.
const DEEPEST: usize = 15;

impl Triangular {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "triangular",
        source: "lsmtk (rescrv/blue): the text on triangular compaction, and the later code",
        summary: "merges tables with all that lies under them, through several levels at once",
        params: &[
            ParamInfo {
                name: "max_bytes",
                default: "512MiB",
                meaning: "bytes of a merge; a larger one is made in pieces",
            },
            ParamInfo {
                name: "max_files",
                default: "64",
                meaning: "tables of a merge, 2 or more; a larger one is made in pieces",
            },
            ParamInfo {
                name: "score",
                default: "ratio",
                meaning: "ratio: the part of a merge that moves down, from level 0 only; \
                          bytes: bytes that move down less those met, from any level",
            },
        ],
        build: |params| Ok(Arc::new(Triangular::read(params)?)),
    };

    /// Returns the policy with `score`. Other parameters have their defaults.
    pub fn new(score: Score) -> Triangular {
        Triangular { max_bytes: 512 << 20, max_files: 64, score }
    }

    fn read(params: &Params<'_>) -> Result<Triangular, SpecError> {
        let usual = Triangular::new(Score::read(params)?);
        let max_bytes = params.bytes_if_given("max_bytes", 1..=1 << 60)?;
        Ok(Triangular {
            max_bytes: max_bytes.unwrap_or(usual.max_bytes),
            max_files: params.count("max_files", usual.max_files as u64, 2..=1 << 30)? as usize,
            ..usual
        })
    }

    /// Returns the runs of level 0 at which it is merged.
    fn level0_runs(self) -> usize {
        match self.score {
            Score::Ratio => 8,
            Score::Bytes => 4,
        }
    }

    /// Returns the level that data sink to, which another policy may have passed.
    fn deepest(view: &TreeView) -> usize {
        let levels = view.tree.levels();
        let last = levels.iter().rposition(|level| !level.runs().is_empty());
        last.unwrap_or(0).clamp(DEEPEST, LEVELS_MAX - 1)
    }
}

impl MergePolicy for Triangular {
    fn spec(&self) -> Spec {
        Spec::bare("triangular")
            .with("max_bytes", format_bytes(self.max_bytes))
            .with("max_files", self.max_files as u64)
            .with("score", self.score.name())
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.folds(view)
            .find(|plan| view.is_free_for(plan))
            .or_else(|| self.sinks(view))
            .or_else(|| self.merge_batch(view))
            .or_else(|| match self.score {
                Score::Ratio => None,
                Score::Bytes => self.best_of_all(view),
            })
    }

    /// Twice the runs that level 0 has at rest and four more stop writers: its merges are large
    /// steps, during which others arrive.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let runs = view.tree.runs_at(LevelId::Disk(0));
        let flushed_max = view.memtable_bytes.saturating_mul(Shape::FLUSHED_MEMTABLES_MAX);
        let flushed = runs.iter().filter(|run| run.bytes() <= flushed_max).count();
        let at_rest = self.level0_runs() as u64 - 1;
        let pressure = |runs: usize| pressure_of_runs(view, runs, at_rest, load);
        pressure(flushed).max(pressure(runs.len()).min(Shape::PRESSURE_OF_LEFTOVERS_MAX))
    }

    fn needs(&self) -> Needs {
        Needs { exact_sizes: true, ..Needs::default() }
    }

    fn shape(&self) -> Shape {
        // A piece that goes down takes all that it overlaps.
        Shape::Leveled { ratio: 16.0, level0_runs: self.level0_runs() as u64 - 1 }
    }

    fn explain(&self, view: &TreeView) -> Explanation {
        let plan = self.next_merge(view);
        let losers = self.other_depths(view).into_iter();
        let runners_up = losers.filter(|(loser, _)| Some(loser) != plan.as_ref()).take(3).collect();
        Explanation { plan, runners_up, ..Explanation::default() }
    }
}
