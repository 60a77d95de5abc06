//! Tiered: a full level becomes one run of the next.

use crate::{Eager, MergePolicy, ParamInfo, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{LEVELS_MAX, LevelId, MergePlan, Place, Reason, Run, TreeView};
use std::sync::Arc;

/// As soon as a level has `ratio` runs, its oldest `ratio` runs become one new run of the next
/// level, which can fill that level in turn. If tables do not overlap, a run of level i holds
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
        build: |params| Ok(Arc::new(Tiered::read(params)?)),
    };

    /// Returns the policy that merges `ratio` runs of a level, from 2 to 1000. Other parameters
    /// have their defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is out of range.
    pub fn new(ratio: u64) -> Result<Tiered, SpecError> {
        Tiered::INFO.read(&Spec::bare(Tiered::INFO.name).with("ratio", ratio), Tiered::read)
    }

    pub(super) fn of(ratio: u64, eager: Eager) -> Tiered {
        Tiered { ratio, eager }
    }

    fn read(params: &Params<'_>) -> Result<Tiered, SpecError> {
        Ok(Tiered::of(params.count("ratio", 4, 2..=1000)?, Eager::read(params)?))
    }

    /// Returns the merge that is due in `level`. `memtable` is the sealed memtable that would
    /// become the newest run of the level.
    fn merge_level(
        &self,
        view: &TreeView,
        level: usize,
        memtable: Option<&Arc<Run>>,
    ) -> Option<MergePlan> {
        let all = memtable.into_iter().chain(view.tree.runs_at(LevelId::Disk(level)));
        let runs: Vec<_> = all.filter(|run| !view.is_reserved(run.id())).collect();
        let taken = &runs[runs.len().checked_sub(self.ratio as usize)?..];
        let has_memtable = memtable.is_some_and(|memtable| memtable.id() == taken[0].id());
        if has_memtable && !self.eager.takes(taken.iter().map(|run| run.bytes())) {
            return None;
        }
        let numbers = [level as u64, runs.len() as u64, self.ratio];
        let reason = Reason::new("level {} has {} runs of {}", numbers);
        let ids = taken.iter().map(|run| run.id());
        Some(MergePlan::merge(ids, Place::NewRun(level + 1), reason))
    }
}

impl MergePolicy for Tiered {
    fn spec(&self) -> Spec {
        self.eager.write(Spec::bare("tiered").with("ratio", self.ratio))
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let levels = view.tree.levels().len().clamp(1, LEVELS_MAX - 1);
        (0..levels).find_map(|level| {
            let memtable = view.tree.memory().runs().last().filter(|_| level == 0);
            self.merge_level(view, level, memtable).filter(|plan| view.is_free_for(plan))
        })
    }

    fn shape(&self) -> Shape {
        Shape::Tiered { ratio: self.ratio }
    }
}
