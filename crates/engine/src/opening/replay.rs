//! Reads the write-ahead logs back into memtables.
//!
//! Sequence numbers of writes have no gaps. The logs of the [row](super::row) are read oldest
//! first, and each states the sequence number of its first write. If sequence numbers are missing
//! between two logs, or at the end, one of three things has happened:
//!
//! * Nothing is lost: every keyspace has the missing writes in tables or in a spill.
//! * Power was lost before the writes reached the device. Then all later writes are left out, so
//!   that the store opens on a prefix of the batches.
//! * The writes were synced, and are damaged or gone. Opening fails, and changes nothing.
//!
//! Four things prove that missing writes were synced:
//!
//! 1. a valid record with a sync mark in a later log: logs are synced in their order, and a record
//!    is marked only if everything before it was synced when it was appended;
//! 2. the start record of a later log, which states how much of the log before was synced;
//! 3. a table or a spill with later writes, if a keyspace needs earlier writes from the
//!    log: the log is synced before such a table enters the tree;
//! 4. the record `synced` of the manifest, which each opening and each closing writes: opening
//!    replaces the logs that it keeps by synced copies, and closing syncs the log.
//!
//! A sync that no later record mentions proves nothing: if nothing was appended after it in a life
//! that did not end well, the last writes before it can be cut off without a trace.

use super::Opening;
use super::row::{LogRowFiles, RowLog, open_log};
use super::unread::{TornTail, UnreadLogs, keep_newest};
use crate::memory::seal_while_opening;
use crate::wal::Log;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::format::{LoggedOp, OpKind, decode_batch, deleted_range};
use lsmith_storage::log::{LogEnd, LogStart};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::{Readers, SeqNo};

/// How far the logs have been read.
struct ReadProgress {
    /// The sequence number of the last write that was read, or is known not to be needed.
    seq: u64,
    /// The id of the last log that was read, and the offset at which it ended.
    log: Option<(u64, u64)>,
}

impl ReadProgress {
    fn next_seq(&self) -> u64 {
        self.seq.saturating_add(1)
    }
}

/// Which writes are in tables or in spills.
struct InTables {
    /// The sequence number of the last write that some keyspace has there.
    durable: u64,
    /// The sequence number up to which all keyspaces have all their writes there. There may be
    /// none.
    complete: u64,
    /// The sequence number of the last write that was certainly synced, there or in a log.
    proven: u64,
}

impl Opening {
    /// Reads the logs back into memtables.
    ///
    /// # Errors
    /// `Corruption`, with path and offset, if a log is damaged or synced writes are missing. `Io`.
    pub(super) fn replay(&mut self) -> Result<()> {
        let mut file_ids = self.file_ids_of(FileKind::Wal);
        file_ids.sort_unstable();
        let known = self.account.logs;
        let env = &*self.context.options.env;
        let LogRowFiles { logs, strays, unneeded } =
            LogRowFiles::find(env, &self.context.options.dir, &file_ids, known)?;
        self.left_out = UnreadLogs { logs: strays, tails: Vec::new(), unneeded };
        let in_tables = self.in_tables();
        if let Some(limit) = &mut self.beside {
            limit.settled = limit.settled.max(in_tables.durable);
        }
        let first = logs.first().map_or(u64::MAX, |log| log.start.first.0);
        let seq = match known {
            Some(row) => row.first.0.saturating_sub(1),
            // Manifests of earlier versions do not say where the oldest log begins.
            None => in_tables.durable.min(first - 1),
        };
        let mut reached = ReadProgress { seq, log: None };
        for (index, log) in logs.iter().enumerate() {
            let first = log.start.first.0;
            if first > reached.next_seq() && !self.is_harmless(&reached, first - 1, &in_tables) {
                self.check_not_synced(&reached, &logs[index..], &in_tables)?;
                self.leave_out(&reached, &logs[index..]);
                break;
            }
            self.replay_log(log, &mut reached)?;
        }
        if known.is_some() {
            self.check_complete(&reached, None, &in_tables)?;
        }
        self.trim();
        self.keep_for_changes(&logs);
        let stop = self.beside.and_then(|limit| limit.stop);
        self.last_seq = in_tables.durable.max(stop.unwrap_or(reached.seq));
        Ok(())
    }

    fn in_tables(&self) -> InTables {
        let states = || self.account.keyspaces.values();
        let complete = states().map(|state| state.complete_seq().0).min();
        InTables {
            durable: self.last_seq,
            complete: complete.unwrap_or(u64::MAX),
            proven: self.last_seq.max(self.account.synced_seq.0),
        }
    }

    /// Returns true if no keyspace needs the unread writes up to sequence number `last`.
    fn is_harmless(&self, reached: &ReadProgress, last: u64, in_tables: &InTables) -> bool {
        // Manifests of earlier versions do not say from which log on all are needed.
        let lenient = self.account.logs.is_none() && self.logs.is_empty();
        let known = if lenient { in_tables.durable } else { in_tables.complete };
        reached.seq <= last && last <= known
    }

    /// Fails if the missing writes before the logs `rest` were synced.
    fn check_not_synced(
        &self,
        reached: &ReadProgress,
        rest: &[RowLog],
        in_tables: &InTables,
    ) -> Result<()> {
        let Some((next, later)) = rest.split_first() else { return Ok(()) };
        let read_bytes = match reached.log {
            Some((log, end)) if log == next.start.before => end,
            _ => 0,
        };
        // Manifests of earlier versions do not say which writes need a log.
        let last = next.start.first.0 - 1;
        let is_known = self.account.logs.is_some() || last <= in_tables.durable;
        if is_known {
            self.check_complete(reached, Some(next), in_tables)?;
        }
        let stated_by = if next.start.synced > read_bytes {
            Some(next.file_id)
        } else {
            later.iter().find(|later| later.start.synced > 0).map(|later| later.file_id)
        };
        let synced_by = match stated_by {
            Some(file_id) => Some(file_id),
            None => self.first_marked(rest)?,
        };
        match synced_by {
            Some(file_id) => {
                let reason = format!("log {file_id} says that they had been synced");
                Err(self.missing_writes(reached, Some(next), last, &reason))
            }
            None => Ok(()),
        }
    }

    /// Returns the id of the first of `logs` that has a record with a sync mark, if any has.
    fn first_marked(&self, logs: &[RowLog]) -> Result<Option<u64>> {
        for log in logs {
            let (_, mut reader) =
                open_log(&*self.context.options.env, &self.context.options.dir, log.file_id)?;
            while reader.next_record()?.is_some() {
                if reader.is_marked() {
                    return Ok(Some(log.file_id));
                }
            }
        }
        Ok(None)
    }

    /// Fails if a keyspace needs a write that was not read although it was certainly synced. `next`
    /// is the log behind the missing writes.
    fn check_complete(
        &self,
        reached: &ReadProgress,
        next: Option<&RowLog>,
        in_tables: &InTables,
    ) -> Result<()> {
        let proven = in_tables.proven;
        if reached.seq >= proven || in_tables.complete >= proven {
            return Ok(());
        }
        let reason = if self.account.synced_seq.0 == proven {
            "the manifest says that they had been synced"
        } else {
            "later writes are in tables, before which they had been synced"
        };
        let last = next.map_or(proven, |next| proven.min(next.start.first.0 - 1));
        Err(self.missing_writes(reached, next, last, reason))
    }

    /// Returns the error that the writes behind `reached` up to sequence number `last` are missing
    /// although they were synced. `next` is the log behind them.
    fn missing_writes(
        &self,
        reached: &ReadProgress,
        next: Option<&RowLog>,
        last: u64,
        reason: &str,
    ) -> Error {
        let from = self.account.logs.map_or(0, |row| row.from);
        let before = next.map_or(0, |next| next.start.before);
        let (log, offset) = match reached.log {
            Some((log, end)) if before <= log => (log, end),
            // Nothing of the log that held them could be read.
            _ => (before.max(from), 0),
        };
        let path = numbered(&self.context.options.dir, FileKind::Wal, log);
        let first = reached.next_seq();
        Error::corruption(&path, offset, format!("writes {first} to {last} are missing: {reason}"))
    }

    /// Leaves the logs `rest` out: neither they nor the writes before them were synced.
    fn leave_out(&mut self, reached: &ReadProgress, rest: &[RowLog]) {
        let expected = reached.next_seq();
        let found = rest[0].start.first;
        tracing::warn!(
            log = rest[0].file_id, expected, %found, logs = rest.len(),
            "power was lost before writes reached the device: later logs are left out"
        );
        self.left_out.logs.extend(rest.iter().map(|log| log.file_id));
    }

    /// Reads `row_log` back. Fails if its first sequence number is not beyond what has been
    /// reached.
    fn replay_log(&mut self, row_log: &RowLog, reached: &mut ReadProgress) -> Result<()> {
        let file_id = row_log.file_id;
        let (path, mut reader) =
            open_log(&*self.context.options.env, &self.context.options.dir, file_id)?;
        let log = Log { file_id, first: row_log.start.first, bytes: reader.bytes() };
        let wrong = |offset, expected: u64, found: u64| {
            let message = format!("expected write number {expected}, found {found}");
            Err(Error::corruption(&path, offset, message))
        };
        if row_log.start.first.0 < reached.next_seq() {
            return wrong(reader.read_bytes(), reached.next_seq(), row_log.start.first.0);
        }
        reached.seq = row_log.start.first.0 - 1;
        let mut has_batches = false;
        let mut is_first_record = true;
        while let Some((offset, payload)) = reader.next_record()? {
            let damaged = |message: String| Error::corruption(&path, offset, message);
            let is_start = LogStart::decode(payload).is_ok_and(|start| start.is_some());
            if std::mem::take(&mut is_first_record) && is_start {
                continue;
            }
            let batch = decode_batch(payload).map_err(|damage| damaged(damage.what.to_string()))?;
            if batch.first.0 != reached.next_seq() {
                return wrong(offset, reached.next_seq(), batch.first.0);
            }
            reached.seq = batch.last().0;
            has_batches = true;
            let limit = self.beside.as_mut();
            if limit.is_some_and(|limit| !limit.admits(&batch, &self.account)) {
                continue;
            }
            self.insert(log, batch.first, &batch.ops).map_err(damaged)?;
            // Seals between batches only: no batch straddles two memtables.
            for ops in batch.ops.chunk_by(|left, right| left.keyspace == right.keyspace) {
                if let Some(keyspace) = self.keyspaces.get(&ops[0].keyspace) {
                    seal_while_opening(&self.context, keyspace);
                }
            }
        }
        let end = reader.read_bytes();
        if let Some(LogEnd::Torn { offset, bytes_dropped }) = reader.end() {
            tracing::warn!(
                path = %path.display(), offset, bytes_dropped,
                "the end of the log is torn and left out: it had not been synced"
            );
            if bytes_dropped > 0 {
                let tail = TornTail { log: file_id, offset, bytes: bytes_dropped };
                self.left_out.tails.push(tail);
            }
        }
        reached.log = Some((file_id, end));
        self.newest_log = self.beside.map(|_| (file_id, reader));
        self.keep_if_needed(Log { bytes: end, ..log }, has_batches);
        Ok(())
    }

    /// Keeps `log`, which has been read, if it is needed. Once a log is needed, all later ones are:
    /// otherwise there would be gaps between them.
    fn keep_if_needed(&mut self, log: Log, has_batches: bool) {
        if !self.logs.is_empty() && !self.needs_log(log.file_id) {
            self.logs.push(log);
        }
        match self.logs.last_mut().filter(|last| last.file_id == log.file_id) {
            Some(last) => last.bytes = log.bytes,
            None => self.left_out.unneeded.push(log.file_id),
        }
        if !has_batches {
            self.empty.push(log.file_id);
        }
    }

    /// Drops the newest logs as long as they hold no batch.
    fn trim(&mut self) {
        while let Some(last) = self.logs.pop_if(|last| self.empty.contains(&last.file_id)) {
            self.left_out.unneeded.push(last.file_id);
        }
    }

    /// Inserts the writes of a batch of `log`, with sequence numbers from `first` on, into
    /// memtables. Skips writes that are in tables or in a spill, and writes to dropped keyspaces.
    fn insert(
        &mut self,
        log: Log,
        first: SeqNo,
        ops: &[LoggedOp<'_>],
    ) -> std::result::Result<(), String> {
        for (index, op) in ops.iter().enumerate() {
            let seq = SeqNo(first.0 + index as u64);
            let Some(keyspace) = self.keyspaces.get(&op.keyspace) else {
                if self.account.was_dropped(op.keyspace) {
                    continue;
                }
                return Err(format!("there is no keyspace {}", op.keyspace));
            };
            let facts = &self.account.keyspaces[&op.keyspace];
            let is_in_tree = match op.kind {
                OpKind::DeleteRange => facts.has_in_tree(seq),
                OpKind::Entry(_) => facts.is_covered(op.key, seq),
            };
            if is_in_tree {
                continue;
            }
            let state = keyspace.state.lock();
            state.active.note_log(log.file_id);
            if self.logs.last().is_none_or(|last| last.file_id != log.file_id) {
                self.logs.push(log);
            }
            let keep = keep_newest(seq);
            let OpKind::Entry(kind) = op.kind else {
                let readers = Readers { visible: keep.0, snapshots: &[] };
                let range = deleted_range(op.key, op.value);
                state.active.memtable.delete_range(&range, seq, keep, &readers);
                continue;
            };
            let entry = EntryRef { key: op.key, seq, kind, value: op.value };
            state.active.memtable.insert(entry, keep);
        }
        Ok(())
    }
}
