//! Linux.

pub(crate) use super::unix::*;

use memmap2::{Advice, Mmap, MmapRaw};
use rustix::fs::{FallocateFlags, OFlags, fadvise, fallocate, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// Tables can be mapped, where the addresses of a process do not run out: a store may be larger
/// than all that 32 bits can address, and then nothing is left for memory.
pub(crate) const MAPS_TABLES: bool = cfg!(target_pointer_width = "64");

/// Logs can be mapped: a flush of a part of a map is `fdatasync` for it, and reports its failures.
pub(crate) const MAPS_LOGS: bool = true;

/// Gives `file` space for `bytes` bytes. Fails with `Unsupported` if that cannot be done ahead.
pub(crate) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, bytes)).map_err(explained)
}

/// Frees the space of `ranges` of `file`. Fails with `Unsupported` if that cannot be done.
pub(crate) fn punch(file: &File, ranges: &[Range<u64>]) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let punch = |range: &Range<u64>| {
        retry_on_intr(|| fallocate(file, flags, range.start, range.end - range.start))
    };
    ranges.iter().try_for_each(punch).map_err(explained)
}

/// Has the system read `range` of `file`. A system that ignores it reads later, on access.
pub(crate) fn will_need(file: &File, range: Range<u64>) {
    let bytes = std::num::NonZeroU64::new(range.end.saturating_sub(range.start));
    let _ = fadvise(file, range.start, bytes, rustix::fs::Advice::WillNeed);
}

/// Has reads of `file` go past the system's cache. Fails with `Unsupported` if its file system
/// cannot do that.
pub(crate) fn bypass_cache(file: &File) -> io::Result<()> {
    let flags = fcntl_getfl(file)?;
    fcntl_setfl(file, flags | OFlags::DIRECT).map_err(|error| match error {
        Errno::INVAL => io::ErrorKind::Unsupported.into(),
        error => explained(error),
    })
}

/// Takes what is written of `file` out of the system's cache.
pub(crate) fn forget_cached(file: &File) {
    let _ = fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
}

/// Has the system read `bytes` bytes of `map`.
pub(crate) fn map_will_need(map: &Mmap, start: usize, bytes: usize) {
    let _ = map.advise_range(Advice::WillNeed, start, bytes);
}

/// Says that blocks around a requested one are no more likely to be requested next.
pub(crate) fn is_read_at_random(map: &Mmap) -> io::Result<()> {
    map.advise(Advice::Random)
}

/// Makes every page of `map` writable now, if the system can do that.
pub(crate) fn touch_all(map: &MmapRaw) -> io::Result<()> {
    if let Err(error) = map.advise(Advice::PopulateWrite)
        // Older systems do not know the advice, and some sandboxes forbid it.
        && !Errno::from_io_error(&error)
            .is_some_and(|error| is_lacking(error) || [Errno::INVAL, Errno::PERM].contains(&error))
    {
        return Err(error);
    }
    Ok(())
}

/// Leaves `map` out of the memory of children of this process, whose writes would change the file
/// too.
pub(crate) fn keep_from_children(map: &MmapRaw) -> io::Result<()> {
    map.advise(Advice::DontFork)
}

/// Returns a word that the system clears in children of this process, or `None` if it cannot do
/// that. The word is never given back.
#[allow(unsafe_code, reason = "a page of memory, and a system call for it")]
pub(crate) fn word_cleared_in_children() -> Option<&'static AtomicU64> {
    let page = Box::leak(Box::new(memmap2::MmapMut::map_anon(size_of::<AtomicU64>()).ok()?));
    let start = page.as_mut_ptr();
    let wiped = rustix::mm::Advice::LinuxWipeOnFork;
    // SAFETY: The page is private and anonymous, as the advice demands. It is never unmapped, and
    // only the atomic refers to it. Its start is aligned for any type. The system clears it only in
    // a child, before any code runs there.
    unsafe {
        rustix::mm::madvise(start.cast(), page.len(), wiped).ok()?;
        Some(AtomicU64::from_ptr(start.cast()))
    }
}
