//! Merges a range of keys because a caller asks for it, on the thread of the caller.
//!
//! What memory holds of the range is flushed. Then the parts of all runs on storage within the
//! range are merged into the oldest of these runs, under a reservation, as for any plan.

use super::WritePath;
use super::arrival::table_bytes;
use super::load::InMemory;
use crate::context::read_only;
use crate::keyspace::{KeyspaceShared, KeyspaceState};
use crate::merge::{PlanPart, ReservedPlan};
use crate::version::Version;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_tree::{Input, KeyRange, MergePlan, Place, Reason, Run, SeqNo, check_plan};
use std::sync::Arc;

/// A step of the merge of a range, decided under the locks.
enum Step {
    /// There is nothing to merge.
    Done,
    /// Wait for a flush, or for plans that are in the way.
    Wait,
    Merge(Box<ReservedPlan>, Arc<Version>),
}

/// Lets other plans take the range again when dropped, and wakes the threads that carry them out.
struct Kept<'a>(&'a KeyspaceShared, &'a WritePath);

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let had_waiting = self.0.state.lock().kept_range.take().is_some();
        if had_waiting {
            self.1.context.progress.notify();
        }
    }
}

impl WritePath {
    /// Merges the keys of `keyspace` in `range` into one run.
    ///
    /// # Errors
    /// As [`Keyspace::merge_range`](crate::Keyspace::merge_range).
    pub(crate) fn merge_range(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        range: &KeyRange,
    ) -> Result<()> {
        let _one_at_a_time = keyspace.ingesting.lock();
        let _kept = Kept(keyspace, self);
        loop {
            // Read first: what this thread waits for may end before it waits.
            let turn = self.context.progress.turn();
            match self.next_range_step(keyspace, range)? {
                Step::Done => return Ok(()),
                Step::Wait => self.wait_for_flush([&**keyspace], turn)?,
                Step::Merge(reserved, version) => {
                    if self.carry_range_out(*reserved, version)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn next_range_step(&self, keyspace: &Arc<KeyspaceShared>, range: &KeyRange) -> Result<Step> {
        let mut guard = self.wal.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        self.context.check_writable()?;
        let older = [(range.clone(), SeqNo::MAX)];
        if self.flush_older(keyspace, writer, &older)? != InMemory::Nothing {
            return Ok(Step::Wait);
        }
        drop(guard);
        let mut state = keyspace.state.lock();
        let Some(plan) = plan_for(&state, range) else { return Ok(Step::Done) };
        if let Err(error) = check_plan(&state.view, &plan) {
            if state.is_busy() {
                state.kept_range = Some(range.clone());
                return Ok(Step::Wait);
            }
            let message = format!("the range cannot be merged now: {error}");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let tree = &state.view.tree;
        let reserved = ReservedPlan::of_caller(keyspace, plan.clone(), tree, state.arrivals);
        let forgets = !state.policy.wants_seqs() && !keyspace.keeps_seqs;
        let reserved = ReservedPlan { forgets, ..reserved };
        state.owed_bytes = None;
        state.reserve(plan);
        Ok(Step::Merge(Box::new(reserved), keyspace.version.load_full()))
    }

    /// Carries `reserved` out and commits it. Returns false if the tree no longer allows it.
    fn carry_range_out(&self, mut reserved: ReservedPlan, version: Arc<Version>) -> Result<bool> {
        let released = Released(Arc::clone(&reserved.keyspace), reserved.plan.clone(), self);
        let output = self.scheduler.merge_now(&reserved, &version)?;
        drop(version);
        let part = PlanPart { plan: reserved.plan.clone(), end: None, waiting_bytes: 0 };
        let committed = self.committer.commit(&mut reserved, part, output)?;
        drop(released);
        Ok(committed)
    }
}

/// Ends the reservation of a plan when dropped, also by a panic.
struct Released<'a>(Arc<KeyspaceShared>, MergePlan, &'a WritePath);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        self.0.state.lock().release(&self.1);
        self.2.context.progress.notify();
    }
}

/// Returns the plan that merges all runs on storage within `range`, if there is anything to gain.
fn plan_for(state: &KeyspaceState, range: &KeyRange) -> Option<MergePlan> {
    let has_keys = |run: &&Arc<Run>| !run.overlapping(range).is_empty();
    let runs: Vec<&Arc<Run>> = state.view.tree.disk_runs().filter(has_keys).collect();
    let last = *runs.last()?;
    if runs.len() == 1 && last.size_within(range).tombstones == 0 {
        return None;
    }
    let reason = Reason::new("a range asked for by hand: {} runs", [runs.len() as u64, 0, 0]);
    let mut plan = MergePlan::merge([], Place::Into(last.id()), reason);
    plan.inputs = runs.iter().map(|run| Input { run: run.id(), range: range.clone() }).collect();
    plan.cut_bytes = table_bytes(last);
    Some(plan)
}
