//! Finds the row of logs: the write-ahead logs that belong to the store, in their order.
//!
//! Each log names the log before it. So the row is followed from its newest log back to the oldest
//! one that the manifest needs. A log that an earlier opening left out, but could not set aside, is
//! not in the row: the log that was begun then names another predecessor.
//!
//! Logs of earlier versions do not name the log before. They are ordered by their numbers.

use crate::manifest::LogRow;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::format::decode_batch;
use lsmith_storage::log::{LogEnd, LogId, LogKind, LogReader, LogStart};
use lsmith_storage::names::{FileKind, numbered};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A log of the row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLog {
    pub(super) number: u64,
    pub(super) start: LogStart,
}

/// All logs in the directory of a store.
#[derive(Debug, Default)]
pub(super) struct LogRowFiles {
    /// The row: logs that belong to the store, oldest first.
    pub(super) logs: Vec<RowLog>,
    /// The numbers of logs that hold something and do not belong to the row.
    pub(super) strays: Vec<u64>,
    /// The numbers of logs that hold nothing, or nothing that is needed.
    pub(super) unneeded: Vec<u64>,
}

/// The beginning of a log file.
pub(super) enum LogBeginning {
    /// A start record that can be read, or the equivalent of a log of an earlier version.
    Start(LogStart),
    /// Something else, as power loss can leave it.
    Torn,
    /// Nothing: the file was never used.
    Unused,
}

/// Opens log `number` in `dir`. Returns its path and a reader at its first record.
pub(super) fn open_log(env: &dyn Env, dir: &Path, number: u64) -> Result<(PathBuf, LogReader)> {
    let path = numbered(dir, FileKind::Wal, number);
    let reader = LogReader::open(env, &path, LogId { kind: LogKind::Wal, number })?;
    Ok((path, reader))
}

impl LogRowFiles {
    /// Finds the row among the logs with `numbers`, in ascending order. `known` is the row as the
    /// manifest describes it.
    ///
    /// # Errors
    /// `Corruption` if a log is missing or its first record is damaged; `Io`.
    pub(super) fn find(
        env: &dyn Env,
        dir: &Path,
        numbers: &[u64],
        known: Option<LogRow>,
    ) -> Result<LogRowFiles> {
        let from = known.map_or(0, |known| known.from);
        let mut row = LogRowFiles::default();
        let mut started = BTreeMap::new();
        let mut older = 0;
        for &number in numbers {
            if number < from {
                row.unneeded.push(number);
                continue;
            }
            match read_beginning(env, dir, number, older)? {
                LogBeginning::Start(start) => {
                    started.insert(number, start);
                    older = number;
                }
                LogBeginning::Torn => row.strays.push(number),
                LogBeginning::Unused => row.unneeded.push(number),
            }
        }
        let is_missing = |number: u64| !numbers.contains(&number);
        if let Some(newest) = known.map(|known| known.newest)
            && newest >= from
            && is_missing(newest)
        {
            return Err(missing_log(dir, newest, "the manifest names it"));
        }
        row.follow(started, |number, by| {
            if number > 0 && number >= from && is_missing(number) {
                let reason = format!("log {by} names it as the log before");
                return Err(missing_log(dir, number, &reason));
            }
            Ok(())
        })?;
        Ok(row)
    }

    /// Follows the row from its newest log back. Logs between two logs of the row are strays.
    /// `check` gets the number of the log before each log, and the number of that log.
    fn follow(
        &mut self,
        mut started: BTreeMap<u64, LogStart>,
        check: impl Fn(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let mut next = started.keys().next_back().copied();
        while let Some(number) = next {
            let from_number = started.split_off(&number);
            self.strays.extend(from_number.keys().skip(1));
            let start = from_number[&number];
            self.logs.push(RowLog { number, start });
            check(start.before, number)?;
            // The start of the log before may be torn. Then that log holds nothing, and the next
            // older log follows.
            let older = started.range(..=start.before).next_back();
            next = older.map(|(number, _)| *number);
        }
        self.strays.extend(started.keys());
        self.logs.reverse();
        Ok(())
    }
}

fn missing_log(dir: &Path, number: u64, reason: &str) -> Error {
    let path = numbered(dir, FileKind::Wal, number);
    Error::corruption(&path, 0, format!("the log is missing: {reason}"))
}

/// Reads the beginning of log `number`. `older` is the log with the next smaller number.
pub(super) fn read_beginning(
    env: &dyn Env,
    dir: &Path,
    number: u64,
    older: u64,
) -> Result<LogBeginning> {
    let (path, mut reader) = open_log(env, dir, number)?;
    let Some((offset, payload)) = reader.next_record()? else {
        return Ok(match reader.end() {
            Some(LogEnd::Torn { bytes_dropped: 1.., .. }) => LogBeginning::Torn,
            _ => LogBeginning::Unused,
        });
    };
    let damaged =
        |damage: lsmith_storage::format::Damage| Error::corruption(&path, offset, damage.what);
    if let Some(start) = LogStart::decode(payload).map_err(damaged)? {
        if start.before >= number {
            let message =
                format!("expected log {number} to name an older log, found log {}", start.before);
            return Err(Error::corruption(&path, offset, message));
        }
        return Ok(LogBeginning::Start(start));
    }
    let first = decode_batch(payload).map_err(damaged)?.first;
    Ok(LogBeginning::Start(LogStart { before: older, first, synced: 0 }))
}
