//! Reads the logs of a damaged store: decides which batches count, and reports what is missing.

use super::damaged::DamagedStore;
use super::known::Known;
use super::report::{Finding, FindingKind};
use crate::opening::row_of;
use lsmith_storage::error::Error;
use lsmith_storage::format::{Damage, LoggedBatch, LoggedOp, decode_batch};
use lsmith_storage::log::{FoundRecord, LogEnd, LogId, LogKind, LogRemains, LogStart};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::SeqNo;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A function that takes the writes of a batch. The sequence number belongs to the first write.
pub(super) type TakeBatch<'a> = dyn FnMut(&mut DamagedStore, SeqNo, &[LoggedOp<'_>]) + 'a;

/// Decodes a record of a log. Returns `None` for the start record.
fn batch(payload: &[u8]) -> Result<Option<LoggedBatch<'_>>, Damage> {
    match LogStart::decode(payload)? {
        Some(_) => Ok(None),
        None => decode_batch(payload).map(Some),
    }
}

/// What the records of all logs say of the logs.
#[derive(Default)]
struct LogFacts {
    /// The file id of the newest log before which everything was synced, judged by sync marks and
    /// start records; 0 if there is no such log.
    synced_before: u64,
    /// The starts of the logs, as far as they are readable.
    starts: BTreeMap<u64, LogStart>,
}

impl LogFacts {
    /// Reads the logs with `file_ids`.
    fn read(old: &DamagedStore, file_ids: &[u64]) -> LogFacts {
        let mut facts = LogFacts::default();
        for &file_id in file_ids {
            let path = numbered(&old.dir, FileKind::Wal, file_id);
            let id = LogId { kind: LogKind::Wal, file_id };
            let Ok(remains) = LogRemains::read(&*old.env, &path, id) else { continue };
            for record in remains.records() {
                let start = LogStart::decode(&record.payload).ok().flatten();
                let synced = match start {
                    Some(start) if start.synced > 0 => start.before,
                    _ if record.marked => file_id,
                    _ => 0,
                };
                facts.synced_before = facts.synced_before.max(synced);
                facts.starts.extend(start.map(|start| (file_id, start)));
            }
        }
        facts
    }
}

/// The reading of the logs, oldest first.
pub(super) struct Logs {
    /// If no batch is missing, the next one has this sequence number or a lower one; 0 if it is
    /// unknown.
    next: u64,
    /// True after damage or a gap. Then batches behind a gap count too.
    has_damage: bool,
    /// True if the log before is torn.
    is_behind_tear: bool,
    /// True if opening would leave out the rest, so that it is not read.
    is_over: bool,
    /// The id of a log before which everything was synced.
    synced_before: u64,
    /// All writes up to this sequence number are in tables or spills.
    complete: u64,
    /// The sequence number of the last write that was certainly synced; 0 if none is known.
    proven: u64,
}

/// A log that is being read.
struct DamagedLog {
    file_id: u64,
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
    /// Begins to read the logs. Returns the ids of the logs to read, oldest first: all that the
    /// manifest needs, except logs that an earlier opening has left out. If the manifest is
    /// damaged, so is the store, and no gap counts as power loss.
    pub(super) fn new(old: &mut DamagedStore, known: &Known) -> (Logs, Vec<u64>) {
        let row = known.logs.filter(|_| known.is_exact);
        let mut file_ids = old.file_ids(FileKind::Wal);
        file_ids.retain(|file_id| row.is_none_or(|row| *file_id >= row.from));
        let facts = LogFacts::read(old, &file_ids);
        if known.is_exact {
            let row = row_of(&facts.starts);
            let is_stray =
                |file_id: u64| facts.starts.contains_key(&file_id) && !row.contains(&file_id);
            file_ids
                .iter()
                .filter(|file_id| is_stray(**file_id))
                .for_each(|file_id| old.leave_out(*file_id));
            file_ids.retain(|file_id| !is_stray(*file_id));
        }
        let states = || known.keyspaces.values().map(|keyspace| &keyspace.state);
        let durable = states().map(|state| state.durable_seq().0).max().unwrap_or(0);
        let complete = states().map(|state| state.complete_seq().0).min().unwrap_or(u64::MAX);
        let unknown = Logs {
            next: 0,
            has_damage: !known.is_exact,
            is_behind_tear: false,
            is_over: false,
            synced_before: facts.synced_before,
            complete: 0,
            proven: 0,
        };
        let logs = match row {
            Some(row) => {
                let proven = durable.max(known.synced_seq.0);
                Logs { next: row.first.0.max(1), complete, proven, ..unknown }
            }
            // Manifests of earlier versions do not say where the oldest log begins.
            None if known.is_exact => Logs { next: durable + 1, ..unknown },
            None => unknown,
        };
        (logs, file_ids)
    }

    /// Returns true if some keyspace needs a write behind the last one that was read, which was
    /// certainly synced.
    fn lacks_synced(&self) -> bool {
        self.next <= self.proven && self.complete < self.proven
    }

    /// Reports what is missing behind the last log that was read, whose file id is `last`.
    pub(super) fn end(&self, old: &mut DamagedStore, known: &Known, last: Option<u64>) {
        let named = known.logs.filter(|row| known.is_exact && row.newest >= row.from);
        let is_missing = named.is_some_and(|row| last.is_none_or(|last| last < row.newest));
        let newest = named.map_or(0, |row| row.newest).max(last.unwrap_or(0));
        let path = numbered(&old.dir, FileKind::Wal, newest);
        let mut lost = self.lacks_synced().then(|| self.proven + 1 - self.next);
        if is_missing {
            let kind = FindingKind::LostBatches { bytes: 0, writes: lost };
            old.report(kind, &path, None, "the log is missing: the manifest names it");
        } else if let Some(Finding { kind: FindingKind::LostBatches { writes, .. }, .. }) =
            old.findings.last_mut()
            && writes.is_none()
        {
            *writes = lost.take();
        } else if let Some(writes) = lost {
            let message = format!(
                "writes {} to {} are missing, which had been synced",
                self.next, self.proven
            );
            let kind = FindingKind::LostBatches { bytes: 0, writes: Some(writes) };
            old.report(kind, &path, None, message);
        }
    }

    /// Calls `take` with all batches of log `file_id` that count, and reports the others.
    pub(super) fn read(&mut self, old: &mut DamagedStore, file_id: u64, take: &mut TakeBatch<'_>) {
        let path = numbered(&old.dir, FileKind::Wal, file_id);
        let id = LogId { kind: LogKind::Wal, file_id };
        let remains = match LogRemains::read(&*old.env, &path, id) {
            Ok(remains) => remains,
            Err(error) => {
                self.has_damage = true;
                let bytes = old.env.file_bytes(&path).unwrap_or(0);
                let kind = FindingKind::LostBatches { bytes, writes: None };
                return old.report_error(kind, &error);
            }
        };
        let end = remains.start();
        let mut log = DamagedLog { file_id, path, remains, end };
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
                // Skipped: the gap in the sequence numbers is reported with the next record.
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

    /// Reports batches that are missing or unreadable before `record`, whose first sequence number
    /// is `first`. Sets `is_over` if power loss explains a gap.
    fn report_gap(
        &mut self,
        old: &mut DamagedStore,
        log: &DamagedLog,
        record: &FoundRecord,
        first: u64,
    ) {
        if first <= self.complete.saturating_add(1) {
            // Nobody needs what is missing.
            self.next = self.next.max(first);
        }
        let distance = first.checked_sub(self.next);
        let writes = distance.filter(|writes| *writes > 0 && self.next > 0);
        let bytes = record.offset - log.end;
        if bytes > 0 {
            self.has_damage = true;
            let kind = FindingKind::LostBatches { bytes, writes };
            old.report(kind, &log.path, Some(log.end), "no batch can be read");
        } else if let Some(writes) = writes {
            let synced = log.file_id <= self.synced_before || self.lacks_synced();
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
            Err(error) if error.offset() < Some(log.remains.start()) => {
                old.report_error(FindingKind::Harmless, error);
            }
            // Reported where the batches are missing.
            Err(_) => {}
        }
    }
}

impl DamagedStore {
    /// Reports log `file_id`, which is not in the row of logs.
    fn leave_out(&mut self, file_id: u64) {
        let path = numbered(&self.dir, FileKind::Wal, file_id);
        let bytes = self.env.file_bytes(&path).unwrap_or(0);
        let message = "an earlier opening has left the log out";
        self.report(FindingKind::LeftOut { bytes }, &path, None, message);
    }
}
