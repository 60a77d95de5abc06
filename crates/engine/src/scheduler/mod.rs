//! Who merges when: asks policies for plans, has them carried out, and commits them.
//!
//! One plan at a time is [proposed](Proposal), judged, and reserved; then the next is asked for.
//! Threads carry plans out side by side.
//!
//! Work on [memory](crate::memory) comes first: what policies are to see as one run is folded, and
//! memory that holds on to too much of the log is copied.

mod carry_out;
mod propose;
mod sealing;

use crate::commit::Committer;
use crate::context::Context;
use crate::event::Event;
use crate::keyspace::{KeyspaceShared, KeyspaceState, Request, SEALED_MAX};
use crate::keyspaces::Keyspaces;
use crate::manifest::Manifest;
use crate::memory::{ReservedFold, ReservedSpill};
use crate::merge::{Merger, ReservedPlan};
use crate::threads::{Duty, LOOK_AGAIN, Worker};
use crate::version::Version;
use crate::wal::Wal;
use lsmith_storage::error::Result;
use lsmith_storage::log::LogWriter;
use lsmith_storage::panics;
use propose::{Origin, Proposal};
pub(crate) use sealing::WhenLocked;
use std::sync::Arc;

/// Plans that a thread carries out for one keyspace before it looks after the others.
const PLANS_IN_ROW: usize = 4;

/// Decides what is merged when, and has it done.
#[derive(Debug)]
pub(crate) struct Scheduler {
    context: Arc<Context>,
    manifest: Arc<Manifest>,
    keyspaces: Arc<Keyspaces>,
    wal: Arc<Wal>,
    merger: Merger,
    committer: Arc<Committer>,
}

/// Something to do for a keyspace, reserved.
enum Work {
    /// Carry out a plan, with the version that holds its inputs.
    Merge(ReservedPlan, Arc<Version>),
    /// Fold memory into one run.
    Fold(ReservedFold),
    /// Copy memory, so that logs can go.
    Spill(ReservedSpill),
}

impl Worker for Scheduler {
    fn work_once(&self, duty: Duty) -> bool {
        // Panics of what the store was given are caught where it is known what they leave behind.
        panics::catch(|| self.work_for_all(duty)).unwrap_or_else(|panic| {
            let dir = self.context.options.dir.display();
            tracing::error!(%dir, %panic, "a merging thread panicked");
            self.context.poison();
            false
        })
    }

    fn close(&self) {
        self.context.leftovers.close();
        // A panic here is not passed on: the thread that drops the store may be panicking already.
        if let Err(error) = panics::as_error("closing the logs", || self.wal.close()) {
            tracing::warn!(%error, "the log could not be synced and cut while closing");
        }
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
        context: &Arc<Context>,
    ) -> Scheduler {
        Scheduler {
            context: Arc::clone(context),
            manifest: Arc::clone(manifest),
            keyspaces: Arc::clone(keyspaces),
            wal: Arc::clone(wal),
            committer: Arc::clone(committer),
            merger,
        }
    }

    /// Does some of what there is to do for each keyspace, else a part of what another thread
    /// does. Returns whether there was anything.
    fn work_for_all(&self, duty: Duty) -> bool {
        panics::logged("making a log ahead", || self.wal.make_log_ahead());
        self.context.leftovers.drop_unless_busy();
        let mut worked = false;
        for keyspace in self.keyspaces.all() {
            worked |= self.work_for(&keyspace, duty);
        }
        worked || self.merger.help()
    }

    fn work_for(&self, keyspace: &Arc<KeyspaceShared>, duty: Duty) -> bool {
        self.seal_overdue(keyspace, WhenLocked::Leave);
        let next = |_| {
            let open = !self.context.is_closing();
            open.then(|| self.next_work(keyspace, duty)).flatten()
        };
        let work = (0..PLANS_IN_ROW).map_while(next);
        work.map(|work| self.do_in_background(work)).count() > 0
    }

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

    /// Returns true if the log must be synced before the outcome of `work` is durable: else there
    /// could be later writes without earlier ones after power loss.
    fn needs_synced_logs(&self, work: &Work) -> bool {
        // Asked after the work was taken: what it takes was written before.
        match work {
            Work::Merge(plan, _) => plan.keeps_older || plan.takes_memory && self.wal.is_shared(),
            Work::Fold(_) => false,
            Work::Spill(_) => self.wal.is_shared(),
        }
    }

    /// Works on this thread until there is nothing to do. `logs` are all that may have to be synced
    /// first.
    fn work_in_lockstep(&self, logs: &[Arc<LogWriter>]) {
        for keyspace in self.keyspaces.all() {
            while let Some(work) = self.next_work(&keyspace, Duty::All) {
                let logs = if self.needs_synced_logs(&work) { logs } else { &[] };
                self.do_work(work, logs);
            }
        }
    }

    /// Takes the next thing to do for `keyspace` and reserves it. Where there is nothing the
    /// keyspace has come to rest.
    fn next_work(&self, keyspace: &Arc<KeyspaceShared>, duty: Duty) -> Option<Work> {
        let mut state = keyspace.state.lock();
        if self.context.is_poisoned() {
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
        let mine = |plan: &Proposal| duty == Duty::All || state.takes_memory(&plan.plan);
        let proposed = proposed.filter(mine);
        // Four memtables stop writers. A plan that leaves them there must not come first again and
        // again where there is one thread.
        let waits = state.waiting_memtables() >= SEALED_MAX
            && proposed.as_ref().is_some_and(|plan| !state.takes_memory(&plan.plan));
        let flush_first = if waits { propose::flush_waiting(state) } else { None };
        let proposal = flush_first.or(proposed).or_else(|| propose::flush_waiting(state))?;
        let reserved = self.reserved(keyspace, state, proposal);
        // First: where an observer panics nothing is reserved.
        keyspace.observe(&self.context, &Event::Planned { plan: &reserved.plan });
        if reserved.by_hand {
            state.requests.withdraw(Request::Merge);
        }
        state.reserve(reserved.plan.clone());
        Some(Work::Merge(reserved, keyspace.version.load_full()))
    }

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
            forgets: !state.policy.wants_numbers(),
            takes_memory: state.takes_memory(&plan),
            keeps_older: state.keeps_older_than(&plan),
            rewrites: match origin {
                Origin::Rewrite(table) => Some(table),
                Origin::Policy | Origin::ByHand | Origin::Flush => None,
            },
            by_hand: origin == Origin::ByHand,
            part_bytes: None,
            plan,
        }
    }

    /// Notes that there is nothing to do for `keyspace`, and wakes those who wait for that.
    fn note_rest(&self, keyspace: &KeyspaceShared, state: &mut KeyspaceState) {
        // What could not be merged by hand will not be by itself.
        state.requests.withdraw(Request::Merge);
        let is_news = state.come_to_rest();
        let waits = state.flushes_memory() && !state.sealed.is_empty();
        if state.has_worked && !waits {
            state.has_worked = false;
            let table_bytes = state.table_bytes();
            keyspace.observe(&self.context, &Event::Rest { tree: &state.view.tree, table_bytes });
        }
        if is_news {
            self.context.progress.notify();
        }
    }

    /// Waits until every keyspace is at rest.
    ///
    /// # Errors
    /// What keeps a keyspace from coming to rest: the error of a failed merge, or `Poisoned`.
    pub(crate) fn settle(&self) -> Result<()> {
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
                // No event tells that the state was unlocked, so this waits for it here.
                self.seal_overdue(&keyspace, WhenLocked::Wait);
                let mut state = keyspace.state.lock();
                state.retry_failures(&self.context);
                busy |= state.is_busy() || !state.at_rest;
                busy |= state.is_fold_due() || state.is_spill_due();
                if let Some(error) = state.trouble().or_else(|| keyspace.observer_trouble()) {
                    return Err(error);
                }
            }
            if !busy {
                self.wal.retire_logs();
                self.context.leftovers.drop_all();
                return Ok(());
            }
            self.context.progress.wait_beyond(turn, LOOK_AGAIN);
        }
    }
}
