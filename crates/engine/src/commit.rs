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

use crate::context::Context;
use crate::event::Event;
use crate::keyspace::{KeyspaceState, Request};
use crate::keyspaces::Keyspaces;
use crate::manifest::{Manifest, Record};
use crate::memory::remove_spill;
use crate::merge::{PlanOutput, PlanPart, ReservedPlan, named};
use crate::stats::add;
use crate::version::{Change, Version};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::sync::MutexGuard;
use lsmith_tree::{Key, KeyRange, MergePlan, SeqNo, Tree, TreeEdit, apply};
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
struct Coming<'a, 'b>(&'a mut MutexGuard<'b, KeyspaceState>);

impl Drop for Coming<'_, '_> {
    fn drop(&mut self) {
        self.0.coming = None;
    }
}

/// Makes changes of keyspaces take effect.
#[derive(Debug)]
pub(crate) struct Committer {
    context: Arc<Context>,
    manifest: Arc<Manifest>,
    keyspaces: Arc<Keyspaces>,
}

impl Committer {
    /// Returns a committer that writes changes to `manifest`.
    pub(crate) fn new(
        context: &Arc<Context>,
        manifest: &Arc<Manifest>,
        keyspaces: &Arc<Keyspaces>,
    ) -> Committer {
        Committer {
            context: Arc::clone(context),
            manifest: Arc::clone(manifest),
            keyspaces: Arc::clone(keyspaces),
        }
    }

    /// Commits `done`, which came out of a part of `job`, or all of it; the plan of the job is
    /// what is left then. Whether it could be: the policy is asked anew otherwise.
    pub(crate) fn commit(
        &self,
        reserved: &mut ReservedPlan,
        plan_part: PlanPart,
        done: PlanOutput,
    ) -> Result<bool> {
        let keyspace = Arc::clone(&reserved.keyspace);
        self.keyspaces.balance_memory_for(&done.tables);
        let committing = keyspace.committing.lock();
        let mut state = keyspace.state.lock();
        // Others may have rewritten blocks beside what they took, across a hole that this plan was
        // to fill: a plan that was legal can be illegal now, though nobody touched its inputs.
        if !done.still_holds(&state.view.tree)
            || !state.still_allows(&plan_part.plan, &reserved.plan)
        {
            drop(state);
            done.tables.iter().for_each(|table| table.retire());
            // Its files go before the plan counts as over.
            drop(done);
            let mut state = keyspace.state.lock();
            state.release(&reserved.plan);
            if reserved.by_hand {
                state.ask(Request::Merge);
            }
            return Ok(false);
        }
        let old = self.commit_to(&mut state, reserved, plan_part, done)?;
        // Large files and memtables take their time to go: nobody waits for that, but who waits for
        // rest.
        state.leaving += 1;
        drop(state);
        // Also where a panic ends this.
        let busy = keyspace.busy_guard();
        drop(committing);
        self.keyspaces.balance_memory();
        drop(old);
        drop(busy);
        Ok(true)
    }

    /// The version that was shown before.
    fn commit_to(
        &self,
        state: &mut MutexGuard<'_, KeyspaceState>,
        reserved: &mut ReservedPlan,
        plan_part: PlanPart,
        done: PlanOutput,
    ) -> Result<Arc<Version>> {
        let PlanPart { plan, end, waiting_bytes } = plan_part;
        let PlanOutput { outcome, tables, bytes_read, bytes_written, .. } = done;
        let retire = || tables.iter().for_each(|table| table.retire());
        let edit = TreeEdit::of_plan(&state.view.tree, &plan, outcome)
            .map_err(|error| came_out_wrong(error.to_string()))
            .inspect_err(|_| retire())?;
        let written = self.write_edit(state, reserved.keyspace.id, &plan, &edit);
        // A damaged table can hold keys that are not in its range.
        let named = |error| named(error, &plan.inputs, &reserved.keyspace.version.load_full());
        let written = written.map_err(named);
        let (after, flushed_seq) = written.inspect_err(|_| {
            // In a poisoned store nobody knows whether the record is there: its tables must stay.
            if self.context.check_writable().is_ok() {
                retire();
            }
        })?;
        let bytes_at_peak = state.table_bytes() + waiting_bytes + bytes_written;
        state.add_tables(tables);
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
        Ok(self.apply_to(state, reserved, written))
    }

    /// Writes to the manifest what `plan` changes, which comes to `edit`. The tree afterwards, and
    /// up to which number all writes have left memory.
    fn write_edit(
        &self,
        state: &mut MutexGuard<'_, KeyspaceState>,
        keyspace: u32,
        plan: &MergePlan,
        edit: &TreeEdit,
    ) -> Result<(Tree, SeqNo)> {
        let mut after = state.view.tree.clone();
        apply(&mut after, edit).map_err(|error| {
            let told = format!("what a merge wrote does not fit the tree: {error}");
            Error::new(ErrorKind::Corruption, told).at(&self.context.options.dir)
        })?;
        let (flushed_seq, taken) = state.taken_by(plan, &after);
        let edit = edit.durable(&state.view.tree);
        let record = Record::Edit { keyspace, flushed_seq, taken, edit };
        Ok((self.write_apart(state, after, record)?, flushed_seq))
    }

    /// Writes `record` to the manifest, durably, while others may have the lock of `state`. The
    /// record turns the tree into `coming`, which is returned with the changes of memory that
    /// happened meanwhile. The caller holds `committing`.
    ///
    /// # Errors
    /// As [`Manifest::write`]: the tree then stays as it is.
    pub(crate) fn write_apart(
        &self,
        state: &mut MutexGuard<'_, KeyspaceState>,
        coming: Tree,
        record: Record,
    ) -> Result<Tree> {
        state.coming = Some(coming);
        let coming = Coming(state);
        let written = MutexGuard::unlocked(coming.0, || self.manifest.write(record, |_| ()));
        let tree = coming.0.coming.take().expect("only who holds `committing` takes it");
        written.map(|()| tree)
    }

    /// Applies what the manifest knows of, and shows it to readers. The version that was shown
    /// before.
    fn apply_to(
        &self,
        state: &mut KeyspaceState,
        reserved: &mut ReservedPlan,
        written: Written,
    ) -> Arc<Version> {
        let Written { plan, end, edit, after, flushed_seq, .. } = written;
        let Written { bytes_read, bytes_written, bytes_at_peak, .. } = written;
        let step = self.context.one_step();
        state.release(&reserved.plan);
        let before = std::mem::replace(&mut state.view.tree, after);
        let spill = state.spill;
        state.forget_taken(&plan, flushed_seq);
        let old = reserved.keyspace.version.load_full();
        state.failed_in_row = 0;
        let change = Change { before: &before, edit: &edit };
        reserved.keyspace.publish_change(state, change);
        step.over();
        state.let_go(&old, change, &reserved.keyspace.version.load());
        if state.spill.is_none() {
            remove_spill(&self.context, spill);
        }
        self.count_bytes(reserved, bytes_read, bytes_written);
        self.hold_rest(state, reserved, end);
        if reserved.rewrites.is_none() {
            state.policy.note_tree(&state.view.tree);
        }
        reserved.keyspace.gate.note(state);
        let table_bytes = state.table_bytes();
        let event = Event::Committed {
            plan: &plan,
            edit: &edit,
            before: &before,
            tree: &state.view.tree,
            bytes_written,
            bytes_at_peak,
            table_bytes,
        };
        reserved.keyspace.observe(&self.context, &event);
        old
    }

    /// Keeps for `job` what is left of its plan from `end` on.
    fn hold_rest(&self, state: &mut KeyspaceState, reserved: &mut ReservedPlan, end: Option<Key>) {
        let rest =
            end.and_then(|start| reserved.within(&KeyRange { start, end: None }, &state.view.tree));
        match rest {
            Some(rest) => {
                state.reserve(rest.clone());
                reserved.plan = rest;
            }
            None => add(&self.context.counts.plans, 1),
        }
    }

    fn count_bytes(&self, reserved: &ReservedPlan, bytes_read: u64, bytes_written: u64) {
        let counts = &self.context.counts;
        if let Some(recorders) = &self.context.recorders {
            recorders.merge_bytes.record(bytes_written);
        }
        if reserved.takes_memory && reserved.plan.inputs.len() == 1 {
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
