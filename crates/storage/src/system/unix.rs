//! What Linux and macOS share.

use super::types::{FileId, Shortage};
use rustix::fs::{FlockOperation, OFlags, flock, statvfs};
use rustix::io::{Errno, pread, retry_on_intr};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// The mode of new files, before the umask of the process: read and write for the owner.
const MODE: u32 = 0o600;

/// Names survive power loss after a sync of their directory.
pub(crate) const SYNCS_DIRS: bool = true;

/// The name of an open file is free once it is removed.
pub(crate) const NAMES_MAY_STAY: bool = false;

/// Makes `options` open files for their owner only, never through a link, and without waiting for
/// another process. The flags change nothing for regular files.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(flags.bits() as i32).mode(MODE)
}

/// Makes `options` open a file for a sync.
pub(crate) fn for_sync(options: &mut OpenOptions) -> &mut OpenOptions {
    options.read(true)
}

/// Makes `options` open a directory.
pub(crate) fn for_dir(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = OFlags::DIRECTORY | OFlags::NONBLOCK;
    options.custom_flags(flags.bits() as i32)
}

/// Makes `options` open a file that is locked next.
pub(crate) fn for_lock(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Makes `options` open the lock file of a directory, which is locked next.
pub(crate) fn for_lock_of_dir(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Returns a builder of directories for their owner only.
pub(crate) fn private_dirs() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Returns the id of an open file or directory.
pub(crate) fn id_of(file: &File) -> io::Result<FileId> {
    file.metadata().map(|found| id(&found))
}

/// Returns the id of what is at `path`, behind a link too.
pub(crate) fn id_at(path: &Path) -> io::Result<FileId> {
    path.metadata().map(|found| id(&found))
}

fn id(found: &Metadata) -> FileId {
    FileId(found.dev(), found.ino())
}

/// Returns the bytes that a file takes on its device.
pub(crate) fn held_bytes(found: &Metadata) -> u64 {
    // The system counts blocks of 512 bytes, whatever the sector size of the device is.
    found.len().min(found.blocks() * 512)
}

/// Returns the number of names of the file at `path`.
pub(crate) fn link_count(path: &Path) -> io::Result<u64> {
    Ok(path.symlink_metadata()?.nlink())
}

/// Returns what a file is that is no regular file, link or directory.
pub(crate) fn other_kind(found: FileType) -> &'static str {
    match found {
        _ if found.is_fifo() => "FIFO",
        _ if found.is_socket() => "socket",
        _ => "device",
    }
}

/// Reads at `offset`, and returns how many bytes there were.
#[inline]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    // Not the `pread` of the C library, which must prepare for the cancellation of threads.
    Ok(retry_on_intr(|| pread(file, &mut *buffer, offset))?)
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Takes the lock of one opening of `file`, or fails with `WouldBlock`.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Gives back the lock of `file`, also where a child that is being started has it open too.
pub(crate) fn unlock(file: &File) {
    let _ = flock(file, FlockOperation::Unlock);
}

/// Returns true if `error` says that a directory cannot be locked.
pub(crate) fn cannot_lock(error: &io::Error) -> bool {
    let cannot = [Errno::BADF, Errno::INVAL, Errno::ISDIR, Errno::NOLCK, Errno::OPNOTSUPP];
    Errno::from_io_error(error).is_some_and(|errno| cannot.contains(&errno))
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

/// Returns the bytes that are free for the directory `dir`.
pub(crate) fn free_bytes(dir: &Path) -> io::Result<u64> {
    let device = statvfs(dir)?;
    // A device that reports no size (tmpfs without limit) has no limit.
    let unlimited = device.f_blocks == 0;
    Ok(if unlimited { u64::MAX } else { device.f_bavail.saturating_mul(device.f_frsize) })
}

/// Returns the number of files that this process may have open at a time.
pub(crate) fn files_max() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Syncs all that any program has written. It needs no descriptor.
pub(crate) fn sync_everything() {
    rustix::fs::sync();
}

/// Returns who has too many files open, if `error` says so.
pub(crate) fn shortage(error: &io::Error) -> Option<Shortage> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some(Shortage::Process),
        Errno::NFILE => Some(Shortage::All),
        _ => None,
    }
}

/// Returns true if `error` says that the system or the file system does not know the call.
pub(super) fn is_lacking(error: Errno) -> bool {
    [Errno::OPNOTSUPP, Errno::NOTSUP, Errno::NOSYS].contains(&error)
}

/// Returns `error` as one of kind `Unsupported` if the call is not known.
pub(super) fn explained(error: Errno) -> io::Error {
    if is_lacking(error) { io::ErrorKind::Unsupported.into() } else { error.into() }
}

/// Returns the number of this process.
pub(crate) fn process_id() -> u32 {
    std::process::id()
}

pub(super) fn thread_cpu() -> Duration {
    time(ClockId::ThreadCPUTime)
}

pub(super) fn process_cpu() -> Duration {
    time(ClockId::ProcessCPUTime)
}

fn time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
