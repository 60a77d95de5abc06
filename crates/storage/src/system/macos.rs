//! macOS.
//!
//! A sync of a file by the standard library is `F_FULLFSYNC` here, which `fsync` is not: that
//! leaves bytes in the cache of the device. Nobody promises that it covers what was written to a
//! map, so logs are not mapped. Nothing that is open or mapped keeps its name from being removed.

pub(crate) use super::unix::*;
pub(crate) use super::without::*;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::retry_on_intr;
use std::fs::File;
use std::io;

/// Tables can be mapped.
pub(crate) const MAPS_TABLES: bool = true;

/// Logs are written by system calls.
pub(crate) const MAPS_LOGS: bool = false;

/// Gives `file` space for `bytes` bytes. Fails with `Unsupported` if that cannot be done ahead.
pub(crate) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, bytes)).map_err(explained)
}

/// Has reads of `file` go past the system's cache.
pub(crate) fn bypass_cache(file: &File) -> io::Result<()> {
    rustix::fs::fcntl_nocache(file, true).map_err(explained)
}
