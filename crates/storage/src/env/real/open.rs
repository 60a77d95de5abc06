//! Opens the files of a store: regular files only, never through a link, for their owner only.
//!
//! Any user who can write to the directory can put anything under a name of the store. Opening a
//! FIFO normally waits until another process opens its other end. So files are opened without
//! waiting, and their type is checked afterwards.

use crate::env::shortage::{explained, open_again};
use crate::system;
use std::fs::{self, File, FileType, OpenOptions};
use std::io;
use std::path::{self, Component, Path, PathBuf};

/// Opens the regular file at `path` with `options`.
pub(super) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let options = system::private(options);
    match opened(|| options.open(path)) {
        Ok(file) => {
            check(file.metadata()?.file_type())?;
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // The system reports a different error for each kind of file that is not regular.
        Err(error) => Err(metadata(path).err().filter(is_other).unwrap_or(error)),
    }
}

/// Returns the metadata of the regular file at `path`.
pub(super) fn metadata(path: &Path) -> io::Result<fs::Metadata> {
    let found = fs::symlink_metadata(path)?;
    check(found.file_type())?;
    Ok(found)
}

/// Opens `dir` for a sync. A link may lead there, because the user chose the directory of the
/// store.
pub(super) fn dir(dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = system::for_dir(options.read(true));
    opened(|| options.open(here(dir)))
}

/// Returns the number of files that this process may have open at a time.
pub(super) fn files_max() -> Option<u64> {
    system::files_max()
}

/// Calls `open`, which opens a file. If too many files are open, makes room and tries again. The
/// error then names the limit and the way out.
pub(super) fn opened<T>(open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    open_again(open).map_err(|error| explained(error, files_max()))
}

/// Fails if `folder` is a symbolic link.
pub(super) fn check_folder(folder: &Path) -> io::Result<()> {
    if fs::symlink_metadata(here(folder))?.file_type().is_symlink() {
        let message = "expected a directory, found a symbolic link";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}

/// Returns true if `path`, which need not exist, leads to the directory `dir` or into it, through
/// links and mounts too.
pub(super) fn is_within(path: &Path, dir: &Path) -> io::Result<bool> {
    // A directory that is missing is an error.
    system::id_at(here(dir))?;
    // What does not exist yet is a directory that is made there.
    let mut there = PathBuf::new();
    for component in path::absolute(here(path))?.components() {
        match component {
            Component::ParentDir => drop(there.pop()),
            component => there.push(component),
        }
        there = fs::canonicalize(&there).unwrap_or(there);
    }
    Ok(there.ancestors().any(|place| system::is_same(place, here(dir)).is_ok_and(|same| same)))
}

/// Returns `dir`, or the current directory if the path is empty.
pub(super) fn here(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}

fn check(found: FileType) -> io::Result<()> {
    let what = match found {
        _ if found.is_file() => return Ok(()),
        _ if found.is_symlink() => "symbolic link",
        _ if found.is_dir() => "directory",
        _ => system::other_kind(found),
    };
    let message = format!("expected a regular file, found a {what}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Returns true if [`check`] made `error`.
fn is_other(error: &io::Error) -> bool {
    error.raw_os_error().is_none()
}
