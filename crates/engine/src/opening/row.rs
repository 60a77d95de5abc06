//! Finds the row of logs: the write-ahead logs that belong to the store, in their order.
//!
//! Each log names the log before it. So the row is followed from its newest log back to the oldest
//! one that the manifest needs. A log that an earlier opening left out, but could not set aside, is
//! not in the row: the log that was begun then names another predecessor.
//!
//! Logs of earlier versions do not name the log before. They are ordered by their file ids.

use crate::manifest::LogRow;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::format::decode_batch;
use lsmith_storage::log::{
    LOG_START_BYTES_MAX, LogEnd, LogId, LogKind, LogReader, LogStart, LogWriter,
};
use lsmith_storage::names::{FileKind, numbered};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A log of the row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLog {
    pub(super) file_id: u64,
    pub(super) start: LogStart,
}

/// All logs in the directory of a store.
#[derive(Debug, Default)]
pub(super) struct LogRowFiles {
    /// The row: logs that belong to the store, oldest first.
    pub(super) logs: Vec<RowLog>,
    /// The file ids of logs that hold something and do not belong to the row.
    pub(super) strays: Vec<u64>,
    /// The file ids of logs that hold nothing, or nothing that is needed.
    pub(super) unneeded: Vec<u64>,
}

/// The beginning of a log file.
pub(super) enum LogBeginning {
    /// A start record that can be read, or the equivalent of a log of an earlier version.
    Start(LogStart),
    /// No readable start record: power loss can leave such a log.
    Torn,
    /// Nothing: the file was never used, or its process died while it wrote the start record.
    Unused,
}

/// Opens log `file_id` in `dir`. Returns its path and a reader at its first record.
pub(super) fn open_log(env: &dyn Env, dir: &Path, file_id: u64) -> Result<(PathBuf, LogReader)> {
    let path = numbered(dir, FileKind::Wal, file_id);
    let reader = LogReader::open(env, &path, LogId { kind: LogKind::Wal, file_id })?;
    Ok((path, reader))
}

impl LogRowFiles {
    /// Finds the row among the logs with `file_ids`, in ascending order. `known` is the row as the
    /// manifest describes it.
    ///
    /// # Errors
    /// `Corruption` if a log is missing or its first record is damaged; `Io`.
    pub(super) fn find(
        env: &dyn Env,
        dir: &Path,
        file_ids: &[u64],
        known: Option<LogRow>,
    ) -> Result<LogRowFiles> {
        let from = known.map_or(0, |known| known.from);
        let mut row = LogRowFiles::default();
        let mut started = BTreeMap::new();
        let mut older = 0;
        for &file_id in file_ids {
            if file_id < from {
                row.unneeded.push(file_id);
                continue;
            }
            match read_beginning(env, dir, file_id, older)? {
                LogBeginning::Start(start) => {
                    started.insert(file_id, start);
                    older = file_id;
                }
                LogBeginning::Torn => row.strays.push(file_id),
                LogBeginning::Unused => row.unneeded.push(file_id),
            }
        }
        let is_missing = |file_id: u64| !file_ids.contains(&file_id);
        if let Some(newest) = known.map(|known| known.newest)
            && newest >= from
            && is_missing(newest)
        {
            return Err(missing_log(dir, newest, "the manifest names it"));
        }
        for file_id in row_of(&started) {
            let start = started.remove(&file_id).expect("the row has logs with starts only");
            let before = start.before;
            if before > 0 && before >= from && is_missing(before) {
                let reason = format!("log {file_id} names it as the log before");
                return Err(missing_log(dir, before, &reason));
            }
            row.logs.insert(0, RowLog { file_id, start });
        }
        for file_id in started.into_keys() {
            // An earlier opening did not need it, and could not remove it at once.
            // What cannot be read is set aside.
            let is_empty = is_empty(env, dir, file_id).unwrap_or(false);
            if is_empty { row.unneeded.push(file_id) } else { row.strays.push(file_id) }
        }
        Ok(row)
    }
}

/// Returns true if log `file_id` holds its start and nothing else.
fn is_empty(env: &dyn Env, dir: &Path, file_id: u64) -> Result<bool> {
    let (_, mut reader) = open_log(env, dir, file_id)?;
    let is_start = |payload| matches!(LogStart::decode(payload), Ok(Some(_)));
    let begins = reader.next_record()?.is_some_and(|(_, payload)| is_start(payload));
    Ok(begins && reader.next_record()?.is_none() && reader.end() == Some(LogEnd::Clean))
}

/// Follows the row from its newest log back, among logs with these starts. Returns the ids of its
/// logs, newest first. The other logs are strays.
pub(crate) fn row_of(started: &BTreeMap<u64, LogStart>) -> Vec<u64> {
    let mut row = Vec::new();
    let mut next = started.last_key_value();
    while let Some((file_id, start)) = next {
        row.push(*file_id);
        // The start of the log before may be torn. Then that log holds nothing, and the next older
        // log follows.
        next = started.range(..file_id).rfind(|(older, _)| **older <= start.before);
    }
    row
}

fn missing_log(dir: &Path, file_id: u64, reason: &str) -> Error {
    let path = numbered(dir, FileKind::Wal, file_id);
    Error::corruption(&path, 0, format!("the log is missing: {reason}"))
}

/// Reads the beginning of log `file_id`. `older` is the log with the next smaller file id.
pub(super) fn read_beginning(
    env: &dyn Env,
    dir: &Path,
    file_id: u64,
    older: u64,
) -> Result<LogBeginning> {
    let (path, mut reader) = open_log(env, dir, file_id)?;
    let Some((offset, payload)) = reader.next_record()? else {
        let dropped_to = match reader.end() {
            Some(LogEnd::Torn { offset, bytes_dropped }) => offset + bytes_dropped,
            _ => 0,
        };
        // A process that died while it began the log has left a part of header and start.
        let is_begun = dropped_to > LogWriter::capacity_for(env, [LOG_START_BYTES_MAX]);
        return Ok(if is_begun { LogBeginning::Torn } else { LogBeginning::Unused });
    };
    let damaged =
        |damage: lsmith_storage::format::Damage| Error::corruption(&path, offset, damage.what);
    if let Some(start) = LogStart::decode(payload).map_err(damaged)? {
        if start.before >= file_id {
            let message =
                format!("expected log {file_id} to name an older log, found log {}", start.before);
            return Err(Error::corruption(&path, offset, message));
        }
        return Ok(LogBeginning::Start(start));
    }
    let first = decode_batch(payload).map_err(damaged)?.first;
    Ok(LogBeginning::Start(LogStart { before: older, first, synced: 0 }))
}
