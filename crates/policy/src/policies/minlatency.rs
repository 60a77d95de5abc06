//! MinLatency: the static policy with the least worst-case write cost for a bounded depth.

use super::{K, K_RANGE};
use crate::tables::{least, pascal, stack_depth};
use crate::{Eager, Largest, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::sync::Arc;

/// After the t-th flush, leaves one run more than node t has smaller ancestors in a certain search
/// tree: the tree of least depth that holds t and keeps every stack depth below `k`.
///
/// Source: Mao et al., section 2; Mathieu, Rajaraman, Young, Yousefi, "Competitive data-structure
/// dynamization", SODA 2021.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinLatency {
    rule: Static,
}

impl MinLatency {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "minlatency",
        source: "Mao et al., VLDB Journal 2021, section 2; Mathieu et al., SODA 2021",
        summary: "merges by flush count: least worst-case write cost with at most k runs, lazily",
        params: &[K, Static::COUNT, Eager::PARAM, Largest::PARAM],
        build: |params| Ok(Arc::new(MinLatency::read(params)?)),
    };

    /// Returns the policy that leaves at most `k` runs, from 1 to 64. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `k` is out of range.
    pub fn new(k: u64) -> Result<MinLatency, SpecError> {
        MinLatency::INFO.read(&Spec::bare(MinLatency::INFO.name).with("k", k), MinLatency::read)
    }

    fn read(params: &Params<'_>) -> Result<MinLatency, SpecError> {
        Ok(MinLatency { rule: Static::read(params)? })
    }

    /// Returns how many runs to leave after flush `t`, counted from 1: `B(m', k, t)`, where `m'` is
    /// the least m with `C(m + k, m) > t`.
    pub fn runs_after(k: u64, t: u64) -> u64 {
        stack_depth(k, t)
    }
}

impl MergePolicy for MinLatency {
    fn spec(&self) -> Spec {
        self.rule.write("minlatency")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let schedule = Schedule {
            runs_after: MinLatency::runs_after,
            phase_start: |k, phase| pascal(phase, k),
        };
        self.rule.choose_merge(view, schedule)
    }

    fn shape(&self) -> Shape {
        self.rule.largest.shape(self.rule.k)
    }

    fn largest_merge(&self) -> Option<u64> {
        self.rule.largest.bytes()
    }
}

/// The part that both static policies share. The number of flushes alone determines how many runs
/// to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Static {
    pub(super) k: u64,
    by_size: bool,
    eager: Eager,
    pub(super) largest: Largest,
}

impl Static {
    pub(super) const COUNT: ParamInfo = ParamInfo {
        name: "count",
        default: "flushes",
        meaning: "what counts as the number of flushes: flushes (all since the tree began), size \
                  (taken anew from the total size when all runs become one, for update-heavy use)",
    };

    pub(super) fn read(params: &Params<'_>) -> Result<Static, SpecError> {
        let by_size = params.choice("count", "flushes", &["flushes", "size"])? == "size";
        Ok(Static {
            k: params.count("k", 5, K_RANGE)?,
            by_size,
            eager: Eager::read(params)?,
            largest: Largest::read(params)?,
        })
    }

    pub(super) fn write(self, name: &str) -> Spec {
        let spec = Spec::bare(name).with("k", self.k);
        self.largest.write(self.eager.write(if self.by_size {
            spec.with("count", "size")
        } else {
            spec
        }))
    }

    /// Merges the newest runs so that as many are left as `schedule` says for the number of
    /// flushes, as this policy counts them.
    pub(super) fn choose_merge(self, view: &TreeView, schedule: Schedule) -> Option<MergePlan> {
        Stack::up_to(view, self.largest).in_turn(|stack| self.choose(view, stack, schedule))
    }

    fn choose(self, view: &TreeView, stack: &Stack, schedule: Schedule) -> Option<MergePlan> {
        let flushes = match self.by_size {
            true => self.flushes_by_size(view, stack, schedule),
            false => stack.flushes(),
        };
        // A tree from elsewhere can have runs before its first flush.
        let leave = (schedule.runs_after)(self.k, flushes.clamp(1, FLUSHES_MAX)).max(1);
        let runs = stack.len() as u64;
        let newest = (runs + 1).checked_sub(leave).filter(|newest| *newest > 1)?;
        let reason = Reason::new("flush {} leaves {} runs of {}", [flushes, leave, runs]);
        let mut plan = stack.merge(0, newest as usize, self.eager, reason)?;
        if self.by_size && leave == 1 {
            let count = format!("{} {}", stack.flushes(), stack.flushed_bytes());
            plan.memo.push((MERGED_ALL.into(), Some(count)));
        }
        Some(plan)
    }

    /// Returns the number of flushes by `count=size`.
    ///
    /// A schedule is a row of phases. Each ends when all runs become one, and the larger that run,
    /// the longer the next phase. Updates keep the run small. Then the number of all flushes is too
    /// large for it, and phases are too long. So when a phase ends, the number is taken anew, as
    /// that at which a phase with such a run begins, but at most the number of all flushes. Within
    /// a phase each flush counts one.
    ///
    /// The size of a tree of several runs would not do. Merges drop updates, so it need not rise
    /// from flush to flush, and the same merge could follow every flush. It counts only until all
    /// runs become one for the first time.
    fn flushes_by_size(self, view: &TreeView, stack: &Stack, schedule: Schedule) -> u64 {
        let merged_all = view.memo(MERGED_ALL).and_then(|text| {
            let (flushes, flushed_bytes) = text.split_once(' ')?;
            Some((flushes.parse::<u64>().ok()?, flushed_bytes.parse::<u64>().ok()?))
        });
        let (Some((flushes, flushed_bytes)), Some(oldest)) = (merged_all, stack.runs().last())
        else {
            return stack.flushes_by_size();
        };
        let run_flushes = oldest.bytes as f64 * flushes as f64 / flushed_bytes.max(1) as f64;
        let allowed = ((run_flushes * LENGTHENED) as u64).clamp(1, flushes.clamp(1, FLUSHES_MAX));
        let phase = least(1, |phase| (schedule.phase_start)(self.k, phase) > allowed) - 1;
        (schedule.phase_start)(self.k, phase) + stack.flushes().saturating_sub(flushes)
    }
}

/// The number of runs by the number of flushes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// Returns how many runs to leave with the bound `k` after flush `t`, counted from 1.
    pub(super) runs_after: fn(k: u64, t: u64) -> u64,
    /// Returns the flush with which a phase starts, the first in phase 0: after it one run is left.
    pub(super) phase_start: fn(k: u64, phase: u64) -> u64,
}

/// The greatest number of flushes that the schedules know.
const FLUSHES_MAX: u64 = 1 << 62;

/// With `count=size`, a phase is as long as for a first run so many times as large. The flushes of
/// an update-heavy phase share keys, so its runs are smaller than the schedule takes them to be,
/// and a longer phase costs less. Over the settings of the test
/// `counting_by_size_never_costs_much`, factors from 1.25 to 2 are within half a percent of each
/// other in the mean; with less than 1.5, single settings write up to 10 % too much.
const LENGTHENED: f64 = 1.5;

/// The memo of `count=size`: the number of flushes and their bytes when all runs became one.
const MERGED_ALL: &str = "merged_all";
