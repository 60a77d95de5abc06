//! The way through the logs of a damaged store: which batches count, and what is missing.

use super::{FindingKind, Old};
use lsmith_storage::error::Error;
use lsmith_storage::format::Damage;
use lsmith_storage::format::{LoggedOp, decode_batch};
use lsmith_storage::log::{FoundRecord, LogEnd, LogId, LogKind, LogRemains, LogStart};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::SeqNo;
use std::path::PathBuf;

/// Takes the writes of a batch, of which the first has this number.
pub(super) type TakeBatch<'a> = dyn FnMut(&mut Old, SeqNo, &[LoggedOp<'_>]) + 'a;

/// A batch: the number of its first write, and its writes.
type Batch<'a> = (SeqNo, Vec<LoggedOp<'a>>);

/// The batch in a record of a log; `None` for a record that is none.
fn batch(payload: &[u8]) -> Result<Option<Batch<'_>>, Damage> {
    match LogStart::decode(payload)? {
        Some(_) => Ok(None),
        None => decode_batch(payload).map(Some),
    }
}

/// The number of the newest of the logs called `numbers` in front of which everything had been
/// synced, by what the logs say themselves; 0 where they say nothing.
pub(super) fn synced_before(old: &Old, numbers: &[u64]) -> u64 {
    let mut newest = 0;
    for &number in numbers {
        let path = numbered(&old.dir, FileKind::Wal, number);
        let id = LogId { kind: LogKind::Wal, number };
        let Ok(remains) = LogRemains::read(&*old.env, &path, id) else { continue };
        for record in remains.records() {
            match LogStart::decode(&record.payload) {
                Ok(Some(start)) if start.synced > 0 => newest = newest.max(start.before),
                _ if record.marked => newest = newest.max(number),
                _ => {}
            }
        }
    }
    newest
}

/// How far the logs have been read, oldest first.
pub(super) struct Logs {
    /// The number that the next batch has at most, if none is missing; 0 where that is not known.
    next: u64,
    /// Whether something was damaged or is missing: then what lies behind it counts, too.
    has_damage: bool,
    /// Whether the log before is torn.
    is_behind_tear: bool,
    /// Whether nothing more is read, as no opening would read it.
    is_over: bool,
    /// In front of this log everything had been synced.
    synced_before: u64,
}

/// A log being read.
struct Log {
    number: u64,
    path: PathBuf,
    remains: LogRemains,
    /// Where the last record ends that was read.
    end: u64,
}

impl Log {
    /// Bytes from `offset` on, up to the last one that is not zero.
    fn used_from(&self, offset: u64) -> u64 {
        let bytes = self.remains.bytes_at(offset..self.remains.bytes());
        bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
    }
}

impl Logs {
    /// The way through logs of which all batches up to number `durable` are elsewhere, too. Where
    /// that is not known the store has damage already, and nothing that is missing is taken for
    /// what power loss has left.
    pub(super) fn new(durable: Option<SeqNo>, synced_before: u64) -> Logs {
        let (next, has_damage) = (durable.map_or(0, |durable| durable.0 + 1), durable.is_none());
        Logs { next, has_damage, is_behind_tear: false, is_over: false, synced_before }
    }

    /// Gives `take` all batches of log `number` that count, and tells what is not among them.
    pub(super) fn read(&mut self, old: &mut Old, number: u64, take: &mut TakeBatch<'_>) {
        let path = numbered(&old.dir, FileKind::Wal, number);
        let id = LogId { kind: LogKind::Wal, number };
        let remains = match LogRemains::read(&*old.env, &path, id) {
            Ok(remains) => remains,
            Err(error) => {
                self.has_damage = true;
                let bytes = old.env.file_bytes(&path).unwrap_or(0);
                let kind = FindingKind::LostBatches { bytes, writes: None };
                return old.find_error(kind, &error);
            }
        };
        let end = LogRemains::START;
        let mut log = Log { number, path, remains, end };
        let tear = match log.remains.end {
            Ok(LogEnd::Torn { offset, .. }) => offset,
            _ => u64::MAX,
        };
        let records: Vec<FoundRecord> = log.remains.records().collect();
        for record in records.iter().take_while(|record| record.offset < tear) {
            self.record(old, &mut log, record, take);
            if self.is_over {
                break;
            }
        }
        self.end(old, &log);
    }

    fn record(
        &mut self,
        old: &mut Old,
        log: &mut Log,
        record: &FoundRecord,
        take: &mut TakeBatch<'_>,
    ) {
        let found = match batch(&record.payload) {
            Ok(found) => found,
            Err(damage) => {
                // Passed over as if it could not be read.
                let error = Error::corruption(&log.path, record.offset, damage.what);
                return old.find_error(FindingKind::Harmless, &error);
            }
        };
        let Some((first, ops)) = found else {
            log.end = record.offset + record.bytes;
            return;
        };
        self.gap(old, log, record, first.0);
        if self.is_over {
            return;
        }
        log.end = record.offset + record.bytes;
        // An empty batch stands for a bulk load, whose entries have one number together.
        self.next = self.next.max(first.0 + ops.len().max(1) as u64);
        take(old, first, &ops);
    }

    /// Tells what is missing in front of `record`, whose first number is `first`.
    fn gap(&mut self, old: &mut Old, log: &Log, record: &FoundRecord, first: u64) {
        let writes = first.checked_sub(self.next);
        let writes = writes.filter(|writes| *writes > 0 && self.next > 0);
        let bytes = record.offset - log.end;
        if bytes > 0 {
            self.has_damage = true;
            let kind = FindingKind::LostBatches { bytes, writes };
            old.find(kind, &log.path, Some(log.end), "no batch can be read");
        } else if let Some(writes) = writes {
            let synced = log.number <= self.synced_before;
            if self.is_behind_tear && !self.has_damage && !synced {
                self.is_over = true;
                return;
            }
            self.has_damage = true;
            let told = format!("expected write number {}, found {first}", self.next);
            let kind = FindingKind::LostBatches { bytes: 0, writes: Some(writes) };
            old.find(kind, &log.path, Some(record.offset), told);
        }
    }

    /// Tells what lies behind the last record of `log` that was read.
    fn end(&mut self, old: &mut Old, log: &Log) {
        let bytes = log.used_from(log.end);
        self.is_behind_tear = log.remains.end.is_ok() && bytes > 0;
        match &log.remains.end {
            _ if self.is_over => {
                let told = "it lies behind a gap that power loss has left";
                old.find(FindingKind::LeftOut { bytes }, &log.path, Some(log.end), told);
            }
            Ok(_) if bytes > 0 => {
                let told = "the end is torn: it had not been synced";
                old.find(FindingKind::LeftOut { bytes }, &log.path, Some(log.end), told);
            }
            Ok(_) => {}
            Err(error) if bytes > 0 => {
                self.has_damage = true;
                let kind = FindingKind::LostBatches { bytes, writes: None };
                old.find(kind, &log.path, Some(log.end), error.message());
            }
            // That of the header.
            Err(error) if error.offset() < Some(LogRemains::START) => {
                old.find_error(FindingKind::Harmless, error);
            }
            // Told where the batches were missing.
            Err(_) => {}
        }
    }
}
