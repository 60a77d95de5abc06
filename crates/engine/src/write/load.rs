//! How a bulk load takes effect.
//!
//! The entries of its tables have no number yet. They get one as a write does, under the writer's
//! lock: an empty batch in the log stands for it, so that numbers in the log go on without gaps.
//! Then an edit makes the tables the newest run on storage. That is the right place if memory,
//! which lies above, holds no key between the first and the last: it is flushed until that is so.

use super::WritePath;
use crate::context::read_only;
use crate::keyspace::{KeyspaceShared, KeyspaceState, Request};
use crate::manifest::{Mark, Record};
use crate::memory::seal;
use crate::version::{Change, TableHandle};
use crate::wal::WalWriter;
use lsmith_storage::cursor::Cursor;
use lsmith_storage::env::SyncReach;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::put_varint;
use lsmith_tree::{AddPlace, Addition, KeyRange, SeqNo, Slice, TreeEdit, apply};
use std::sync::Arc;
use std::time::Duration;

/// How often memory is flushed for a load at most.
const FLUSHES_MAX: usize = 16;

/// How long to wait for a flush before looking again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The newest run of this level.
const TOP_LEVEL: usize = 0;

/// What memory holds within the hull of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InMemory {
    Nothing,
    /// Sealed memtables, which will be flushed.
    Sealed,
    /// The active one too.
    Active,
}

impl WritePath {
    /// Makes `tables`, which lie within `hull`, the newest run of `space` on storage.
    ///
    /// # Errors
    /// As [`BulkLoad::finish`](crate::BulkLoad::finish): nothing is left then of the tables.
    pub(crate) fn load(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        mut tables: Vec<Arc<TableHandle>>,
        hull: &KeyRange,
    ) -> Result<()> {
        let mut flushes = 0;
        let loaded = loop {
            // Looked at first: a flush may end before this thread waits for it.
            let turn = self.context.progress.turn();
            match self.try_load(keyspace, &mut tables, hull) {
                Ok(InMemory::Nothing) => break Ok(()),
                Ok(InMemory::Active) if flushes == FLUSHES_MAX => {
                    let told = "others write keys between the first and the last of a bulk load \
                                all the time";
                    break Err(Error::new(ErrorKind::InvalidArgument, told));
                }
                Ok(in_memory) => flushes += usize::from(in_memory == InMemory::Active),
                Err(error) => break Err(error),
            }
            if let Err(error) = self.wait_for_flush(keyspace, turn) {
                break Err(error);
            }
        };
        // In a poisoned store nobody knows whether the manifest names them: they must stay.
        if loaded.is_err() && self.context.check_writable().is_ok() {
            tables.iter().for_each(|table| table.retire());
        }
        loaded
    }

    /// Waits until something has happened since the work stood at `turn`, or somebody should look
    /// again.
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

    /// Carries out the load if memory holds nothing within `hull`, else has it flushed.
    fn try_load(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        tables: &mut Vec<Arc<TableHandle>>,
        hull: &KeyRange,
    ) -> Result<InMemory> {
        let mut guard = self.wal.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        self.context.check_writable()?;
        let mut state = keyspace.state.lock();
        let in_memory = in_memory(keyspace, &state, hull)?;
        if in_memory != InMemory::Nothing {
            // Who tells what others know already wakes himself, again and again.
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
        // Nobody writes while the writer's lock is held: memory stays as it is, or shrinks.
        let seq = self.next_number(writer)?;
        self.commit_load(keyspace, tables, hull, seq)?;
        self.scheduler.after_seal(writer);
        Ok(InMemory::Nothing)
    }

    /// The next number, with a batch in the log that has nothing but it, on the device with all
    /// before it.
    fn next_number(&self, writer: &mut WalWriter) -> Result<SeqNo> {
        let seq = SeqNo(writer.next_seq);
        let mut record = Vec::new();
        put_varint(&mut record, seq.0);
        put_varint(&mut record, 0);
        self.wal.append(writer, &[&record])?;
        writer.next_seq += 1;
        self.wal.sync(&writer.logs_to_sync(), SyncReach::Data)?;
        Ok(seq)
    }

    /// Makes the tables part of the tree under number `seq`, and shows them.
    fn commit_load(
        &self,
        keyspace: &KeyspaceShared,
        tables: &mut Vec<Arc<TableHandle>>,
        hull: &KeyRange,
        seq: SeqNo,
    ) -> Result<()> {
        for table in tables.iter_mut() {
            Arc::get_mut(table).expect("nobody else has it yet").date(seq);
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
        let mut after = state.view.tree.clone();
        apply(&mut after, &edit).expect("a new run fits any tree");
        // What was written to these keys has left memory, so that the log is not read for them.
        let taken = vec![Mark { range: hull.clone(), newest: seq }];
        let (id, flushed_seq) = (keyspace.id, SeqNo(0));
        let record = Record::Edit { keyspace: id, flushed_seq, taken, edit: edit.clone() };
        let after = self.committer.write_apart(&mut state, after, record)?;
        let step = self.context.one_step();
        state.add_tables(std::mem::take(tables));
        let before = std::mem::replace(&mut state.view.tree, after);
        let old = keyspace.version.load_full();
        let change = Change { before: &before, edit: &edit };
        let new = Arc::new(state.version(Some(&old), Some(change)));
        let context = &self.context;
        context.snapshots.show_load(seq, &context.visible, || keyspace.version.store(new));
        step.over();
        keyspace.gate.note(&state);
        drop(state);
        drop(committing);
        // What only it has kept goes here, where nobody waits.
        drop(old);
        Ok(())
    }
}

/// What the memory of `space`, whose state is `state`, holds within `hull`.
fn in_memory(
    keyspace: &KeyspaceShared,
    state: &KeyspaceState,
    hull: &KeyRange,
) -> Result<InMemory> {
    let mut active = state.active.memtable.cursor();
    active.seek(&hull.start)?;
    if active.entry().is_some_and(|entry| hull.contains(entry.key)) {
        return Ok(InMemory::Active);
    }
    for memory in &keyspace.version.load().memory {
        let mut cursor = memory.cursor(hull);
        cursor.seek_first()?;
        if cursor.entry().is_some() {
            return Ok(InMemory::Sealed);
        }
    }
    Ok(InMemory::Nothing)
}
