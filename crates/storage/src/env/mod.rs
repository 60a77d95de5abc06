//! The only door to the operating system: files, directories, locks, free space and the clock.
//!
//! Everything else in the engine is computation. Three implementations pass one contract suite:
//! the real one, one in memory that can be cut like a power cord, and a wrapper that injects
//! faults into either.

mod common;
pub mod contract;
mod fault;
mod mem;
mod real;
#[cfg(test)]
mod tests;

pub use fault::{Effect, Fault, FaultEnv, Lasting, OpClass};
pub use mem::{Loss, MemEnv};
pub use real::RealEnv;

use bytes::Bytes;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What [`Env::punch`] gives back is in multiples of this many bytes, at multiples of it.
pub const PAGE_BYTES: u64 = 4096;

/// What the store asks of its surroundings.
///
/// A path that is opened, looked at or changed leads to a regular file, or that is an error: the
/// last name of it is never followed where it is a link, and nothing is waited for.
pub trait Env: Debug + Send + Sync + 'static {
    /// Creates `dir` and its parents; an existing directory is fine. What is made is for its owner
    /// alone, where there are owners.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// The names (not paths) of the files and directories in `dir`, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// The length of the file at `path` in bytes; `NotFound` where there is none.
    fn file_bytes(&self, path: &Path) -> io::Result<u64>;

    /// The bytes that the contents of the file at `path` take of its device: fewer than its length
    /// where holes were punched into it.
    fn held_bytes(&self, path: &Path) -> io::Result<u64> {
        self.file_bytes(path)
    }

    /// Gives a part of the file at `path` back to its device, also while it is open: it keeps its
    /// length, and reads as zeros there. `range` lies within the file and is of whole pages
    /// ([`PAGE_BYTES`]). After power loss the bytes may be there again. `Unsupported` where this
    /// cannot be done, in which case nothing is changed.
    fn punch(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        let _ = (path, range);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes the file at `path`.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Renames a file; an existing file at `to` is replaced in one step.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Does as [`punch`](Env::punch) for each of `ranges`, one after the other, up to the first
    /// that fails.
    fn punch_all(&self, path: &Path, ranges: &[Range<u64>]) -> io::Result<()> {
        ranges.iter().try_for_each(|range| self.punch(path, range.clone()))
    }

    /// Makes creations, removals and renames in `dir` survive power loss.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes the contents of the file at `path` survive power loss, whoever wrote them, also a
    /// process that is gone.
    fn sync_file(&self, path: &Path) -> io::Result<()>;

    /// Creates a file to be written from its start to its end; an existing one is an error.
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;

    /// Opens a file to be read at any offset.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>>;

    /// Creates a log file of `capacity` zero bytes with all of its space allocated, so that later
    /// appends cannot run out of room; an existing one is an error, no room is `StorageFull` and
    /// leaves no file.
    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>>;

    /// Takes the one lock of `dir`, given back when the value is dropped or the process ends;
    /// `WouldBlock` where another holds it, in this process or another.
    fn lock(&self, dir: &Path) -> io::Result<Box<dyn Debug + Send + Sync>>;

    /// Bytes still free on the device that holds `dir`.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;

    /// Time since an arbitrary moment, never going back. For statistics, pacing, and guesses at how
    /// long something takes, only.
    fn now(&self) -> Duration;
}

/// A file being written from its start to its end.
///
/// Bytes may wait in a buffer: what was not followed by [`sync`](WriteFile::sync) may be lost even
/// when the process lives on and drops the file. After an error every later call fails, because
/// nobody knows what the file holds.
pub trait WriteFile: Debug + Send {
    /// Appends all of `bytes`.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes what was written survive power loss (contents and length).
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that is read at any offset, by many threads.
pub trait ReadFile: Debug + Send + Sync {
    /// Fills `buffer` from `offset`; `UnexpectedEof` where the file ends earlier.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// The length of the file in bytes.
    fn bytes(&self) -> io::Result<u64>;

    /// Says that the bytes at `range`, which may reach beyond the end, will soon be looked at
    /// through the [map](ReadFile::map). Changes nothing but how long that takes.
    fn announce(&self, _range: Range<u64>) {}

    /// The bytes of the file as memory that is loaded where it is touched; `None` where this
    /// environment has no such thing. A device that fails later ends the process. What is punched
    /// out of the file turns to zeros here too: nobody may look at those bytes any more.
    fn map(&self) -> io::Result<Option<Bytes>> {
        Ok(None)
    }
}

/// How far a sync must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncReach {
    /// Contents, and what is needed to read them back.
    Data,
    /// Contents and all metadata.
    All,
}

/// A log file of fixed capacity whose space is allocated ahead. What `append` returned from
/// survives the death of the process; what `sync` returned from survives power loss too.
pub trait LogFile: Debug + Send + Sync {
    /// Stores `bytes` behind what was appended before. The first 8 bytes are stored after all
    /// the others and in one step, so that a process that dies in between leaves them zero. More
    /// than fits, or a length that is not a multiple of 8, is `InvalidInput` and stores nothing.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything appended before the call survive power loss. After an error nobody knows
    /// what is stored, also when a later call succeeds: append no more.
    fn sync(&self, reach: SyncReach) -> io::Result<()>;

    /// Bytes appended so far.
    fn bytes(&self) -> u64;

    /// Bytes that can be appended in all.
    fn capacity(&self) -> u64;

    /// Gives the unused room back: the file ends behind the last byte appended, its capacity is
    /// what it holds, and a later append finds no room. Before a sync of [`SyncReach::All`] power
    /// loss may undo it, which brings zeros back and costs no byte that was appended.
    /// `Unsupported` where this cannot be done, in which case nothing is changed.
    fn cut(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
