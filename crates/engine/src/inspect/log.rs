//! Reads the records of files that are framed as logs.

use super::entry::Entry;
use super::file_type::FileType;
use crate::manifest::Record;
use crate::memory::{spilled_keyspace, take_record};
use bytes::Bytes;
use lsmith_storage::bounds::SEQ_MAX;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::format::{LoggedBatch, LoggedOp, OpKind, decode_batch, deleted_range};
use lsmith_storage::log::{FoundRecord, LogEnd, LogId, LogKind, LogRemains, LogStart};
use lsmith_tree::{EntryKind, KeyRange, SeqNo};
use std::path::{Path, PathBuf};

/// The content of a write-ahead log, a manifest, or a spill. It holds the whole file in
/// memory.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file_type: FileType,
    file_id: u64,
    remains: LogRemains,
}

/// A record of a [`LogFile`].
#[derive(Debug)]
pub struct LogRecord {
    /// The offset of the record in the file, in bytes.
    pub offset: u64,
    /// The bytes of the record in the file.
    pub bytes: u64,
    /// True if the record has a sync mark: all records before it were synced when it was appended.
    pub marked: bool,
    /// The bytes before it that are not a record, because they are damaged or were never stored.
    pub skipped: u64,
    /// The content, or an error of kind `Corruption` if it cannot be decoded although its checksum
    /// is right.
    pub content: Result<Content>,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// The first record of a write-ahead log, which names the log before.
    Start {
        /// The file id of the log before; 0 if there was none.
        before: u64,
        /// The sequence number of the first write in this log.
        first: SeqNo,
        /// The bytes of the log before that were known to be synced when this log began; 0 if none
        /// were.
        synced: u64,
    },
    /// Writes of a write-ahead log that took effect together. A batch without writes took its
    /// sequence numbers for a bulk load or for ingested tables.
    Batch {
        /// The sequence number of the first write. Each later write has the next sequence number.
        first: SeqNo,
        /// The number of sequence numbers that it took: one per write, and at least 1.
        seq_count: u64,
        /// The writes, in their order.
        writes: Vec<Write>,
    },
    /// Entries of a spill, in key order.
    Copy {
        /// The id of the keyspace.
        keyspace: u32,
        /// The entries.
        entries: Vec<Entry>,
    },
    /// The text of a record of a manifest.
    Text(String),
}

/// One write of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The id of the keyspace.
    pub keyspace: u32,
    /// The entry that was written; the delete of the first key for a range delete.
    pub entry: Entry,
    /// The range that was deleted, if the write is a range delete.
    pub range: Option<KeyRange>,
}

impl LogFile {
    /// Reads the file at `path`, which must be named like a log, a manifest or a spill.
    ///
    /// # Errors
    /// `InvalidArgument` for another name; `Unsupported` if the file has a newer format; `Io` if it
    /// cannot be read. Damage is not an error here: see [`damage`](LogFile::damage).
    pub fn open(env: &dyn Env, path: &Path) -> Result<LogFile> {
        let known = [FileType::Log, FileType::Manifest, FileType::Copy];
        let (file_type, file_id) = FileType::one_of(&known, path)?;
        let kind = match file_type {
            FileType::Manifest => LogKind::Manifest,
            FileType::Copy => LogKind::Spill,
            _ => LogKind::Wal,
        };
        let remains = LogRemains::read(env, path, LogId { kind, file_id })?;
        Ok(LogFile { path: path.to_path_buf(), file_type, file_id, remains })
    }

    /// Returns the type of the file.
    pub fn file_type(&self) -> FileType {
        self.file_type
    }

    /// Returns the id in the name of the file.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// Returns the length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.remains.bytes()
    }

    /// Returns the first damage in the file, with its offset, if there is any. Damage is content
    /// that neither power loss nor the death of a writing process can have left.
    pub fn damage(&self) -> Option<&Error> {
        self.remains.end.as_ref().err()
    }

    pub(super) fn into_damage(self) -> Option<Error> {
        self.remains.end.err()
    }

    /// If the end of the file is torn, returns its offset and its bytes up to the last one that is
    /// not zero. A torn end was being appended, and no sync had returned for it. Returns `None` if
    /// the file ends properly or is damaged.
    pub fn torn(&self) -> Option<(u64, u64)> {
        match self.remains.end {
            Ok(LogEnd::Torn { offset, bytes_dropped }) => Some((offset, bytes_dropped)),
            _ => None,
        }
    }

    /// Returns all records with a valid checksum, in the order of the file. Includes records behind
    /// damage and behind a torn end, which opening the store does not read.
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
        let damaged = |message: &str| Error::corruption(&self.path, found.offset, message);
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
    let LoggedBatch { first, seq_count, ops } = decode_batch(payload)?;
    let write = |(op, seq): (&LoggedOp<'_>, u64)| Write {
        keyspace: op.keyspace,
        entry: Entry {
            key: payload.slice_ref(op.key),
            seq: SeqNo(seq),
            kind: match op.kind {
                OpKind::Entry(kind) => kind,
                OpKind::DeleteRange => EntryKind::Delete,
            },
            value: match op.kind {
                OpKind::Entry(_) => payload.slice_ref(op.value),
                OpKind::DeleteRange => Bytes::new(),
            },
        },
        range: (op.kind == OpKind::DeleteRange).then(|| deleted_range(op.key, op.value)),
    };
    let writes = ops.iter().zip(first.0..).map(write).collect();
    Ok(Content::Batch { first, seq_count, writes })
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
