//! Tiered: a full level becomes one run of the next.

use crate::stack::pressure_of_runs;
use crate::{Eager, Load, MergePolicy, ParamInfo, PolicyInfo, Shape, untie};
use lsmith_spec::Spec;
use lsmith_tree::{LevelId, MergePlan, Place, Reason, Run, TreeView};
use std::sync::Arc;

/// As soon as a level has `ratio` runs, its oldest `ratio` become one new run of the next level;
/// that may fill the next level in turn. With data that do not overlap, level i holds runs of
/// `ratio^i` flushes.
///
/// Source: Mao et al., section 2 ("Tiered"); Cassandra's size-tiered compaction, kept stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiered {
    ratio: u64,
    eager: Eager,
}

impl Tiered {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "tiered",
        source: "Mao et al., VLDB Journal 2021, section 2; Cassandra",
        summary: "merges the runs of a level into one run of the next when there are ratio of them",
        params: &[
            ParamInfo {
                name: "ratio",
                default: "4",
                meaning: "runs of a level that become one run of the next, 2 to 1000",
            },
            Eager::PARAM,
        ],
        build: |params| {
            let ratio = params.count("ratio", 4, 2..=1000)?;
            Ok(Arc::new(Tiered { ratio, eager: Eager::read(params)? }))
        },
    };

    /// The plan for the level whose runs, newest first, are `runs`, with the memtable that waits to
    /// become its newest run.
    fn merge_level(
        &self,
        view: &TreeView,
        level: usize,
        memtable: Option<&Arc<Run>>,
    ) -> Option<MergePlan> {
        let free = |run: &&Arc<Run>| !view.is_reserved(run.id());
        let mut runs: Vec<&Arc<Run>> = memtable.into_iter().filter(free).collect();
        runs.extend(view.tree.runs_at(LevelId::Disk(level)).iter().filter(free));
        let ratio = self.ratio as usize;
        let taken = &runs[runs.len().checked_sub(ratio)?..];
        if memtable.is_some_and(|memtable| memtable.id() == taken[0].id()) {
            let others = taken[1..].iter().map(|run| run.bytes()).sum();
            if !self.eager.takes(taken[0].bytes(), others) {
                return None;
            }
        }
        let numbers = [level as u64, runs.len() as u64, self.ratio];
        let reason = Reason::new("level {} has {} runs of {}", numbers);
        let ids = taken.iter().map(|run| run.id());
        Some(MergePlan::merge(ids, Place::NewRun(level + 1), reason))
            .filter(|plan| view.is_free_for(plan))
    }
}

impl MergePolicy for Tiered {
    fn spec(&self) -> Spec {
        self.eager.write(Spec::bare("tiered").with("ratio", self.ratio))
    }

    fn next_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if let Some(first) = untie(view) {
            return first;
        }
        let levels = view.tree.levels().len().min(lsmith_tree::LEVELS_MAX - 1);
        (0..levels.max(1)).find_map(|level| {
            let memtable = view.tree.memory().runs().last().filter(|_| level == 0);
            self.merge_level(view, level, memtable)
        })
    }

    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let fullest = view.tree.levels().iter().map(|level| level.runs().len()).max();
        pressure_of_runs(fullest.unwrap_or(0), self.ratio, load)
    }

    fn shape(&self) -> Shape {
        Shape::Tiered { ratio: self.ratio }
    }
}
