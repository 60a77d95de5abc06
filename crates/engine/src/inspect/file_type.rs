//! The types of the files of a store, by name.

use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{self, CURRENT, FileKind};
use std::path::Path;

/// The type of a file of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileType {
    /// `CURRENT`, which names the manifest in force.
    Current,
    /// A manifest: the trees, as a log of text records.
    Manifest,
    /// A write-ahead log.
    Log,
    /// A copy of the sealed memtables of a keyspace.
    Copy,
    /// A table.
    Table,
    /// Values that tables refer to.
    Values,
}

impl FileType {
    /// Returns the type of the file at `path`, judged by its name, and its file id (0 for
    /// `CURRENT`). Returns `None` for a name that no file of these types has.
    pub fn of(path: &Path) -> Option<(FileType, u64)> {
        let name = path.file_name()?.to_str()?;
        if name == CURRENT {
            return Some((FileType::Current, 0));
        }
        // A log that was set aside has its old content.
        let (kind, file_id) = names::parse(name.strip_suffix(".lost").unwrap_or(name))?;
        let kind = match kind {
            FileKind::Manifest => FileType::Manifest,
            FileKind::Wal => FileType::Log,
            FileKind::NewWal => return None,
            FileKind::Values => FileType::Values,
            FileKind::Spill => FileType::Copy,
            FileKind::Table => FileType::Table,
        };
        Some((kind, file_id))
    }

    /// Returns the type and the id of the file at `path`. Fails with `InvalidArgument` unless
    /// the type is one of `types`.
    pub(super) fn one_of(types: &[FileType], path: &Path) -> Result<(FileType, u64)> {
        FileType::of(path).filter(|(found, _)| types.contains(found)).ok_or_else(|| {
            let message = "no such file of a store has this name";
            Error::new(ErrorKind::InvalidArgument, message).at(path)
        })
    }
}
