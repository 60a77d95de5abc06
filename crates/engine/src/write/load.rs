//! How tables from outside of the tree take effect: those of a bulk load, or ingested ones.
//!
//! 1. The entries of the tables have no sequence number yet. Memory lies above all tables, so it is
//!    flushed until it holds no key within the ranges of the load: the range of each ingested
//!    table, or the range from the first to the last key of a bulk load.
//! 2. Under the writer's lock the load takes the next sequence number, for all its entries. An
//!    empty batch in the log has that number, so that the log has no gap.
//! 3. An edit makes the tables the newest run on storage.

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
use lsmith_storage::format::put_varint;
use lsmith_tree::{AddPlace, Addition, KeyRange, SeqNo, Slice, TreeEdit, apply};
use std::sync::Arc;
use std::time::Duration;

/// The most flushes of active memtables for one load.
const FLUSHES_MAX: usize = 16;

/// How long a load waits for a flush before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The level whose newest run the load becomes.
const TOP_LEVEL: usize = 0;

/// Where memory holds keys within the ranges of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InMemory {
    Nothing,
    /// In sealed memtables only, which will be flushed.
    Sealed,
    /// In the active memtable.
    Active,
}

impl WritePath {
    /// Makes `tables`, which are in key order and whose keys lie within `ranges`, the newest run of
    /// `keyspace` on storage.
    ///
    /// # Errors
    /// As [`BulkLoad::finish`](crate::BulkLoad::finish). The files of the tables are then removed,
    /// unless the store is poisoned.
    pub(crate) fn load(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        mut tables: Vec<Arc<TableHandle>>,
        ranges: &[KeyRange],
    ) -> Result<()> {
        let mut flushes = 0;
        let loaded = loop {
            // Read first: a flush may end before this thread waits for it.
            let turn = self.context.progress.turn();
            match self.try_load(keyspace, &mut tables, ranges) {
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
            tables.iter().for_each(|table| table.retire());
        }
        loaded
    }

    /// Waits for progress beyond `turn`, but not longer than [`LOOK_AGAIN`]. Fails if a merge of
    /// the keyspace has failed.
    fn wait_for_flush(&self, keyspace: &KeyspaceShared, turn: u64) -> Result<()> {
        self.context.check_writable()?;
        if let Some(failure) = keyspace.state.lock().failures.first() {
            return Err(failure.to_error());
        }
        if !self.context.options.lockstep {
            self.context.progress.wait_beyond(turn, LOOK_AGAIN);
        }
        Ok(())
    }

    /// Carries out the load if memory holds no key within `ranges`, else requests a flush. Returns
    /// what memory held.
    fn try_load(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        tables: &mut Vec<Arc<TableHandle>>,
        ranges: &[KeyRange],
    ) -> Result<InMemory> {
        let mut guard = self.wal.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        self.context.check_writable()?;
        let mut state = keyspace.state.lock();
        let in_memory = in_memory(keyspace, &state, ranges)?;
        if in_memory != InMemory::Nothing {
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
            return Ok(in_memory);
        }
        drop(state);
        // The writer's lock keeps all writers out: memory stays as it is, or shrinks.
        let seq = self.log_empty_batch(writer)?;
        self.commit_load(keyspace, tables, ranges, seq)?;
        self.scheduler.after_seal(writer);
        Ok(InMemory::Nothing)
    }

    /// Takes the next sequence number. Appends an empty batch with that number to the log, and
    /// syncs the log.
    fn log_empty_batch(&self, writer: &mut WalWriter) -> Result<SeqNo> {
        let seq = SeqNo(writer.next_seq);
        let mut record = Vec::new();
        put_varint(&mut record, seq.0);
        put_varint(&mut record, 0);
        self.wal.append(writer, &[&record])?;
        writer.next_seq += 1;
        self.wal.sync(&writer.logs_to_sync(), SyncReach::Data)?;
        Ok(seq)
    }

    /// Adds the tables to the tree with sequence number `seq`, and shows them to readers.
    fn commit_load(
        &self,
        keyspace: &KeyspaceShared,
        tables: &mut Vec<Arc<TableHandle>>,
        ranges: &[KeyRange],
        seq: SeqNo,
    ) -> Result<()> {
        for table in tables.iter_mut() {
            Arc::get_mut(table).expect("the load has the only handle").date(seq);
        }
        let committing = keyspace.committing.lock();
        let mut state = keyspace.state.lock();
        let whole = |table: &Arc<TableHandle>| Slice::whole(Arc::clone(table.table().tree_table()));
        let addition = Addition {
            run: state.view.tree.next_run(),
            place: AddPlace::Top(TOP_LEVEL),
            knot: None,
            slices: tables.iter().map(whole).collect(),
        };
        let edit = TreeEdit { add: vec![addition], ..TreeEdit::default() };
        let mut coming = state.view.tree.clone();
        apply(&mut coming, &edit).expect("a new run fits any tree");
        // Earlier writes to these keys have left memory, so opening does not read the log for them.
        let mark = |range: &KeyRange| Mark { range: range.clone(), newest: seq };
        let taken = ranges.iter().map(mark).collect();
        let record = Record::Edit {
            keyspace: keyspace.id,
            flushed_seq: SeqNo(0),
            taken,
            edit: edit.clone(),
        };
        let after = self.committer.write_apart(&mut state, coming, record)?;
        let step = self.context.one_step();
        state.add_tables(std::mem::take(tables));
        state.view.tree = after;
        let old = keyspace.version.load_full();
        let new = Arc::new(state.version(Some(&old)));
        let context = &self.context;
        context.snapshots.show_load(seq, &context.visible, || keyspace.version.store(new));
        step.over();
        keyspace.gate.note(&state);
        drop(state);
        drop(committing);
        // Tables and memtables that only the old version holds go here, outside the locks.
        drop(old);
        Ok(())
    }
}

/// Returns where the memory of `keyspace`, whose state is `state`, holds keys within `ranges`.
fn in_memory(
    keyspace: &KeyspaceShared,
    state: &KeyspaceState,
    ranges: &[KeyRange],
) -> Result<InMemory> {
    let mut active = state.active.memtable.cursor();
    for range in ranges {
        active.seek(&range.start)?;
        if active.entry().is_some_and(|entry| range.contains(entry.key)) {
            return Ok(InMemory::Active);
        }
    }
    for memory in &keyspace.version.load().memory {
        for range in ranges {
            let mut cursor = memory.cursor(range);
            cursor.seek_first()?;
            if cursor.entry().is_some() {
                return Ok(InMemory::Sealed);
            }
        }
    }
    Ok(InMemory::Nothing)
}
