//! Code shared by the real environment and the one in memory.

use super::WriteFile;
use crate::system;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Component, Path, PathBuf};

/// The name of the lock file of a directory.
pub(super) const LOCK_FILE: &str = "LOCK";

/// The size of the write buffer. At this size a system call costs a small part of what copying the
/// bytes costs.
pub(super) const BUFFER_BYTES: usize = 256 << 10;

/// Returns a random number. The system draws the keys of the first hash of each thread, and each
/// later one has others. A child of this process inherits the keys, but has another process id.
pub(super) fn random() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(system::process_id()));
    (half() << 64 | half()) ^ drawn()
}

/// Returns a number that the system draws at each call. Encryption needs it: a salt that comes
/// twice gives two files the same key. Children whose process ids are alike, and copies of a
/// running machine, inherit all that was drawn before.
#[cfg(feature = "encryption")]
fn drawn() -> u128 {
    let drawn = ring::rand::generate::<[u8; 16]>(&ring::rand::SystemRandom::new());
    drawn.map_or(0, |drawn| u128::from_ne_bytes(drawn.expose()))
}

#[cfg(not(feature = "encryption"))]
fn drawn() -> u128 {
    0
}

/// The destination of the bytes of a [`Buffered`] file.
pub(super) trait Sink: Debug + Send {
    /// Appends all of `bytes` to the file.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Says that what will be written need not stay in the system's cache.
    fn set_uncached(&mut self) {}

    /// Makes all written bytes survive power loss.
    fn sync(&mut self) -> io::Result<()>;
}

/// Runs `step` on `file`, or fails if an earlier step failed or panicked, which `failed` tells.
pub(super) fn unless_failed<F>(
    file: &mut F,
    failed: impl Fn(&mut F) -> &mut bool,
    step: impl FnOnce(&mut F) -> io::Result<()>,
) -> io::Result<()> {
    if std::mem::replace(failed(file), true) {
        return Err(io::Error::other("an earlier write to this file failed"));
    }
    step(file)?;
    *failed(file) = false;
    Ok(())
}

/// A file that collects bytes in a buffer until it is full, or until a sync.
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

    /// Runs `step`, or fails if an earlier step failed.
    fn unless_failed(&mut self, step: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        unless_failed(self, |file| &mut file.failed, step)
    }

    fn pass_on(&mut self) -> io::Result<()> {
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
                file.pass_on()?;
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

    fn set_uncached(&mut self) {
        self.sink.set_uncached();
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_failed(Self::pass_on)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.unless_failed(|file| {
            file.pass_on()?;
            file.sink.sync()
        })
    }
}

/// Fails if a log of `capacity` bytes that holds `end` bytes cannot take `bytes` more.
pub(super) fn check_append(bytes: usize, end: u64, capacity: u64) -> io::Result<()> {
    let message = if !bytes.is_multiple_of(8) {
        format!("expected a multiple of 8 bytes to append to a log, found {bytes}")
    } else if bytes as u64 > capacity - end {
        format!("{bytes} bytes do not fit into a log with room for {}", capacity - end)
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Returns `path` without `.`, and without `..` where it has something to take back.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

/// Fails if `capacity` is zero.
pub(super) fn check_capacity(capacity: u64) -> io::Result<()> {
    match capacity {
        0 => Err(io::Error::new(io::ErrorKind::InvalidInput, "a log needs a capacity")),
        _ => Ok(()),
    }
}
