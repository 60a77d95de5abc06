//! Reading the write-ahead logs back.
//!
//! Writes have numbers without gaps. The logs of the [row](super::row) are read one after the
//! other, and each says with which number it begins. Where numbers are missing between two logs,
//! or at the end, one of three things has happened:
//!
//! * Nothing is lost: every keyspace has those writes in tables or in a copy of memory.
//! * Power was lost before they got to the device. Then everything behind them is left out, so that
//!   the store opens on a prefix of the batches.
//! * They were synced, and are damaged or gone. That is an error, and nothing is changed.
//!
//! What proves that the missing writes were synced:
//!
//! 1. a valid record with a sync mark in a later log: logs are synced in their order, and a record
//!    is marked only if everything in front of it had been synced before it was appended;
//! 2. the start record of a later log, which says how much of the log before was synced;
//! 3. a table or a copy of memory with later writes, where a keyspace needs writes in front of them
//!    from the log: the log is synced before such a table comes into the tree.
//!
//! A sync of which the log does not tell proves nothing: if nothing was appended after it, the last
//! writes before it can be cut off without a trace.

use super::Opening;
use super::row::{Link, Row, open_log};
use crate::left_out::{LeftOut, LeftOutReason};
use crate::memory::seal_while_opening;
use crate::wal::Log;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::format::decode_batch;
use lsmith_storage::log::{LogEnd, LogStart};
use lsmith_storage::memtable::KeepFrom;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::SeqNo;
use std::ops::Range;
use std::path::Path;

/// What opening does not read of the logs.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread {
    /// Whole logs.
    pub(super) logs: Vec<u64>,
    /// What lies behind an offset of a log.
    pub(super) tails: Vec<Tail>,
    /// Logs that hold nothing, or nothing that is needed.
    pub(super) unneeded: Vec<u64>,
}

/// The torn end of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    pub(super) log: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Tail {
    /// Where it lies in its log.
    pub(super) fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes
    }
}

/// How far the logs have been read.
struct Reached {
    /// The number of the last write read, or known not to be needed.
    seq: u64,
    /// The last log read, and where it ended.
    log: Option<(u64, u64)>,
}

impl Reached {
    fn next_seq(&self) -> u64 {
        self.seq.saturating_add(1)
    }
}

/// What the tables say of writes.
struct InTables {
    /// Some keyspace has something up to this number.
    durable: u64,
    /// All keyspaces have everything up to this number.
    complete: u64,
}

impl Opening {
    /// Reads the logs back into memtables.
    ///
    /// # Errors
    /// `Corruption` with path and offset, `Io`.
    pub(super) fn replay(&mut self) -> Result<()> {
        let mut numbers = self.numbers_of(FileKind::Wal);
        numbers.sort_unstable();
        let known = self.account.logs;
        let Row { links, strays, unneeded } =
            Row::find(&*self.context.options.env, &self.context.options.dir, &numbers, known)?;
        self.left_out = Unread { logs: strays, tails: Vec::new(), unneeded };
        let in_tables = self.in_tables();
        let first = links.first().map_or(u64::MAX, |link| link.start.first.0);
        let seq = match known {
            Some(row) => row.first.0.saturating_sub(1),
            // Earlier versions did not say where the oldest log begins.
            None => in_tables.durable.min(first - 1),
        };
        let mut reached = Reached { seq, log: None };
        for (index, link) in links.iter().enumerate() {
            let first = link.start.first.0;
            if first > reached.next_seq() && !self.is_harmless(&reached, first - 1, &in_tables) {
                self.check_not_synced(&reached, &links[index..], &in_tables)?;
                self.leave_out(&reached, &links[index..]);
                break;
            }
            self.replay_log(link, &mut reached)?;
        }
        if known.is_some() && reached.seq < in_tables.durable {
            self.check_complete(&reached, &in_tables)?;
        }
        self.trim();
        self.last_seq = in_tables.durable.max(reached.seq);
        Ok(())
    }

    fn in_tables(&self) -> InTables {
        let states = || self.account.keyspaces.values();
        let complete = states().map(|state| state.complete_seq().0).min();
        InTables { durable: self.last_seq, complete: complete.unwrap_or(0) }
    }

    /// Whether no keyspace needs the writes up to number `upto` that were not read.
    fn is_harmless(&self, reached: &Reached, upto: u64, in_tables: &InTables) -> bool {
        // Of earlier versions it is not known from which log on all are needed.
        let lenient = self.account.logs.is_none() && self.logs.is_empty();
        let known = if lenient { in_tables.durable } else { in_tables.complete };
        reached.seq <= upto && upto <= known
    }

    /// Makes sure that the writes in front of `rest` may have been lost with the power.
    fn check_not_synced(
        &self,
        reached: &Reached,
        rest: &[Link],
        in_tables: &InTables,
    ) -> Result<()> {
        let Some((link, later)) = rest.split_first() else { return Ok(()) };
        let read = match reached.log {
            Some((log, end)) if log == link.start.before => end,
            _ => 0,
        };
        // Of earlier versions it is not known which writes need a log.
        let told = self.account.logs.is_some() || link.start.first.0 - 1 <= in_tables.durable;
        if told && reached.seq < in_tables.durable {
            self.check_complete(reached, in_tables)?;
        }
        let told = if link.start.synced > read {
            Some(link.number)
        } else {
            later.iter().find(|later| later.start.synced > 0).map(|later| later.number)
        };
        let told = match told {
            Some(number) => Some(number),
            None => self.first_marked(rest)?,
        };
        match told {
            Some(number) => {
                let last = link.start.first.0 - 1;
                let told = format!("log {number} says that they had been synced");
                Err(self.gap(reached, Some(link), last, &told))
            }
            None => Ok(()),
        }
    }

    /// The first of these logs that has a record with a sync mark.
    fn first_marked(&self, links: &[Link]) -> Result<Option<u64>> {
        for link in links {
            let (_, mut reader) =
                open_log(&*self.context.options.env, &self.context.options.dir, link.number)?;
            while reader.next_record()?.is_some() {
                if reader.is_marked() {
                    return Ok(Some(link.number));
                }
            }
        }
        Ok(None)
    }

    /// Makes sure that no keyspace needs a write that comes before one in tables and was not read.
    fn check_complete(&self, reached: &Reached, in_tables: &InTables) -> Result<()> {
        if in_tables.complete >= in_tables.durable {
            return Ok(());
        }
        let told = "later writes are in tables, before which they had been synced";
        Err(self.gap(reached, None, in_tables.durable, told))
    }

    /// Says that the writes from where the logs were read up to number `last` are missing. `next`
    /// is the log that comes behind them.
    fn gap(&self, reached: &Reached, next: Option<&Link>, last: u64, told: &str) -> Error {
        let from = self.account.logs.map_or(0, |row| row.from);
        let before = next.map_or(0, |next| next.start.before);
        let (log, offset) = match reached.log {
            Some((log, end)) if before <= log => (log, end),
            // Nothing of the log that held them could be read.
            _ => (before.max(from), 0),
        };
        let path = numbered(&self.context.options.dir, FileKind::Wal, log);
        let first = reached.next_seq();
        Error::corruption(&path, offset, format!("writes {first} to {last} are missing: {told}"))
    }

    /// Leaves the logs `rest` out: they were not synced, nor were writes in front of them.
    fn leave_out(&mut self, reached: &Reached, rest: &[Link]) {
        let (expected, found) = (reached.next_seq(), rest[0].start.first);
        tracing::warn!(
            log = rest[0].number, expected, %found, logs = rest.len(),
            "power was lost before writes got to the device: the logs behind them are left out"
        );
        self.left_out.logs.extend(rest.iter().map(|link| link.number));
    }

    /// Reads one log back, whose first write follows what has been reached.
    fn replay_log(&mut self, link: &Link, reached: &mut Reached) -> Result<()> {
        let number = link.number;
        let (path, mut reader) =
            open_log(&*self.context.options.env, &self.context.options.dir, number)?;
        let log = Log { number, first: link.start.first, bytes: reader.bytes() };
        let wrong = |offset, expected: u64, found: u64| {
            let told = format!("expected write number {expected}, found {found}");
            Err(Error::corruption(&path, offset, told))
        };
        if link.start.first.0 < reached.next_seq() {
            return wrong(reader.read_bytes(), reached.next_seq(), link.start.first.0);
        }
        reached.seq = link.start.first.0 - 1;
        let (mut batches, mut starts) = (0_u64, true);
        while let Some((offset, payload)) = reader.next_record()? {
            let damaged = |told: String| Error::corruption(&path, offset, told);
            let is_start = LogStart::decode(payload).is_ok_and(|start| start.is_some());
            if std::mem::take(&mut starts) && is_start {
                continue;
            }
            let (first, ops) =
                decode_batch(payload).map_err(|damage| damaged(damage.what.to_string()))?;
            if first.0 != reached.next_seq() {
                return wrong(offset, reached.next_seq(), first.0);
            }
            // An empty batch stands for a bulk load, whose entries have one number together.
            reached.seq = first.0 + ops.len().max(1) as u64 - 1;
            batches += 1;
            self.insert(log, first, &ops).map_err(damaged)?;
            // Behind a batch, because none straddles memtables.
            for ops in ops.chunk_by(|left, right| left.keyspace == right.keyspace) {
                seal_while_opening(&self.context, &self.keyspaces[&ops[0].keyspace]);
            }
        }
        let end = reader.read_bytes();
        if let Some(LogEnd::Torn { offset, bytes_dropped }) = reader.end() {
            tracing::warn!(
                path = %path.display(), offset, bytes_dropped,
                "the end of the log was not complete and is left out: it had not been synced"
            );
            if bytes_dropped > 0 {
                let tail = Tail { log: number, offset, bytes: bytes_dropped };
                self.left_out.tails.push(tail);
            }
        }
        reached.log = Some((number, end));
        self.keep(Log { bytes: end, ..log }, batches > 0);
        Ok(())
    }

    /// Keeps `log`, which has been read, if it is needed. Once a log is needed all that follow are,
    /// or there would be gaps between them.
    fn keep(&mut self, log: Log, has_batches: bool) {
        if !self.logs.is_empty() && !self.needs_log(log.number) {
            self.logs.push(log);
        }
        match self.logs.last_mut().filter(|last| last.number == log.number) {
            Some(last) => last.bytes = log.bytes,
            None => self.left_out.unneeded.push(log.number),
        }
        if !has_batches {
            self.empty.push(log.number);
        }
    }

    /// Lets go of the newest logs where nothing was written to them.
    fn trim(&mut self) {
        while let Some(last) = self.logs.pop_if(|last| self.empty.contains(&last.number)) {
            self.left_out.unneeded.push(last.number);
        }
    }

    /// Puts the writes of one batch into the memtables of keyspaces that have not flushed them.
    fn insert(
        &mut self,
        log: Log,
        first: SeqNo,
        ops: &[lsmith_storage::format::LoggedOp<'_>],
    ) -> std::result::Result<(), String> {
        for (index, op) in ops.iter().enumerate() {
            let seq = SeqNo(first.0 + index as u64);
            let keyspace = self.keyspaces.get(&op.keyspace);
            let keyspace =
                keyspace.ok_or_else(|| format!("there is no keyspace {}", op.keyspace))?;
            if self.account.keyspaces[&op.keyspace].is_covered(op.key, seq) {
                continue;
            }
            let state = keyspace.state.lock();
            state.active.note_log(log.number);
            if self.logs.last().is_none_or(|last| last.number != log.number) {
                self.logs.push(log);
            }
            let entry = EntryRef { key: op.key, seq, kind: op.kind, value: op.value };
            state.active.memtable.insert(entry, keep_newest(seq));
        }
        Ok(())
    }
}

impl Unread {
    /// The same, as whoever looks after an accident is told of it.
    pub(super) fn to_public(&self, env: &dyn Env, dir: &Path) -> Vec<LeftOut> {
        let logs = self.logs.iter().map(|&number| {
            let path = numbered(dir, FileKind::Wal, number);
            let bytes = env.file_bytes(&path).unwrap_or(0);
            LeftOut { path, offset: 0, bytes, reason: LeftOutReason::BehindGap }
        });
        let tails = self.tails.iter().map(|&Tail { log, offset, bytes }| {
            let path = numbered(dir, FileKind::Wal, log);
            LeftOut { path, offset, bytes, reason: LeftOutReason::TornEnd }
        });
        tails.chain(logs).collect()
    }
}

/// Nobody reads yet: of versions older than that with number `seq` only the newest is needed.
pub(super) fn keep_newest(seq: SeqNo) -> KeepFrom {
    KeepFrom(SeqNo(seq.0.saturating_sub(1)))
}
