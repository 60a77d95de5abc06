//! The list of a backup: its id, and the files that it consists of.
//!
//! ```text
//! lsmith backup, format 1
//! backup 3
//! seq 51234
//! manifest 77
//! file 1 000014.table 81920 0123456789abcdef0123456789abcdef
//! file 3 000076.wal 4096 00112233445566778899aabbccddeeff
//! checksum 00112233445566778899aabbccddeeff
//! ```
//!
//! A line `file` has the id of the backup that copied the file, its name in the store, its
//! length and its checksum. The last line has the checksum of all lines before it. Checksums are
//! xxh3-128.

use lsmith_storage::bounds::{check_file, check_seq};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{self, FileKind};
use lsmith_tree::SeqNo;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

/// The first line of a list. Only its version may change.
const HEAD: &str = "lsmith backup, format ";

/// The version of the format.
const FORMAT: u32 = 1;

/// The list of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackupList {
    /// The id of the backup, from 1 on.
    pub(crate) id: u64,
    /// The sequence number of the last write that the backup holds.
    pub(crate) seq: SeqNo,
    /// The file id of the manifest, which is one of the files.
    pub(crate) manifest: u64,
    /// All files, in the order in which they were copied.
    pub(crate) files: Vec<BackupFile>,
}

/// A file of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackupFile {
    /// The id of the backup that copied the file.
    pub(crate) backup: u64,
    pub(crate) kind: FileKind,
    /// The id of the file in the store.
    pub(crate) file_id: u64,
    pub(crate) bytes: u64,
    pub(crate) checksum: u128,
}

impl BackupFile {
    /// Returns the name of the file in a store.
    pub(crate) fn name_in_store(&self) -> String {
        let path = names::numbered(Path::new(""), self.kind, self.file_id);
        path.to_string_lossy().into_owned()
    }

    /// Returns the name of the file in the directory of the backups.
    pub(crate) fn name(&self) -> String {
        format!("{:06}-{}", self.backup, self.name_in_store())
    }
}

impl BackupList {
    /// Returns the lines of the list but the last.
    fn body(&self) -> String {
        let mut text = format!("{HEAD}{FORMAT}\nbackup {}\n", self.id);
        text += &format!("seq {}\nmanifest {}\n", self.seq, self.manifest);
        for file in &self.files {
            let BackupFile { backup, bytes, checksum, .. } = file;
            text += &format!("file {backup} {} {bytes} {checksum:032x}\n", file.name_in_store());
        }
        text
    }

    /// Returns the list as text.
    pub(crate) fn encode(&self) -> String {
        let body = self.body();
        let checksum = xxh3_128(body.as_bytes());
        format!("{body}checksum {checksum:032x}\n")
    }

    /// Returns what tells this backup from all others: the checksum of its list. Lists with the
    /// same checksum have the same files with the same contents.
    pub(crate) fn stamp(&self) -> u128 {
        xxh3_128(self.body().as_bytes())
    }

    /// Parses the list of backup `id`, which is at `path`.
    ///
    /// # Errors
    /// `Corruption` if it is damaged; `Unsupported` if it has another format.
    pub(crate) fn decode(text: &[u8], path: &Path, id: u64) -> Result<BackupList> {
        let damaged = |message: String| Error::corruption(path, 0, message);
        let text = std::str::from_utf8(text).map_err(|error| damaged(error.to_string()))?;
        let format = text.strip_prefix(HEAD).and_then(|rest| rest.lines().next());
        match format.and_then(|format| format.parse::<u32>().ok()) {
            Some(FORMAT) => {}
            Some(other) => {
                let message = format!("the backup has format {other}: expected format {FORMAT}");
                return Err(Error::new(ErrorKind::Unsupported, message).at(path));
            }
            None => return Err(damaged(format!("the first line is not `{HEAD}{FORMAT}`"))),
        }
        let list = parse(text).filter(|list| list.encode() == text);
        let list = list.ok_or_else(|| {
            damaged("the list of the backup does not match its checksum".to_string())
        })?;
        if list.id != id {
            return Err(damaged(format!("expected backup {id}, found backup {}", list.id)));
        }
        let file_ids = list.files.iter().map(|file| file.file_id).chain([list.manifest]);
        file_ids.into_iter().try_for_each(check_file).map_err(damaged)?;
        check_seq(list.seq).map_err(damaged)?;
        Ok(list)
    }
}

/// Parses a list. The caller compares its text.
fn parse(text: &str) -> Option<BackupList> {
    let mut lines = text.lines().skip(1);
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.parse::<u64>().ok();
    let id = field("backup ")?;
    let seq = SeqNo(field("seq ")?);
    let manifest = field("manifest ")?;
    let files = lines.map_while(|line| line.strip_prefix("file ")).map(file);
    Some(BackupList { id, seq, manifest, files: files.collect::<Option<_>>()? })
}

/// Parses for example `1 000014.table 81920 0123456789abcdef0123456789abcdef`.
fn file(text: &str) -> Option<BackupFile> {
    let mut words = text.split(' ');
    let backup = words.next()?.parse().ok()?;
    let (kind, file_id) = names::parse(words.next()?)?;
    let bytes = words.next()?.parse().ok()?;
    let checksum = u128::from_str_radix(words.next()?, 16).ok()?;
    Some(BackupFile { backup, kind, file_id, bytes, checksum })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_fuzz::{change_text, fuzz, peak_bytes};

    fn list() -> BackupList {
        let file = |backup, kind, file_id| BackupFile {
            backup,
            kind,
            file_id,
            bytes: 81_920,
            checksum: u128::from(file_id) << 70,
        };
        let files = vec![
            file(1, FileKind::Table, 14),
            file(3, FileKind::Wal, 1_234_567),
            file(3, FileKind::Manifest, 77),
        ];
        BackupList { id: 3, seq: SeqNo(51_234), manifest: 77, files }
    }

    #[test]
    fn list_survives_its_text() {
        let list = list();
        let text = list.encode();
        assert_eq!(BackupList::decode(text.as_bytes(), Path::new("l"), 3).unwrap(), list);
        assert_eq!(list.files[1].name(), "000003-1234567.wal");
        let other = BackupList { seq: SeqNo(1), ..list.clone() };
        assert_ne!(list.stamp(), other.stamp());
    }

    #[test]
    fn changed_list_is_damaged_and_a_newer_format_is_said() {
        let text = list().encode();
        let kind = |text: &[u8]| BackupList::decode(text, Path::new("l"), 3).unwrap_err().kind();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 4;
            let found = kind(&bytes);
            let is_version = at == HEAD.len();
            assert_eq!(found == ErrorKind::Unsupported, is_version, "byte {at}: {found:?}");
            assert!(matches!(found, ErrorKind::Corruption | ErrorKind::Unsupported));
            assert_eq!(kind(&text.as_bytes()[..at]), ErrorKind::Corruption);
        }
        let error = BackupList::decode(text.as_bytes(), Path::new("l"), 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }

    #[test]
    fn fuzz_lists() {
        const PARTS: [&str; 7] = ["file ", "0", "18446744073709551616", "\n", " ", ".wal", "seq "];
        fuzz!(2000, |choices| {
            let text = change_text(&list().body(), &PARTS, choices);
            let text = format!("{text}checksum {:032x}\n", xxh3_128(text.as_bytes()));
            let (found, bytes) =
                peak_bytes(|| BackupList::decode(text.as_bytes(), Path::new("l"), 3));
            assert!(bytes <= 64 * text.len() + 4096, "{bytes} bytes for {}", text.len());
            if let Ok(list) = found {
                assert_eq!(list.encode(), text);
            }
        });
    }
}
