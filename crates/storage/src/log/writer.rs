//! Appending to a log.

use super::frame::{
    FILE_HEADER_BYTES, LogId, PAYLOAD_BYTES_MAX, Placing, RECORD_HEADER_BYTES, file_header,
    record_bytes, seal,
};
use super::turns::Turns;
use crate::env::{Env, LogFile, SyncReach};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Mutex;
use std::path::{Path, PathBuf};

/// The buffer is given back when a record made it larger than this.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// A log that is being written, by any number of threads.
///
/// After an error of `append` or `sync` the log must not be used any more: nobody knows what it
/// holds.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    id: LogId,
    file: Box<dyn LogFile>,
    /// Where records are put together; empty in between. Held from the choice of a record's offset
    /// until the record is stored there.
    buffer: Mutex<Vec<u8>>,
    turns: Turns,
}

impl LogWriter {
    /// Creates the log `id` at `path`, `capacity` bytes long or up to 7 more. Nothing of it is
    /// synced, nor is its name: the first [`sync`](LogWriter::sync) covers the file header too,
    /// but not the name.
    ///
    /// # Errors
    ///
    /// `Full` where there is no room for all of it; no file is left then. `Io` otherwise.
    pub fn create(env: &dyn Env, path: &Path, id: LogId, capacity: u64) -> Result<Self> {
        let create = || {
            // Whole words: so the reader knows a file of another length as cut.
            let file = env.create_log(path, capacity.next_multiple_of(8))?;
            file.append(&file_header(id))?;
            Ok(file)
        };
        let file = create().map_err(|error| Error::io("create the log", path, error))?;
        Ok(LogWriter {
            path: path.to_path_buf(),
            id,
            file,
            buffer: Mutex::new(Vec::with_capacity(4096)),
            turns: Turns::default(),
        })
    }

    /// Appends one record whose payload is all of `parts`, and tells its offset. It survives the
    /// death of the process from now on, and power loss after a [`sync`](LogWriter::sync).
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the payload is longer than `PAYLOAD_BYTES_MAX` or than there is
    /// [`room`](LogWriter::room) for; nothing is changed then. `Io` where the system refuses.
    pub fn append(&self, parts: &[&[u8]]) -> Result<u64> {
        let payload_bytes = parts.iter().map(|part| part.len()).sum();
        let mut record = self.buffer.lock();
        let offset = self.file.bytes();
        if !self.fits(offset, payload_bytes) {
            let told = format!("a record of {payload_bytes} bytes does not fit into the log");
            return Err(Error::new(ErrorKind::InvalidArgument, told).at(&self.path));
        }
        record.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
        parts.iter().for_each(|part| record.extend_from_slice(part));
        record.resize(record_bytes(payload_bytes), 0);
        let marked = self.turns.synced() == offset;
        seal(&mut record, &Placing { number: self.id.number, offset, payload_bytes, marked });
        let appended = self.file.append(&record);
        record.clear();
        record.shrink_to(BUFFER_BYTES_KEPT);
        appended.map_err(|error| Error::io("append to the log", &self.path, error))?;
        Ok(offset)
    }

    /// Makes everything appended before the call survive power loss, and tells up to which offset
    /// that is. Others can append meanwhile; of those who wait for a sync of data, one syncs for
    /// all.
    ///
    /// # Errors
    ///
    /// `Io` or `Full` where the system refuses, or has refused before.
    pub fn sync(&self, reach: SyncReach) -> Result<u64> {
        let synced = self.turns.sync(&*self.file, reach);
        synced.map_err(|error| Error::io("sync the log", &self.path, error))
    }

    /// The number of the log.
    pub fn number(&self) -> u64 {
        self.id.number
    }

    /// Bytes from the start of the file to the end of the last record.
    pub fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// The length of the file.
    pub fn capacity(&self) -> u64 {
        self.file.capacity()
    }

    /// Bytes from the start of the file that are known to be synced; 0 where nothing is.
    pub fn synced_bytes(&self) -> u64 {
        self.turns.synced()
    }

    /// Gives back the room behind the last record, where the environment can do that. Nothing may
    /// be appended any more.
    ///
    /// # Errors
    ///
    /// `Io` where the system refuses: the file is as it was, or shorter.
    pub fn cut(&self) -> Result<()> {
        match self.file.cut() {
            Err(error) if error.kind() != std::io::ErrorKind::Unsupported => {
                Err(Error::io("cut the log", &self.path, error))
            }
            _ => Ok(()),
        }
    }

    /// Whether a payload of `payload_bytes` fits behind what is there now.
    pub fn room(&self, payload_bytes: usize) -> bool {
        self.fits(self.bytes(), payload_bytes)
    }

    /// Whether two payloads of these lengths fit behind what is there now.
    pub fn room_for_both(&self, first_bytes: usize, second_bytes: usize) -> bool {
        self.room(first_bytes)
            && self.fits(self.bytes() + record_bytes(first_bytes) as u64, second_bytes)
    }

    fn fits(&self, end: u64, payload_bytes: usize) -> bool {
        payload_bytes <= PAYLOAD_BYTES_MAX
            && record_bytes(payload_bytes) as u64 <= self.file.capacity() - end
    }

    /// The capacity of a log that just holds records with payloads of these lengths, in bytes.
    pub fn capacity_for(payloads_bytes: impl IntoIterator<Item = usize>) -> u64 {
        let records: usize = payloads_bytes.into_iter().map(record_bytes).sum();
        (FILE_HEADER_BYTES + records) as u64
    }
}
