//! How tables with sequence numbers of their own enter a tree.
//!
//! In the keyspace every entry has its sequence number. So the sequence numbers say what is newer,
//! and the order of the runs must agree with them wherever runs share keys. A table can arrive
//!
//! * newer than some runs and older than the others: it becomes a run between them, or joins a run
//!   there that has no keys in its range (`placement`);
//! * with sequence numbers between numbers of some runs: it is merged with these runs over its
//!   range, and the output takes the place of the oldest of them.
//!
//! The steps:
//!
//! 1. The store's counter rises above the greatest sequence number, durably. So all later writes
//!    are newer.
//! 2. Memory is flushed until it holds no write of the range that may be older than the table.
//! 3. What must be merged is reserved like any plan, and merged on the thread of the caller.
//! 4. Under the writer's lock, one edit brings all tables in. A merge that was under way and has
//!    dropped tombstones is not committed, because they could have hidden what has arrived
//!    ([`KeyspaceState::arrivals`]).
//!
//! Snapshots from before keep the version from before; see [`snapshots`](crate::snapshots).

use super::WritePath;
use super::load::{InMemory, Incoming};
use super::placement::{Arriving, MergedArrival, Placement, placement};
use crate::keyspace::{KeyspaceShared, KeyspaceState};
use crate::manifest::Mark;
use crate::merge::{PlanOutput, ReservedPlan};
use crate::version::{OpenRun, TableHandle, Version};
use lsmith_storage::cursor::Cursor;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::key_hash;
use lsmith_storage::table::{CacheFill, ReadCount, ReadTable};
use lsmith_tree::{
    AddPlace, Addition, Input, KeyRange, MergePlan, Place, Reason, Run, RunId, SeqNo, Tree,
    TreeEdit, check_plan,
};
use std::path::Path;
use std::sync::Arc;

/// The greatest sequence number that a table may bring: half of what a store can count to.
pub(crate) const ARRIVING_SEQ_MAX: SeqNo = SeqNo(lsmith_storage::bounds::SEQ_MAX.0 / 2);

/// Tables on their way into a keyspace.
struct Ingest<'a> {
    path: &'a WritePath,
    keyspace: &'a Arc<KeyspaceShared>,
    arriving: Vec<Arriving>,
    /// True once the manifest may name the tables.
    is_in: bool,
}

/// A step of an ingest, decided under the locks.
enum Step {
    Done,
    /// Wait for a flush, or for plans that are in the way.
    Wait,
    /// Merge the table at this index.
    Merge(usize, Box<ReservedMerge>),
}

/// A merge of an arriving table, for which the plan is reserved.
struct ReservedMerge {
    /// The plan that includes the arriving table, as a run.
    whole: ReservedPlan,
    /// The reserved plan, without that run.
    reserved: MergePlan,
    /// A version that has the run.
    version: Arc<Version>,
}

impl WritePath {
    /// Makes `arriving`, whose key ranges are disjoint, part of `keyspace`, all at once. If
    /// `resurrects`, entries may arrive that dropped tombstones could have hidden.
    ///
    /// # Errors
    /// As [`Store::ingest`](crate::Store::ingest). The files of the tables are then removed, unless
    /// the store is poisoned.
    pub(crate) fn ingest(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        arriving: Vec<Arriving>,
        resurrects: bool,
    ) -> Result<()> {
        // Each ingest gives merges work, and may undo one. So it waits where writers wait.
        let bytes = arriving.iter().map(|arriving| arriving.table.held_bytes()).sum();
        self.hold_back(keyspace, bytes).inspect_err(|_| {
            arriving.iter().for_each(|arriving| arriving.table.retire());
        })?;
        let _one_at_a_time = keyspace.ingesting.lock();
        let _busy = keyspace.keep_busy();
        let mut ingest = Ingest { path: self, keyspace, arriving, is_in: false };
        if ingest.arriving.iter().any(|arriving| !arriving.range_deletes().is_empty()) {
            self.committer.allow_ranges(std::iter::once(keyspace))?;
        }
        let newest = ingest.arriving.iter().flat_map(touched).map(|(_, newest)| newest).max();
        self.rise_above(newest.unwrap_or_default())?;
        while !ingest.is_in {
            // Read first: what this thread waits for may end before it waits.
            let turn = self.context.progress.turn();
            match ingest.next_step(resurrects)? {
                Step::Done => {}
                Step::Wait => self.wait_for_flush([&**keyspace], turn)?,
                Step::Merge(index, merge) => {
                    let arriving = &mut ingest.arriving[index];
                    let reserved = merge.reserved.clone();
                    let merged = arriving.merged.insert(MergedArrival::under_way(reserved));
                    let (edit, tables) = self.merge_arriving(&arriving.file, &merge)?;
                    merged.edit = edit;
                    merged.tables = tables;
                }
            }
        }
        Ok(())
    }

    /// Makes all later writes newer than `newest`. Returns when that survives power loss.
    pub(crate) fn rise_above(&self, newest: SeqNo) -> Result<()> {
        let mut guard = self.wal.lock();
        let writer = guard.as_mut().ok_or_else(crate::context::read_only)?;
        self.context.check_writable()?;
        if newest.0 < writer.next_seq {
            return Ok(());
        }
        let seq = self.take_seqs(writer, newest)?;
        let context = &self.context;
        context.snapshots.show_load(seq, &context.visible, || ());
        Ok(())
    }

    /// Carries `merge` out. Returns the edit, without the arriving table, and the tables written.
    fn merge_arriving(
        &self,
        file: &Path,
        ReservedMerge { whole, version, .. }: &ReservedMerge,
    ) -> Result<(TreeEdit, Vec<Arc<TableHandle>>)> {
        check_clashes(file, &whole.plan, version)?;
        let PlanOutput { outcome, tables, bytes_read, bytes_written, .. } =
            self.scheduler.merge_now(whole, version)?;
        let edit = TreeEdit::of_plan(&version.tree, &whole.plan, outcome);
        let mut edit = edit.map_err(|error| {
            tables.iter().for_each(|table| table.discard());
            Error::new(ErrorKind::Corruption, format!("the merge is not legal: {error}"))
        })?;
        edit.remove.remove(0);
        let counts = &self.context.counts;
        crate::stats::add(&counts.merge_bytes_read, bytes_read);
        crate::stats::add(&counts.merge_bytes_written, bytes_written);
        Ok((edit, tables))
    }
}

impl Ingest<'_> {
    /// Does the next step that needs no waiting, or returns the one that does.
    fn next_step(&mut self, resurrects: bool) -> Result<Step> {
        let Ingest { path, keyspace, arriving, is_in } = self;
        let mut guard = path.wal.lock();
        let writer = guard.as_mut().ok_or_else(crate::context::read_only)?;
        path.context.check_writable()?;
        let older: Vec<(KeyRange, SeqNo)> = arriving.iter().flat_map(touched).collect();
        let in_memory = path.flush_older(keyspace, writer, &older)?;
        if in_memory != InMemory::Nothing {
            return Ok(Step::Wait);
        }
        // From here on no merge commits: the runs on storage stay as they are placed upon. So a
        // sequence number is taken only for tables that come in.
        let committing = keyspace.committing.lock();
        let mut state = keyspace.state.lock();
        let mut additions = match placement(arriving, &state.view.tree, resurrects)? {
            Placement::All(additions) => additions,
            Placement::Merge(index, runs) => {
                let merge = reserve(keyspace, &mut state, &arriving[index], &runs);
                return Ok(merge.map_or(Step::Wait, |merge| Step::Merge(index, Box::new(merge))));
            }
        };
        drop(state);
        let seq = path.take_seqs(writer, SeqNo(0))?;
        // From here on the manifest may name the tables.
        *is_in = true;
        path.commit(&[keyspace], vec![committing], seq, |_, state| {
            incoming(arriving, std::mem::take(&mut additions), &state.view.tree)
        })?;
        path.scheduler.after_seal(writer);
        Ok(Step::Done)
    }
}

impl Drop for Ingest<'_> {
    /// Ends the reservations, and removes the files that are not in the tree. Also after a panic.
    fn drop(&mut self) {
        let mut state = self.keyspace.state.lock();
        state.kept_range = None;
        for merged in self.arriving.iter().filter_map(|arriving| arriving.merged.as_ref()) {
            state.release(&merged.reserved);
        }
        drop(state);
        // In a poisoned store the manifest may name the tables: they must stay.
        if self.path.context.check_writable().is_ok() {
            for Arriving { table, merged, .. } in &self.arriving {
                match merged {
                    Some(_) if self.is_in => table.retire(),
                    Some(merged) => {
                        table.retire();
                        merged.tables.iter().for_each(|table| table.discard());
                    }
                    None if self.is_in => {}
                    None => table.retire(),
                }
            }
        }
        self.path.context.progress.notify();
    }
}

/// Returns the ranges in which `arriving` has entries or range deletes, and the greatest numbers of
/// these.
fn touched(arriving: &Arriving) -> impl Iterator<Item = (KeyRange, SeqNo)> {
    let entries = (arriving.range().clone(), arriving.seqs().1);
    std::iter::once(entries).chain(arriving.range_deletes().iter().cloned())
}

/// Reserves the merge of `arriving` with `runs`. Returns `None` if other plans are in the way; no
/// new ones will be.
fn reserve(
    keyspace: &Arc<KeyspaceShared>,
    state: &mut KeyspaceState,
    arriving: &Arriving,
    runs: &[RunId],
) -> Option<ReservedMerge> {
    let range = arriving.range();
    let input = |run: &RunId| Input { run: *run, range: range.clone() };
    let last = *runs.last().expect("a merge has runs");
    let tree = &state.view.tree;
    let count = runs.len() as u64;
    let reason = Reason::new("an ingested table interleaves with {} runs", [count, 0, 0]);
    let mut plan = MergePlan::merge([], Place::Into(last), reason);
    plan.inputs = runs.iter().map(input).collect();
    plan.cut_bytes = tree.run(last).and_then(|(_, run)| table_bytes(run));
    if check_plan(&state.view, &plan).is_err() {
        state.kept_range = Some(range.clone());
        return None;
    }
    let run = tree.next_run();
    let slices = vec![arriving.table.whole()];
    let place = AddPlace::Above(runs[0]);
    let add = vec![Addition { run, place, knot: None, slices }];
    let mut coming = tree.clone();
    let placed = TreeEdit { add, ..TreeEdit::default() }.apply_to(&mut coming);
    placed.expect("a new run fits any tree");
    let version = version_with(keyspace, state, &coming, run, &arriving.table);
    let mut with_arriving = plan.clone();
    with_arriving.inputs.insert(0, input(&run));
    let whole = ReservedPlan::of_caller(keyspace, with_arriving, &coming, state.arrivals);
    state.owed_bytes = None;
    state.reserve(plan.clone());
    state.kept_range = None;
    Some(ReservedMerge { whole, reserved: plan, version: Arc::new(version) })
}

/// Returns the one edit that brings all tables in, and the tables that it names. `additions` puts
/// the tables that were not merged into `tree`.
fn incoming(arriving: &[Arriving], additions: Vec<Addition>, tree: &Tree) -> Incoming {
    let mut edit = TreeEdit::default();
    for mut addition in additions {
        if addition.place != AddPlace::Into {
            let new = edit.add.iter_mut().find(|other| other.place == addition.place);
            if let Some(new) = new {
                new.slices.append(&mut addition.slices);
                continue;
            }
            let named = edit.add.iter().filter(|other| other.place != AddPlace::Into).count();
            addition.run = RunId(tree.next_run().0 + named as u64);
        }
        edit.add.push(addition);
    }
    let mut tables = Vec::new();
    for arriving in arriving {
        match &arriving.merged {
            None => tables.push(Arc::clone(&arriving.table)),
            Some(merged) => {
                edit.remove.extend_from_slice(&merged.edit.remove);
                edit.add.extend_from_slice(&merged.edit.add);
                edit.counters.extend_from_slice(&merged.edit.counters);
                edit.dropped_below = edit.dropped_below.max(merged.edit.dropped_below);
                tables.extend(merged.tables.iter().map(Arc::clone));
            }
        }
    }
    let plans = arriving.iter().filter_map(|arriving| Some(&arriving.merged.as_ref()?.reserved));
    let mark = |(range, newest): (KeyRange, SeqNo)| Mark { range, newest };
    edit.add_late(
        tree,
        arriving.iter().flat_map(|arriving| arriving.range_deletes().iter().cloned()),
    );
    Incoming {
        edit,
        tables,
        plans: plans.cloned().collect(),
        taken: arriving.iter().flat_map(touched).map(mark).collect(),
        numbered: true,
    }
}

/// Returns a version of `state` that has `arrived` as run `run` too; `tree` has that run.
fn version_with(
    keyspace: &KeyspaceShared,
    state: &KeyspaceState,
    tree: &Tree,
    run: RunId,
    arrived: &Arc<TableHandle>,
) -> Version {
    let before = keyspace.version.load();
    let mut version = state.version(Some(&before));
    let index = tree.disk_runs().position(|other| other.id() == run).expect("it was just added");
    let added = tree.disk_runs().nth(index).expect("it was just found");
    version.runs.insert(index, Arc::new(OpenRun::new(added, None, |_| Arc::clone(arrived))));
    version.tree = tree.clone();
    version
}

/// Returns the logical bytes of the largest table of `run`, if it has several: the size at which
/// tables that join it are cut.
pub(super) fn table_bytes(run: &Arc<Run>) -> Option<u64> {
    let bytes = run.slices().iter().map(|slice| slice.table().size.bytes).max()?;
    (run.slices().len() > 1).then_some(bytes.max(1))
}

/// Fails if an entry of the first input of `plan`, the table of `file`, has key and sequence number
/// of an entry in another input, and differs from it. The inputs are in `version`.
fn check_clashes(file: &Path, plan: &MergePlan, version: &Version) -> Result<()> {
    let (arrived, others) = plan.inputs.split_first().expect("the table is the first input");
    let find = |run: RunId| version.disk_run(run).expect("the plan was checked");
    let others: Vec<&Arc<OpenRun>> = others.iter().map(|input| find(input.run)).collect();
    let mut cursor = find(arrived.run).source(&arrived.range, CacheFill::No, None);
    let mut reads = ReadCount::default();
    cursor.seek_first()?;
    while let Some(entry) = cursor.entry() {
        for run in &others {
            let Some(table) = run.table_of(entry.key) else { continue };
            let facts = table.table().tree_table();
            if entry.seq < facts.seq_min || facts.seq_max < entry.seq {
                continue;
            }
            let hash = key_hash(entry.key);
            let found = table.table().find(entry.key, hash, entry.seq, &mut reads)?;
            let Some((block, slot)) = found.filter(|(_, slot)| slot.seq == entry.seq) else {
                continue;
            };
            if slot.kind != entry.kind || block.value(&slot) != entry.value {
                let message = format!(
                    "key `{}` has another entry with number {} in the keyspace",
                    entry.key.escape_ascii(),
                    entry.seq
                );
                return Err(Error::new(ErrorKind::InvalidArgument, message).at(file));
            }
        }
        cursor.next()?;
    }
    Ok(())
}
