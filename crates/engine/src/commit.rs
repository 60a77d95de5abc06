//! How a change of a keyspace takes effect: judged, written to the manifest, applied, shown.
//!
//! Whoever writes to the manifest about a keyspace holds its mutex `committing` from before the
//! change is judged until it is applied. So changes reach the tree in the order in which the
//! manifest has them, and what was true when a change was judged is true when it is applied.
//!
//! The lock of the core is given back while the manifest is written and synced: writers that must
//! seal, and those who ask how the keyspace is, do not wait for the device. Meanwhile
//!
//! * runs on storage and folded memory stay as they are: only who holds `committing` changes them;
//! * memtables are sealed. They lie above all that a plan takes and makes, so a legal plan stays
//!   legal. It happens to the tree as it is and to the one that is [coming](Core::coming), and
//!   none of them gets the name that the manifest is being told of another run;
//! * what the manifest is told of memory stays true. A memtable sealed later has newer writes than
//!   all that were sealed before, and so than all that the plan takes: up to the same number all
//!   writes have left memory, and the same runs have been taken beside;
//! * plans are made for the tree as it is. They keep clear of the plan that is being committed,
//!   whose reservation stays until it is applied;
//! * a crash finds the change in the manifest or not, as at any other moment. Logs and files that
//!   are needed without the change go after it was applied.

use crate::event::Event;
use crate::manifest::Record;
use crate::merge::{Done, Job, PlanPart, named};
use crate::shared::Shared;
use crate::stats::add;
use crate::version::{Change, Core, TableHandle, Version};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::sync::MutexGuard;
use lsmith_tree::{Key, KeyRange, MergePlan, SeqNo, TableId, Tree, TreeEdit, apply};
use std::sync::Arc;

/// A part of a plan that the manifest knows of, to be applied.
struct Written {
    plan: MergePlan,
    /// Where the rest of the plan begins.
    end: Option<Key>,
    edit: TreeEdit,
    /// The tree afterwards.
    after: Tree,
    /// Up to which number all writes have left memory.
    flushed_seq: SeqNo,
    bytes_read: u64,
    bytes_written: u64,
    bytes_at_peak: u64,
}

/// Forgets the tree that is coming once it is no longer waited for, also where that panics.
struct Coming<'a, 'b>(&'a mut MutexGuard<'b, Core>);

impl Drop for Coming<'_, '_> {
    fn drop(&mut self) {
        self.0.coming = None;
    }
}

impl Shared {
    /// Commits `done`, which came out of a part of `job`, or all of it; the plan of the job is
    /// what is left then. Whether it could be: the policy is asked anew otherwise.
    pub(crate) fn commit(&self, job: &mut Job, plan_part: PlanPart, done: Done) -> Result<bool> {
        let space = Arc::clone(&job.space);
        self.balance_memory_for(&done.tables);
        let committing = space.committing.lock();
        let mut core = space.core.lock();
        // Others may have rewritten blocks beside what they took, across a hole that this plan was
        // to fill: a plan that was legal can be illegal now, though nobody touched its inputs.
        if !done.still_holds(&core.view.tree) || !core.still_allows(&plan_part.plan, &job.plan) {
            drop(core);
            done.tables.iter().for_each(|table| table.retire());
            // Its files go before the plan counts as over.
            drop(done);
            let mut core = space.core.lock();
            core.release(&job.plan);
            core.merge_all |= job.by_hand;
            return Ok(false);
        }
        let old = self.commit_to(&mut core, job, plan_part, done)?;
        // Large files and memtables take their time to go: nobody waits for that, but who waits for
        // rest.
        core.leaving += 1;
        drop(core);
        // Also where a panic ends this.
        let leaving = space.counted_leaving();
        drop(committing);
        self.balance_memory();
        drop(old);
        drop(leaving);
        Ok(true)
    }

    /// The version that was shown before.
    fn commit_to(
        &self,
        core: &mut MutexGuard<'_, Core>,
        job: &mut Job,
        plan_part: PlanPart,
        done: Done,
    ) -> Result<Arc<Version>> {
        let PlanPart { plan, end, waiting_bytes } = plan_part;
        let Done { outcome, tables, bytes_read, bytes_written, .. } = done;
        let retire = || tables.iter().for_each(|table| table.retire());
        let edit = TreeEdit::of_plan(&core.view.tree, &plan, outcome)
            .map_err(|error| came_out_wrong(error.to_string()))
            .inspect_err(|_| retire())?;
        let written = self.write_edit(core, job.space.id, &plan, &edit);
        // A damaged table can hold keys that are not in its range.
        let named = |error| named(error, &plan.inputs, &job.space.version.load_full());
        let written = written.map_err(named);
        let (after, flushed_seq) = written.inspect_err(|_| {
            // In a poisoned store nobody knows whether the record is there: its tables must stay.
            if self.check_writable().is_ok() {
                retire();
            }
        })?;
        let bytes_at_peak = core.table_bytes() + waiting_bytes + bytes_written;
        core.add_tables(tables);
        let written = Written {
            plan,
            end,
            edit,
            after,
            flushed_seq,
            bytes_read,
            bytes_written,
            bytes_at_peak,
        };
        Ok(self.apply_to(core, job, written))
    }

    /// Writes to the manifest what `plan` changes, which comes to `edit`. The tree afterwards, and
    /// up to which number all writes have left memory.
    fn write_edit(
        &self,
        core: &mut MutexGuard<'_, Core>,
        space: u32,
        plan: &MergePlan,
        edit: &TreeEdit,
    ) -> Result<(Tree, SeqNo)> {
        let mut after = core.view.tree.clone();
        apply(&mut after, edit).map_err(|error| {
            let told = format!("what a merge wrote does not fit the tree: {error}");
            Error::new(ErrorKind::Corruption, told).at(&self.options.dir)
        })?;
        let (flushed_seq, taken) = core.taken_by(plan, &after);
        let edit = edit.durable(&core.view.tree);
        let record = Record::Edit { space, flushed_seq, taken, edit };
        Ok((self.write_apart(core, after, record)?, flushed_seq))
    }

    /// Writes `record` to the manifest, durably, while others may have the lock of `core`. It makes
    /// of the tree the one that is `coming`, which is given back with what has happened to memory
    /// meanwhile. The caller holds `committing`.
    ///
    /// # Errors
    /// As [`write_record`](Shared::write_record): the tree then stays as it is.
    pub(crate) fn write_apart(
        &self,
        core: &mut MutexGuard<'_, Core>,
        coming: Tree,
        record: Record,
    ) -> Result<Tree> {
        core.coming = Some(coming);
        let coming = Coming(core);
        let written = MutexGuard::unlocked(coming.0, || self.write_record(record, |_| ()));
        let tree = coming.0.coming.take().expect("only who holds `committing` takes it");
        written.map(|()| tree)
    }

    /// Applies what the manifest knows of, and shows it to readers. The version that was shown
    /// before.
    fn apply_to(&self, core: &mut Core, job: &mut Job, written: Written) -> Arc<Version> {
        let Written { plan, end, edit, after, flushed_seq, .. } = written;
        let Written { bytes_read, bytes_written, bytes_at_peak, .. } = written;
        let step = self.one_step();
        core.release(&job.plan);
        let before = std::mem::replace(&mut core.view.tree, after);
        let spill = core.spill;
        core.forget_taken(&plan, flushed_seq);
        let old = job.space.version.load_full();
        core.failed_in_row = 0;
        let change = Change { before: &before, edit: &edit };
        job.space.publish_change(core, change);
        step.over();
        core.let_go(&old, change, &job.space.version.load());
        if core.spill.is_none() {
            self.remove_spill(spill);
        }
        self.count_bytes(job, bytes_read, bytes_written);
        self.hold_rest(core, job, end);
        if job.rewrites.is_none() {
            core.policy.note_tree(&core.view.tree);
        }
        job.space.gate.note(core);
        let table_bytes = core.table_bytes();
        let event = Event::Committed {
            plan: &plan,
            edit: &edit,
            before: &before,
            tree: &core.view.tree,
            bytes_written,
            bytes_at_peak,
            table_bytes,
        };
        self.tell(&job.space, &event);
        old
    }

    /// Keeps for `job` what is left of its plan from `end` on.
    fn hold_rest(&self, core: &mut Core, job: &mut Job, end: Option<Key>) {
        let rest =
            end.and_then(|start| job.within(&KeyRange { start, end: None }, &core.view.tree));
        match rest {
            Some(rest) => {
                core.reserve(rest.clone());
                job.plan = rest;
            }
            None => add(&self.counts.plans, 1),
        }
    }

    fn count_bytes(&self, job: &Job, bytes_read: u64, bytes_written: u64) {
        let counts = &self.counts;
        if let Some(recorders) = &self.recorders {
            recorders.merge_bytes.record(bytes_written);
        }
        if job.takes_memory && job.plan.inputs.len() == 1 {
            add(&counts.flush_bytes, bytes_written);
        } else {
            add(&counts.merge_bytes_read, bytes_read);
            add(&counts.merge_bytes_written, bytes_written);
        }
    }
}

/// Tables that were read may be damaged in such a way that their checksums are right.
fn came_out_wrong(told: String) -> Error {
    Error::new(ErrorKind::Corruption, format!("the plan came out wrong: {told}"))
}

impl Core {
    /// Lets the tree name `tables`.
    pub(crate) fn add_tables(&mut self, tables: Vec<Arc<TableHandle>>) {
        let named = |table: Arc<TableHandle>| (TableId(table.number()), table);
        self.tables.extend(tables.into_iter().map(named));
    }
}
