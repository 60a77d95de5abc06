//! Who merges when: asks policies for plans, has them carried out, and commits them.
//!
//! One plan at a time is taken from a policy, judged, and reserved; then the next is asked for.
//! Threads carry plans out side by side. A plan commits under the lock of its keyspace: judged
//! again, written to the manifest, applied to the tree, shown to readers.

use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::manifest::Record;
use crate::merge::{Done, Job};
use crate::shared::Shared;
use crate::stats::add;
use crate::version::{Core, Failure, Space, Version};
use crate::wal::LogWriter;
use lsmith_tree::{
    LevelId, MergePlan, Place, Reason, RunId, TableId, TreeEdit, TreeView, apply, check_plan,
};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Logical bytes of a table that a merge by hand writes, at least.
const MANUAL_TABLE_BYTES: u64 = 64 << 20;

/// How long an idle thread sleeps before it looks whether failed plans can be tried again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Which plans a thread takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Any.
    All,
    /// Those that take a memtable, so that memory is never kept waiting by a long merge.
    Memory,
}

impl Shared {
    /// Carries out plans until the store closes.
    pub(crate) fn work(self: &Arc<Self>, duty: Duty) {
        while !self.closing.load(Ordering::Acquire) {
            let turn = *self.work.turn.lock();
            let mut worked = false;
            for space in self.all_spaces() {
                while !self.closing.load(Ordering::Acquire)
                    && let Some((job, version)) = self.next_job(&space, duty)
                {
                    worked = true;
                    self.run_in_background(&job, version);
                }
                if worked {
                    self.tell_rest(&space);
                }
            }
            let mut now = self.work.turn.lock();
            if *now == turn && !worked && !self.closing.load(Ordering::Acquire) {
                self.work.changed.wait_for(&mut now, LOOK_AGAIN);
            }
        }
    }

    fn run_in_background(&self, job: &Job, version: Arc<Version>) {
        let many = job.takes_memory && self.spaces.read().len() > 1;
        let logs = match many.then(|| self.writer.lock()) {
            Some(writer) => writer.as_ref().map_or(Vec::new(), |writer| writer.logs_to_sync()),
            None => Vec::new(),
        };
        self.run(job, version, &logs);
        if job.takes_memory
            && let Some(writer) = self.writer.lock().as_mut()
        {
            self.retire_logs(writer);
        }
    }

    /// Carries out plans on this thread until there are none. `logs` are those that a flush must
    /// sync where keyspaces share them.
    pub(crate) fn settle_in_lockstep(&self, logs: &[Arc<LogWriter>]) {
        let spaces = self.all_spaces();
        let logs = if spaces.len() > 1 { logs } else { &[] };
        for space in spaces {
            let mut worked = false;
            while let Some((job, version)) = self.next_job(&space, Duty::All) {
                worked = true;
                self.run(&job, version, logs);
            }
            if worked {
                self.tell_rest(&space);
            }
        }
    }

    fn tell_rest(&self, space: &Space) {
        let core = space.core.lock();
        if !core.is_busy() && core.sealed.is_empty() && self.propose(&core).is_none() {
            let table_bytes = space.version.load().table_bytes();
            self.tell(space, &Event::Rest { tree: &core.view.tree, table_bytes });
        }
    }

    /// Takes the next plan of `space` and reserves it; with the version that holds its inputs.
    fn next_job(&self, space: &Arc<Space>, duty: Duty) -> Option<(Job, Arc<Version>)> {
        let mut core = space.core.lock();
        if self.poisoned.load(Ordering::Acquire) {
            return None;
        }
        self.retry_failures(&mut core);
        core.view.oldest_snapshot = self.snapshots.oldest();
        let takes_memory = |core: &Core, plan: &MergePlan| {
            let level = |run: RunId| core.view.tree.run(run).map(|(level, _)| level);
            plan.inputs.iter().any(|input| level(input.run) == Some(LevelId::Memory))
        };
        let mine = |plan: &MergePlan| duty == Duty::All || takes_memory(&core, plan);
        let proposed = self.propose(&core).filter(mine);
        // A merge by hand that is none of this thread's duty is left for one whose it is.
        if duty == Duty::All || proposed.is_some() {
            core.merge_all &= core.is_busy();
        }
        let plan = proposed.or_else(|| flush(&core))?;
        let tree = &core.view.tree;
        let newest = plan.inputs.iter().filter_map(|input| core.newest_seq(input.run)).max();
        let job = Job {
            space: Arc::clone(space),
            bottom: tree.is_bottom_for(&plan).expect("the plan was checked"),
            takes_memory: takes_memory(&core, &plan),
            flushed_seq: newest.unwrap_or_default(),
            plan,
        };
        core.reserve(job.plan.clone());
        self.tell(space, &Event::Planned { plan: &job.plan });
        Some((job, space.version.load_full()))
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
        match core.policy.next_merge(&core.view) {
            Some(plan) => match judge(&core.view, &plan) {
                Ok(()) => Some(plan),
                Err(error) => {
                    add(&self.counts.plans_refused, 1);
                    let policy = core.policy.spec();
                    tracing::warn!(%policy, %plan, %error, "a merge policy broke a rule");
                    flush(core)
                }
            },
            None => flush(core),
        }
    }

    /// Carries out `job` and commits it, or gives it up.
    fn run(&self, job: &Job, version: Arc<Version>, logs: &[Arc<LogWriter>]) {
        let options = &self.options;
        let free_bytes = options.env.free_bytes(&options.dir).unwrap_or(0);
        let result = self.sync_all_logs(logs).and_then(|()| self.execute(job, &version));
        // Before the plan is released, so that whoever waits for rest finds the files of obsolete
        // tables gone.
        drop(version);
        let failed = match result {
            Ok(done) => self.commit(job, done),
            Err(error) => Err(error),
        };
        if let Err(error) = failed {
            self.give_up(job, &error, free_bytes);
        }
        self.work.notify();
    }

    fn commit(&self, job: &Job, done: Done) -> Result<()> {
        let mut core = job.space.core.lock();
        core.release(&job.plan);
        let Done { outcome, tables, bytes_read, bytes_written } = done;
        let edit = check_plan(&core.view, &job.plan)
            .and_then(|()| TreeEdit::of_plan(&core.view.tree, &job.plan, outcome));
        let edit = edit.map_err(|error| {
            tables.iter().for_each(|table| table.retire());
            Error::new(ErrorKind::InvalidArgument, format!("the plan no longer fits: {error}"))
        })?;
        let durable = edit.durable(&core.view.tree);
        let (space, flushed_seq) = (job.space.id, job.flushed_seq);
        let record = Record::Edit { space, flushed_seq, edit: durable };
        self.write_record(record, |_| ()).inspect_err(|_| {
            // In a poisoned store nobody knows whether the record is there: its tables must stay.
            if self.check_writable().is_ok() {
                tables.iter().for_each(|table| table.retire());
            }
        })?;
        let bytes_at_peak = job.space.version.load().table_bytes() + bytes_written;
        core.tables.extend(tables.into_iter().map(|table| (TableId(table.number()), table)));
        let before = core.view.tree.clone();
        apply(&mut core.view.tree, &edit).expect("the manifest took the same edit");
        core.sealed.retain(|held| !job.plan.takes(held.run));
        let obsolete = obsolete(&before, &core, job);
        core.failed_in_row = 0;
        job.space.publish(&core);
        obsolete.iter().for_each(|table| table.retire());
        core.tables.retain(|_, table| !obsolete.iter().any(|gone| Arc::ptr_eq(gone, table)));
        self.note_pressure(&mut core);
        self.count_plan(job, bytes_read, bytes_written);
        let table_bytes = job.space.version.load().table_bytes();
        let (plan, tree) = (&job.plan, &core.view.tree);
        let event = Event::Committed {
            plan,
            edit: &edit,
            before: &before,
            tree,
            bytes_written,
            bytes_at_peak,
            table_bytes,
        };
        self.tell(&job.space, &event);
        Ok(())
    }

    fn count_plan(&self, job: &Job, bytes_read: u64, bytes_written: u64) {
        let counts = &self.counts;
        add(&counts.plans, 1);
        if job.takes_memory && job.plan.inputs.len() == 1 {
            add(&counts.flush_bytes, bytes_written);
        } else {
            add(&counts.merge_bytes_read, bytes_read);
            add(&counts.merge_bytes_written, bytes_written);
        }
    }

    /// Notes that `job` failed, which began with `free_bytes` on the device, and keeps its plan out
    /// of the way until the cause is gone.
    fn give_up(&self, job: &Job, error: &Error, free_bytes: u64) {
        let mut core = job.space.core.lock();
        core.release(&job.plan);
        if self.closing.load(Ordering::Acquire) {
            return;
        }
        add(&self.counts.plans_failed, 1);
        tracing::warn!(keyspace = job.space.name, plan = %job.plan, %error, "a merge was given up");
        let runs = job.plan.inputs.iter().filter_map(|input| core.view.tree.run(input.run));
        let bytes: u64 = runs.map(|(_, run)| run.bytes()).sum();
        let wait = LOOK_AGAIN * (1 << core.failed_in_row.min(10));
        core.failed_in_row += 1;
        core.block(Failure {
            plan: job.plan.clone(),
            kind: error.kind(),
            message: error.to_string(),
            needs_bytes: bytes + bytes / 16 + (64 << 10),
            free_bytes,
            retry_at: self.options.env.now() + wait,
        });
        self.note_pressure(&mut core);
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
                let mut core = space.core.lock();
                self.retry_failures(&mut core);
                if let Some(failure) = core.failures.first() {
                    return Err(failure.to_error());
                }
                busy |= core.is_busy() || self.propose(&core).is_some();
            }
            if !busy {
                if let Some(writer) = self.writer.lock().as_mut() {
                    self.retire_logs(writer);
                }
                return Ok(());
            }
            let mut now = self.work.turn.lock();
            if *now == turn {
                self.work.changed.wait_for(&mut now, LOOK_AGAIN);
            }
        }
    }
}

/// Judges `plan` as [`check_plan`] does, and by a rule of the engine's own: memtables are taken
/// whole and oldest first, because the manifest says up to which write memory has been saved.
fn judge(view: &TreeView, plan: &MergePlan) -> std::result::Result<(), String> {
    check_plan(view, plan).map_err(|error| error.to_string())?;
    let mut taken = Vec::new();
    for run in view.tree.memory().runs() {
        let input = plan.inputs.iter().find(|input| input.run == run.id());
        if input.is_some_and(|input| !input.range.covers(&run.hull())) {
            return Err(format!("the plan takes a part of memtable {}", run.id()));
        }
        taken.push(input.is_some());
    }
    match taken.is_sorted() {
        true => Ok(()),
        false => Err("the plan passes over an older memtable".into()),
    }
}

/// The plan that flushes the oldest memtable, if it can be made now.
fn flush(core: &Core) -> Option<MergePlan> {
    MergePlan::flush(&core.view.tree).filter(|plan| check_plan(&core.view, plan).is_ok())
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

/// The tables of the inputs of `job` that the tree does not name any more.
fn obsolete(
    before: &lsmith_tree::Tree,
    core: &Core,
    job: &Job,
) -> Vec<Arc<crate::version::TableHandle>> {
    let slices = core.view.tree.disk_runs().flat_map(|run| run.slices());
    let named: FxHashSet<TableId> = slices.map(|slice| slice.table().id).collect();
    let inputs = job.plan.inputs.iter().filter_map(|input| before.run(input.run));
    let tables = inputs.flat_map(|(_, run)| run.slices().iter().map(|slice| slice.table().id));
    let gone = tables.filter(|id| !named.contains(id));
    gone.filter_map(|id| core.tables.get(&id).map(Arc::clone)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memtables_are_taken_whole_and_oldest_first() {
        let view: TreeView =
            "tree\nmem r3[t3:a..c 1MB] r2[t2:m..z 1MB]\nL0 r1[t1:a..z 1MB]".parse().unwrap();
        for (plan, told) in [
            ("merge r2 over .. into new run at L0", None),
            ("merge r3 r2 over .. into new run at L0", None),
            ("merge r3 r2 r1 over .. in place", None),
            ("merge r3 over a..c into new run at L0", Some("passes over an older memtable")),
            ("merge r2 over m..p into new run at L0", Some("takes a part of memtable r2")),
        ] {
            let found = judge(&view, &plan.parse().unwrap()).err();
            match told {
                Some(told) => assert!(found.is_some_and(|found| found.contains(told)), "{plan}"),
                None => assert_eq!(found, None, "{plan}"),
            }
        }
    }
}
