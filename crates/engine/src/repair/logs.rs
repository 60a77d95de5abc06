//! Reads the logs of a damaged store: decides which batches count, and reports what is missing.

use super::{DamagedStore, FindingKind};
use lsmith_storage::error::Error;
use lsmith_storage::format::{Damage, LoggedBatch, LoggedOp, decode_batch};
use lsmith_storage::log::{FoundRecord, LogEnd, LogId, LogKind, LogRemains, LogStart};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::SeqNo;
use std::path::PathBuf;

/// A function that takes the writes of a batch. The number is that of the first write.
pub(super) type TakeBatch<'a> = dyn FnMut(&mut DamagedStore, SeqNo, &[LoggedOp<'_>]) + 'a;

/// Decodes a record of a log. Returns `None` for the start record.
fn batch(payload: &[u8]) -> Result<Option<LoggedBatch<'_>>, Damage> {
    match LogStart::decode(payload)? {
        Some(_) => Ok(None),
        None => decode_batch(payload).map(Some),
    }
}

/// Returns the number of the newest of the logs with `numbers` before which everything was synced,
/// judged by sync marks and start records; 0 if there is no such log.
pub(super) fn synced_before(old: &DamagedStore, numbers: &[u64]) -> u64 {
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

/// The reading of the logs, oldest first.
pub(super) struct Logs {
    /// If no batch is missing, the next one has this number or a lower one; 0 if it is unknown.
    next: u64,
    /// True after damage or a gap. Then batches behind a gap count too.
    has_damage: bool,
    /// True if the log before is torn.
    is_behind_tear: bool,
    /// True if opening would leave out the rest, so that it is not read.
    is_over: bool,
    /// The number of a log before which everything was synced.
    synced_before: u64,
}

/// A log that is being read.
struct DamagedLog {
    number: u64,
    path: PathBuf,
    remains: LogRemains,
    /// The end of the last record that was read, as an offset.
    end: u64,
}

impl DamagedLog {
    /// Returns the number of bytes from `offset` on, up to the last one that is not zero.
    fn used_from(&self, offset: u64) -> u64 {
        let bytes = self.remains.bytes_at(offset..self.remains.bytes());
        bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
    }
}

impl Logs {
    /// Begins to read logs of which all batches up to number `durable` are in tables or copies too.
    /// Without `durable` the store is damaged already, and no gap counts as one of power loss.
    pub(super) fn new(durable: Option<SeqNo>, synced_before: u64) -> Logs {
        Logs {
            next: durable.map_or(0, |durable| durable.0 + 1),
            has_damage: durable.is_none(),
            is_behind_tear: false,
            is_over: false,
            synced_before,
        }
    }

    /// Calls `take` with all batches of log `number` that count, and reports the others.
    pub(super) fn read(&mut self, old: &mut DamagedStore, number: u64, take: &mut TakeBatch<'_>) {
        let path = numbered(&old.dir, FileKind::Wal, number);
        let id = LogId { kind: LogKind::Wal, number };
        let remains = match LogRemains::read(&*old.env, &path, id) {
            Ok(remains) => remains,
            Err(error) => {
                self.has_damage = true;
                let bytes = old.env.file_bytes(&path).unwrap_or(0);
                let kind = FindingKind::LostBatches { bytes, writes: None };
                return old.report_error(kind, &error);
            }
        };
        let end = LogRemains::START;
        let mut log = DamagedLog { number, path, remains, end };
        let tear = match log.remains.end {
            Ok(LogEnd::Torn { offset, .. }) => offset,
            _ => u64::MAX,
        };
        let records: Vec<FoundRecord> = log.remains.records().collect();
        for record in records.iter().take_while(|record| record.offset < tear) {
            self.read_record(old, &mut log, record, take);
            if self.is_over {
                break;
            }
        }
        self.report_rest(old, &log);
    }

    fn read_record(
        &mut self,
        old: &mut DamagedStore,
        log: &mut DamagedLog,
        record: &FoundRecord,
        take: &mut TakeBatch<'_>,
    ) {
        let found = match batch(&record.payload) {
            Ok(found) => found,
            Err(damage) => {
                // Skipped: the gap in the numbers is reported with the next record.
                let error = Error::corruption(&log.path, record.offset, damage.what);
                return old.report_error(FindingKind::Harmless, &error);
            }
        };
        let Some(batch) = found else {
            log.end = record.offset + record.bytes;
            return;
        };
        self.report_gap(old, log, record, batch.first.0);
        if self.is_over {
            return;
        }
        log.end = record.offset + record.bytes;
        self.next = self.next.max(batch.last().0 + 1);
        take(old, batch.first, &batch.ops);
    }

    /// Reports batches that are missing or unreadable before `record`, whose first number is
    /// `first`. Sets `is_over` if power loss explains a gap.
    fn report_gap(
        &mut self,
        old: &mut DamagedStore,
        log: &DamagedLog,
        record: &FoundRecord,
        first: u64,
    ) {
        let distance = first.checked_sub(self.next);
        let writes = distance.filter(|writes| *writes > 0 && self.next > 0);
        let bytes = record.offset - log.end;
        if bytes > 0 {
            self.has_damage = true;
            let kind = FindingKind::LostBatches { bytes, writes };
            old.report(kind, &log.path, Some(log.end), "no batch can be read");
        } else if let Some(writes) = writes {
            let synced = log.number <= self.synced_before;
            if self.is_behind_tear && !self.has_damage && !synced {
                self.is_over = true;
                return;
            }
            self.has_damage = true;
            let message = format!("expected write number {}, found {first}", self.next);
            let kind = FindingKind::LostBatches { bytes: 0, writes: Some(writes) };
            old.report(kind, &log.path, Some(record.offset), message);
        }
    }

    /// Reports the bytes of `log` behind the last record that was read.
    fn report_rest(&mut self, old: &mut DamagedStore, log: &DamagedLog) {
        let bytes = log.used_from(log.end);
        self.is_behind_tear = log.remains.end.is_ok() && bytes > 0;
        match &log.remains.end {
            _ if self.is_over => {
                let message = "batches lie behind a gap that power loss has left";
                old.report(FindingKind::LeftOut { bytes }, &log.path, Some(log.end), message);
            }
            Ok(_) if bytes > 0 => {
                let message = "the end is torn: it had not been synced";
                old.report(FindingKind::LeftOut { bytes }, &log.path, Some(log.end), message);
            }
            Ok(_) => {}
            Err(error) if bytes > 0 => {
                self.has_damage = true;
                let kind = FindingKind::LostBatches { bytes, writes: None };
                old.report(kind, &log.path, Some(log.end), error.message());
            }
            // The header is damaged.
            Err(error) if error.offset() < Some(LogRemains::START) => {
                old.report_error(FindingKind::Harmless, error);
            }
            // Reported where the batches are missing.
            Err(_) => {}
        }
    }
}
