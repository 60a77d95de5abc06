//! A look into single files of a store, whole or damaged, without opening it and without its lock.
//!
//! * [`FileType::of`]: what a file is, by its name.
//! * [`TableFile`]: a table, block by block.
//! * [`LogFile`]: the records of a write-ahead log, of a manifest, or of a copy of memory.
//! * [`current`]: which manifest `CURRENT` names.
//! * [`damage`]: what is damaged in all files of a directory.
//!
//! Damage is no error here: it is told in its place, and what lies behind it is shown. Errors are
//! what keeps from looking: `Io`, and `Unsupported` for files of newer formats.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! use lsmith::inspect::{Content, FileType, LogFile};
//!
//! let store = lsmith::Store::builder(dir.path()).open()?;
//! store.keyspace("default")?.put("apple", "red")?;
//! drop(store);
//! let env = lsmith::env::RealEnv::new();
//! for entry in std::fs::read_dir(dir.path())? {
//!     let path = entry?.path();
//!     if FileType::of(&path).is_some_and(|(kind, _)| kind == FileType::Log) {
//!         let log = LogFile::open(&env, &path)?;
//!         // Behind the start of the log.
//!         let record = log.records().nth(1).expect("one batch");
//!         let Content::Batch { first, writes } = record.content? else { panic!("of a log") };
//!         assert_eq!((first.0, &writes[0].entry.key[..]), (1, &b"apple"[..]));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod log;
mod table;

pub use log::{Content, LogFile, LogRecord, Write};
pub use lsmith_tree::EntryKind;
pub use table::{Filter, Footer, Properties, TableBlock, TableFile};

use crate::manifest;
use bytes::Bytes;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{self, CURRENT, FileKind};
use lsmith_tree::SeqNo;
use std::path::Path;

/// What a file of a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileType {
    /// `CURRENT`: which manifest is in force.
    Current,
    /// The trees, as a log of text records.
    Manifest,
    /// A write-ahead log.
    Log,
    /// A copy of what memory held of a keyspace.
    Copy,
    /// A table.
    Table,
}

impl FileType {
    /// What the file at `path` is by its name, and its number, 0 for `CURRENT`. `None` where it is
    /// none that can be looked into.
    pub fn of(path: &Path) -> Option<(FileType, u64)> {
        let name = path.file_name()?.to_str()?;
        if name == CURRENT {
            return Some((FileType::Current, 0));
        }
        // A log that was set aside is as it was.
        let (kind, number) = names::parse(name.strip_suffix(".lost").unwrap_or(name))?;
        let kind = match kind {
            FileKind::Manifest => FileType::Manifest,
            FileKind::Wal => FileType::Log,
            FileKind::NewWal => return None,
            FileKind::Spill => FileType::Copy,
            FileKind::Table => FileType::Table,
        };
        Some((kind, number))
    }

    /// The number of the file at `path`, which must be one of these types.
    fn number(path: &Path, types: &[FileType]) -> Result<(FileType, u64)> {
        FileType::of(path).filter(|(found, _)| types.contains(found)).ok_or_else(|| {
            let told = "the name is none that such a file of a store has";
            Error::new(ErrorKind::InvalidArgument, told).at(path)
        })
    }
}

/// An entry of a table, of a log or of a copy of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Bytes,
    /// The place of the write in the order of all writes. In tables 0 for those that every reader
    /// sees, and for those of a bulk load.
    pub seq: SeqNo,
    /// What it says.
    pub kind: EntryKind,
    /// The value; empty for tombstones.
    pub value: Bytes,
}

impl From<EntryRef<'_>> for Entry {
    fn from(entry: EntryRef<'_>) -> Entry {
        Entry {
            key: Bytes::copy_from_slice(entry.key),
            seq: entry.seq,
            kind: entry.kind,
            value: Bytes::copy_from_slice(entry.value),
        }
    }
}

/// All damage that the files in `dir` show, each looked at by itself: for a store that does not
/// open. [`Store::verify`](crate::Store::verify) finds more, as it knows what the files must hold.
///
/// # Errors
/// `Io`. Files of newer formats are among the damage, as `Unsupported`.
pub fn damage(env: &dyn Env, dir: &Path) -> Result<Vec<Error>> {
    let mut damage = Vec::new();
    for name in env.list(dir).map_err(|error| Error::io("list", dir, error))? {
        let path = dir.join(name);
        let found = match FileType::of(&path) {
            None => Ok(()),
            Some((FileType::Current, _)) => current(env, &path).map(drop),
            Some((FileType::Table, _)) => table_damage(env, &path, &mut damage),
            Some(_) => log_damage(env, &path, &mut damage),
        };
        match found {
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            found => damage.extend(found.err()),
        }
    }
    Ok(damage)
}

fn table_damage(env: &dyn Env, path: &Path, damage: &mut Vec<Error>) -> Result<()> {
    let mut table = TableFile::open(env, path)?;
    for index in 0..table.block_count() {
        match table.block(index) {
            Err(error) if error.kind() == ErrorKind::Corruption => damage.push(error),
            other => other.map(drop)?,
        }
    }
    damage.append(&mut table.take_damage());
    Ok(())
}

fn log_damage(env: &dyn Env, path: &Path, damage: &mut Vec<Error>) -> Result<()> {
    let log = LogFile::open(env, path)?;
    damage.extend(log.records().filter_map(|record| record.content.err()));
    damage.extend(log.into_damage());
    Ok(())
}

/// The number of the manifest that the `CURRENT` at `path` names.
///
/// # Errors
/// `Corruption` with the offset of what is damaged, `NotFound`, `Unsupported`, `Io`.
pub fn current(env: &dyn Env, path: &Path) -> Result<u64> {
    let found = manifest::read_current(env, path)?;
    found.ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no such file").at(path))
}
