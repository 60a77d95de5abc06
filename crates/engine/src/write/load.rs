//! How tables from outside of the tree take effect, from a bulk load or an ingest.
//!
//! 1. The entries of the tables have no sequence number yet. Memory lies above all tables, so it is
//!    flushed until it holds no key within the ranges of the load: the range of each ingested
//!    table, or the range from the first to the last key of a bulk load.
//! 2. Under the writer's lock the load takes the next sequence number, for all its entries. An
//!    empty batch in the log has that sequence number, so that the log has no gap.
//! 3. An edit makes the tables the newest run on storage.
//!
//! A load may replace key ranges. Then it takes two sequence numbers. A range delete gets the first
//! and goes into the tree with the same edit. The entries get the second, so that they lie above.
//!
//! Loads into several keyspaces may take effect together. They share the sequence numbers, and one
//! record of the manifest has the edits of all.

use super::WritePath;
use crate::context::read_only;
use crate::keyspace::{KeyspaceShared, KeyspaceState, Request};
use crate::manifest::{Mark, Record};
use crate::memory::seal;
use crate::version::TableHandle;
use crate::wal::WalWriter;
use lsmith_storage::cursor::Cursor;
use lsmith_storage::env::SyncReach;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::encode_empty_batch;
use lsmith_storage::sync::MutexGuard;
use lsmith_tree::{AddPlace, Addition, KeyRange, MergePlan, SeqNo, TreeEdit};
use std::sync::Arc;
use std::time::Duration;

/// The most flushes of active memtables for one load.
const FLUSHES_MAX: usize = 16;

/// How long a load waits for a flush before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The level whose newest run the load becomes.
const TOP_LEVEL: usize = 0;

/// Where memory holds writes that must be flushed before tables arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InMemory {
    Nothing,
    /// In sealed memtables only, which will be flushed.
    Sealed,
    /// In the active memtable.
    Active,
}

/// A bulk load, or tables without sequence numbers from outside.
pub(crate) struct Load {
    pub(crate) keyspace: Arc<KeyspaceShared>,
    /// The tables, in key order.
    pub(crate) tables: Vec<Arc<TableHandle>>,
    /// Where their keys lie.
    pub(crate) ranges: Vec<KeyRange>,
    /// What is deleted in the same step.
    pub(crate) replaced: Vec<KeyRange>,
}

/// Tables that arrive in a tree.
pub(super) struct Incoming {
    pub(super) edit: TreeEdit,
    /// The tables that the edit adds, and perhaps others.
    pub(super) tables: Vec<Arc<TableHandle>>,
    /// The reservations that end when the edit is applied.
    pub(super) plans: Vec<MergePlan>,
    /// Key ranges and sequence numbers: all writes in the range up to the sequence number have left
    /// memory.
    pub(super) taken: Vec<Mark>,
    /// True if the entries have sequence numbers of their own.
    pub(super) numbered: bool,
}

impl WritePath {
    /// Makes the tables of each of `loads` the newest run of its keyspace on storage, and deletes
    /// what is in the ranges that it replaces: in all keyspaces, which differ, in one step.
    ///
    /// # Errors
    /// As [`BulkLoad::finish`](crate::BulkLoad::finish). The files of the tables are then removed,
    /// unless the store is poisoned.
    pub(crate) fn load(&self, mut loads: Vec<Load>) -> Result<()> {
        // Locks of keyspaces are taken in this order.
        loads.sort_by_key(|load| load.keyspace.id);
        self.begin_load(&loads).inspect_err(|_| retire(&loads))?;
        let loaded = self.load_between_flushes(&mut loads);
        // In a poisoned store the manifest may name the tables: they must stay.
        if loaded.is_err() && self.context.check_writable().is_ok() {
            retire(&loads);
        }
        loaded
    }

    /// Waits where writers wait, and prepares the keyspaces for range deletes.
    fn begin_load(&self, loads: &[Load]) -> Result<()> {
        for Load { keyspace, tables, .. } in loads {
            self.hold_back(keyspace, tables.iter().map(|table| table.held_bytes()).sum())?;
        }
        let deleting = loads.iter().filter(|load| !load.replaced.is_empty());
        self.committer.allow_ranges(deleting.map(|load| &load.keyspace))
    }

    /// Carries the loads out once memory holds no key within their ranges.
    fn load_between_flushes(&self, loads: &mut [Load]) -> Result<()> {
        let mut flushes = 0;
        loop {
            // Read first: a flush may end before this thread waits for it.
            let turn = self.context.progress.turn();
            match self.try_load(loads)? {
                InMemory::Nothing => return Ok(()),
                InMemory::Active if flushes == FLUSHES_MAX => {
                    let message = "other writers keep writing keys of the range that is loaded";
                    return Err(Error::new(ErrorKind::InvalidArgument, message));
                }
                in_memory => flushes += usize::from(in_memory == InMemory::Active),
            }
            self.wait_for_flush(loads.iter().map(|load| &*load.keyspace), turn)?;
        }
    }

    /// Waits for progress beyond `turn`, but not longer than [`LOOK_AGAIN`]. Fails if a merge of
    /// one of `keyspaces` has failed.
    pub(super) fn wait_for_flush<'a>(
        &self,
        keyspaces: impl IntoIterator<Item = &'a KeyspaceShared>,
        turn: u64,
    ) -> Result<()> {
        self.context.check_writable()?;
        for keyspace in keyspaces {
            if let Some(failure) = keyspace.state.lock().failures.first() {
                return Err(failure.to_error());
            }
        }
        if !self.context.options.lockstep {
            self.context.progress.wait_beyond(turn, LOOK_AGAIN);
        }
        Ok(())
    }

    /// Carries the loads out if memory holds no key within their ranges, else requests flushes.
    /// Returns what memory held.
    fn try_load(&self, loads: &mut [Load]) -> Result<InMemory> {
        let mut guard = self.wal.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        self.context.check_writable()?;
        let mut in_memory = InMemory::Nothing;
        for load in &*loads {
            let older: Vec<_> = load.touched().map(|range| (range.clone(), SeqNo::MAX)).collect();
            in_memory = in_memory.max(self.flush_older(&load.keyspace, writer, &older)?);
        }
        if in_memory != InMemory::Nothing {
            return Ok(in_memory);
        }
        // The writer's lock keeps all writers out: memory stays as it is, or shrinks.
        let deletes = SeqNo(writer.next_seq);
        let replaces = loads.iter().any(|load| !load.replaced.is_empty());
        let seq = self.take_seqs(writer, SeqNo(deletes.0 + u64::from(replaces)))?;
        for table in loads.iter_mut().flat_map(|load| &mut load.tables) {
            Arc::get_mut(table).expect("the load has the only handle").date(seq);
        }
        let keyspaces: Vec<&KeyspaceShared> = loads.iter().map(|load| &*load.keyspace).collect();
        let committing = keyspaces.iter().map(|space| space.committing.lock()).collect();
        self.commit(&keyspaces, committing, seq, |index, state| {
            loads[index].enter(state, deletes, seq)
        })?;
        self.scheduler.after_seal(writer);
        Ok(InMemory::Nothing)
    }

    /// If memory holds writes in one of the ranges of `older` up to the sequence number beside it,
    /// or may hold some, requests a flush. Returns what memory held.
    pub(super) fn flush_older(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        writer: &mut WalWriter,
        older: &[(KeyRange, SeqNo)],
    ) -> Result<InMemory> {
        let mut state = keyspace.state.lock();
        state.check_kept(keyspace)?;
        let in_memory = in_memory(keyspace, &state, older)?;
        if in_memory == InMemory::Nothing {
            return Ok(in_memory);
        }
        // A repeated request must not notify: this thread would wake itself again and again.
        let is_news = in_memory == InMemory::Active || !state.requests.has(Request::Flush);
        if in_memory == InMemory::Active {
            seal(&self.context, keyspace, &mut state);
        }
        state.ask(Request::Flush);
        drop(state);
        if is_news || self.context.options.lockstep {
            self.scheduler.after_seal(writer);
        }
        Ok(in_memory)
    }

    /// Takes the sequence numbers from the next one up to `last`, and at least one. Appends an
    /// empty batch with these sequence numbers to the log, and syncs the log. Returns the last
    /// sequence number taken.
    pub(super) fn take_seqs(&self, writer: &mut WalWriter, last: SeqNo) -> Result<SeqNo> {
        let first = SeqNo(writer.next_seq);
        let last = last.max(first);
        let seq_count = last.0 - first.0 + 1;
        self.wal.append(writer, &[&encode_empty_batch(first, seq_count)])?;
        writer.next_seq = last.0 + 1;
        self.wal.sync(&writer.logs_to_sync(), SyncReach::Data)?;
        Ok(last)
    }

    /// Brings what `incoming` makes of the state of each of `keyspaces`, by its index, into its
    /// tree with sequence number `seq`, and shows all of it to readers in one step. The caller
    /// holds the writer's lock, and hands over the locks on commits of `keyspaces`. The keyspaces
    /// differ, and are ordered by their ids. Tables with sequence numbers of their own come into
    /// one keyspace at a time.
    pub(super) fn commit(
        &self,
        keyspaces: &[&KeyspaceShared],
        committing: Vec<MutexGuard<'_, ()>>,
        seq: SeqNo,
        mut incoming: impl FnMut(usize, &KeyspaceState) -> Incoming,
    ) -> Result<()> {
        let (mut trees, mut all, mut edits) = (ComingTrees(Vec::new()), Vec::new(), Vec::new());
        for (index, keyspace) in keyspaces.iter().enumerate() {
            let mut state = keyspace.state.lock();
            let mut incoming = incoming(index, &state);
            let taken = std::mem::take(&mut incoming.taken);
            // An opening skips these in the log, because of the marks.
            let newest = taken.iter().map(|mark| mark.newest).max();
            let deletes = newest.into_iter().flat_map(|seq| state.range_deletes_in_memory(seq));
            incoming.edit.range_deletes.extend(deletes);
            let edit = incoming.edit.clone();
            let mut coming = state.view.tree.clone();
            edit.clone().apply_to(&mut coming).map_err(|error| {
                let message = format!("the tables do not fit the tree: {error}");
                Error::new(ErrorKind::Corruption, message).at(&self.context.options.dir)
            })?;
            state.coming = Some(coming);
            trees.0.push(keyspace);
            edits.push(Record::Edit { keyspace: keyspace.id, flushed_seq: SeqNo(0), taken, edit });
            all.push(incoming);
        }
        self.committer.write_edits(edits)?;
        let step = self.context.one_step();
        let mut states: Vec<_> = keyspaces.iter().map(|keyspace| keyspace.state.lock()).collect();
        let mut versions = Vec::new();
        for ((keyspace, state), incoming) in keyspaces.iter().zip(&mut states).zip(&mut all) {
            incoming.plans.iter().for_each(|plan| state.release(plan));
            state.add_tables(std::mem::take(&mut incoming.tables));
            state.view.tree =
                state.coming.take().expect("only the holder of `committing` takes it");
            // The policy may want to merge what has arrived.
            state.at_rest = false;
            state.owed_bytes = None;
            state.arrivals += u64::from(incoming.numbered);
            let old = keyspace.version.load_full();
            let new = Arc::new(state.version(Some(&old)));
            versions.push((old, new));
        }
        let context = &self.context;
        let publish = || {
            for (keyspace, (_, new)) in keyspaces.iter().zip(&versions) {
                keyspace.version.store(Arc::clone(new));
            }
        };
        match (&all[..], keyspaces, &versions[..]) {
            ([Incoming { numbered: true, .. }], [keyspace], [(old, _)]) => {
                context.snapshots.show_arrival(seq, &context.visible, keyspace.id, old, publish);
            }
            _ => context.snapshots.show_load(seq, &context.visible, publish),
        }
        step.over();
        for (index, state) in states.iter_mut().enumerate() {
            let (old, new) = &versions[index];
            state.let_go(old, &all[index].edit, new);
            keyspaces[index].gate.note(state);
        }
        drop(states);
        drop(trees);
        drop(committing);
        // Tables and memtables that only the old versions hold go here, outside the locks.
        drop(versions);
        self.context.followers.wake();
        Ok(())
    }
}

/// The keyspaces whose state has a coming tree. Clears these when dropped, also by a panic.
struct ComingTrees<'a>(Vec<&'a KeyspaceShared>);

impl Drop for ComingTrees<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|keyspace| keyspace.state.lock().coming = None);
    }
}

impl Load {
    /// Returns the ranges in which the load has entries, or deletes.
    fn touched(&self) -> impl Iterator<Item = &KeyRange> {
        self.ranges.iter().chain(&self.replaced)
    }

    /// Returns what enters the tree of `state`. Range deletes get the sequence number `deletes`,
    /// entries get `seq`.
    fn enter(&self, state: &KeyspaceState, deletes: SeqNo, seq: SeqNo) -> Incoming {
        let addition = (!self.tables.is_empty()).then(|| Addition {
            run: state.view.tree.next_run(),
            place: AddPlace::Top(TOP_LEVEL),
            knot: None,
            slices: self.tables.iter().map(|table| table.whole()).collect(),
        });
        let add = addition.into_iter().collect();
        let range_deletes = self.replaced.iter().map(|range| (range.clone(), deletes)).collect();
        let taken = |range: &KeyRange| Mark { range: range.clone(), newest: seq };
        Incoming {
            edit: TreeEdit { add, range_deletes, ..TreeEdit::default() },
            tables: self.tables.clone(),
            plans: Vec::new(),
            // Earlier writes to these keys have left memory, so opening does not read the log for
            // them.
            taken: self.touched().map(taken).collect(),
            numbered: false,
        }
    }
}

/// Has the files of the tables of `loads` removed.
fn retire(loads: &[Load]) {
    loads.iter().flat_map(|load| &load.tables).for_each(|table| table.retire());
}

/// Returns where the memory of `keyspace`, whose state is `state`, may hold writes in one of the
/// ranges of `older` up to the sequence number beside it.
fn in_memory(
    keyspace: &KeyspaceShared,
    state: &KeyspaceState,
    older: &[(KeyRange, SeqNo)],
) -> Result<InMemory> {
    let memtable = &state.active.memtable;
    let oldest = memtable.seq_range().map_or(SeqNo::MAX, |(oldest, _)| oldest);
    let mut active = memtable.cursor();
    for (range, _) in older.iter().filter(|(_, newest)| oldest <= *newest) {
        active.seek(&range.start)?;
        if active.entry().is_some_and(|entry| range.contains(entry.key)) {
            return Ok(InMemory::Active);
        }
    }
    for memory in &keyspace.version.load().memory {
        for (range, newest) in older {
            let slices = memory.run().overlapping(range);
            if slices.iter().all(|slice| slice.table().seq_min > *newest) {
                continue;
            }
            let mut cursor = memory.cursor(range);
            cursor.seek_first()?;
            if cursor.entry().is_some() {
                return Ok(InMemory::Sealed);
            }
        }
    }
    Ok(InMemory::Nothing)
}
