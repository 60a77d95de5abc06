//! Windows.
//!
//! A name cannot be removed while its file is mapped, so tables and logs are read and written by
//! system calls. Every file is opened so that others may read, write, rename and remove it. Names
//! go to the journal of NTFS, and a sync of a file (`FlushFileBuffers`) covers them. A directory
//! cannot be synced. A lock is a handle that lets no other handle write.

pub(crate) use super::without::*;

use super::types::{FileId, Shortage};
use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::time::Duration;
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, ERROR_TOO_MANY_OPEN_FILES, FILETIME,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_SHARE_DELETE, FILE_SHARE_READ, GetDiskFreeSpaceExW, GetFileInformationByHandle,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThread, GetProcessTimes, GetThreadTimes,
};

/// Names survive power loss without a sync of their directory.
pub(crate) const SYNCS_DIRS: bool = false;

/// NTFS frees the name of an open file at once. FAT, shares of a network, Windows before 10 and
/// Wine 8 keep it until nobody has the file open, and let no other file take it.
pub(crate) const NAMES_MAY_STAY: bool = true;

/// Tables are read by system calls.
pub(crate) const MAPS_TABLES: bool = false;

/// Logs are written by system calls.
pub(crate) const MAPS_LOGS: bool = false;

/// Makes `options` open a link itself, which is then refused. Files have the rights of their
/// directory.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
}

/// Makes `options` open a file for a sync, which only a handle that may write can do.
pub(crate) fn for_sync(options: &mut OpenOptions) -> &mut OpenOptions {
    options.write(true)
}

/// Makes `options` open a directory.
pub(crate) fn for_dir(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
}

/// Makes `options` open a file so that nobody else can open it for writing: that is the lock.
pub(crate) fn for_lock(options: &mut OpenOptions) -> &mut OpenOptions {
    options.share_mode(FILE_SHARE_READ | FILE_SHARE_DELETE)
}

/// Makes `options` open the lock file of a directory. Nobody can remove or rename it meanwhile:
/// then another process could make a new one, and lock that.
pub(crate) fn for_lock_of_dir(options: &mut OpenOptions) -> &mut OpenOptions {
    options.share_mode(FILE_SHARE_READ)
}

/// Returns a builder of directories.
pub(crate) fn private_dirs() -> DirBuilder {
    DirBuilder::new()
}

/// Returns the id of an open file or directory.
pub(crate) fn id_of(file: &File) -> io::Result<FileId> {
    let found = information(file)?;
    let number = u64::from(found.nFileIndexHigh) << 32 | u64::from(found.nFileIndexLow);
    Ok(FileId(found.dwVolumeSerialNumber.into(), number))
}

/// Returns the id of what is at `path`, behind a link too.
pub(crate) fn id_at(path: &Path) -> io::Result<FileId> {
    id_of(&looked_at(path)?)
}

/// Returns the bytes that a file takes on its device.
pub(crate) fn held_bytes(found: &Metadata) -> u64 {
    found.len()
}

/// Returns the number of names of the file at `path`.
pub(crate) fn link_count(path: &Path) -> io::Result<u64> {
    Ok(information(&looked_at(path)?)?.nNumberOfLinks.into())
}

/// Opens what is at `path` without the right to read or write it, which no lock forbids.
fn looked_at(path: &Path) -> io::Result<File> {
    OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)
}

#[allow(unsafe_code, reason = "a system call")]
fn information(file: &File) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: The handle is open as long as `file`, and `found` is a place for the answer.
    done(unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) })?;
    Ok(found)
}

/// Returns the error of a call that has returned `result`, if that is zero.
fn done(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns what a file is that is no regular file, link or directory.
pub(crate) fn other_kind(_found: FileType) -> &'static str {
    "device"
}

/// Reads at `offset`, and returns how many bytes there were.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = file.seek_write(bytes, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

/// Takes the lock of `file`: [`for_lock`] has taken it.
pub(crate) fn lock(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Gives back the lock of `file`: no child has its handle, so its close does that.
pub(crate) fn unlock(_file: &File) {}

/// Returns true if `error` says that a directory cannot be locked.
pub(crate) fn cannot_lock(_error: &io::Error) -> bool {
    false
}

/// Returns `error`, met at opening a file whose lock another one may hold.
pub(crate) fn met_at_lock(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) if code == ERROR_SHARING_VIOLATION as i32 => io::ErrorKind::WouldBlock.into(),
        _ => error,
    }
}

/// Returns `error`, met at a rename: of kind `ResourceBusy` if somebody may have the file open
/// that would be replaced. Where [`NAMES_MAY_STAY`], the system then says that access is denied.
pub(crate) fn met_at_rename(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) if code == ERROR_ACCESS_DENIED as i32 => {
            io::Error::new(io::ErrorKind::ResourceBusy, error)
        }
        _ => met_at_removal(error),
    }
}

/// Returns `error`, met at the removal of a file: of kind `ResourceBusy` if somebody who has it
/// open does not let it be removed.
pub(crate) fn met_at_removal(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) if code == ERROR_SHARING_VIOLATION as i32 => {
            io::Error::new(io::ErrorKind::ResourceBusy, error)
        }
        _ => error,
    }
}

/// Returns the bytes that are free for the directory `dir`.
#[allow(unsafe_code, reason = "a system call")]
pub(crate) fn free_bytes(dir: &Path) -> io::Result<u64> {
    let name: Vec<u16> = std::path::absolute(dir)?.as_os_str().encode_wide().chain([0]).collect();
    let mut bytes = 0;
    let none = std::ptr::null_mut();
    // SAFETY: The name ends with a zero, `bytes` is a place for the answer, and the two other
    // answers may be left out.
    done(unsafe { GetDiskFreeSpaceExW(name.as_ptr(), &raw mut bytes, none, none) })?;
    Ok(bytes)
}

/// Returns the number of files that this process may have open at a time: millions.
pub(crate) fn files_max() -> Option<u64> {
    None
}

/// Syncs all that any program has written: there is no such call, and no want of handles.
pub(crate) fn sync_everything() {}

/// Returns who has too many files open, if `error` says so.
pub(crate) fn shortage(error: &io::Error) -> Option<Shortage> {
    let short = error.raw_os_error() == Some(ERROR_TOO_MANY_OPEN_FILES as i32);
    short.then_some(Shortage::Process)
}

/// Gives `file` space for `bytes` bytes: zeros are written instead.
pub(crate) fn allocate(_file: &File, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the number of this process.
pub(crate) fn process_id() -> u32 {
    std::process::id()
}

#[allow(unsafe_code, reason = "a system call")]
pub(super) fn thread_cpu() -> Duration {
    let mut times = [FILETIME::default(); 4];
    let [made, gone, system, user] = &mut times;
    // SAFETY: The four places for answers are apart. The handle stands for this thread.
    let result = unsafe { GetThreadTimes(GetCurrentThread(), made, gone, system, user) };
    sum(result, &times)
}

#[allow(unsafe_code, reason = "a system call")]
pub(super) fn process_cpu() -> Duration {
    let mut times = [FILETIME::default(); 4];
    let [made, gone, system, user] = &mut times;
    // SAFETY: The four places for answers are apart. The handle stands for this process.
    let result = unsafe { GetProcessTimes(GetCurrentProcess(), made, gone, system, user) };
    sum(result, &times)
}

/// Returns the sum of the last two times, which count steps of 100 ns.
fn sum(result: i32, times: &[FILETIME; 4]) -> Duration {
    let steps =
        |time: &FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    if result == 0 {
        Duration::ZERO
    } else {
        Duration::from_nanos(100 * (steps(&times[2]) + steps(&times[3])))
    }
}
