//! COLA: levels of one run that grow by merges until they are full, counted by flushes.

use crate::pressure::pressure_of_runs;
use crate::{Eager, Load, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::sync::Arc;

/// Level `l` is one run of up to `ratio - 1` slots of `ratio^l` memtables. What comes down is
/// merged into it. When a level is full, the next merge takes it along to the level below. So the
/// number of flushes, written in base `ratio`, says which levels have a run.
///
/// The last level has all the rest. It is the first whose `ratio` slots can hold all keys, which
/// the size of the oldest run shows. The same is true while data only grow: then each digit of the
/// number of flushes has a level.
///
/// Source: Bender et al., "Cache-Oblivious Streaming B-trees", SPAA 2007; Lim et al., FAST 2016,
/// for ratios above 2 and for a last level that holds every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cola {
    ratio: u64,
    eager: Eager,
}

/// The parameter `ratio` of policies of slots.
pub(super) const RATIO: ParamInfo = ParamInfo {
    name: "ratio",
    default: "3",
    meaning: "size of a level's slot over that of the level above, 2 to 1000",
};

/// Reads the parameter `ratio` of policies of slots.
pub(super) fn read_ratio(params: &Params<'_>) -> Result<u64, SpecError> {
    params.count(RATIO.name, 3, 2..=1000)
}

/// Returns the number of levels above the last one, for `bytes` in the oldest run: the first whose
/// `ratio` slots hold more.
pub(super) fn last_level(ratio: u64, bytes: u64, memtable_bytes: u64) -> u32 {
    let mut slots_bytes = memtable_bytes.max(1).saturating_mul(ratio);
    let mut level = 0;
    while slots_bytes <= bytes && slots_bytes < u64::MAX {
        slots_bytes = slots_bytes.saturating_mul(ratio);
        level += 1;
    }
    level
}

impl Cola {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "cola",
        source: "Bender et al., SPAA 2007; Lim et al., FAST 2016",
        summary: "levels of one run; what comes down is merged in, the ratio-th time further down",
        params: &[RATIO, Eager::PARAM],
        build: |params| Ok(Arc::new(Cola::read(params)?)),
    };

    /// Returns the policy with a growth of `ratio` per level. Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is out of range.
    pub fn new(ratio: u64) -> Result<Cola, SpecError> {
        Cola::INFO.read(&Spec::bare(Cola::INFO.name).with("ratio", ratio), Cola::read)
    }

    fn read(params: &Params<'_>) -> Result<Cola, SpecError> {
        Ok(Cola { ratio: read_ratio(params)?, eager: Eager::read(params)? })
    }

    /// Returns how many levels above the last there are.
    fn levels_above_last(&self, stack: &Stack, view: &TreeView) -> u32 {
        let oldest = stack.runs().last().map_or(0, |run| run.bytes);
        last_level(self.ratio, oldest, view.memtable_bytes)
    }

    /// Returns how many runs to leave after `flushes`: one for each digit that is not 0, of as many
    /// as there are levels above the last, and the last.
    fn runs_after(&self, flushes: u64, levels: u32) -> u64 {
        let digits = std::iter::successors(Some(flushes), |rest| Some(rest / self.ratio));
        let full = digits.take(levels as usize).filter(|rest| !rest.is_multiple_of(self.ratio));
        1 + full.count() as u64
    }

    fn choose(&self, stack: &Stack, view: &TreeView) -> Option<MergePlan> {
        let flushes = stack.flushes();
        let leave = self.runs_after(flushes, self.levels_above_last(stack, view));
        let runs = stack.len() as u64;
        let newest = (runs + 1).checked_sub(leave).filter(|newest| *newest > 1)?;
        let reason = Reason::new("flush {} leaves {} runs of {}", [flushes, leave, runs]);
        stack.merge(0, newest as usize, self.eager, reason)
    }
}

impl MergePolicy for Cola {
    fn spec(&self) -> Spec {
        self.eager.write(Spec::bare("cola").with("ratio", self.ratio))
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if Stack::len_max(view) <= 1 {
            return None;
        }
        Stack::of(view).in_turn(|stack| self.choose(stack, view))
    }

    /// The bound of the shape holds for any data. Runs that hold writers back are those beyond one
    /// for each level that these data have.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let levels = self.levels_above_last(&Stack::of(view), view);
        pressure_of_runs(view, view.tree.disk_run_count(), u64::from(levels) + 1, load)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: 65 } // a level for each digit of a 64-bit number, and the last
    }
}
