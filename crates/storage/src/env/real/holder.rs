//! Who holds the lock of a directory: a line in the file of the lock, for people.
//!
//! The lock itself is the system's. The line of a process that has died stays, and says nothing.

use super::open;
use crate::system;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// The most bytes of the line that are read.
const LINE_BYTES_MAX: usize = 256;

/// The most characters of the line.
const LINE_CHARS_MAX: usize = 60;

/// Returns the line of this process.
fn line() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(Path::file_name).unwrap_or_default();
    let line = format!("process {} ({})", system::process_id(), name.to_string_lossy());
    line.chars().take(LINE_CHARS_MAX).collect()
}

/// Writes into `file`, the file of a lock that this process has taken, who holds it.
pub(super) fn note(file: &File) {
    let written =
        file.set_len(0).and_then(|()| system::write_all_at(file, (line() + "\n").as_bytes(), 0));
    if let Err(error) = written {
        tracing::warn!(%error, "cannot write down who holds the lock");
    }
}

/// Returns `error`, which says that the lock at `path` could not be taken, with the holder of the
/// lock as its message, if that is known.
pub(super) fn of(path: &Path, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::WouldBlock {
        return error;
    }
    let mut bytes = [0; LINE_BYTES_MAX];
    let file = open::open(OpenOptions::new().read(true), path);
    let read = file.and_then(|file| system::read_at(&file, &mut bytes, 0)).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..read]);
    match text.lines().next().filter(|line| line.starts_with("process ")) {
        Some(holder) if holder == line() => {
            io::Error::new(error.kind(), format!("{holder}, this one"))
        }
        Some(holder) => io::Error::new(error.kind(), holder.to_string()),
        None => error,
    }
}
