//! Reads the records of a log, also behind damage.
//!
//! A [`LogReader`] stops where a log ends or is damaged, because opening a store must stop there. A
//! repair goes on. Tag and checksum of a record depend on its file and its offset, so bytes that
//! match at some offset are the record that was written there. Records start at multiples of 8, and
//! behind damage all of these offsets are tried.

use super::frame::{Effort, HEAD_BYTES, Layout, RECORD_HEADER_BYTES, RecordHead, record_bytes};
use super::{LogEnd, LogId, LogReader};
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;

/// A log, with all of its bytes in memory.
#[derive(Debug)]
pub struct LogRemains {
    file_id: u64,
    bytes: Bytes,
    /// `None` if nothing says how the log is encrypted.
    layout: Option<Layout>,
    /// How the log ends for a reader that reads it in order, or its first damage.
    pub end: Result<LogEnd>,
}

/// A record that was found.
#[derive(Clone, Debug)]
pub struct FoundRecord {
    /// The offset of the record in the file.
    pub offset: u64,
    /// The number of bytes that it takes there.
    pub bytes: u64,
    /// Whether everything in front of it was synced when it was appended.
    pub marked: bool,
    /// The number of bytes in front of it that are no record.
    pub skipped: u64,
    /// The payload of the record.
    pub payload: Bytes,
}

impl LogRemains {
    /// Returns the offset of the first record.
    pub fn start(&self) -> u64 {
        self.layout.as_ref().unwrap_or(&Layout::CLEAR).first as u64
    }

    /// Reads the file at `path`, which should be the log `id`.
    ///
    /// # Errors
    ///
    /// Fails with `Io` if it cannot be read, and with `Unsupported` if its version is unknown.
    /// Damage is no error.
    pub fn read(env: &dyn Env, path: &Path, id: LogId) -> Result<LogRemains> {
        let end = match read_in_order(env, path, id) {
            Err(error) if error.kind() != ErrorKind::Corruption => return Err(error),
            end => end,
        };
        let bytes = Bytes::from(read_all(env, path)?);
        let layout = Layout::guess(env, &bytes, id);
        Ok(LogRemains { file_id: id.file_id, bytes, layout, end })
    }

    /// Returns the length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the bytes at `place`, without those beyond the end of the file.
    pub fn bytes_at(&self, place: Range<u64>) -> &[u8] {
        let bound = |at: u64| at.min(self.bytes()) as usize;
        &self.bytes[bound(place.start)..bound(place.end)]
    }

    /// Returns all records, in the order of the file. If the file has more heads than a writer can
    /// have written, returns only the first records.
    pub fn records(&self) -> impl Iterator<Item = FoundRecord> {
        let mut next = self.start() as usize;
        let mut effort = Effort::for_file(self.bytes.len());
        std::iter::from_fn(move || {
            let layout = self.layout.as_ref()?;
            let last = self.bytes.len().checked_sub(RECORD_HEADER_BYTES)?;
            let mut starts = (next..=last).step_by(8);
            let found = starts.find_map(|offset| {
                let head = self.record_at(offset, &mut effort)?;
                Some((offset, head, self.payload(layout, offset, &head)?))
            });
            let (offset, head, payload) = found?;
            let end = offset + record_bytes(head.payload_bytes);
            let record = FoundRecord {
                offset: offset as u64,
                bytes: (end - offset) as u64,
                marked: head.marked,
                skipped: (offset - next) as u64,
                payload,
            };
            next = end;
            Some(record)
        })
    }

    /// Returns the payload of the record at `offset`, which has this `head`. `None` if it was not
    /// encrypted there with the key of the log.
    fn payload(&self, layout: &Layout, offset: usize, head: &RecordHead) -> Option<Bytes> {
        let start = offset + RECORD_HEADER_BYTES;
        let stored = self.bytes.slice(start..start + head.payload_bytes);
        let Some(cipher) = &layout.cipher else { return Some(stored) };
        let mut payload = Vec::new();
        let matches = cipher.open(&stored, head.coded, offset as u64, &mut payload);
        matches.then(|| Bytes::from(payload))
    }

    /// Returns the head of the record that starts at `offset`, if there is one.
    fn record_at(&self, offset: usize, effort: &mut Effort) -> Option<RecordHead> {
        let bytes = &self.bytes[..];
        if bytes[offset..offset + HEAD_BYTES] == [0; HEAD_BYTES] {
            return None;
        }
        let head = RecordHead::read(self.file_id, bytes, offset)?;
        let record = record_bytes(head.payload_bytes);
        let is_whole = offset + record <= bytes.len() && effort.spend(record);
        (is_whole && head.matches(bytes, offset)).then_some(head)
    }
}

/// Returns how the log ends, or its first damage.
fn read_in_order(env: &dyn Env, path: &Path, id: LogId) -> Result<LogEnd> {
    let mut reader = LogReader::open(env, path, id)?;
    while reader.next_record()?.is_some() {}
    Ok(reader.end().expect("there are no more records"))
}

pub(super) fn read_all(env: &dyn Env, path: &Path) -> Result<Vec<u8>> {
    let read = || {
        let file = env.open(path)?;
        let mut bytes = vec![0; usize::try_from(file.bytes()?).map_err(std::io::Error::other)?];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    read().map_err(|error| Error::io("read the log", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::MemEnv;
    use crate::log::{LogKind, LogWriter};

    const ID: LogId = LogId { kind: LogKind::Wal, file_id: 7 };

    fn log() -> (MemEnv, Vec<u64>) {
        let env = MemEnv::new();
        let log = LogWriter::create(&env, Path::new("/log"), ID, 4096).unwrap();
        let append = |byte: u8| log.append(&[&[byte; 20]]).unwrap().start;
        let offsets = (1..=6).map(append).collect();
        (env, offsets)
    }

    fn payloads(env: &MemEnv) -> (Vec<u8>, LogRemains) {
        let remains = LogRemains::read(env, Path::new("/log"), ID).unwrap();
        let first = |record: FoundRecord| record.payload[0];
        (remains.records().map(first).collect(), remains)
    }

    #[test]
    fn records_behind_damage_are_found() {
        let (env, offsets) = log();
        let (found, remains) = payloads(&env);
        assert_eq!((found, &remains.end.unwrap()), (vec![1, 2, 3, 4, 5, 6], &LogEnd::Clean));
        // Damages a payload, and then also a head.
        env.flip(Path::new("/log"), offsets[1] + 20, 1).unwrap();
        let (found, remains) = payloads(&env);
        assert_eq!(found, [1, 3, 4, 5, 6]);
        assert_eq!(remains.end.unwrap_err().offset(), Some(offsets[1]));
        env.flip(Path::new("/log"), offsets[3] + 1, 1).unwrap();
        let (found, remains) = payloads(&env);
        assert_eq!(found, [1, 3, 5, 6]);
        let skipped: Vec<u64> = remains.records().map(|record| record.skipped).collect();
        assert_eq!(skipped, [0, 40, 40, 0]);
    }

    #[test]
    fn a_log_without_header_has_its_records() {
        let (env, _) = log();
        for offset in [0, 9, 20] {
            let env = env.process_crash_clone();
            env.flip(Path::new("/log"), offset, 1).unwrap();
            let (found, remains) = payloads(&env);
            assert_eq!(found, [1, 2, 3, 4, 5, 6]);
            assert_eq!(remains.end.unwrap_err().kind(), ErrorKind::Corruption);
        }
        env.truncate(Path::new("/log"), 5).unwrap();
        assert_eq!(payloads(&env).0, [0; 0]);
    }
}
