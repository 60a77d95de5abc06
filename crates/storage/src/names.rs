//! Names of the files of a store.
//!
//! ```text
//! CURRENT          names the manifest in force; a store exists where this file exists
//! LOCK             locked by the process that has the store open
//! 000012.manifest  edits of the trees
//! 000013.wal       batches that are not yet flushed
//! 000014.table     a table
//! 000016.values    values that tables refer to
//! 000015.spill     a copy of sealed memtables, which replaces older logs
//! CURRENT.coming        the mark of a copy of a store that is not whole yet, and of the remains of
//!                       a store that is being destroyed
//! RECORD           another process asks for a recording of what the store does
//! readers/         one locked file for each reader beside the writer
//! 000014.table.renewed  a file that opening the store is encrypting with a newer key
//! 000013.wal.new        a log that opening the store is rewriting
//! 000013.wal.lost       a log that an opening of the store left out
//! 000013.wal.4096.lost  the bytes of a log from offset 4096 on, left out in the same way
//! ```
//!
//! All file ids come from one counter and are never used twice. An id has six digits, or more if
//! it needs them. The store leaves files with other names alone.

use std::path::{Path, PathBuf};

/// The store takes an id for each file and each table in memory, and records now and then how
/// far it has come. It never gives an id that is this much larger than the last one that it
/// recorded.
const AHEAD_MAX: u64 = 1 << 32;

/// The file that names the manifest in force.
pub const CURRENT: &str = "CURRENT";
/// The file that is written first and then renamed to [`CURRENT`].
pub const CURRENT_NEW: &str = "CURRENT.new";
/// The mark of a directory in which a copy of a store is being made, or a store destroyed. It is
/// renamed to [`CURRENT`] when the copy is whole.
pub const CURRENT_COMING: &str = "CURRENT.coming";
/// The lock file.
pub const LOCK: &str = "LOCK";

/// Another process makes this file so that the store is recorded while it is there.
pub const RECORD: &str = "RECORD";
/// The file that is written first and then renamed to [`RECORD`].
pub const RECORD_NEW: &str = "RECORD.new";

/// The folder of the leases of readers.
pub const READERS: &str = "readers";

/// The last part of the name of a lost file, which holds what an opening left out.
pub const LOST: &str = ".lost";

/// The last part of the name of a file that is being encrypted with a newer key.
pub const RENEWED: &str = ".renewed";

/// What a numbered file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Edits of the trees.
    Manifest,
    /// A file of the write-ahead log.
    Wal,
    /// A table.
    Table,
    /// A copy of memtables that replaces older logs.
    Spill,
    /// Values that tables refer to.
    Values,
    /// A log that is being rewritten.
    NewWal,
}

impl FileKind {
    const ALL: [FileKind; 6] = [
        FileKind::Manifest,
        FileKind::Wal,
        FileKind::Table,
        FileKind::Spill,
        FileKind::Values,
        FileKind::NewWal,
    ];

    fn extension(self) -> &'static str {
        match self {
            FileKind::Manifest => "manifest",
            FileKind::Wal => "wal",
            FileKind::Table => "table",
            FileKind::Spill => "spill",
            FileKind::Values => "values",
            FileKind::NewWal => "wal.new",
        }
    }
}

/// Returns the path of the file of `kind` with `file_id` in `dir`.
pub fn numbered(dir: &Path, kind: FileKind, file_id: u64) -> PathBuf {
    dir.join(format!("{file_id:06}.{}", kind.extension()))
}

/// Returns the path of the lost file for the file at `path`. With `offset`, the lost file holds
/// only the bytes from that offset on.
pub fn lost(path: &Path, offset: Option<u64>) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if let Some(offset) = offset {
        name.push(format!(".{offset}"));
    }
    name.push(LOST);
    PathBuf::from(name)
}

/// Returns the kind and id of the file that `name`, the name of a lost file, was made from.
/// `None` if it is no such name.
pub fn parse_lost(name: &str) -> Option<(FileKind, u64)> {
    let whole = name.strip_suffix(LOST)?;
    let is_offset = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    parse(whole).or_else(|| {
        let (whole, offset) = whole.rsplit_once('.')?;
        parse(whole).filter(|_| is_offset(offset))
    })
}

/// Returns true if the store can have given `file_id`, where its manifest says that ids from `next`
/// on are free.
pub fn is_near(file_id: u64, next: u64) -> bool {
    file_id < next.saturating_add(AHEAD_MAX)
}

/// Returns the numbered files of the store in `dir` among `names`, where its manifest says that
/// ids from `next` on are free. Files with ids that the store cannot have given are logged
/// and left alone.
pub fn numbered_among(dir: &Path, names: &[String], next: u64) -> Vec<(FileKind, u64)> {
    let found = names.iter().filter_map(|name| Some((name, parse(name)?)));
    let ours = found.filter(|(name, (_, file_id))| {
        let near = is_near(*file_id, next);
        if !near {
            tracing::warn!(
                path = %dir.join(name).display(), next,
                "a file has a number that the store cannot have given: it is left alone"
            );
        }
        near
    });
    ours.map(|(_, file)| file).collect()
}

/// Returns the kind and id that `name` encodes, or `None` if it is not a numbered file of a
/// store.
pub fn parse(name: &str) -> Option<(FileKind, u64)> {
    let (file_id, extension) = name.split_once('.')?;
    let kind = FileKind::ALL.into_iter().find(|kind| kind.extension() == extension)?;
    let all_digits = file_id.len() >= 6 && file_id.bytes().all(|byte| byte.is_ascii_digit());
    // An id has one name only, so that no two names stand for one file.
    let shortest = file_id.len() == 6 || !file_id.starts_with('0');
    (all_digits && shortest).then(|| file_id.parse().ok()).flatten().map(|file_id| (kind, file_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_parsing_and_strangers_are_none() {
        for kind in FileKind::ALL {
            for file_id in [0, 7, 1_234_567, u64::MAX] {
                let path = numbered(Path::new("d"), kind, file_id);
                let name = path.file_name().and_then(|name| name.to_str()).unwrap();
                assert_eq!(parse(name), Some((kind, file_id)));
            }
        }
        for name in ["CURRENT", "LOCK", "12.table", "x00012.wal", "000012.txt", "000012"] {
            assert_eq!(parse(name), None, "{name}");
        }
        for name in ["0000012.table", "0001234567.wal", "18446744073709551616.wal", "+00012.wal"] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn lost_files_are_known_by_their_names() {
        let path = numbered(Path::new("d"), FileKind::Wal, 7);
        for offset in [None, Some(0), Some(4096)] {
            let lost = lost(&path, offset);
            let name = lost.file_name().and_then(|name| name.to_str()).unwrap();
            assert_eq!(parse_lost(name), Some((FileKind::Wal, 7)), "{name}");
        }
        for name in ["000007.wal", ".lost", "notes.lost", "000007.wal.x.lost", "7.wal.lost"] {
            assert_eq!(parse_lost(name), None, "{name}");
        }
        assert_eq!(parse_lost("000007.wal..lost"), None);
    }

    #[test]
    fn numbers_far_ahead_are_a_stranger_s() {
        let names = ["000012.table", "4294967307.wal", "4294967308.wal", "000100.spill", "LOCK"];
        let found = numbered_among(Path::new("d"), &names.map(str::to_string), 12);
        let file_ids: Vec<u64> = found.into_iter().map(|(_, file_id)| file_id).collect();
        assert_eq!(file_ids, [12, 4_294_967_307, 100]);
        assert!(is_near(u64::MAX - 1, u64::MAX), "the greatest number causes no overflow");
    }
}
