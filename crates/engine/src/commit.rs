//! How a change of a keyspace takes effect: it is judged, written to the manifest, applied to the
//! tree, and shown to readers.
//!
//! A thread that writes to the manifest about a keyspace holds the mutex `committing` of the
//! keyspace from before it judges the change until the change is applied. So changes reach the tree
//! in the order of the manifest, and a change is applied to the tree for which it was judged.
//!
//! The lock of the state is released while the manifest is written and synced. So writers that seal
//! and callers that read the state do not wait for the device. Meanwhile
//!
//! * runs on storage and folded memory do not change: only the holder of `committing` changes them;
//! * memtables may be sealed. They lie above all inputs and outputs of a plan, so a legal plan
//!   stays legal. A sealed memtable is added to the present tree and to the
//!   [coming](KeyspaceState::coming) one, and gets a run id that is new in both;
//! * the record stays true of memory. A memtable sealed later has newer writes than every run that
//!   the plan takes, so neither the sequence number up to which all writes have left memory nor the
//!   marks of other runs taken change;
//! * plans are made for the present tree. They keep clear of the plan that is being committed,
//!   whose reservation stays until the plan is applied;
//! * a crash finds the change in the manifest or does not, as at any moment. Logs and files that
//!   are needed without the change are removed after the change is applied.

use crate::context::Context;
use crate::event::Event;
use crate::keyspace::{KeyspaceShared, KeyspaceState, Request};
use crate::keyspaces::Keyspaces;
use crate::manifest::{Manifest, Record};
use crate::memory::remove_spill;
use crate::merge::{PlanOutput, PlanPart, ReservedPlan, named};
use crate::stats::add;
use crate::version::Version;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::sync::MutexGuard;
use lsmith_storage::sync::atomic::Ordering;
use lsmith_tree::{DoneReaders, Key, KeyRange, MergePlan, Mode, PlanCauses, SeqNo, Tree, TreeEdit};
use std::sync::Arc;

/// A plan, or a part of it, whose edit is in the manifest and not yet applied.
struct WrittenEdit {
    plan: MergePlan,
    /// The key from which on the rest of the plan is still to be done, if there is a rest.
    end: Option<Key>,
    edit: TreeEdit,
    /// The tree afterwards.
    after: Tree,
    /// The sequence number up to which all writes have left memory.
    flushed_seq: SeqNo,
    bytes_read: u64,
    bytes_written: u64,
    bytes_at_peak: u64,
    /// As in [`PlanOutput`].
    filtered_from: Option<u64>,
}

/// Clears the coming tree of the state when dropped, also by a panic.
struct ComingTree<'a, 'b>(&'a mut MutexGuard<'b, KeyspaceState>);

impl Drop for ComingTree<'_, '_> {
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

    /// Notes in the manifest that `keyspaces` have range deletes, so that programs that know of
    /// none refuse the store. Does so once for each keyspace.
    pub(crate) fn allow_ranges<'a>(
        &self,
        keyspaces: impl Iterator<Item = &'a Arc<KeyspaceShared>>,
    ) -> Result<()> {
        for keyspace in keyspaces {
            if keyspace.deletes_ranges.load(Ordering::Acquire) {
                continue;
            }
            let _committing = keyspace.committing.lock();
            keyspace.state.lock().check_kept(keyspace)?;
            if !keyspace.deletes_ranges.load(Ordering::Acquire) {
                self.manifest.write(Record::DeletesRanges { keyspace: keyspace.id }, |_| ())?;
                keyspace.deletes_ranges.store(true, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Commits `done`, the output of `plan_part`, which is a part or all of `reserved`. Afterwards
    /// the plan of `reserved` is the part that is left to do.
    ///
    /// Returns false, and releases the plan, if the plan is no longer legal. The policy then makes
    /// a new one.
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
        // Another plan may have rewritten blocks next to its inputs, across a hole that this plan
        // was to fill. So a legal plan can become illegal although its inputs are the same.
        // Entries that arrived meanwhile may be older than tombstones that this plan has dropped.
        let drops_too_much =
            done.outcome.dropped_below > SeqNo(0) && state.arrivals != reserved.arrivals;
        if drops_too_much
            || !done.still_holds(&state.view.tree)
            || !state.still_allows(&plan_part.plan, &reserved.plan)
        {
            drop(state);
            done.tables.iter().for_each(|table| table.discard());
            // Removes the files before the plan counts as over.
            drop(done);
            let mut state = keyspace.state.lock();
            state.release(&reserved.plan);
            if reserved.by_hand {
                state.ask(Request::Merge);
            }
            return Ok(false);
        }
        let old = self.write_and_apply(&mut state, reserved, plan_part, done)?;
        // Freeing large files and memtables takes time. Only callers that wait for rest wait for
        // it.
        state.leaving += 1;
        drop(state);
        // Ends also by a panic.
        let busy = keyspace.busy_guard();
        drop(committing);
        self.keyspaces.balance_memory();
        drop(old);
        drop(busy);
        Ok(true)
    }

    /// Writes the edit of `plan_part` to the manifest and applies it. Returns the version that
    /// readers saw before. Retires the tables of `done` if that fails.
    fn write_and_apply(
        &self,
        state: &mut MutexGuard<'_, KeyspaceState>,
        reserved: &mut ReservedPlan,
        plan_part: PlanPart,
        done: PlanOutput,
    ) -> Result<Arc<Version>> {
        let PlanPart { plan, end, waiting_bytes } = plan_part;
        let PlanOutput { mut outcome, tables, bytes_read, bytes_written, filtered_from, .. } = done;
        // Range deletes that arrived meanwhile are not applied.
        if state.arrivals != reserved.arrivals {
            outcome.deletes_applied = SeqNo(0);
        }
        let discard = || tables.iter().for_each(|table| table.discard());
        // A damaged table can hold keys that are not in its range.
        let version = reserved.keyspace.version.load_full();
        let with_inputs = |error| named(error, &plan.inputs, &version);
        let edit = TreeEdit::of_plan(&state.view.tree, &plan, outcome).map(|mut edit| {
            if state.policy.wants_tombstone_ages() {
                edit.date_tombstones(&state.view.tree);
            }
            edit
        });
        let range_deletes = state.hidden_by(&plan);
        let readers = state.done_readers(&self.context);
        let edit = edit
            .map_err(|error| error.to_string())
            .and_then(|edit| with_range_deletes(edit, range_deletes, &state.view.tree, readers))
            .map_err(|message| illegal_outcome(&message).at(&self.context.options.dir))
            .map_err(with_inputs)
            .inspect_err(|_| discard())?;
        let result = self.write_edit(state, reserved.keyspace.id, &plan, &edit);
        let (after, flushed_seq) = result.map_err(with_inputs).inspect_err(|_| {
            // In a poisoned store the manifest may have the record: the tables must stay.
            if self.context.check_writable().is_ok() {
                discard();
            }
        })?;
        let bytes_at_peak = state.table_bytes() + waiting_bytes + bytes_written;
        state.add_tables(tables);
        let written = WrittenEdit {
            plan,
            end,
            edit,
            after,
            flushed_seq,
            bytes_read,
            bytes_written,
            bytes_at_peak,
            filtered_from,
        };
        Ok(self.apply_written(state, reserved, written))
    }

    /// Writes `edit`, the effect of `plan`, to the manifest. Returns the tree afterwards, and the
    /// sequence number up to which all writes have left memory.
    fn write_edit(
        &self,
        state: &mut MutexGuard<'_, KeyspaceState>,
        keyspace: u32,
        plan: &MergePlan,
        edit: &TreeEdit,
    ) -> Result<(Tree, SeqNo)> {
        let mut after = state.view.tree.clone();
        edit.clone().apply_to(&mut after).map_err(|error| {
            let message = format!("the output of a merge does not fit the tree: {error}");
            Error::new(ErrorKind::Corruption, message).at(&self.context.options.dir)
        })?;
        let (flushed_seq, taken) = state.taken_by(plan, &after);
        let edit = edit.durable(&state.view.tree);
        let record = Record::Edit { keyspace, flushed_seq, taken, edit };
        Ok((self.write_apart(state, after, record)?, flushed_seq))
    }

    /// Writes `record` to the manifest and syncs it, with the lock of `state` released meanwhile.
    /// The record turns the tree into `coming`. Returns `coming` with the memtables that were
    /// sealed meanwhile. The caller holds `committing`.
    ///
    /// # Errors
    /// As [`Manifest::write`]. The tree then stays as it is.
    pub(crate) fn write_apart(
        &self,
        state: &mut MutexGuard<'_, KeyspaceState>,
        coming: Tree,
        record: Record,
    ) -> Result<Tree> {
        state.coming = Some(coming);
        let coming = ComingTree(state);
        let written = MutexGuard::unlocked(coming.0, || self.manifest.write(record, |_| ()));
        let tree = coming.0.coming.take().expect("only the holder of `committing` takes it");
        written.map(|()| tree)
    }

    /// Writes `edits`, one for each of several keyspaces, to the manifest as one record and syncs
    /// it. The caller holds `committing` of all of them.
    ///
    /// # Errors
    /// As [`Manifest::write`].
    pub(crate) fn write_edits(&self, mut edits: Vec<Record>) -> Result<()> {
        let record = if edits.len() == 1 { edits.remove(0) } else { Record::Together(edits) };
        self.manifest.write(record, |_| ())
    }

    /// Applies `written` to the tree and shows it to readers. Returns the version that they saw
    /// before.
    fn apply_written(
        &self,
        state: &mut KeyspaceState,
        reserved: &mut ReservedPlan,
        written: WrittenEdit,
    ) -> Arc<Version> {
        let WrittenEdit { plan, end, edit, after, flushed_seq, .. } = written;
        let WrittenEdit { bytes_read, bytes_written, bytes_at_peak, filtered_from, .. } = written;
        let step = self.context.one_step();
        state.release(&reserved.plan);
        let before = std::mem::replace(&mut state.view.tree, after);
        let spill = state.spill;
        state.forget_taken(&plan, flushed_seq);
        let old = reserved.keyspace.version.load_full();
        state.failed_in_row = 0;
        let publish = || reserved.keyspace.publish(state);
        match filtered_from {
            None => publish(),
            Some(from) => {
                self.context.snapshots.show_filtered(from, reserved.keyspace.id, &old, publish);
            }
        }
        step.over();
        state.let_go(&old, &edit, &reserved.keyspace.version.load());
        if state.spill.is_none() {
            remove_spill(&self.context, spill);
        }
        if let Some(causes) = &mut state.causes
            && let Ok(found) = PlanCauses::of(&before, &plan, &edit)
        {
            causes.add(&found.causes);
        }
        if plan.mode == Mode::Drop {
            add(&self.context.counts.bytes_dropped_unread, plan.size_taken(&before).bytes);
        }
        self.count_bytes(reserved, bytes_read, bytes_written);
        tracing::debug!(bytes_read, bytes_written, "a merge has taken effect");
        self.reserve_rest(state, reserved, end);
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

    /// Reserves the part of `reserved` from key `end` on, which is still to be done. Without such a
    /// part, counts the plan as carried out.
    fn reserve_rest(
        &self,
        state: &mut KeyspaceState,
        reserved: &mut ReservedPlan,
        end: Option<Key>,
    ) {
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

    /// Adds the bytes of a merge to the counters, either for flushes or for other plans.
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

/// Returns `edit` with the range deletes `range_deletes`, and removes range deletes that are then
/// done.
fn with_range_deletes(
    mut edit: TreeEdit,
    range_deletes: Vec<(KeyRange, SeqNo)>,
    tree: &Tree,
    readers: DoneReaders,
) -> std::result::Result<TreeEdit, String> {
    edit.range_deletes = range_deletes;
    edit.forget_done(tree, readers).map_err(|error| error.to_string())?;
    Ok(edit)
}

/// Returns the error of an outcome that no legal plan has. Input tables may be damaged although
/// their checksums are right.
fn illegal_outcome(message: &str) -> Error {
    Error::new(ErrorKind::Corruption, format!("the outcome of a merge is not legal: {message}"))
}
