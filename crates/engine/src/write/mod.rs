//! The path of a write: the log, the memtables, visibility.
//!
//! One write, from start to end (`WritePath::write_if`):
//!
//! 1. The writer is delayed while merges are behind ([`back_pressure`]).
//! 2. Under the writer's lock, the batch is appended to the write-ahead log as one record
//!    (`WritePath::append`). From here on it survives the death of the process.
//! 3. Its entries go into the active memtables of their keyspaces (`insert`). Then all become
//!    visible at once.
//! 4. A full memtable is sealed, at once or by the next thread that finds the state of its keyspace
//!    unlocked (`Scheduler::seal_full`). A batch never straddles two memtables of a keyspace.
//! 5. Outside the lock, the log is synced if the caller asked for it (`Wal::sync_for`).

mod arrival;
mod back_pressure;
mod clear;
mod conflict;
mod load;
mod merge_range;
mod ops;
mod placement;

pub(crate) use arrival::ARRIVING_SEQ_MAX;
pub(crate) use conflict::Footprint;
pub(crate) use load::Load;
pub use ops::BATCH_BYTES_MAX;
pub(crate) use ops::{EMPTY_KEY, Op, OpBuffer, Ops, broken_range_rule};
pub(crate) use placement::Arriving;

use crate::commit::Committer;
use crate::context::{Context, read_only};
use crate::keyspace::{Active, KeyspaceShared};
use crate::options::PersistMode;
use crate::record::note_write;
use crate::scheduler::{Scheduler, WhenLocked};
use crate::stats::add;
use crate::wal::{Wal, WalWriter};
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::error::Result;
use lsmith_storage::format::{OpKind, deleted_range};
use lsmith_storage::memtable::KeepFrom;
use lsmith_storage::sync::Guard;
use lsmith_storage::sync::atomic::Ordering;
use lsmith_tree::{KeyRange, Readers, SeqNo};
use std::sync::Arc;

/// The path of writes and bulk loads into an open store.
#[derive(Debug)]
pub(crate) struct WritePath {
    context: Arc<Context>,
    wal: Arc<Wal>,
    committer: Arc<Committer>,
    scheduler: Arc<Scheduler>,
}

impl WritePath {
    /// Returns the path that appends to `wal` and has full memtables flushed by `scheduler`.
    pub(crate) fn new(
        context: &Arc<Context>,
        wal: &Arc<Wal>,
        committer: &Arc<Committer>,
        scheduler: &Arc<Scheduler>,
    ) -> WritePath {
        WritePath {
            context: Arc::clone(context),
            wal: Arc::clone(wal),
            committer: Arc::clone(committer),
            scheduler: Arc::clone(scheduler),
        }
    }

    /// Writes `ops`. Returns when they are as durable as `mode` says.
    ///
    /// # Errors
    /// As [`Store::write`](crate::Store::write).
    pub(crate) fn write(&self, ops: Ops<'_>, mode: PersistMode) -> Result<()> {
        self.write_if(ops, mode, || Ok(())).map(drop)
    }

    /// Writes `ops` if `check` allows it, with other writers kept out. Returns the sequence number
    /// of the last write, or 0 if there is none, when they are as durable as `mode` says.
    ///
    /// # Errors
    /// The error of `check`; nothing is written then. Otherwise as [`write`](WritePath::write).
    #[inline]
    fn write_if(
        &self,
        ops: Ops<'_>,
        mode: PersistMode,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<SeqNo> {
        let context = &*self.context;
        context.check_writable()?;
        ops.check()?;
        if ops.len() == 0 {
            return Ok(SeqNo(0));
        }
        if ops.have_ranges() {
            let ranges = ops.iter().filter(|op| op.kind == OpKind::DeleteRange);
            self.committer.allow_ranges(ranges.map(|op| op.keyspace))?;
        }
        if context.is_crowded() {
            self.make_room()?;
        }
        let deletes =
            || ops.iter().all(|op| op.kind.is_tombstone() || op.kind == OpKind::DeleteRange);
        if let Some(space) = context.tight_space(deletes) {
            self.make_space(space, deletes())?;
        }
        for keyspace in ops.keyspaces() {
            self.hold_back(keyspace, ops.bytes() as u64)?;
        }
        let mut guard = self.wal.lock_to_write();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        context.check_writable()?;
        check()?;
        let first = SeqNo(writer.next_seq);
        self.append(writer, first, ops)?;
        let step = context.one_step();
        insert(context, writer, first, ops);
        writer.next_seq += ops.len() as u64;
        context.visible.store(writer.next_seq - 1, Ordering::SeqCst);
        step.over();
        if context.recorder.is_on() {
            note(context, &ops);
        }
        let last = SeqNo(writer.next_seq - 1);
        self.scheduler.seal_full(writer, ops.keyspaces(), WhenLocked::Leave);
        let logs = if mode == PersistMode::Buffer { Vec::new() } else { writer.logs_to_sync() };
        drop(guard);
        context.followers.wake();
        self.wal.sync_for(mode, &logs)?;
        Ok(last)
    }

    /// Appends the record of `ops` to the log.
    fn append(&self, writer: &mut WalWriter, first: SeqNo, ops: Ops<'_>) -> Result<()> {
        let mut buffer = std::mem::take(&mut writer.buffer);
        let appended = ops.with_record(first, &mut buffer, |parts| self.wal.append(writer, parts));
        writer.buffer = buffer;
        appended?;
        let counts = &self.context.counts;
        add(&counts.batches, 1);
        add(&counts.entries_written, ops.len() as u64);
        add(&counts.user_bytes, ops.bytes() as u64);
        Ok(())
    }
}

/// Deletes `range` in the memtable `active`, by the write `seq`.
#[cold]
fn delete_range(context: &Context, active: &Active, range: &KeyRange, seq: SeqNo) {
    let keep = KeepFrom(context.keep_from());
    let (visible, snapshots) = context.readers();
    let readers = Readers { visible, snapshots: &snapshots };
    active.memtable.delete_range(range, seq, keep, &readers);
}

/// Records `ops`, as far as they are picked. The caller keeps other writers out.
#[cold]
#[inline(never)]
fn note(context: &Context, ops: &Ops<'_>) {
    let note = |op: &Op<'_>| note_write(context, op.keyspace, op.kind, op.key, op.value);
    match ops {
        Ops::One(op) => note(op),
        Ops::Many(buffer) => buffer.each().for_each(|op| note(&op)),
    }
}

/// Inserts the entries of `ops`, with sequence numbers from `first` on, into the active memtables.
fn insert(context: &Context, writer: &WalWriter, first: SeqNo, ops: Ops<'_>) {
    let keep = KeepFrom(context.keep_from());
    let mut active: Option<(&Arc<KeyspaceShared>, Guard<Arc<Active>>)> = None;
    for (seq, op) in (first.0..).zip(ops.iter()) {
        let (_, active) = match &active {
            Some(known) if Arc::ptr_eq(known.0, op.keyspace) => known,
            _ => {
                let now = op.keyspace.active.load();
                now.note_log(writer.file_id);
                active.insert((op.keyspace, now))
            }
        };
        let Op { key, value, .. } = op;
        let OpKind::Entry(kind) = op.kind else {
            delete_range(context, active, &deleted_range(key, value), SeqNo(seq));
            continue;
        };
        active.memtable.insert(EntryRef { key, seq: SeqNo(seq), kind, value }, keep);
    }
}
