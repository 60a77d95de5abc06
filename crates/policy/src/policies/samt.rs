//! SAMT: all slots of a level become one slot of the next level together; the last is one run.

use super::cola::{RATIO, last_level, read_ratio};
use super::tiered::Tiered;
use crate::pressure::pressure_of_runs;
use crate::{Eager, Load, MergePolicy, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{Input, LEVELS_MAX, MergePlan, Place, TreeView};
use std::sync::Arc;

/// As [`Tiered`], but the last level is one run of all keys, and what comes down to it is merged
/// into it. The last level is the first whose `ratio` slots can hold that run.
///
/// Source: Spillane et al., "An Efficient Multi-Tier Tablet Server Storage Architecture", SoCC
/// 2011; Lim et al., FAST 2016, for the last level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samt {
    ratio: u64,
    eager: Eager,
    slots: Tiered,
}

impl Samt {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "samt",
        source: "Spillane et al., SoCC 2011; Lim et al., FAST 2016",
        summary: "merges ratio runs of a level into one of the next; the last level is one run",
        params: &[RATIO, Eager::PARAM],
        build: |params| Ok(Arc::new(Samt::read(params)?)),
    };

    /// Returns the policy with a growth of `ratio` per level. Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is out of range.
    pub fn new(ratio: u64) -> Result<Samt, SpecError> {
        Samt::INFO.read(&Spec::bare(Samt::INFO.name).with("ratio", ratio), Samt::read)
    }

    fn read(params: &Params<'_>) -> Result<Samt, SpecError> {
        let (ratio, eager) = (read_ratio(params)?, Eager::read(params)?);
        Ok(Samt { ratio, eager, slots: Tiered::of(ratio, eager) })
    }

    /// Returns `plan` with the last level as a further input, if the plan's output comes down to
    /// it. `None` if a memtable of the plan must be flushed first.
    fn with_last(&self, view: &TreeView, plan: MergePlan) -> Option<MergePlan> {
        let oldest = plan.inputs.last()?.run;
        let stack = || view.tree.memory().runs().iter().chain(view.tree.disk_runs());
        let mut older = stack().skip_while(|run| run.id() != oldest).skip(1);
        let (Some(last), None, Place::NewRun(level)) = (older.next(), older.next(), plan.place)
        else {
            return Some(plan);
        };
        if last_level(self.ratio, last.bytes(), view.memtable_bytes) > level as u32 {
            return Some(plan);
        }
        let taken = stack().filter(|run| plan.takes(run.id()));
        let bytes = taken.chain([last]).map(|run| run.bytes());
        let has_memtable = view.tree.memory().runs().iter().any(|run| plan.takes(run.id()));
        if has_memtable && !self.eager.takes(bytes) {
            return None;
        }
        let inputs = [plan.inputs, vec![Input::all(last.id())]].concat();
        Some(MergePlan { inputs, place: Place::Oldest, ..plan })
    }
}

impl MergePolicy for Samt {
    fn spec(&self) -> Spec {
        self.eager.write(Spec::bare("samt").with("ratio", self.ratio))
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let plan = self.slots.choose_merge(view)?;
        self.with_last(view, plan).filter(|plan| view.is_free_for(plan))
    }

    /// The last level has no slots, so a tree at rest has fewer runs than one of `tiered`, and
    /// fewer may wait.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        // The deepest level that there can be has none to merge into.
        let levels = view.tree.levels().iter().take(LEVELS_MAX - 1);
        let runs = levels.map(|level| level.runs().len());
        pressure_of_runs(view, runs.max().unwrap_or(0), self.ratio - 1, load)
    }

    fn shape(&self) -> Shape {
        Shape::Tiered { ratio: self.ratio }
    }
}
