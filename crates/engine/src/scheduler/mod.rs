//! Asks policies for plans, has plans carried out, and has them committed.
//!
//! One plan at a time is [proposed](Proposal), checked and reserved. The next proposal sees that
//! reservation. Threads carry reserved plans out side by side.
//!
//! Work on [memory](crate::memory) comes before plans: sealed memtables are folded where the policy
//! wants memory as one run, and memory that keeps too much of the log alive is copied.

mod carry_out;
mod propose;
mod sealing;
mod space;

use crate::commit::Committer;
use crate::context::Context;
use crate::event::Event;
use crate::keyspace::{KeyspaceShared, KeyspaceState, Request};
use crate::keyspaces::Keyspaces;
use crate::manifest::Manifest;
use crate::memory::{ReservedFold, ReservedSpill};
use crate::merge::{Merger, PlanOutput, ReservedPlan};
use crate::record::Record;
use crate::stats::{add, thread_cpu_nanos};
use crate::threads::{LOOK_AGAIN, Worker};
use crate::version::Version;
use crate::wal::Wal;
use lsmith_policy::{Duty, Turn};
use lsmith_storage::error::Result;
use lsmith_storage::log::LogWriter;
use lsmith_storage::panics;
use lsmith_tree::KeptTables;
use propose::{Origin, Proposal};
use std::sync::Arc;

/// The number of plans that a thread carries out for one keyspace before it turns to the next.
const PLANS_IN_ROW: usize = 4;

/// Decides what is merged when, and has it carried out.
#[derive(Debug)]
pub(crate) struct Scheduler {
    context: Arc<Context>,
    manifest: Arc<Manifest>,
    keyspaces: Arc<Keyspaces>,
    wal: Arc<Wal>,
    merger: Merger,
    committer: Arc<Committer>,
    record: Arc<Record>,
}

/// What to do if another thread holds the lock of the keyspace's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenLocked {
    /// Wait for the lock.
    Wait,
    /// Leave the sealing to a later writer, or to a thread that merges.
    Leave,
}

/// Reserved work for a keyspace.
enum Work {
    /// Carry out a plan. The version holds its inputs.
    Merge(ReservedPlan, Arc<Version>),
    /// Fold memory into one run.
    Fold(ReservedFold),
    /// Copy memory, so that logs can go.
    Spill(ReservedSpill),
}

impl Worker for Scheduler {
    fn work_once(&self, duty: Duty) -> bool {
        // Panics of policies, observers and environments are caught further down, where their
        // effect is known. Any other panic is a bug.
        let start = thread_cpu_nanos();
        let worked = panics::catch(|| self.work_for_all(duty)).unwrap_or_else(|panic| {
            let dir = self.context.options.dir.display();
            tracing::error!(%dir, %panic, "a merging thread panicked");
            self.context.poison();
            false
        });
        add(&self.context.counts.merge_cpu_nanos, thread_cpu_nanos() - start);
        worked
    }

    fn close(&self) {
        if let Err(error) = panics::as_error("ending a recording", || self.record.end()) {
            tracing::warn!(%error, "a recording lacks its last part");
        }
        self.context.leftovers.close();
        // A panic ends here: the thread that drops the store may be panicking already.
        if let Err(error) = panics::as_error("closing the logs", || self.wal.close()) {
            tracing::warn!(%error, "cannot sync and truncate the log while closing");
        }
        panics::logged("the environment", || self.context.leases.close());
    }
}

impl Scheduler {
    /// Returns a scheduler for `keyspaces`.
    pub(crate) fn new(
        wal: &Arc<Wal>,
        manifest: &Arc<Manifest>,
        keyspaces: &Arc<Keyspaces>,
        committer: &Arc<Committer>,
        merger: Merger,
        record: &Arc<Record>,
    ) -> Scheduler {
        Scheduler {
            context: Arc::clone(&record.context),
            manifest: Arc::clone(manifest),
            keyspaces: Arc::clone(keyspaces),
            wal: Arc::clone(wal),
            committer: Arc::clone(committer),
            merger,
            record: Arc::clone(record),
        }
    }

    /// Does some work for each keyspace. Without any, does a part of another thread's merge.
    /// Returns true if there was work.
    fn work_for_all(&self, duty: Duty) -> bool {
        panics::logged("making a log ahead", || self.wal.make_log_ahead());
        self.context.leftovers.drop_unless_busy();
        panics::logged("the environment", || self.context.leases.free_waiting());
        self.seal_for_others();
        let mut worked = false;
        for keyspace in self.keyspaces.all() {
            worked |= self.work_for(&keyspace, duty);
        }
        // In each round: a writer that never pauses keeps these threads busy for ever.
        worked |= self.record.work_once();
        worked |= self.merger.help();
        if !worked {
            self.context.free_unused();
        }
        worked
    }

    /// Does up to [`PLANS_IN_ROW`] pieces of work for `keyspace`. Returns true if there was any.
    fn work_for(&self, keyspace: &Arc<KeyspaceShared>, duty: Duty) -> bool {
        self.seal_overdue(keyspace, WhenLocked::Leave);
        let next = |_| {
            let open = !self.context.is_closing();
            open.then(|| self.next_work(keyspace, duty)).flatten()
        };
        let work = (0..PLANS_IN_ROW).map_while(next);
        work.map(|work| self.do_in_background(work)).count() > 0
    }

    /// Does `work` on a merging thread, and removes logs that it made unnecessary.
    fn do_in_background(&self, work: Work) {
        let lets_logs_go = match &work {
            Work::Merge(reserved, _) => reserved.takes_memory,
            Work::Fold(_) => false,
            Work::Spill(_) => true,
        };
        let logs = if self.needs_synced_logs(&work) { self.wal.logs_to_sync() } else { Vec::new() };
        self.do_work(work, &logs);
        if lets_logs_go {
            panics::logged("removing logs", || self.wal.retire_logs());
        }
    }

    /// Returns true if the log must be synced before the outcome of `work` is durable. Otherwise
    /// power loss could leave later writes without earlier ones.
    fn needs_synced_logs(&self, work: &Work) -> bool {
        // Called after the work was reserved: its inputs were written before.
        match work {
            Work::Merge(plan, _) => plan.keeps_older || plan.takes_memory && self.wal.is_shared(),
            Work::Fold(_) => false,
            Work::Spill(_) => self.wal.is_shared(),
        }
    }

    /// Works on this thread until there is no work left. `logs` are synced before work that needs
    /// it.
    fn work_in_lockstep(&self, logs: &[Arc<LogWriter>]) {
        let start = thread_cpu_nanos();
        for keyspace in self.keyspaces.all() {
            while let Some(work) = self.next_work(&keyspace, Duty::All) {
                let logs = if self.needs_synced_logs(&work) { logs } else { &[] };
                self.do_work(work, logs);
            }
        }
        add(&self.context.counts.merge_cpu_nanos, thread_cpu_nanos() - start);
    }

    /// Reserves and returns the next work for `keyspace`. Without work, and if no plan is under
    /// way, notes that the keyspace is at rest.
    fn next_work(&self, keyspace: &Arc<KeyspaceShared>, duty: Duty) -> Option<Work> {
        let mut state = keyspace.state.lock();
        if self.context.is_poisoned() || keyspace.is_halted() {
            return None;
        }
        state.retry_failures(&self.context);
        if state.sealed.is_empty() {
            state.requests.withdraw(Request::Flush);
        }
        let fold = ReservedFold::next(keyspace, &mut state).map(Work::Fold);
        let work = fold
            .or_else(|| ReservedSpill::next(keyspace, &mut state).map(Work::Spill))
            .or_else(|| self.next_merge(keyspace, &mut state, duty));
        state.has_worked |= work.is_some();
        work
    }

    /// Reserves and returns the next plan for `keyspace`, if `duty` lets this thread take it.
    fn next_merge(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        state: &mut KeyspaceState,
        duty: Duty,
    ) -> Option<Work> {
        let proposed = self.propose(state);
        if proposed.is_none() && !state.is_busy() {
            self.note_rest(keyspace, state);
            return None;
        }
        // The keyspace is not at rest: the plan is for later.
        let is_kept = proposed.as_ref().is_some_and(|found| state.keeps_range_of(&found.plan));
        let proposed = proposed.filter(|_| !is_kept);
        let turn = Turn {
            view: &state.view,
            duty,
            waiting_memtables: state.waiting_memtables(),
            has_turns: state.policy.appends() && !is_kept,
        };
        let flush = || propose::flush_waiting(state);
        let proposal = turn.plan(proposed, |proposal| &proposal.plan, flush)?;
        let is_for_space = proposal.origin == Origin::Reclaim;
        let reserved = self.reserved(keyspace, state, proposal);
        // Before the plan is reserved, in case the observer panics.
        keyspace.observe(&self.context, &Event::Planned { plan: &reserved.plan });
        if reserved.by_hand {
            state.requests.withdraw(Request::Merge);
        }
        if is_for_space {
            state.requests.withdraw(Request::Reclaim);
        }
        state.reserve(reserved.plan.clone());
        Some(Work::Merge(reserved, keyspace.version.load_full()))
    }

    /// Returns the proposed plan with all that carrying it out needs to know.
    fn reserved(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        state: &KeyspaceState,
        Proposal { plan, origin }: Proposal,
    ) -> ReservedPlan {
        let tree = &state.view.tree;
        ReservedPlan {
            keyspace: Arc::clone(keyspace),
            bottom: tree.is_bottom_for(&plan).expect("the plan was checked"),
            forgets: !state.policy.wants_seqs() && !keyspace.keeps_seqs,
            takes_memory: state.takes_memory(&plan),
            keeps_older: state.keeps_older_than(&plan),
            rewrites: match origin {
                Origin::Rewrite(table) => Some(table),
                Origin::Policy
                | Origin::ByHand
                | Origin::Flush
                | Origin::Drop
                | Origin::Reclaim => None,
            },
            may_keep: origin == Origin::Policy && state.policy.lets_tables_stay(),
            kept: KeptTables::default(),
            by_hand: origin == Origin::ByHand,
            arrivals: state.arrivals,
            part_bytes: None,
            plan,
        }
    }

    /// Carries `reserved` out on this thread, with inputs in `version`.
    pub(crate) fn merge_now(
        &self,
        reserved: &ReservedPlan,
        version: &Arc<Version>,
    ) -> Result<PlanOutput> {
        self.merger.execute(reserved, version)
    }

    /// Notes that `keyspace` is at rest, and wakes callers who wait for that.
    fn note_rest(&self, keyspace: &KeyspaceShared, state: &mut KeyspaceState) {
        // A manual merge that is not legal at rest never will be.
        state.requests.withdraw(Request::Merge);
        state.requests.withdraw(Request::Reclaim);
        // Before the observer is called, which may panic.
        if state.come_to_rest() {
            self.context.progress.notify();
            if !self.context.options.lockstep {
                keyspace.gate.note(state);
            }
        }
        let waits = state.flushes_memory() && !state.sealed.is_empty();
        if state.has_worked && !waits {
            state.has_worked = false;
            let table_bytes = state.table_bytes();
            keyspace.observe(&self.context, &Event::Rest { tree: &state.view.tree, table_bytes });
        }
    }

    /// Waits until every keyspace is at rest. If `whose` is given, what keeps the others from
    /// coming to rest is no error, and not waited for.
    ///
    /// # Errors
    /// As [`Store::settle`](crate::Store::settle).
    pub(crate) fn settle(&self, whose: Option<&KeyspaceShared>) -> Result<()> {
        loop {
            self.context.check_writable()?;
            if self.context.options.lockstep
                && let Some(writer) = self.wal.lock().as_mut()
            {
                self.after_seal(writer);
            }
            let turn = self.context.progress.turn();
            let mut busy = false;
            for keyspace in self.keyspaces.all() {
                // Unlocking the state notifies nobody, so this waits for the lock.
                self.seal_overdue(&keyspace, WhenLocked::Wait);
                let mut state = keyspace.state.lock();
                state.retry_failures(&self.context);
                match state.trouble().or_else(|| keyspace.observer_trouble()) {
                    Some(_) if whose.is_some_and(|whose| !std::ptr::eq(whose, &*keyspace)) => {}
                    Some(error) => return Err(error),
                    None => {
                        busy |= state.is_busy() || !state.at_rest;
                        busy |= state.is_fold_due() || state.is_spill_due();
                    }
                }
            }
            if !busy {
                self.remove_obsolete();
                return Ok(());
            }
            self.context.progress.wait_beyond(turn, LOOK_AGAIN);
        }
    }

    /// Removes the files that nobody needs any more.
    pub(crate) fn remove_obsolete(&self) {
        self.wal.retire_logs();
        self.context.leftovers.drop_all();
        self.context.leases.free_waiting();
    }
}
