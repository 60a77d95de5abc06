//! Reads a log. The page of the module above documents how it tells a torn end from damage.

use super::frame::{
    ENCRYPTED_HEADER_BYTES, Effort, FILE_HEADER_BYTES, HEAD_BYTES, Layout, LogId,
    RECORD_HEADER_BYTES, RecordHead, check_file_header, is_encrypted, record_bytes,
};
use crate::env::{Env, ReadFile};
use crate::error::{Error, Result};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The sector size: a device stores a sector as a whole or not at all.
const SECTOR_BYTES: usize = 512;

/// How a log ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// The log ends behind its last record.
    Clean,
    /// The log ends within bytes that no completed sync covered when power or process were lost.
    Torn {
        /// The end of the last good record, in bytes from the start of the file.
        offset: u64,
        /// The number of bytes from there to the last one that is not zero.
        bytes_dropped: u64,
    },
}

/// Returns the records of a log, oldest first.
///
/// Holds the whole file in memory. Logs are about as long as their memtables.
///
/// Another process may append to the file meanwhile. A reader then returns every record that was
/// appended before it was opened, and maybe some later ones.
pub struct LogReader {
    path: PathBuf,
    file: Arc<dyn ReadFile>,
    file_id: u64,
    bytes: Vec<u8>,
    layout: Layout,
    /// The payload of the last record, if it was decrypted.
    payload: Vec<u8>,
    next: usize,
    end: Option<LogEnd>,
    marked: bool,
}

impl LogReader {
    /// Reads the file at `path`, which must be the log `id`.
    ///
    /// # Errors
    ///
    /// Fails with `Io` if it cannot be read, with `Corruption` if its header is damaged or it is
    /// another file, and with `Unsupported` if its version is unknown.
    pub fn open(env: &dyn Env, path: &Path, id: LogId) -> Result<LogReader> {
        let open = || {
            let file = env.open(path)?;
            let bytes = read_from(&*file, 0)?;
            Ok((file, bytes))
        };
        let (file, bytes) = open().map_err(|error| Error::io("read the log", path, error))?;
        let layout = check_file_header(env, path, &bytes, id)?;
        let whole = layout.is_some();
        let layout = layout.unwrap_or(Layout::CLEAR);
        let mut reader = LogReader {
            path: path.to_path_buf(),
            file,
            file_id: id.file_id,
            bytes,
            next: layout.first,
            layout,
            payload: Vec::new(),
            end: None,
            marked: false,
        };
        if !whole {
            reader.next = 0;
            if reader.has_mark_behind(0) {
                return Err(Error::corruption(path, 0, "the header is missing"));
            }
            reader.end = Some(reader.torn());
        }
        Ok(reader)
    }

    /// Returns the next record as its offset in the file and its payload, or `None` at the end of
    /// the log.
    ///
    /// # Errors
    ///
    /// Fails with `Corruption`, with path and offset, if the file is damaged. Every later call
    /// fails in the same way.
    pub fn next_record(&mut self) -> Result<Option<(u64, &[u8])>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let offset = self.next;
        match self.decide()? {
            NextInLog::Record(head) => {
                let payload = &self.bytes[offset + RECORD_HEADER_BYTES..][..head.payload_bytes];
                let payload = match &self.layout.cipher {
                    None => payload,
                    Some(cipher) => {
                        let at = offset as u64;
                        if !cipher.open(payload, head.coded, at, &mut self.payload) {
                            let message = "a record was not written with the key of its log";
                            return Err(Error::corruption(&self.path, at, message));
                        }
                        &self.payload
                    }
                };
                self.next = offset + record_bytes(head.payload_bytes);
                self.marked |= head.marked;
                Ok(Some((offset as u64, payload)))
            }
            NextInLog::End(end) => {
                self.end = Some(end);
                Ok(None)
            }
        }
    }

    /// Reads the file again from the offset `next` on.
    ///
    /// A writer fills a log from its start. So what was read behind a record that was not whole may
    /// have been appended after it, while the file was being read. Whatever is not whole now was
    /// left so.
    fn read_again(&mut self) -> Result<()> {
        let read = read_from(&*self.file, self.next as u64);
        let rest = read.map_err(|error| Error::io("read the log", &self.path, error))?;
        self.bytes.truncate(self.next);
        self.bytes.extend_from_slice(&rest);
        Ok(())
    }

    /// Returns true if the log at `path` has a first record. Reads that record's head only.
    ///
    /// # Errors
    ///
    /// Fails with `Io` if the file cannot be read.
    pub fn is_begun(env: &dyn Env, path: &Path) -> Result<bool> {
        let mut head = [0; HEAD_BYTES];
        let mut read = || {
            let file = env.open(path)?;
            file.read_exact_at(&mut head, 8)?;
            let first =
                if is_encrypted(&head) { ENCRYPTED_HEADER_BYTES } else { FILE_HEADER_BYTES };
            file.read_exact_at(&mut head, first as u64)
        };
        match read() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(Error::io("read the log", path, error)),
            Ok(()) => Ok(!is_zero(&head)),
        }
    }

    /// Looks whether anything was appended since [`next_record`](LogReader::next_record) returned
    /// `None`. Returns true if it may return more records now.
    ///
    /// # Errors
    ///
    /// Fails with `Io` if the file cannot be read.
    pub fn look_again(&mut self) -> Result<bool> {
        let mut head = [0; HEAD_BYTES];
        match self.file.read_exact_at(&mut head, self.next as u64) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(Error::io("read the log", &self.path, error)),
            Ok(()) if is_zero(&head) => return Ok(false),
            Ok(()) => self.read_again()?,
        }
        self.end = None;
        Ok(true)
    }

    /// Returns the length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the number of bytes from the start of the file to the end of the last record read.
    pub fn read_bytes(&self) -> u64 {
        self.next as u64
    }

    /// Returns true if one of the records read has a sync mark.
    pub fn is_marked(&self) -> bool {
        self.marked
    }

    /// Returns how the log ended, or `None` as long as there may be more records.
    pub fn end(&self) -> Option<LogEnd> {
        self.end
    }

    /// Decides what is at the offset `next`.
    fn decide(&mut self) -> Result<NextInLog> {
        if let Inspected::Found(found) = self.inspect() {
            return Ok(found);
        }
        self.read_again()?;
        let (message, torn) = match self.inspect() {
            Inspected::Found(found) => return Ok(found),
            Inspected::Torn(message) => (message, !self.has_mark_behind(self.next)), // rule 1
            Inspected::Damaged(message) => (message, false),
        };
        if torn {
            Ok(NextInLog::End(self.torn()))
        } else {
            Err(Error::corruption(&self.path, self.next as u64, message))
        }
    }

    /// Applies the rules 2 to 6 at the offset `next`.
    fn inspect(&self) -> Inspected {
        let bytes = &self.bytes[..];
        let start = self.next;
        let head = &bytes[start..bytes.len().min(start + HEAD_BYTES)];
        if !head.is_empty() && head.len() < HEAD_BYTES {
            return Inspected::Torn("a record is cut by the end of the file");
        }
        if is_zero(head) {
            return if is_zero(&bytes[start..]) {
                Inspected::Found(NextInLog::End(LogEnd::Clean))
            } else {
                Inspected::Torn("a record is missing")
            };
        }
        let Some(head) = RecordHead::read(self.file_id, bytes, start) else {
            return Inspected::Damaged("a record has a wrong header");
        };
        let end = start + record_bytes(head.payload_bytes);
        if end > bytes.len() {
            Inspected::Torn("a record is cut by the end of the file")
        } else if head.matches(bytes, start) {
            Inspected::Found(NextInLog::Record(head))
        } else if ends_in_zeros(bytes, start + HEAD_BYTES, end) {
            Inspected::Torn("a record does not match its checksum")
        } else {
            Inspected::Damaged("a record does not match its checksum")
        }
    }

    fn torn(&self) -> LogEnd {
        let behind = &self.bytes[self.next.min(self.bytes.len())..];
        let last = behind.iter().rposition(|byte| *byte != 0);
        LogEnd::Torn {
            offset: self.next as u64,
            bytes_dropped: last.map_or(0, |last| last as u64 + 1),
        }
    }

    /// Returns true if a valid record with a sync mark starts anywhere behind `offset`, or if there
    /// are more heads than a writer can have written. Both are damage.
    fn has_mark_behind(&self, offset: usize) -> bool {
        let bytes = &self.bytes[..];
        let last_start = bytes.len().saturating_sub(RECORD_HEADER_BYTES);
        let mut effort = Effort::for_file(bytes.len());
        (offset + HEAD_BYTES..=last_start).step_by(8).any(|start| {
            !is_zero(&bytes[start..start + HEAD_BYTES])
                && RecordHead::read(self.file_id, bytes, start).is_some_and(|head| {
                    let record = record_bytes(head.payload_bytes);
                    head.marked
                        && start + record <= bytes.len()
                        && (!effort.spend(record) || head.matches(bytes, start))
                })
        })
    }
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Returns the bytes of `file` from `offset` on. The file may be cut meanwhile.
fn read_from(file: &dyn ReadFile, offset: u64) -> io::Result<Vec<u8>> {
    let mut length = file.bytes()?;
    loop {
        let count = length.saturating_sub(offset);
        let count = usize::try_from(count).map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        // A sparse file may have any length, so a lack of memory must be an error.
        bytes.try_reserve_exact(count)?;
        bytes.resize(count, 0);
        match file.read_exact_at(&mut bytes, offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let now = file.bytes()?;
                if now >= length {
                    return Err(error);
                }
                length = now;
            }
            read => return read.map(|()| bytes),
        }
    }
}

/// The thing at an offset where a record may start.
enum NextInLog {
    Record(RecordHead),
    End(LogEnd),
}

/// The result of the inspection of the bytes where a record may start.
enum Inspected {
    Found(NextInLog),
    /// Power loss can have left these bytes.
    Torn(&'static str),
    /// Power loss cannot have left these bytes.
    Damaged(&'static str),
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Returns true if, in one of the sectors of `start..end`, zeros extend from within that range to
/// the end of the sector or file. Both offsets are multiples of 8.
fn ends_in_zeros(bytes: &[u8], start: usize, end: usize) -> bool {
    let mut sectors = start / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES);
    sectors.any(|sector| {
        let sector_end = ((sector + 1) * SECTOR_BYTES).min(bytes.len());
        is_zero(&bytes[end.min(sector_end) - 8..sector_end])
    })
}
