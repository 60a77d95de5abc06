//! Value files: writes and reads the values that tables refer to.

use super::open_files::{OpenFiles, TableRead};
use crate::env::{Env, PAGE_BYTES, WriteFile};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    Damage, SealedPlace, VALUE_FILE_VERSION, VALUE_HEAD_BYTES, VALUE_START_BYTES, ValueFileFault,
    check_record, decode_value_start, encode_value_head, encode_value_start, record_bytes,
};
use crate::reference::{ValueReference, value_bytes};
use bytes::{Bytes, BytesMut};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of bytes that are collected for one write to the file.
const WRITE_BYTES: usize = 256 * 1024;

/// A value file being written. If it is dropped before [`finish`](ValueWriter::finish) or after an
/// error, it leaves an incomplete file, which the caller must remove.
#[derive(Debug)]
pub struct ValueWriter {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    file_id: u64,
    /// Bytes that are not written to the file yet.
    out: Vec<u8>,
    /// The offset in the file at which `out` starts.
    written: u64,
}

impl ValueWriter {
    /// Creates the file at `path`, which must not exist, for value file `file_id`.
    ///
    /// # Errors
    /// Fails with `Io` or `Full`.
    pub fn create(env: &Arc<dyn Env>, path: &Path, file_id: u64) -> Result<ValueWriter> {
        let file = env.create(path).map_err(|error| Error::io("create", path, error))?;
        let out = encode_value_start(file_id);
        Ok(ValueWriter { file, path: path.to_path_buf(), file_id, out, written: 0 })
    }

    /// Returns the length of the file so far, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.written + self.out.len() as u64
    }

    /// Adds `value`, and returns the reference to it.
    ///
    /// # Errors
    /// Fails with `Io` or `Full`.
    pub fn add(&mut self, value: &[u8]) -> Result<ValueReference> {
        let offset = self.file_bytes();
        let place = SealedPlace { table: self.file_id, offset };
        let checksum = encode_value_head(&mut self.out, place, value);
        self.out.extend_from_slice(value);
        if self.out.len() >= WRITE_BYTES {
            let end = self.file_bytes();
            self.write_first(self.out.len() - (end % PAGE_BYTES) as usize)?;
        }
        let value_bytes = value.len() as u32;
        Ok(ValueReference { value_bytes, file: self.file_id, offset, checksum })
    }

    /// Writes the rest, and makes the file survive power loss. The caller must make its name
    /// survive. Returns the length of the file in bytes.
    ///
    /// # Errors
    /// Fails with `Io` or `Full`.
    pub fn finish(mut self) -> Result<u64> {
        self.write_first(self.out.len())?;
        self.file.sync().map_err(|error| Error::io("sync", &self.path, error))?;
        Ok(self.written)
    }

    /// Writes the first `bytes` bytes of `out`.
    fn write_first(&mut self, bytes: usize) -> Result<()> {
        let first = self.file.write_all(&self.out[..bytes]);
        first.map_err(|error| Error::io("write", &self.path, error))?;
        self.written += bytes as u64;
        self.out.drain(..bytes);
        // A huge value must not occupy memory until the file is finished.
        self.out.shrink_to(2 * WRITE_BYTES);
        Ok(())
    }
}

/// An open value file.
#[derive(Debug)]
pub struct ValueFile {
    file: Arc<TableRead>,
    path: PathBuf,
    file_id: u64,
    file_bytes: u64,
}

impl ValueFile {
    /// Opens value file `file_id` at `path`. Its descriptor is one of `files`.
    ///
    /// # Errors
    /// Fails with `Corruption` if the start is damaged or names another file, with `Unsupported` if
    /// another version of the program wrote the file, and with `Io`.
    pub fn open(
        env: &dyn Env,
        path: &Path,
        file_id: u64,
        files: &Arc<OpenFiles>,
    ) -> Result<ValueFile> {
        let file = env.open(path).map_err(|error| Error::io("open", path, error))?;
        let file = TableRead::new(file, files);
        let bytes = file.with(|file| file.bytes());
        let file_bytes = bytes.map_err(|error| Error::io("measure", path, error))?;
        let opened = ValueFile { file, path: path.to_path_buf(), file_id, file_bytes };
        let start = opened.read_at(0, VALUE_START_BYTES)?;
        let start = start.first_chunk().expect("as many bytes were read");
        let unsupported = |message: String| Error::new(ErrorKind::Unsupported, message).at(path);
        match decode_value_start(start) {
            Ok(found) if found == file_id => Ok(opened),
            Ok(found) => {
                let what = format!("the file is value file {found}, not value file {file_id}");
                Err(Error::corruption(path, 0, what))
            }
            Err(ValueFileFault::Damage(damage)) => Err(damage.within(path, 0)),
            Err(ValueFileFault::Other(version)) => Err(unsupported(format!(
                "the value file has format version {version}, this program reads version \
                 {VALUE_FILE_VERSION}"
            ))),
            Err(ValueFileFault::Features(bits)) => Err(unsupported(format!(
                "the value file has features {bits:#x}, unknown to this program"
            ))),
        }
    }

    /// Returns the length of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the value that `reference`, which names this file, leads to.
    ///
    /// # Errors
    /// Fails with `Corruption` if another value is there, with path and offset, and with `Io`.
    pub fn read(&self, reference: &ValueReference) -> Result<Bytes> {
        let offset = reference.offset;
        let bytes = record_bytes(reference.value_bytes as usize);
        let end = offset.checked_add(bytes);
        if end.is_none_or(|end| end > self.file_bytes) {
            let damage = Damage::whole("a value lies behind the end of the file");
            return Err(damage.within(&self.path, offset));
        }
        let record = self.read_at(offset, bytes as usize)?;
        let place = SealedPlace { table: self.file_id, offset };
        let checked = check_record(place, &record, reference);
        checked.map_err(|damage| damage.within(&self.path, offset))?;
        Ok(record.slice(VALUE_HEAD_BYTES..))
    }

    /// Reads all records, garbage too, and returns their damage. Behind a record with a damaged
    /// length nothing is found.
    ///
    /// # Errors
    /// Fails with `Io`.
    pub fn damage(&self) -> Result<Vec<Error>> {
        let mut damage = Vec::new();
        let mut offset = VALUE_START_BYTES as u64;
        while offset < self.file_bytes {
            let left = self.file_bytes - offset;
            let head = self.read_at(offset, left.min(VALUE_HEAD_BYTES as u64) as usize)?;
            let bytes = record_bytes(value_bytes(&head));
            let Some(checksum) = head.last_chunk().filter(|_| bytes <= left) else {
                let what = Damage::whole("a record ends behind the end of the file");
                damage.push(what.within(&self.path, offset));
                break;
            };
            let reference = ValueReference {
                value_bytes: value_bytes(&head) as u32,
                file: self.file_id,
                offset,
                checksum: u64::from_le_bytes(*checksum),
            };
            match self.read(&reference) {
                Err(error) if error.kind() == ErrorKind::Corruption => damage.push(error),
                read => drop(read?),
            }
            offset += bytes;
        }
        Ok(damage)
    }

    fn read_at(&self, offset: u64, bytes: usize) -> Result<Bytes> {
        let mut buffer = BytesMut::zeroed(bytes);
        let read = self.file.with(|file| file.read_exact_at(&mut buffer, offset));
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Damage::whole("the file ends too early").within(&self.path, offset)
            }
            _ => Error::io("read", &self.path, error),
        })?;
        Ok(buffer.freeze())
    }
}
