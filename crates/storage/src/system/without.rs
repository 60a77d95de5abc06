//! What macOS, Windows and WebAssembly do without: holes in files, advice, maps that are written,
//! and memory that children do not inherit.

use memmap2::{Mmap, MmapRaw};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// Frees the space of `ranges` of `file`: the store rewrites tables instead.
pub(crate) fn punch(_file: &File, _ranges: &[Range<u64>]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Has reads of `file` go past the system's cache. Fails with `Unsupported`: macOS can do that.
#[cfg(not(target_os = "macos"))]
pub(crate) fn bypass_cache(_file: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the bytes in whose multiples reads of `file` past the system's cache must begin and end:
/// the system does not say.
pub(crate) fn direct_bytes(_file: &File) -> Option<usize> {
    None
}

/// Reads at `offset`, and returns how many bytes there were: they stay in the system's cache.
pub(crate) fn read_once_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    super::read_at(file, buffer, offset)
}

/// Writes all of `bytes` behind the last write: they stay in the system's cache.
pub(crate) fn write_uncached(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    io::Write::write_all(&mut file, bytes)
}

/// Returns the bytes of memory of the machine: they are not known.
pub(crate) fn memory_bytes() -> Option<u64> {
    None
}

/// Takes what is written of `file` out of the system's cache: it stays there.
pub(crate) fn forget_cached(_file: &File) {}

/// Has the system read `range` of `file`: it reads later, on access.
pub(crate) fn will_need(_file: &File, _range: Range<u64>) {}

/// Has the system read `bytes` bytes of `map`: it reads later, on access.
pub(crate) fn map_will_need(_map: &Mmap, _start: usize, _bytes: usize) {}

/// Says that blocks around a requested one are no more likely to be requested next.
pub(crate) fn is_read_at_random(_map: &Mmap) -> io::Result<()> {
    Ok(())
}

/// Makes every page of `map` writable now: pages become writable one by one.
pub(crate) fn touch_all(_map: &MmapRaw) -> io::Result<()> {
    Ok(())
}

/// Leaves `map` out of the memory of children: no map that is written is shared here.
pub(crate) fn keep_from_children(_map: &MmapRaw) -> io::Result<()> {
    Ok(())
}

/// Returns a word that the system clears in children of this process: there is none.
pub(crate) fn word_cleared_in_children() -> Option<&'static AtomicU64> {
    None
}
