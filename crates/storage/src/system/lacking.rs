//! A system that lacks what a store asks of one: WebAssembly. Under WASI there are files, but no
//! locks, maps or links. In a browser there is nothing: the store is in memory, or the caller gives
//! an environment.

pub(crate) use super::without::*;

use super::types::{FileId, Shortage};
use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Directories are not synced.
pub(crate) const SYNCS_DIRS: bool = false;

/// The name of an open file is free once it is removed.
pub(crate) const NAMES_MAY_STAY: bool = false;

/// Tables are read by system calls.
pub(crate) const MAPS_TABLES: bool = false;

/// Logs are written by system calls.
pub(crate) const MAPS_LOGS: bool = false;

/// Makes `options` open files for their owner: there are no owners.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Makes `options` open a file for a sync.
pub(crate) fn for_sync(options: &mut OpenOptions) -> &mut OpenOptions {
    options.read(true)
}

/// Makes `options` open a directory.
pub(crate) fn for_dir(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Makes `options` open a file that is locked next.
pub(crate) fn for_lock(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Makes `options` open the lock file of a directory, which is locked next.
pub(crate) fn for_lock_of_dir(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Returns a builder of directories.
pub(crate) fn private_dirs() -> DirBuilder {
    DirBuilder::new()
}

/// Returns the id of an open file or directory: all have the same.
pub(crate) fn id_of(_file: &File) -> io::Result<FileId> {
    Ok(FileId(0, 0))
}

/// Returns the id of what is at `path`: all have the same, so that what is there is taken for what
/// was there.
pub(crate) fn id_at(path: &Path) -> io::Result<FileId> {
    path.metadata().map(|_| FileId(0, 0))
}

/// Returns true if both paths are the same: where they lead is not known.
pub(crate) fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    Ok(std::path::absolute(one)? == std::path::absolute(other)?)
}

/// Returns the bytes that a file takes on its device.
pub(crate) fn held_bytes(found: &Metadata) -> u64 {
    found.len()
}

/// Returns the number of names of the file at `path`: not known.
pub(crate) fn link_count(_path: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns what a file is that is no regular file, link or directory.
pub(crate) fn other_kind(_found: FileType) -> &'static str {
    "device"
}

/// Reads at `offset`, and returns how many bytes there were. There is one thread, so no other call
/// moves the place.
pub(crate) fn read_at(mut file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek(SeekFrom::Start(offset))?;
    file.read(buffer)
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_all_at(mut file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

/// Takes the lock of `file`: there are no locks.
pub(crate) fn lock(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Gives back the lock of `file`.
pub(crate) fn unlock(_file: &File) {}

/// Returns true if `error` says that a directory cannot be locked.
pub(crate) fn cannot_lock(_error: &io::Error) -> bool {
    true
}

/// Returns `error`, met at opening a file whose lock another one may hold.
pub(crate) fn met_at_lock(error: io::Error) -> io::Error {
    error
}

/// Returns `error`, met at a rename.
pub(crate) fn met_at_rename(error: io::Error) -> io::Error {
    error
}

/// Returns `error`, met at the removal of a file.
pub(crate) fn met_at_removal(error: io::Error) -> io::Error {
    error
}

/// Returns the bytes that are free for the directory `dir`: no limit is known.
pub(crate) fn free_bytes(_dir: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

/// Returns the number of files that this process may have open at a time: not known.
pub(crate) fn files_max() -> Option<u64> {
    None
}

/// Syncs all that any program has written: there is no such call.
pub(crate) fn sync_everything() {}

/// Returns who has too many files open, if `error` says so.
pub(crate) fn shortage(_error: &io::Error) -> Option<Shortage> {
    None
}

/// Gives `file` space for `bytes` bytes: zeros are written instead.
pub(crate) fn allocate(_file: &File, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the number of this process, which is the only one.
pub(crate) fn process_id() -> u32 {
    1
}

pub(super) fn thread_cpu() -> Duration {
    Duration::ZERO
}

pub(super) fn process_cpu() -> Duration {
    Duration::ZERO
}

/// Zeroed memory of a memtable, from the allocator.
#[derive(Debug)]
pub(crate) struct Memory(Box<[AtomicU64]>);

impl Memory {
    /// Returns `bytes` bytes, all zero.
    pub(crate) fn new(bytes: usize) -> io::Result<Memory> {
        Ok(Memory((0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect()))
    }

    /// Returns the first byte. All of them may be read and written as atomic words.
    pub(crate) fn start(&self) -> *mut u8 {
        self.0.as_ptr().cast_mut().cast()
    }

    /// Asks for a part of the memory: it is there.
    pub(crate) fn make_ready(&self, _start: usize, _bytes: usize) {}
}
