//! Opening the files of a store: regular files only, never through a link, for their owner alone.
//!
//! Whoever can write to the directory can put anything under a name of the store. To open a FIFO
//! is to wait until somebody opens its other end, so nothing is waited for here, and then it is
//! looked at what was opened.

use rustix::fs::OFlags;
use std::fs::{self, File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// What a new file may be used for, less what the process takes away: reading and writing by its
/// owner.
const MODE: u32 = 0o600;

/// Opens the regular file at `path` as `options` say.
pub(super) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // For regular files these flags change nothing.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    match options.custom_flags(flags.bits() as i32).mode(MODE).open(path) {
        Ok(file) => {
            check(file.metadata()?.file_type())?;
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // The system says of each thing in another way that it is no file.
        Err(error) => Err(metadata(path).err().filter(is_other).unwrap_or(error)),
    }
}

/// What the system knows of the regular file at `path`.
pub(super) fn metadata(path: &Path) -> io::Result<fs::Metadata> {
    let found = fs::symlink_metadata(path)?;
    check(found.file_type())?;
    Ok(found)
}

/// Opens `dir`, to be synced. A link may lead there: where the store is was chosen by the caller.
pub(super) fn dir(dir: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(here(dir))
}

/// `dir`, which is where the process is if it has no name.
pub(super) fn here(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}

fn check(found: FileType) -> io::Result<()> {
    let what = match found {
        _ if found.is_file() => return Ok(()),
        _ if found.is_symlink() => "symbolic link",
        _ if found.is_dir() => "directory",
        _ if found.is_fifo() => "FIFO",
        _ if found.is_socket() => "socket",
        _ => "device",
    };
    let told = format!("expected a regular file, found a {what}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, told))
}

/// Whether `error` is one of [`check`].
fn is_other(error: &io::Error) -> bool {
    error.raw_os_error().is_none()
}
