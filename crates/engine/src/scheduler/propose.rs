//! Proposes the next plan of a keyspace.

use super::Scheduler;
use crate::keyspace::{KeyspaceState, Request};
use crate::stats::{add, thread_cpu_nanos};
use lsmith_tree::{LevelId, MergePlan, Mode, Place, Reason, TableId, check_plan};

/// The least logical bytes at which a manual merge cuts its tables.
const MANUAL_TABLE_BYTES: u64 = 64 << 20;

/// The reason of a merge that frees space.
pub(super) const FOR_SPACE: &str = "writers wait for space: {} runs";

/// Where a plan comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The merge policy.
    Policy,
    /// A caller who requested a merge of all runs.
    ByHand,
    /// The store: a memtable waits, and the policy has no plan for it.
    Flush,
    /// The store: range deletes hide all that the plan drops, or it has expired.
    Drop,
    /// The store: writers wait for the space that a merge of all runs on storage frees.
    Reclaim,
    /// The store: little of this table is live, or it refers to files of garbage.
    Rewrite(TableId),
}

/// A plan that [`check_plan`] has found legal, and its origin.
pub(super) struct Proposal {
    pub(super) plan: MergePlan,
    pub(super) origin: Origin,
}

impl Scheduler {
    /// Returns the next plan for a keyspace, or `None` if there is none, or if a manual merge waits
    /// for other plans to end. Under a policy of append tables, a memtable for which it has no
    /// plan also waits for them: as a run of its own it would cost a merge with its whole level.
    pub(super) fn propose(&self, state: &KeyspaceState) -> Option<Proposal> {
        if state.requests.has(Request::Merge) {
            if state.is_busy() {
                return None;
            }
            if let Some(plan) = merge_all(state, |_| true, "asked for by hand: {} runs") {
                return Some(Proposal { plan, origin: Origin::ByHand });
            }
        }
        if state.requests.has(Request::Reclaim) {
            if state.is_busy() {
                return None;
            }
            if let Some(plan) = merge_for_space(state) {
                return Some(Proposal { plan, origin: Origin::Reclaim });
            }
        }
        if let Some(plan) = self.drop_unread(state) {
            return Some(Proposal { plan, origin: Origin::Drop });
        }
        // Before the plans of the policy: writers that never pause keep it busy for ever.
        if let Some((plan, table)) = state.clean_values(self.context.options.value_space) {
            return Some(Proposal { plan, origin: Origin::Rewrite(table) });
        }
        let start = thread_cpu_nanos();
        let plan = state.policy.next_merge(&state.view);
        add(&self.context.counts.planning_nanos, thread_cpu_nanos() - start);
        let is_due = |plan: &MergePlan| {
            !plan.drops_too_early(&state.view.tree, self.context.oldest_reader())
        };
        if let Some(plan) = plan.filter(is_due) {
            let checked = check_plan(&state.view, &plan);
            match checked.and_then(|_| state.policy.check_drop(&plan)) {
                Ok(_) => {
                    let smaller = self.smaller_than(state, &plan);
                    return smaller.or(Some(Proposal { plan, origin: Origin::Policy }));
                }
                Err(error) => {
                    add(&self.context.counts.plans_refused, 1);
                    let policy = state.policy.spec();
                    // `{:#}` names no keys: others may read log lines.
                    tracing::warn!(
                        %policy,
                        plan = %format_args!("{plan:#}"),
                        %error,
                        "a merge policy made an illegal plan"
                    );
                    state.policy.refuse(&state.view);
                    if let Some(flush) = flush(state) {
                        return Some(flush);
                    }
                }
            }
        }
        let rewrite = || {
            let (plan, table) = state.rewrite(self.context.options.rewrite_below)?;
            Some(Proposal { plan, origin: Origin::Rewrite(table) })
        };
        let waits = state.policy.appends() && state.is_busy();
        flush_waiting(state).filter(|_| !waits).or_else(rewrite)
    }
}

impl Scheduler {
    /// Returns a plan to make in place of the policy's `plan`, if that would write more than the
    /// limit on space has room for: a flush, if `plan` takes memory, and else a merge that is
    /// committed part by part.
    fn smaller_than(&self, state: &KeyspaceState, plan: &MergePlan) -> Option<Proposal> {
        let space = self.context.space.as_ref()?;
        let tree = &state.view.tree;
        let whole = plan.inputs.iter().filter(|input| input.range.is_all());
        let runs = whole.filter_map(|input| tree.run(input.run));
        let on_disk = runs.filter(|(level, _)| *level != LevelId::Memory);
        let bytes = on_disk.map(|(_, run)| run.bytes()).sum::<u64>();
        let fits = bytes <= space.room(self.context.memtable_memory());
        if fits || plan.mode != Mode::Merge {
            return None;
        }
        if state.takes_memory(plan) {
            return flush(state);
        }
        let is_in_parts = plan.place == Place::Oldest && plan.reuse.is_none();
        let is_useful = !is_in_parts && !state.is_busy() && tree.disk_runs().count() > 1;
        let plan = merge_for_space(state).filter(|_| is_useful)?;
        Some(Proposal { plan, origin: Origin::Reclaim })
    }

    /// Returns a plan that drops a slice, or a large part of one, that range deletes hide from all
    /// readers, or a slice that has expired.
    fn drop_unread(&self, state: &KeyspaceState) -> Option<MergePlan> {
        let now = state.rules.last_seen();
        if state.view.tree.range_deletes().is_empty() && now.is_none() {
            return None;
        }
        let oldest = self.context.oldest_reader();
        let hidden = MergePlan::drop_hidden(&state.view, oldest);
        hidden.or_else(|| MergePlan::expire(&state.view, now?, oldest))
    }
}

/// Returns the plan that flushes the oldest memtable, if it is legal now.
fn flush(state: &KeyspaceState) -> Option<Proposal> {
    let plan = MergePlan::flush(&state.view.tree)?;
    check_plan(&state.view, &plan).ok()?;
    Some(Proposal { plan, origin: Origin::Flush })
}

/// Returns the plan of [`flush`], or `None` if the policy keeps memtables in memory.
pub(super) fn flush_waiting(state: &KeyspaceState) -> Option<Proposal> {
    if state.flushes_memory() { flush(state) } else { None }
}

/// Returns the plan that merges all runs on storage into one, if it is legal now.
pub(super) fn merge_for_space(state: &KeyspaceState) -> Option<MergePlan> {
    let is_on_storage = |level| level != LevelId::Memory;
    merge_all(state, is_on_storage, FOR_SPACE)
}

/// Returns the plan that merges all runs of the levels that `takes` names into one, if it is legal
/// now.
fn merge_all(
    state: &KeyspaceState,
    takes: impl Fn(LevelId) -> bool,
    reason: &'static str,
) -> Option<MergePlan> {
    let tree = &state.view.tree;
    let runs = tree.runs().filter(|(level, _)| takes(*level));
    let runs: Vec<_> = runs.map(|(level, run)| (level, run.id())).collect();
    let (oldest, _) = *runs.last()?;
    let place = match oldest {
        LevelId::Memory => Place::NewRun(0),
        LevelId::Disk(_) => Place::Oldest,
    };
    let reason = Reason::new(reason, [runs.len() as u64, 0, 0]);
    let mut plan = MergePlan::merge(runs.into_iter().map(|(_, run)| run), place, reason);
    plan.cut_bytes = Some(MANUAL_TABLE_BYTES.max(state.view.memtable_bytes));
    check_plan(&state.view, &plan).is_ok().then_some(plan)
}
