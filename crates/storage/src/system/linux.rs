//! Linux.

pub(crate) use super::unix::*;

use memmap2::{Advice, Mmap, MmapRaw};
use rustix::fs::{
    AtFlags, FallocateFlags, OFlags, StatxFlags, fadvise, fallocate, fcntl_getfl, fcntl_setfl,
    statx,
};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2, retry_on_intr};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::OnceLock;
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

/// Returns the bytes in whose multiples reads of `file` past the system's cache must begin and end,
/// if the system says so: Linux 6.1 and later.
pub(crate) fn direct_bytes(file: &File) -> Option<usize> {
    let found = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let says = found.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let bytes = says.then_some(found.stx_dio_offset_align as usize);
    bytes.filter(|bytes| bytes.is_power_of_two())
}

/// `RWF_DONTCACHE`: what is not in the system's cache is not kept there.
const UNKEPT: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Linux 6.14 brought the flag. Errors in it were mended up to this version.
const UNKEPT_SINCE: (u32, u32) = (6, 16);

/// Returns true if a call is unknown to the system, or forbidden in its sandbox.
fn is_refused(error: Errno) -> bool {
    is_lacking(error) || [Errno::INVAL, Errno::PERM].contains(&error)
}

/// Returns true if the system knows the flag, and does without these errors.
fn knows_unkept() -> bool {
    static KNOWS: OnceLock<bool> = OnceLock::new();
    let release = || version(&rustix::system::uname().release().to_string_lossy());
    *KNOWS.get_or_init(|| release().is_some_and(|release| release >= UNKEPT_SINCE))
}

/// Returns the first two numbers of a release such as `6.18.44-fc`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Reads at `offset` what need not stay in the system's cache, and returns how many bytes there
/// were. Older systems, and some file systems, keep it.
pub(crate) fn read_once_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    if !knows_unkept() {
        return read_at(file, buffer, offset);
    }
    let read = retry_on_intr(|| preadv2(file, &mut [io::IoSliceMut::new(buffer)], offset, UNKEPT));
    match read {
        Err(error) if is_refused(error) => read_at(file, buffer, offset),
        read => Ok(read?),
    }
}

/// Writes all of `bytes` behind the last write, and has the system forget them once they are on the
/// device. Older systems, and some file systems, keep them.
pub(crate) fn write_uncached(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    if !knows_unkept() {
        return file.write_all(bytes);
    }
    while !bytes.is_empty() {
        // This offset stands for the position of the descriptor.
        let slices = [io::IoSlice::new(bytes)];
        match retry_on_intr(|| pwritev2(file, &slices, u64::MAX, UNKEPT)) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if is_refused(error) => return file.write_all(bytes),
            Err(error) => return Err(explained(error)),
        }
    }
    Ok(())
}

/// Returns the bytes of memory of the machine.
pub(crate) fn memory_bytes() -> Option<u64> {
    let found = rustix::system::sysinfo();
    (found.totalram as u64).checked_mul(found.mem_unit.into())
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
        && !Errno::from_io_error(&error).is_some_and(is_refused)
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]
mod tests {
    use super::*;

    const BYTES: usize = 256 << 10;

    #[test]
    fn releases_are_told_apart() {
        let releases = ["6.18.44-fc-v782", "6.16", "7.0-rc1", "6.15.9", "5.200.1", "6", "x.y", ""];
        let knows = |release: &&str| version(release).is_some_and(|found| found >= UNKEPT_SINCE);
        assert_eq!(releases.iter().filter(|release| knows(release)).count(), 3);
        assert!(releases[..3].iter().all(knows));
    }

    /// A way to read a file.
    type Read = fn(&File, &mut [u8], u64) -> io::Result<usize>;

    /// Returns true if `read` takes the first bytes of `file` from the device. They are ones.
    fn is_from_device(file: &File, read: Read) -> bool {
        let before = device_bytes();
        let mut buffer = vec![0; BYTES];
        assert_eq!(read(file, &mut buffer, 0).unwrap(), BYTES);
        assert!(buffer.iter().all(|byte| *byte == 1));
        device_bytes() > before
    }

    /// Returns the bytes that this thread has read from devices.
    fn device_bytes() -> u64 {
        let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        let line = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
        line.unwrap().parse().unwrap()
    }

    /// Returns a new file of ones, which are on the device.
    fn written(dir: &std::path::Path, write: fn(&File, &[u8]) -> io::Result<()>) -> File {
        let path = dir.join("file");
        let _ = std::fs::remove_file(&path);
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(path).unwrap();
        write(&file, &[1; BYTES]).unwrap();
        file.sync_all().unwrap();
        file
    }

    #[test]
    fn what_goes_past_the_cache_is_not_kept_there() {
        if !std::path::Path::new("/proc/thread-self/io").exists() {
            return; // Nobody counts what threads read.
        }
        // In the build's own directory: temporary files may be in memory.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let kept = || written(dir.path(), |mut file, bytes| file.write_all(bytes));
        let file = kept();
        let mut byte = [0];
        let tried = preadv2(&file, &mut [io::IoSliceMut::new(&mut byte)], 0, UNKEPT);
        assert!(!is_from_device(&file, read_at), "what is written is in the cache");
        forget_cached(&file);
        if tried.is_err() || !knows_unkept() || !is_from_device(&file, read_at) {
            return; // The system or the file system is older, or there is no device.
        }
        forget_cached(&file);
        assert!(is_from_device(&file, read_once_at));
        assert!(is_from_device(&file, read_at), "what was read past the cache is not there");
        assert!(!is_from_device(&file, read_once_at), "the cache is used if it has the bytes");
        assert!(!is_from_device(&file, read_at), "and keeps what it had");
        // The system may drop pages a little later, but not always.
        let is_gone = || is_from_device(&written(dir.path(), write_uncached), read_at);
        assert!((0..50).any(|_| is_gone()), "what was written past the cache is not there");
    }
}
