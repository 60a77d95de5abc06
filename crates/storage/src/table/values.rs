//! Value files: writes and reads the values that tables refer to.

use super::cache::BlockCache;
use super::mapped_values::MappedValues;
use super::open_files::{OpenFiles, TableRead};
use super::waits::WAIT_MIN;
use crate::env::{Env, PAGE_BYTES, WriteFile};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    Codec, Compressor, Damage, SealedPlace, VALUE_FEATURE_COMPRESSED, VALUE_FILE_VERSION,
    VALUE_HEAD_BYTES, VALUE_LOOK_BYTES, VALUE_START_BYTES, ValueFileFault, check_record,
    decode_value_start, encode_record, encode_value_start, record_bytes, reference_to,
    unpack_value,
};
use crate::reference::{Packing, ReadBytes, ValueReference};
use bytes::{Bytes, BytesMut};
use std::hint::black_box;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of bytes that are collected for one write to the file, at least. So many are not
/// copied into a buffer of the file.
const WRITE_BYTES: usize = 256 * 1024;

/// A value file being written. If it is dropped before [`finish`](ValueWriter::finish) or after an
/// error, it leaves an incomplete file, which the caller must remove.
#[derive(Debug)]
pub struct ValueWriter {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    file_id: u64,
    compressor: Compressor,
    /// Bytes that are not written to the file yet.
    out: Vec<u8>,
    /// The offset in the file at which `out` starts.
    written: u64,
}

impl ValueWriter {
    /// Creates the file at `path`, which must not exist, for value file `file_id`. Values are
    /// compressed with `codec` if that makes them shorter. Programs from before compression refuse
    /// a file with a codec.
    ///
    /// # Errors
    /// Fails with `Io` or `Full`.
    pub fn create(
        env: &Arc<dyn Env>,
        path: &Path,
        file_id: u64,
        codec: Codec,
    ) -> Result<ValueWriter> {
        let file = env.create(path).map_err(|error| Error::io("create", path, error))?;
        let features = if codec == Codec::None { 0 } else { VALUE_FEATURE_COMPRESSED };
        let out = encode_value_start(file_id, features);
        let (path, compressor) = (path.to_path_buf(), Compressor::new(codec));
        Ok(ValueWriter { file, path, file_id, compressor, out, written: 0 })
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
        let length = (value.len() as u32).to_le_bytes();
        let (packing, made) = self.compressor.pack(value);
        let is_plain = packing == Packing::Plain;
        let parts = if is_plain { [value, &[]] } else { [&length[..], made] };
        let (stored, checksum) = encode_record(&mut self.out, place, packing, parts);
        self.compressor.shrink_to(2 * WRITE_BYTES);
        self.write_if_full()?;
        let value_bytes = value.len() as u32;
        Ok(ValueReference { value_bytes, stored, file: self.file_id, offset, checksum })
    }

    /// Adds the value of `reference` as another file stores it: `stored` are the bytes there.
    /// Returns the reference to it here. If it is compressed, this file must have a codec.
    ///
    /// # Errors
    /// Fails with `Io` or `Full`.
    pub fn copy(&mut self, stored: &[u8], reference: &ValueReference) -> Result<ValueReference> {
        let offset = self.file_bytes();
        let place = SealedPlace { table: self.file_id, offset };
        let packing = reference.stored.packing;
        let (stored, checksum) = encode_record(&mut self.out, place, packing, [stored, &[]]);
        self.write_if_full()?;
        Ok(ValueReference { stored, file: self.file_id, offset, checksum, ..*reference })
    }

    /// Writes whole pages, if there is enough to write.
    fn write_if_full(&mut self) -> Result<()> {
        if self.out.len() < WRITE_BYTES + PAGE_BYTES as usize {
            return Ok(());
        }
        let end = self.file_bytes();
        self.write_first(self.out.len() - (end % PAGE_BYTES) as usize)
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
    mapped: Option<MappedValues>,
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
        let opened =
            ValueFile { file, path: path.to_path_buf(), file_id, file_bytes, mapped: None };
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

    /// Returns the same file, mapped into memory for [`look`](ValueFile::look) if the environment
    /// has maps, as the files of the tables in `cache` are. It keeps no descriptor then.
    #[must_use]
    pub fn mapped(self, cache: &BlockCache) -> ValueFile {
        // If the process has no room for more maps, the file is read by calls.
        let map = || self.file.with(|file| file.map()).ok().flatten();
        let mapped = cache.maps.then(map).flatten().map(MappedValues::new);
        if mapped.is_some() {
            self.file.close();
        }
        ValueFile { mapped, ..self }
    }

    /// Returns the length of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the value that `reference`, which names this file, leads to, for a reader: through
    /// the map, if there is one. Then the checksum is checked before the first use of the value.
    /// Counts in `cache` whether the read waits for a device, by the clock of `env`.
    ///
    /// # Errors
    /// As [`read`](ValueFile::read).
    pub fn look(
        &self,
        reference: &ValueReference,
        is_announced: bool,
        cache: &BlockCache,
        env: &dyn Env,
    ) -> Result<ReadBytes> {
        let waits = &cache.value_waits;
        let Some(mapped) = &self.mapped else {
            let start = env.now();
            let value = self.read(reference)?;
            let bytes = u64::from(reference.stored.bytes);
            waits.count_call(env.now().saturating_sub(start), bytes);
            return Ok(value.into());
        };
        let place = self.place(reference)?;
        let asked = waits.are_recent();
        if asked {
            waits.count_request();
            if !is_announced {
                self.file.file().announce(place.clone());
            }
        }
        let start = env.now();
        black_box(mapped.touch(&place));
        let time = env.now().saturating_sub(start);
        waits.count_read(time);
        if time >= WAIT_MIN && !asked {
            // The value is not in memory: its other pages are asked for at once.
            self.file.file().announce(place.clone());
        }
        let damaged = |damage: Damage| damage.within(&self.path, reference.offset);
        let stored = mapped.stored(self.file_id, place, reference).map_err(damaged)?;
        if reference.stored.packing == Packing::Plain {
            return Ok(ReadBytes::lent(stored));
        }
        unpack_value(stored, reference).map(ReadBytes::from).map_err(damaged)
    }

    /// Announces that the value of `reference` will soon be looked at.
    pub fn announce(&self, reference: &ValueReference) {
        if let Ok(place) = self.place(reference) {
            self.file.file().announce(place);
        }
    }

    /// Reads the value that `reference`, which names this file, leads to, by a call, and checks it.
    ///
    /// # Errors
    /// Fails with `Corruption` if another value is there, with path and offset, with `Unsupported`
    /// if this build lacks the codec of the value, and with `Io`.
    pub fn read(&self, reference: &ValueReference) -> Result<Bytes> {
        let value = unpack_value(self.read_stored(reference)?, reference);
        value.map_err(|damage| damage.within(&self.path, reference.offset))
    }

    /// Reads what is stored of the value that `reference` leads to, for [`ValueWriter::copy`], by a
    /// call, and checks it.
    ///
    /// # Errors
    /// As [`read`](ValueFile::read), except that the value is not decompressed.
    pub fn read_stored(&self, reference: &ValueReference) -> Result<Bytes> {
        let Range { start: offset, end } = self.place(reference)?;
        let record = self.read_at(offset, (end - offset) as usize)?;
        let place = SealedPlace { table: self.file_id, offset };
        let checked = check_record(place, &record, reference);
        checked.map_err(|damage| damage.within(&self.path, offset))?;
        Ok(record.slice(VALUE_HEAD_BYTES..))
    }

    /// Returns the place of the record that `reference` leads to.
    fn place(&self, reference: &ValueReference) -> Result<Range<u64>> {
        let offset = reference.offset;
        let end = offset.checked_add(record_bytes(reference.stored));
        let end = end.filter(|end| *end <= self.file_bytes).ok_or_else(|| {
            let damage = Damage::whole("a value lies behind the end of the file");
            damage.within(&self.path, offset)
        })?;
        Ok(offset..end)
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
            let start = self.read_at(offset, left.min(VALUE_LOOK_BYTES as u64) as usize)?;
            let found = reference_to(self.file_id, offset, &start);
            let fits = |found: &ValueReference| record_bytes(found.stored) <= left;
            let Some(reference) = found.filter(fits) else {
                let what = Damage::whole("a record ends behind the end of the file");
                damage.push(what.within(&self.path, offset));
                break;
            };
            match self.read(&reference) {
                Err(error) if error.kind() == ErrorKind::Corruption => damage.push(error),
                read => drop(read?),
            }
            offset += record_bytes(reference.stored);
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
