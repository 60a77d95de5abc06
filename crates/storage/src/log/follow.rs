//! Reads a log while it is written, record by record.

use super::frame::{
    Layout, LogId, RECORD_HEADER_BYTES, RecordHead, check_file_header, header_bytes, record_bytes,
};
use crate::env::{Env, ReadFile};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bytes that are read at once, at least.
const WINDOW_BYTES: u64 = 64 * 1024;

/// Returns the records of a log, oldest first, also of one that is being written. Holds the file
/// open, so it can be removed meanwhile. Keeps a part of it in memory.
#[derive(Debug)]
pub struct LogFollower {
    path: PathBuf,
    file_id: u64,
    file: Arc<dyn ReadFile>,
    layout: Layout,
    /// The payload of the last record, if it was decrypted.
    payload: Vec<u8>,
    /// The offset of the next record.
    next: u64,
    /// Bytes of the file, and the offset of the first of them.
    window: Vec<u8>,
    window_start: u64,
}

impl LogFollower {
    /// Opens the file at `path`, which must be the log `id`.
    ///
    /// # Errors
    /// `Io`; `Corruption` if the header is damaged or of another file; `Unsupported`.
    pub fn open(env: &dyn Env, path: &Path, id: LogId) -> Result<LogFollower> {
        let failed = |error| Error::io("read the log", path, error);
        let file = env.open(path).map_err(failed)?;
        let length = file.bytes().map_err(failed)?.min(header_bytes(env) as u64);
        let mut header = vec![0; length as usize];
        file.read_exact_at(&mut header, 0).map_err(failed)?;
        let Some(layout) = check_file_header(env, path, &header, id)? else {
            return Err(Error::corruption(path, 0, "the header is missing"));
        };
        Ok(LogFollower {
            path: path.to_path_buf(),
            file_id: id.file_id,
            file,
            next: layout.first as u64,
            layout,
            payload: Vec::new(),
            window: Vec::new(),
            window_start: 0,
        })
    }

    /// Returns the offset behind the last record that was returned.
    pub fn next_offset(&self) -> u64 {
        self.next
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the offset and the payload of the next record. `end` is the end of the last record,
    /// if it is known: then there must be records up to there, and none is returned from behind it.
    /// Without it, `None` is returned where no valid record starts. A later call looks again.
    ///
    /// # Errors
    /// `Io`; `Corruption` if there is no valid record in front of `end`.
    pub fn next_record(&mut self, end: Option<u64>) -> Result<Option<(u64, &[u8])>> {
        let offset = self.next;
        let limit = match end {
            Some(end) => end,
            None => self.file.bytes().map_err(|error| Error::io("measure", &self.path, error))?,
        };
        if offset == limit {
            return Ok(None);
        }
        let mut found = self.record_at(offset, limit)?;
        if found.is_none() {
            // What the window holds may be older than the record.
            self.window.clear();
            found = self.record_at(offset, limit)?;
        }
        match found {
            Some(head) => {
                let start = (offset - self.window_start) as usize + RECORD_HEADER_BYTES;
                let payload = &self.window[start..start + head.payload_bytes];
                let payload = match &self.layout.cipher {
                    None => payload,
                    Some(cipher) => {
                        if !cipher.open(payload, head.coded, offset, &mut self.payload) {
                            let message = "a record was not written with the key of its log";
                            return Err(Error::corruption(&self.path, offset, message));
                        }
                        &self.payload
                    }
                };
                self.next = offset + record_bytes(head.payload_bytes) as u64;
                Ok(Some((offset, payload)))
            }
            None if end.is_none() => Ok(None),
            None => Err(Error::corruption(&self.path, offset, "a record is damaged or missing")),
        }
    }

    /// Brings the record at `offset`, which ends at `limit` or before, into the window. Returns its
    /// head, or `None` if no valid record is there.
    fn record_at(&mut self, offset: u64, limit: u64) -> Result<Option<RecordHead>> {
        if !self.fill(offset, RECORD_HEADER_BYTES as u64, limit)? {
            return Ok(None);
        }
        let word = |bytes: &[u8], at: usize| {
            u32::from_le_bytes(*bytes[at..].first_chunk().expect("the window has the header"))
        };
        let header = &self.window[(offset - self.window_start) as usize..];
        let (coded, tag) = (word(header, 0), word(header, 4));
        let head = RecordHead::new(self.file_id, offset, coded);
        let bytes = record_bytes(head.payload_bytes) as u64;
        if head.tag != tag || !self.fill(offset, bytes, limit)? {
            return Ok(None);
        }
        let start = (offset - self.window_start) as usize;
        Ok(head.matches(&self.window, start).then_some(head))
    }

    /// Brings the `bytes` bytes from `offset` on into the window, and more. Returns false if they
    /// reach beyond `limit`.
    fn fill(&mut self, offset: u64, bytes: u64, limit: u64) -> Result<bool> {
        if offset.checked_add(bytes).is_none_or(|end| end > limit) {
            return Ok(false);
        }
        let window_end = self.window_start + self.window.len() as u64;
        if offset >= self.window_start && offset + bytes <= window_end {
            return Ok(true);
        }
        let wanted = bytes.max(WINDOW_BYTES).min(limit - offset);
        // Until it is filled again, the window holds nothing.
        self.window_start = offset;
        self.window.clear();
        self.window.resize(wanted as usize, 0);
        let read = self.file.read_exact_at(&mut self.window, offset);
        read.map_err(|error| {
            self.window.clear();
            Error::io("read the log", &self.path, error)
        })?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::MemEnv;
    use crate::error::ErrorKind;
    use crate::log::{LogKind, LogWriter};

    const ID: LogId = LogId { kind: LogKind::Wal, file_id: 9 };

    fn payload(index: usize) -> Vec<u8> {
        vec![index as u8 | 1; index * 7919 % 100_000]
    }

    #[test]
    fn a_follower_returns_each_record_once_it_is_there() {
        let env = MemEnv::new();
        let path = Path::new("/000009.wal");
        let log = LogWriter::create(&env, path, ID, 8 << 20).unwrap();
        let mut follower = LogFollower::open(&env, path, ID).unwrap();
        for index in 0..60 {
            let end = log.bytes();
            assert_eq!(follower.next_record(Some(end)).unwrap(), None);
            assert_eq!(follower.next_record(None).unwrap(), None);
            let place = log.append(&[&payload(index)]).unwrap();
            log.append(&[b"behind"]).unwrap();
            let (offset, found) = follower.next_record(Some(place.end)).unwrap().unwrap();
            assert_eq!((offset, found), (place.start, &payload(index)[..]));
            assert_eq!(
                follower.next_record(Some(place.end)).unwrap(),
                None,
                "no further than asked"
            );
            assert_eq!(follower.next_record(None).unwrap().unwrap().1, b"behind");
        }
        env.remove_file(path).unwrap();
        assert_eq!(follower.next_record(None).unwrap(), None, "the file is still open");
    }

    #[test]
    fn a_damaged_record_in_front_of_a_known_end_is_an_error() {
        let env = MemEnv::new();
        let path = Path::new("/000009.wal");
        let log = LogWriter::create(&env, path, ID, 1 << 16).unwrap();
        log.append(&[b"first"]).unwrap();
        let second = log.append(&[b"second"]).unwrap();
        for at in [second.start, second.start + 4, second.start + 8, second.end - 3] {
            let bad = env.process_crash_clone();
            bad.flip(path, at, 4).unwrap();
            let mut follower = LogFollower::open(&bad, path, ID).unwrap();
            assert_eq!(follower.next_record(Some(second.end)).unwrap().unwrap().1, b"first");
            let error = follower.next_record(Some(second.end)).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(second.start)));
            assert_eq!(follower.next_record(None).unwrap(), None);
        }
        let other = LogId { file_id: 8, ..ID };
        assert_eq!(LogFollower::open(&env, path, other).unwrap_err().kind(), ErrorKind::Corruption);
    }
}
