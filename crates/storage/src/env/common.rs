//! What the real environment and the one in memory have in common.

use super::WriteFile;
use std::fmt::Debug;
use std::io;

/// The file in a directory that stands for the directory's lock.
pub(super) const LOCK_FILE: &str = "LOCK";

/// Bytes gathered before they are handed to the system: one call then costs a small part of what
/// copying this much costs.
pub(super) const BUFFER_BYTES: usize = 256 << 10;

/// Where a [`Buffered`] file puts its bytes.
pub(super) trait Sink: Debug + Send {
    /// Appends all of `bytes` to the file.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything written survive power loss.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file whose bytes wait in a buffer until there are many of them, or until a sync.
#[derive(Debug)]
pub(super) struct Buffered<S> {
    sink: S,
    waiting: Vec<u8>,
    failed: bool,
}

impl<S: Sink> Buffered<S> {
    pub(super) fn new(sink: S) -> Buffered<S> {
        Buffered { sink, waiting: Vec::new(), failed: false }
    }

    /// Runs `step`, after whose first failure no other step is run.
    fn unless_failed(&mut self, step: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("an earlier write to this file failed"));
        }
        let result = step(self);
        self.failed = result.is_err();
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.sink.write(&self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }
}

impl<S: Sink> WriteFile for Buffered<S> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unless_failed(|file| {
            if file.waiting.len() + bytes.len() > BUFFER_BYTES {
                file.flush()?;
            }
            if bytes.len() >= BUFFER_BYTES {
                return file.sink.write(bytes);
            }
            if file.waiting.capacity() == 0 {
                file.waiting.reserve_exact(BUFFER_BYTES);
            }
            file.waiting.extend_from_slice(bytes);
            Ok(())
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.unless_failed(|file| {
            file.flush()?;
            file.sink.sync()
        })
    }
}

/// Whether a log of `capacity` bytes that holds `end` bytes takes `bytes` more.
pub(super) fn check_append(bytes: usize, end: u64, capacity: u64) -> io::Result<()> {
    let told = if !bytes.is_multiple_of(8) {
        "log appends are multiples of 8 bytes"
    } else if bytes as u64 > capacity - end {
        "more than fits into the log"
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, told))
}

/// A log without room cannot be made.
pub(super) fn check_capacity(capacity: u64) -> io::Result<()> {
    match capacity {
        0 => Err(io::Error::new(io::ErrorKind::InvalidInput, "a log needs a capacity")),
        _ => Ok(()),
    }
}
