//! Reading a log back: see the module above for how it tells a torn end from damage.

use super::frame::{
    Effort, FILE_HEADER_BYTES, HEAD_BYTES, Head, LogId, RECORD_HEADER_BYTES, check_file_header,
    record_bytes,
};
use crate::env::Env;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// What devices store as a whole or not at all.
const SECTOR_BYTES: usize = 512;

/// How a log ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// Behind its last record.
    Clean,
    /// Within something whose sync had not returned when the power or the process was lost.
    Torn {
        /// Where the last good record ends, in bytes from the start of the file.
        offset: u64,
        /// Bytes from there to the last one that is not zero.
        bytes_dropped: u64,
    },
}

/// The records of a log, oldest first.
///
/// Holds the whole file in memory: logs are as long as the memtables they are for.
pub struct LogReader {
    path: PathBuf,
    number: u64,
    bytes: Vec<u8>,
    next: usize,
    end: Option<LogEnd>,
    marked: bool,
}

impl LogReader {
    /// Reads the file at `path`, which must be the log `id`.
    ///
    /// # Errors
    ///
    /// `Io` where it cannot be read, `Corruption` where its header is damaged or it is another
    /// file, `Unsupported` where its version is not known.
    pub fn open(env: &dyn Env, path: &Path, id: LogId) -> Result<LogReader> {
        let read = || {
            let file = env.open(path)?;
            let length = usize::try_from(file.bytes()?).map_err(std::io::Error::other)?;
            let mut bytes = Vec::new();
            // A file without contents may be of any length: memory that is not there is an error.
            bytes.try_reserve_exact(length)?;
            bytes.resize(length, 0);
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error| Error::io("read the log", path, error))?;
        let whole = check_file_header(path, &bytes, id)?;
        let mut reader = LogReader {
            path: path.to_path_buf(),
            number: id.number,
            bytes,
            next: FILE_HEADER_BYTES,
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

    /// The next record: its offset in the file, and its payload. `None` at the end of the log.
    ///
    /// # Errors
    ///
    /// `Corruption`, with path and offset, where the file is damaged; every later call says the
    /// same.
    pub fn next_record(&mut self) -> Result<Option<(u64, &[u8])>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let offset = self.next;
        match self.judge()? {
            Found::Record { payload_bytes, marked } => {
                self.next = offset + record_bytes(payload_bytes);
                self.marked |= marked;
                let payload = &self.bytes[offset + RECORD_HEADER_BYTES..][..payload_bytes];
                Ok(Some((offset as u64, payload)))
            }
            Found::End(end) => {
                self.end = Some(end);
                Ok(None)
            }
        }
    }

    /// The length of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes from the start of the file to the end of the last record read.
    pub fn read_bytes(&self) -> u64 {
        self.next as u64
    }

    /// Whether one of the records read has a sync mark.
    pub fn is_marked(&self) -> bool {
        self.marked
    }

    /// How the log ended; `None` as long as there may be more records.
    pub fn end(&self) -> Option<LogEnd> {
        self.end
    }

    /// Tells what is at the offset `next`.
    fn judge(&self) -> Result<Found> {
        let (told, torn) = match self.inspect() {
            Inspected::Found(found) => return Ok(found),
            Inspected::Torn(told) => (told, !self.has_mark_behind(self.next)), // rule 1
            Inspected::Damaged(told) => (told, false),
        };
        match torn {
            true => Ok(Found::End(self.torn())),
            false => Err(Error::corruption(&self.path, self.next as u64, told)),
        }
    }

    /// Applies the rules 2 to 6 at the offset `next`.
    fn inspect(&self) -> Inspected {
        let (bytes, start) = (&self.bytes[..], self.next);
        let head = &bytes[start..bytes.len().min(start + HEAD_BYTES)];
        if !head.is_empty() && head.len() < HEAD_BYTES {
            return Inspected::Torn("a record is cut by the end of the file");
        }
        if is_zero(head) {
            return match is_zero(&bytes[start..]) {
                true => Inspected::Found(Found::End(LogEnd::Clean)),
                false => Inspected::Torn("a record is missing"),
            };
        }
        let Some(head) = Head::read(self.number, bytes, start) else {
            return Inspected::Damaged("a record has a wrong header");
        };
        let end = start + record_bytes(head.payload_bytes);
        if end > bytes.len() {
            Inspected::Torn("a record is cut by the end of the file")
        } else if head.matches(bytes, start) {
            Inspected::Found(Found::Record {
                payload_bytes: head.payload_bytes,
                marked: head.marked,
            })
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

    /// Whether a valid record with a sync mark starts anywhere behind `offset`, or there are more
    /// heads than anybody can have written: both are damage.
    fn has_mark_behind(&self, offset: usize) -> bool {
        let bytes = &self.bytes[..];
        let last_start = bytes.len().saturating_sub(RECORD_HEADER_BYTES);
        let mut effort = Effort::for_file(bytes.len());
        (offset + HEAD_BYTES..=last_start).step_by(8).any(|start| {
            !is_zero(&bytes[start..start + HEAD_BYTES])
                && Head::read(self.number, bytes, start).is_some_and(|head| {
                    let record = record_bytes(head.payload_bytes);
                    head.marked
                        && start + record <= bytes.len()
                        && (!effort.spend(record) || head.matches(bytes, start))
                })
        })
    }
}

/// What is found where a record may start.
enum Found {
    Record { payload_bytes: usize, marked: bool },
    End(LogEnd),
}

/// What the bytes where a record may start look like.
enum Inspected {
    Found(Found),
    /// As power loss can leave them.
    Torn(&'static str),
    /// As it cannot.
    Damaged(&'static str),
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Whether, in one of the sectors of `start..end`, zeros reach from within that range to the end
/// of the sector or file. Both ends are multiples of 8.
fn ends_in_zeros(bytes: &[u8], start: usize, end: usize) -> bool {
    let mut sectors = start / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES);
    sectors.any(|sector| {
        let sector_end = ((sector + 1) * SECTOR_BYTES).min(bytes.len());
        is_zero(&bytes[end.min(sector_end) - 8..sector_end])
    })
}
