//! How tables from outside of the tree take effect: those of a bulk load, or ingested ones.
//!
//! 1. The entries of the tables have no sequence number yet. Memory lies above all tables, so it is
//!    flushed until it holds no key within the ranges of the load: the range of each ingested
//!    table, or the range from the first to the last key of a bulk load.
//! 2. Under the writer's lock the load takes the next sequence number, for all its entries. An
//!    empty batch in the log has that number, so that the log has no gap.
//! 3. An edit makes the tables the newest run on storage.
//!
//! A load may replace key ranges. Then it takes two numbers. The first is that of a range delete,
//! which goes into the tree with the same edit. The second is that of its entries, so that they lie
//! above.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InMemory {
    Nothing,
    /// In sealed memtables only, which will be flushed.
    Sealed,
    /// In the active memtable.
    Active,
}

/// A bulk load, or tables without numbers from outside.
pub(crate) struct Load {
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
    /// Key ranges of which all writes up to a number have left memory.
    pub(super) taken: Vec<Mark>,
    /// True if the entries have numbers of their own.
    pub(super) numbered: bool,
}

impl WritePath {
    /// Makes the tables of `load` the newest run of `keyspace` on storage, and deletes what is in
    /// the ranges that it replaces.
    ///
    /// # Errors
    /// As [`BulkLoad::finish`](crate::BulkLoad::finish). The files of the tables are then removed,
    /// unless the store is poisoned.
    pub(crate) fn load(&self, keyspace: &Arc<KeyspaceShared>, mut load: Load) -> Result<()> {
        let mut flushes = 0;
        let bytes = load.tables.iter().map(|table| table.held_bytes()).sum();
        let deleting = (!load.replaced.is_empty()).then_some(keyspace);
        let may_begin = self.hold_back(keyspace, bytes);
        let may_begin = may_begin.and_then(|()| self.committer.allow_ranges(deleting.into_iter()));
        may_begin.inspect_err(|_| load.tables.iter().for_each(|table| table.retire()))?;
        let loaded = loop {
            // Read first: a flush may end before this thread waits for it.
            let turn = self.context.progress.turn();
            match self.try_load(keyspace, &mut load) {
                Ok(InMemory::Nothing) => break Ok(()),
                Ok(InMemory::Active) if flushes == FLUSHES_MAX => {
                    let message = "other writers keep writing keys of the range that is loaded";
                    break Err(Error::new(ErrorKind::InvalidArgument, message));
                }
                Ok(in_memory) => flushes += usize::from(in_memory == InMemory::Active),
                Err(error) => break Err(error),
            }
            if let Err(error) = self.wait_for_flush(keyspace, turn) {
                break Err(error);
            }
        };
        // In a poisoned store the manifest may name the tables: they must stay.
        if loaded.is_err() && self.context.check_writable().is_ok() {
            load.tables.iter().for_each(|table| table.retire());
        }
        loaded
    }

    /// Waits for progress beyond `turn`, but not longer than [`LOOK_AGAIN`]. Fails if a merge of
    /// the keyspace has failed.
    pub(super) fn wait_for_flush(&self, keyspace: &KeyspaceShared, turn: u64) -> Result<()> {
        self.context.check_writable()?;
        if let Some(failure) = keyspace.state.lock().failures.first() {
            return Err(failure.to_error());
        }
        if !self.context.options.lockstep {
            self.context.progress.wait_beyond(turn, LOOK_AGAIN);
        }
        Ok(())
    }

    /// Carries out the load if memory holds no key within its ranges, else requests a flush.
    /// Returns what memory held.
    fn try_load(&self, keyspace: &Arc<KeyspaceShared>, load: &mut Load) -> Result<InMemory> {
        let Load { tables, ranges, replaced } = load;
        let mut guard = self.wal.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        self.context.check_writable()?;
        let touched = || ranges.iter().chain(&*replaced);
        let older: Vec<(KeyRange, SeqNo)> =
            touched().map(|range| (range.clone(), SeqNo::MAX)).collect();
        let in_memory = self.flush_older(keyspace, writer, &older)?;
        if in_memory != InMemory::Nothing {
            return Ok(in_memory);
        }
        // The writer's lock keeps all writers out: memory stays as it is, or shrinks.
        let deletes = SeqNo(writer.next_seq);
        let last = if replaced.is_empty() { deletes } else { SeqNo(deletes.0 + 1) };
        let seq = self.take_numbers(writer, last)?;
        for table in tables.iter_mut() {
            Arc::get_mut(table).expect("the load has the only handle").date(seq);
        }
        let taken = |range: &KeyRange| Mark { range: range.clone(), newest: seq };
        self.commit(keyspace, seq, |state| {
            let addition = (!tables.is_empty()).then(|| Addition {
                run: state.view.tree.next_run(),
                place: AddPlace::Top(TOP_LEVEL),
                knot: None,
                slices: tables.iter().map(|table| table.whole()).collect(),
            });
            let add = addition.into_iter().collect();
            let erase = replaced.iter().map(|range| (range.clone(), deletes)).collect();
            Ok(Some(Incoming {
                edit: TreeEdit { add, erase, ..TreeEdit::default() },
                tables: tables.to_vec(),
                plans: Vec::new(),
                // Earlier writes to these keys have left memory, so opening does not read the log
                // for them.
                taken: touched().map(taken).collect(),
                numbered: false,
            }))
        })?;
        self.scheduler.after_seal(writer);
        Ok(InMemory::Nothing)
    }

    /// If memory holds writes in one of the ranges of `older` up to the number beside it, or may
    /// hold some, requests a flush. Returns what memory held.
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
    /// empty batch with these numbers to the log, and syncs the log. Returns the last number taken.
    pub(super) fn take_numbers(&self, writer: &mut WalWriter, last: SeqNo) -> Result<SeqNo> {
        let first = SeqNo(writer.next_seq);
        let last = last.max(first);
        let numbers = last.0 - first.0 + 1;
        self.wal.append(writer, &[&encode_empty_batch(first, numbers)])?;
        writer.next_seq = last.0 + 1;
        self.wal.sync(&writer.logs_to_sync(), SyncReach::Data)?;
        Ok(last)
    }

    /// Brings what `incoming` makes of the state into the tree with sequence number `seq`, and
    /// shows it to readers. Returns false if `incoming` returned `None`; then nothing is done. The
    /// caller holds the writer's lock.
    pub(super) fn commit(
        &self,
        keyspace: &KeyspaceShared,
        seq: SeqNo,
        incoming: impl FnOnce(&KeyspaceState) -> Result<Option<Incoming>>,
    ) -> Result<bool> {
        let committing = keyspace.committing.lock();
        let mut state = keyspace.state.lock();
        let Some(incoming) = incoming(&state)? else { return Ok(false) };
        let Incoming { mut edit, tables, plans, taken, numbered } = incoming;
        // An opening skips these in the log, because of the marks.
        let newest = taken.iter().map(|mark| mark.newest).max();
        edit.erase.extend(newest.into_iter().flat_map(|newest| state.erased_in_memory(newest)));
        let mut coming = state.view.tree.clone();
        edit.clone().apply_to(&mut coming).map_err(|error| {
            let message = format!("the tables do not fit the tree: {error}");
            Error::new(ErrorKind::Corruption, message).at(&self.context.options.dir)
        })?;
        let record = Record::Edit {
            keyspace: keyspace.id,
            flushed_seq: SeqNo(0),
            taken,
            edit: edit.clone(),
        };
        let after = self.committer.write_apart(&mut state, coming, record)?;
        let step = self.context.one_step();
        plans.iter().for_each(|plan| state.release(plan));
        state.add_tables(tables);
        state.view.tree = after;
        // The policy may want to merge what has arrived.
        state.at_rest = false;
        state.owed_bytes = None;
        let old = keyspace.version.load_full();
        let new = Arc::new(state.version(Some(&old)));
        let context = &self.context;
        let publish = || keyspace.version.store(Arc::clone(&new));
        if numbered {
            state.arrivals += 1;
            let id = keyspace.id;
            context.snapshots.show_arrival(seq, &context.visible, id, &old, publish);
        } else {
            context.snapshots.show_load(seq, &context.visible, publish);
        }
        step.over();
        state.let_go(&old, &edit, &new);
        keyspace.gate.note(&state);
        drop(state);
        drop(committing);
        // Tables and memtables that only the old version holds go here, outside the locks.
        drop(old);
        self.context.followers.wake();
        Ok(true)
    }
}

/// Returns where the memory of `keyspace`, whose state is `state`, may hold writes in one of the
/// ranges of `older` up to the number beside it.
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
