//! Which write-ahead logs belong to the store, and in which order.
//!
//! A log names the one before it. So the row is found from its newest log back to the oldest that
//! the manifest says is needed. A log that was left out by an earlier opening, and could not be
//! set aside, is in no row: the log that was begun then names another one.
//!
//! Logs of earlier versions name none. They follow each other by their numbers.

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
pub(super) struct Link {
    pub(super) number: u64,
    pub(super) start: LogStart,
}

/// All logs in the directory of a store.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Those that belong to the store, oldest first.
    pub(super) links: Vec<Link>,
    /// Those that do not, and hold something.
    pub(super) strays: Vec<u64>,
    /// Those that hold nothing, or nothing that is needed.
    pub(super) unneeded: Vec<u64>,
}

/// What one file says of its place.
enum Place {
    /// Its start can be read.
    Started(LogStart),
    /// It begins with something that is no start, as power loss can leave it.
    Torn,
    /// It has not come into use.
    Unused,
}

/// Opens log `number` in `dir`.
pub(super) fn open_log(env: &dyn Env, dir: &Path, number: u64) -> Result<(PathBuf, LogReader)> {
    let path = numbered(dir, FileKind::Wal, number);
    let reader = LogReader::open(env, &path, LogId { kind: LogKind::Wal, number })?;
    Ok((path, reader))
}

impl Row {
    /// Finds the row among the logs called `numbers`, which ascend. `known` is what the manifest
    /// says of it.
    ///
    /// # Errors
    /// `Corruption` where a log is missing or its first record is damaged; `Io`.
    pub(super) fn find(
        env: &dyn Env,
        dir: &Path,
        numbers: &[u64],
        known: Option<LogRow>,
    ) -> Result<Row> {
        let from = known.map_or(0, |known| known.from);
        let mut row = Row::default();
        let mut started = BTreeMap::new();
        let mut older = 0;
        for &number in numbers {
            if number < from {
                row.unneeded.push(number);
                continue;
            }
            match look(env, dir, number, older)? {
                Place::Started(start) => {
                    started.insert(number, start);
                    older = number;
                }
                Place::Torn => row.strays.push(number),
                Place::Unused => row.unneeded.push(number),
            }
        }
        let missing = |number: u64| !numbers.contains(&number);
        if let Some(newest) = known.map(|known| known.newest)
            && newest >= from
            && missing(newest)
        {
            return Err(absent(dir, newest, "the manifest says that it is there"));
        }
        row.join(started, |number, by| match number > 0 && number >= from && missing(number) {
            true => Err(absent(dir, number, &format!("log {by} says that it comes after it"))),
            false => Ok(()),
        })?;
        Ok(row)
    }

    /// Follows the row from its newest log back. Logs that are passed by are strays.
    fn join(
        &mut self,
        mut started: BTreeMap<u64, LogStart>,
        check: impl Fn(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let mut next = started.keys().next_back().copied();
        while let Some(number) = next {
            let passed = started.split_off(&number);
            self.strays.extend(passed.keys().skip(1));
            let start = passed[&number];
            self.links.push(Link { number, start });
            check(start.before, number)?;
            // The start of the log before may be lost. Then so is all that it held, and what is
            // left of the row ends in front of it.
            let older = started.range(..=start.before).next_back();
            next = older.map(|(number, _)| *number);
        }
        self.strays.extend(started.keys());
        self.links.reverse();
        Ok(())
    }
}

fn absent(dir: &Path, number: u64, told: &str) -> Error {
    let path = numbered(dir, FileKind::Wal, number);
    Error::corruption(&path, 0, format!("the log is missing: {told}"))
}

/// What log `number` says of its place, where `older` is the log with the next smaller number.
fn look(env: &dyn Env, dir: &Path, number: u64, older: u64) -> Result<Place> {
    let (path, mut reader) = open_log(env, dir, number)?;
    let Some((offset, payload)) = reader.next_record()? else {
        return Ok(match reader.end() {
            Some(LogEnd::Torn { bytes_dropped: 1.., .. }) => Place::Torn,
            _ => Place::Unused,
        });
    };
    let damaged =
        |damage: lsmith_storage::format::Damage| Error::corruption(&path, offset, damage.what);
    if let Some(start) = LogStart::decode(payload).map_err(damaged)? {
        if start.before >= number {
            let told = format!("log {number} says that it comes after log {}", start.before);
            return Err(Error::corruption(&path, offset, told));
        }
        return Ok(Place::Started(start));
    }
    let (first, _) = decode_batch(payload).map_err(damaged)?;
    Ok(Place::Started(LogStart { before: older, first, synced: 0 }))
}
