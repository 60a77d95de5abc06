//! The records of files that are framed as logs.

use super::{Entry, FileType};
use crate::manifest::Record;
use crate::memory::{spilled_keyspace, take_record};
use bytes::Bytes;
use lsmith_storage::bounds::SEQ_MAX;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::format::decode_batch;
use lsmith_storage::log::{FoundRecord, LogEnd, LogId, LogKind, LogRemains, LogStart};
use lsmith_tree::SeqNo;
use std::path::{Path, PathBuf};

/// A write-ahead log, a manifest, or a copy of memory, all of it in memory.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file_type: FileType,
    number: u64,
    remains: LogRemains,
}

/// A record of a [`LogFile`].
#[derive(Debug)]
pub struct LogRecord {
    /// Where it starts in the file, in bytes.
    pub offset: u64,
    /// Bytes that it takes there.
    pub bytes: u64,
    /// Whether all records in front of it had been synced when it was appended.
    pub marked: bool,
    /// Bytes in front of it that are no record: damaged, or never stored.
    pub skipped: u64,
    /// What it says, or why it says nothing though its checksum is right.
    pub content: Result<Content>,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Of a write-ahead log, its first record: what came before it.
    Start {
        /// The number of the log before; 0 where there was none.
        before: u64,
        /// The number of the first write in this log.
        first: SeqNo,
        /// Bytes of the log before that were known to be synced; 0 where nothing was known.
        synced: u64,
    },
    /// Of a write-ahead log: writes that took effect together. None stand for a bulk load.
    Batch {
        /// The number of the first write.
        first: SeqNo,
        /// The writes, in their order.
        writes: Vec<Write>,
    },
    /// Of a copy of memory: entries in key order.
    Copy {
        /// The number of the keyspace.
        keyspace: u32,
        /// The entries.
        entries: Vec<Entry>,
    },
    /// Of a manifest.
    Text(String),
}

/// One write of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The number of the keyspace.
    pub keyspace: u32,
    /// What was written.
    pub entry: Entry,
}

impl LogFile {
    /// Reads the file at `path`, which has the name of a log, a manifest or a copy of memory.
    ///
    /// # Errors
    /// `InvalidArgument` for another name, `Unsupported`, `Io`; not for damage.
    pub fn open(env: &dyn Env, path: &Path) -> Result<LogFile> {
        let known = [FileType::Log, FileType::Manifest, FileType::Copy];
        let (file_type, number) = FileType::number(path, &known)?;
        let kind = match file_type {
            FileType::Manifest => LogKind::Manifest,
            FileType::Copy => LogKind::Spill,
            _ => LogKind::Wal,
        };
        let remains = LogRemains::read(env, path, LogId { kind, number })?;
        Ok(LogFile { path: path.to_path_buf(), file_type, number, remains })
    }

    /// What it is.
    pub fn file_type(&self) -> FileType {
        self.file_type
    }

    /// The number in its name.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.remains.bytes()
    }

    /// The first damage in the file, with its offset: what power loss, or the death of the process
    /// while it wrote, cannot have left. `None` where there is none.
    pub fn damage(&self) -> Option<&Error> {
        self.remains.end.as_ref().err()
    }

    pub(super) fn into_damage(self) -> Option<Error> {
        self.remains.end.err()
    }

    /// Where the end of the file is torn, and how many bytes from there on are not zero: something
    /// was being appended, and no sync had returned for it. `None` where the file ends as it
    /// should, or is damaged.
    pub fn torn(&self) -> Option<(u64, u64)> {
        match self.remains.end {
            Ok(LogEnd::Torn { offset, bytes_dropped }) => Some((offset, bytes_dropped)),
            _ => None,
        }
    }

    /// All records that are whole, in the order of the file, also behind damage and behind a torn
    /// end, where who opens the store does not read any.
    pub fn records(&self) -> impl Iterator<Item = LogRecord> {
        self.remains.records().map(|found| LogRecord {
            offset: found.offset,
            bytes: found.bytes,
            marked: found.marked,
            skipped: found.skipped,
            content: self.content(&found),
        })
    }

    fn content(&self, found: &FoundRecord) -> Result<Content> {
        let payload = &found.payload;
        let damaged = |told: &str| Error::corruption(&self.path, found.offset, told);
        match self.file_type {
            FileType::Manifest => text(payload).map_err(|fault| fault.at(&self.path, found.offset)),
            FileType::Copy => copy(payload).map_err(|damage| damaged(damage.what)),
            _ => batch(payload).map_err(|damage| damaged(damage.what)),
        }
    }
}

fn batch(payload: &Bytes) -> std::result::Result<Content, lsmith_storage::format::Damage> {
    if let Some(LogStart { before, first, synced }) = LogStart::decode(payload)? {
        return Ok(Content::Start { before, first, synced });
    }
    let (first, ops) = decode_batch(payload)?;
    let write = |(op, seq): (&lsmith_storage::format::LoggedOp<'_>, u64)| Write {
        keyspace: op.keyspace,
        entry: Entry {
            key: payload.slice_ref(op.key),
            seq: SeqNo(seq),
            kind: op.kind,
            value: payload.slice_ref(op.value),
        },
    };
    Ok(Content::Batch { first, writes: ops.iter().zip(first.0..).map(write).collect() })
}

fn copy(payload: &[u8]) -> std::result::Result<Content, lsmith_storage::format::Damage> {
    let keyspace = spilled_keyspace(payload)?;
    let entries = take_record(payload, keyspace, SEQ_MAX)?.into_iter().map(|spilled| Entry {
        key: spilled.key,
        seq: spilled.seq,
        kind: spilled.kind,
        value: spilled.value,
    });
    Ok(Content::Copy { keyspace, entries: entries.collect() })
}

fn text(payload: &[u8]) -> std::result::Result<Content, crate::manifest::RecordFault> {
    Record::decode(payload)?;
    Ok(Content::Text(String::from_utf8_lossy(payload).into_owned()))
}
