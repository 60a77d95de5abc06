//! Appends records to a log.

use super::frame::{
    Layout, LogId, PAYLOAD_BYTES_MAX, Placing, RECORD_HEADER_BYTES, begin, header_bytes,
    record_bytes, seal,
};
use super::turns::Turns;
use crate::cipher::TAG_BYTES;
use crate::directory;
use crate::env::{Env, LogFile, SyncReach};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The buffer is shrunk to this many bytes after a larger record.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// A log is seldom synced if this many bytes, or more, are appended for each sync.
const SELDOM_BYTES: u64 = 1 << 20;

/// A log that any number of threads append to.
///
/// After an error of `append` or `sync` the log must not be used any more, because its contents are
/// unknown.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    id: LogId,
    layout: Layout,
    file: Box<dyn LogFile>,
    /// The record under construction; empty otherwise. Held from the choice of the record's offset
    /// until the record is stored there.
    buffer: Mutex<Vec<u8>>,
    turns: Turns,
    /// The number of records. Only the holder of `buffer` changes it.
    records: AtomicU64,
    syncs: AtomicU64,
}

impl LogWriter {
    /// Creates the log `id` at `path` with `capacity` bytes, rounded up to a multiple of 8. Neither
    /// the file nor its name is synced. The first [`sync`](LogWriter::sync) includes the file
    /// header, but not the name.
    ///
    /// # Errors
    ///
    /// Fails with `Full` if there is no room for all of it, and with `Io` for other errors of the
    /// system. Leaves no file then.
    pub fn create(env: &dyn Env, path: &Path, id: LogId, capacity: u64) -> Result<Self> {
        LogWriter::create_for(env, path, id, capacity, 0)
    }

    /// Creates the log as [`create`](LogWriter::create) does, for records of about `record_bytes`
    /// bytes that are seldom synced; 0 stands for all others.
    ///
    /// # Errors
    ///
    /// As [`create`](LogWriter::create).
    pub fn create_for(
        env: &dyn Env,
        path: &Path,
        id: LogId,
        capacity: u64,
        record_bytes: u64,
    ) -> Result<Self> {
        let failed = |error| Error::io("create the log", path, error);
        let (header, layout) = begin(env, id).map_err(failed)?;
        // A multiple of 8 bytes, so that the reader recognizes a file of another length as cut.
        let capacity = capacity.next_multiple_of(8);
        let file = env.create_log_for(path, capacity, record_bytes).map_err(failed)?;
        file.append(&header).map_err(|error| {
            directory::remove(env, path, "a log without a header");
            failed(error)
        })?;
        Ok(LogWriter {
            path: path.to_path_buf(),
            id,
            layout,
            file,
            buffer: Mutex::new(Vec::with_capacity(4096)),
            turns: Turns::default(),
            records: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
        })
    }

    /// Appends one record whose payload is the concatenation of `parts`, and returns its place
    /// in the file. The record now survives the death of the process, and power loss after a
    /// [`sync`](LogWriter::sync).
    ///
    /// # Errors
    ///
    /// Fails with `InvalidArgument`, and changes nothing, if the payload is longer than
    /// `PAYLOAD_BYTES_MAX` or than the [`room`](LogWriter::room). Fails with `Io` if the system
    /// refuses.
    pub fn append(&self, parts: &[&[u8]]) -> Result<Range<u64>> {
        let payload_bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut record = self.buffer.lock();
        let offset = self.file.bytes();
        if !self.fits(offset, payload_bytes) {
            let message = format!("a record of {payload_bytes} bytes does not fit into the log");
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(&self.path));
        }
        // A cipher may have panicked.
        record.clear();
        record.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
        parts.iter().for_each(|part| record.extend_from_slice(part));
        let marked = self.turns.synced_bytes() == offset;
        let payload_bytes = payload_bytes + self.layout.extra_bytes();
        let placing = Placing { file_id: self.id.file_id, offset, payload_bytes, marked };
        if let Some(cipher) = &self.layout.cipher {
            cipher.seal(&mut record, placing.coded(), offset);
        }
        record.resize(record_bytes(payload_bytes), 0);
        seal(&mut record, &placing);
        let appended = self.file.append(&record);
        let end = offset + record.len() as u64;
        self.records.store(self.records.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        record.clear();
        record.shrink_to(BUFFER_BYTES_KEPT);
        appended.map_err(|error| Error::io("append to the log", &self.path, error))?;
        Ok(offset..end)
    }

    /// Makes everything appended before the call survive power loss, and returns the offset up to
    /// which the log is synced. Other threads can append meanwhile. Of the threads that wait for a
    /// sync of data, one syncs for all.
    ///
    /// # Errors
    ///
    /// Fails with `Io` or `Full` if the system refuses, or refused an earlier sync.
    pub fn sync(&self, reach: SyncReach) -> Result<u64> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        let synced = self.turns.sync(&*self.file, reach);
        synced.map_err(|error| Error::io("sync the log", &self.path, error))
    }

    /// Returns the mean length of a record so far, or 0 if they were synced often.
    pub fn usual_bytes(&self) -> u64 {
        let is_seldom = self.syncs.load(Ordering::Relaxed) <= self.bytes() / SELDOM_BYTES;
        let records = self.records.load(Ordering::Relaxed).max(1);
        if is_seldom { self.bytes() / records } else { 0 }
    }

    /// Returns the file id of the log.
    pub fn file_id(&self) -> u64 {
        self.id.file_id
    }

    /// Returns the number of bytes from the start of the file to the end of the last record.
    pub fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Returns the length of the file in bytes.
    pub fn capacity(&self) -> u64 {
        self.file.capacity()
    }

    /// Returns the number of bytes from the start of the file that are known to be synced.
    pub fn synced_bytes(&self) -> u64 {
        self.turns.synced_bytes()
    }

    /// Frees the room behind the last record, if the environment can do that. No record may be
    /// appended after that.
    ///
    /// # Errors
    ///
    /// Fails with `Io` if the system refuses. The file is then unchanged or shorter.
    pub fn cut(&self) -> Result<()> {
        match self.file.cut() {
            Err(error) if error.kind() != std::io::ErrorKind::Unsupported => {
                Err(Error::io("cut the log", &self.path, error))
            }
            _ => Ok(()),
        }
    }

    /// Gives back what only appends and cuts need. No record may be appended after that.
    pub fn release(&self) {
        self.file.release();
    }

    /// Returns true if a payload of `payload_bytes` fits behind the last record.
    pub fn room(&self, payload_bytes: usize) -> bool {
        self.fits(self.bytes(), payload_bytes)
    }

    /// Returns true if two payloads of these lengths fit behind the last record.
    pub fn room_for_both(&self, first_bytes: usize, second_bytes: usize) -> bool {
        self.room(first_bytes)
            && self.fits(self.bytes() + self.record_bytes(first_bytes), second_bytes)
    }

    fn fits(&self, end: u64, payload_bytes: usize) -> bool {
        payload_bytes <= PAYLOAD_BYTES_MAX - self.layout.extra_bytes()
            && self.record_bytes(payload_bytes) <= self.file.capacity() - end
    }

    fn record_bytes(&self, payload_bytes: usize) -> u64 {
        record_bytes(payload_bytes + self.layout.extra_bytes()) as u64
    }

    /// Returns the capacity in bytes of a log of `env` that exactly holds records with payloads of
    /// these lengths.
    pub fn capacity_for(env: &dyn Env, payloads_bytes: impl IntoIterator<Item = usize>) -> u64 {
        let extra = if env.encryption().is_some() { TAG_BYTES } else { 0 };
        let records = payloads_bytes.into_iter().map(|bytes| record_bytes(bytes + extra));
        (header_bytes(env) + records.sum::<usize>()) as u64
    }
}
