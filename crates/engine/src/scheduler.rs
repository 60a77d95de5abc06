//! Who merges when: asks policies for plans, has them carried out, and commits them.
//!
//! One plan at a time is taken from a policy, judged, and reserved; then the next is asked for.
//! Threads carry plans out side by side, and [commit](crate::commit) them.
//!
//! Work on [memory](crate::memory) comes first: what policies are to see as one run is folded, and
//! what holds on to too much of the log is copied.

use crate::error::{Error, Result};
use crate::event::Event;
use crate::memory::{FoldJob, SpillJob};
use crate::merge::{Job, PlanPart};
use crate::panics;
use crate::pool::LOOK_AGAIN;
use crate::shared::Shared;
use crate::stats::{add, thread_cpu_nanos};
use crate::sync::atomic::Ordering;
use crate::version::{Core, Failure, SEALED_MAX, Space, Version};
use crate::wal::LogWriter;
use crate::write::Locked;
use lsmith_tree::{LevelId, MergePlan, Place, Reason, RunId, TableId, check_plan};
use std::sync::Arc;

/// Logical bytes of a table that a merge by hand writes, at least.
const MANUAL_TABLE_BYTES: u64 = 64 << 20;

/// Tasks that a thread carries out for one keyspace before it looks after the others.
const TASKS_IN_ROW: usize = 4;

/// Which plans a thread takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Any.
    All,
    /// Those that take a memtable, so that memory is never kept waiting by a long merge.
    Memory,
}

/// Something to do for a keyspace, reserved.
pub(crate) enum Task {
    /// Carry out a plan, with the version that holds its inputs.
    Merge(Job, Arc<Version>),
    /// Fold memory into one run.
    Fold(FoldJob),
    /// Copy memory, so that logs can go.
    Spill(SpillJob),
}

impl Shared {
    /// Carries out some of what there is to do for each keyspace, else a part of what another
    /// thread does; whether there was anything.
    pub(crate) fn work_once(&self, duty: Duty) -> bool {
        panics::logged("making a log ahead", || self.make_log_ahead());
        self.leftovers.end_some();
        let mut worked = false;
        for space in self.all_spaces() {
            worked |= self.work_in(&space, duty);
        }
        worked || self.help()
    }

    fn work_in(&self, space: &Arc<Space>, duty: Duty) -> bool {
        self.seal_overdue(space, Locked::GoOn);
        for task in 0..TASKS_IN_ROW {
            if self.closing.load(Ordering::Acquire) {
                return false;
            }
            let Some(next) = self.next_task(space, duty) else {
                if task > 0 {
                    self.tell_rest(space);
                }
                return task > 0;
            };
            self.run_in_background(next);
        }
        self.tell_rest(space);
        true
    }

    fn run_in_background(&self, task: Task) {
        let lets_logs_go = match &task {
            Task::Merge(job, _) => job.takes_memory,
            Task::Fold(_) => false,
            Task::Spill(_) => true,
        };
        let logs = match self.needs_synced_logs(&task).then(|| self.writer.lock()) {
            Some(writer) => writer.as_ref().map_or(Vec::new(), |writer| writer.logs_to_sync()),
            None => Vec::new(),
        };
        self.run(task, &logs);
        if lets_logs_go {
            panics::logged("removing logs", || self.retire_logs());
        }
    }

    /// Whether the log must be synced before what `task` does is durable, or after power loss there
    /// could be later writes without earlier ones.
    fn needs_synced_logs(&self, task: &Task) -> bool {
        // Asked after the task was taken: what it takes was written before.
        let many = || self.shares_log.load(Ordering::SeqCst);
        match task {
            Task::Merge(job, _) => job.keeps_older || job.takes_memory && many(),
            Task::Fold(_) => false,
            Task::Spill(_) => many(),
        }
    }

    /// Carries out plans on this thread until there are none. `logs` are all that may have to be
    /// synced first.
    pub(crate) fn settle_in_lockstep(&self, logs: &[Arc<LogWriter>]) {
        for space in self.all_spaces() {
            let mut worked = false;
            while let Some(task) = self.next_task(&space, Duty::All) {
                worked = true;
                let logs = if self.needs_synced_logs(&task) { logs } else { &[] };
                self.run(task, logs);
            }
            if worked {
                self.tell_rest(&space);
            }
        }
    }

    fn tell_rest(&self, space: &Space) {
        let core = space.core.lock();
        let waits = core.flushes_memory() && !core.sealed.is_empty();
        if !core.is_busy() && !waits && self.propose(&core).is_none() {
            let table_bytes = core.table_bytes();
            self.tell(space, &Event::Rest { tree: &core.view.tree, table_bytes });
        }
    }

    /// Takes the next thing to do for `space` and reserves it.
    fn next_task(&self, space: &Arc<Space>, duty: Duty) -> Option<Task> {
        let mut core = space.core.lock();
        if self.poisoned.load(Ordering::Acquire) {
            return None;
        }
        self.retry_failures(&mut core);
        core.flush_all &= !core.sealed.is_empty();
        if let Some(job) = self.next_fold(space, &mut core) {
            return Some(Task::Fold(job));
        }
        if let Some(job) = self.next_spill(space, &mut core) {
            return Some(Task::Spill(job));
        }
        self.next_merge(space, &mut core, duty)
    }

    fn next_merge(&self, space: &Arc<Space>, core: &mut Core, duty: Duty) -> Option<Task> {
        let takes_memory = |core: &Core, plan: &MergePlan| {
            let level = |run: RunId| core.view.tree.run(run).map(|(level, _)| level);
            plan.inputs.iter().any(|input| level(input.run) == Some(LevelId::Memory))
        };
        let mine = |plan: &MergePlan| duty == Duty::All || takes_memory(core, plan);
        let proposed = self.propose(core).filter(mine);
        let by_hand = core.merge_all && proposed.is_some() && merge_all(core) == proposed;
        // A merge by hand that is none of this thread's duty is left for one whose it is.
        if duty == Duty::All || proposed.is_some() {
            core.merge_all &= core.is_busy();
        }
        // Four memtables stop writers. A plan that leaves them there must not come first again and
        // again where there is one thread.
        let waits = core.waiting_memtables() >= SEALED_MAX
            && proposed.as_ref().is_some_and(|plan| !takes_memory(core, plan));
        let flush_first = if waits { flush_left(core) } else { None };
        let plan = flush_first.or(proposed).or_else(|| flush_left(core))?;
        let tree = &core.view.tree;
        let rewrites = self.rewrite_of(core).filter(|(own, _)| *own == plan);
        let job = Job {
            space: Arc::clone(space),
            bottom: tree.is_bottom_for(&plan).expect("the plan was checked"),
            forgets: !core.policy.wants_numbers(),
            takes_memory: takes_memory(core, &plan),
            keeps_older: core.keeps_older_than(&plan),
            rewrites: rewrites.map(|(_, table)| table),
            by_hand,
            part_bytes: None,
            plan,
        };
        // First: where an observer panics nothing is reserved.
        self.tell(space, &Event::Planned { plan: &job.plan });
        core.reserve(job.plan.clone());
        Some(Task::Merge(job, space.version.load_full()))
    }

    /// The next plan for `core`, checked, nothing changed: by hand if one was asked for, else the
    /// policy's, else the flush of a waiting memtable.
    pub(crate) fn propose(&self, core: &Core) -> Option<MergePlan> {
        if core.merge_all && core.is_busy() {
            return None;
        }
        if core.merge_all
            && let Some(plan) = merge_all(core)
        {
            return Some(plan);
        }
        let start = thread_cpu_nanos();
        let proposed = core.policy.next_merge(&core.view);
        add(&self.counts.planning_nanos, thread_cpu_nanos() - start);
        match proposed {
            Some(plan) => match check_plan(&core.view, &plan) {
                Ok(_) => Some(plan),
                Err(error) => {
                    add(&self.counts.plans_refused, 1);
                    let policy = core.policy.spec();
                    tracing::warn!(%policy, %plan, %error, "a merge policy broke a rule");
                    core.policy.refuse(&core.view);
                    flush(core)
                }
            },
            None => flush_left(core).or_else(|| self.rewrite_of(core).map(|(plan, _)| plan)),
        }
    }

    /// What the engine does by itself about tables of which little is needed.
    fn rewrite_of(&self, core: &Core) -> Option<(MergePlan, TableId)> {
        core.rewrite(self.options.rewrite_below)
    }

    /// Does what `task` says, once `logs` are synced.
    fn run(&self, task: Task, logs: &[Arc<LogWriter>]) {
        match task {
            Task::Merge(job, version) => self.run_merge(job, version, logs),
            Task::Fold(job) => self.run_fold(&job),
            Task::Spill(job) => self.run_spill(&job, logs),
        }
        self.balance_memory();
        self.work.notify();
    }

    /// Carries out `job` and commits it, or gives it up.
    fn run_merge(&self, mut job: Job, version: Arc<Version>, logs: &[Arc<LogWriter>]) {
        let options = &self.options;
        let mut free_bytes = 0;
        let result = panics::catch(|| {
            let timer = self.timer();
            free_bytes = options.env.free_bytes(&options.dir).unwrap_or(0);
            self.sync_all_logs(logs)?;
            self.carry_out(&mut job, version)?;
            timer.end(|recorders| &recorders.merge_nanos);
            Ok(())
        });
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.give_up(&job, error, free_bytes),
            // What the policy or the observer says when the plan commits is the writer's panic.
            Err(panic) if options.lockstep => {
                let mut core = job.space.core.lock();
                core.release(&job.plan);
                drop(core);
                panic.resume()
            }
            Err(panic) => self.give_up(&job, panic.of("a merge"), free_bytes),
        }
    }

    fn carry_out(&self, job: &mut Job, version: Arc<Version>) -> Result<()> {
        if let Some(parts) = self.parts_to_commit(job, &version) {
            return self.merge_by_part(job, version, parts);
        }
        let done = self.execute(job, &version)?;
        // Before the plan is released, so that whoever waits for rest finds the files of obsolete
        // tables gone.
        drop(version);
        let plan_part = PlanPart { plan: job.plan.clone(), end: None, waiting_bytes: 0 };
        self.commit(job, plan_part, done).map(drop)
    }

    /// Notes that `job` failed, which began with `free_bytes` on the device, and keeps its plan out
    /// of the way until the cause is gone.
    fn give_up(&self, job: &Job, error: Error, free_bytes: u64) {
        let mut core = job.space.core.lock();
        core.release(&job.plan);
        if self.closing.load(Ordering::Acquire) {
            return;
        }
        add(&self.counts.plans_failed, 1);
        tracing::warn!(keyspace = job.space.name, plan = %job.plan, %error, "a merge was given up");
        let runs = job.plan.inputs.iter().filter_map(|input| core.view.tree.run(input.run));
        let bytes: u64 = runs.map(|(_, run)| run.bytes()).sum();
        // Parts are written by all threads, and what one took is given back a little later.
        let parts = self.options.threads as u64 + 2;
        core.merge_all |= job.by_hand;
        let bytes = job.part_bytes.map_or(bytes, |part| bytes.min(part * parts));
        let wait = LOOK_AGAIN * (1 << core.failed_in_row.min(10));
        core.failed_in_row += 1;
        core.block(Failure {
            plan: job.plan.clone(),
            error,
            needs_bytes: bytes + bytes / 16 + (64 << 10),
            free_bytes,
            retry_at: self.options.env.now() + wait,
        });
        job.space.gate.note(&core);
    }

    /// Waits until every keyspace is at rest.
    ///
    /// # Errors
    /// What keeps a keyspace from coming to rest: the error of a failed merge, or `Poisoned`.
    pub(crate) fn settle(&self) -> Result<()> {
        loop {
            self.check_writable()?;
            if self.options.lockstep
                && let Some(writer) = self.writer.lock().as_mut()
            {
                self.after_seal(writer);
            }
            let turn = *self.work.turn.lock();
            let mut busy = false;
            for space in self.all_spaces() {
                // Nobody tells who gave the core back, so this waits for it here.
                self.seal_overdue(&space, Locked::Wait);
                let mut core = space.core.lock();
                self.retry_failures(&mut core);
                if let Some(failure) = core.failures.first() {
                    return Err(failure.to_error());
                }
                busy |= core.is_busy() || core.is_fold_due() || core.is_spill_due();
                busy = busy || self.propose(&core).is_some();
                // The policy may have panicked just now.
                if let Some(error) = core.trouble().or_else(|| space.observer_trouble()) {
                    return Err(error);
                }
            }
            if !busy {
                self.retire_logs();
                self.leftovers.end_all();
                return Ok(());
            }
            let mut now = self.work.turn.lock();
            if *now == turn {
                self.work.changed.wait_for(&mut now, LOOK_AGAIN);
            }
        }
    }
}

/// The plan that flushes the oldest memtable, if it can be made now.
fn flush(core: &Core) -> Option<MergePlan> {
    MergePlan::flush(&core.view.tree).filter(|plan| check_plan(&core.view, plan).is_ok())
}

/// What [`flush`] says, unless memory may stay where it is.
fn flush_left(core: &Core) -> Option<MergePlan> {
    if core.flushes_memory() { flush(core) } else { None }
}

/// The plan that merges everything into one run.
fn merge_all(core: &Core) -> Option<MergePlan> {
    let tree = &core.view.tree;
    let runs: Vec<_> = tree.runs().map(|(level, run)| (level, run.id())).collect();
    let (oldest, _) = *runs.last()?;
    let place = match oldest {
        LevelId::Memory => Place::NewRun(0),
        LevelId::Disk(_) => Place::Oldest,
    };
    let reason = Reason::new("asked for by hand: {} runs", [runs.len() as u64, 0, 0]);
    let mut plan = MergePlan::merge(runs.into_iter().map(|(_, run)| run), place, reason);
    plan.cut_bytes = Some(MANUAL_TABLE_BYTES.max(core.view.memtable_bytes));
    check_plan(&core.view, &plan).is_ok().then_some(plan)
}
