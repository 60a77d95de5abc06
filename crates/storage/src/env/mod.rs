//! The only door to the operating system: files, directories, locks, free space and the clock.
//!
//! Everything else in the engine is computation. Four implementations pass one contract suite: the
//! real one, one in memory that can simulate power loss, a wrapper that injects faults into another
//! environment, and one that encrypts its files.

mod cipher;
mod common;
pub mod contract;
mod fault;
mod held;
mod mem;
mod real;
mod shortage;
mod space;
#[cfg(test)]
mod tests;

pub use cipher::CipherEnv;
pub use fault::{Effect, Fault, FaultEnv, Lasting, OpClass};
pub use held::HeldEnv;
pub use mem::{Loss, MemEnv};
pub use real::RealEnv;
pub use shortage::{KeepsOpen, close_when_short, is_too_many_files};
pub use space::Space;

use crate::cipher::{Keys, SALT_BYTES};
use bytes::Bytes;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// [`Env::punch`] frees whole pages of this many bytes, at multiples of it.
pub const PAGE_BYTES: u64 = 4096;

/// The operations that the store needs from the operating system.
///
/// A path that is opened, measured or changed must lead to a regular file; anything else is an
/// error. The last name of the path is never followed if it is a symbolic link. No call waits for
/// another process.
pub trait Env: Debug + Send + Sync + 'static {
    /// Creates `dir` and its missing parents; an existing directory is no error. New directories
    /// are for their owner only, if the system has owners.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Returns the names (not paths) of the files and directories in `dir`, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Returns the length of the file at `path` in bytes. Fails with `NotFound` if there is no
    /// file.
    fn file_bytes(&self, path: &Path) -> io::Result<u64>;

    /// Returns the bytes that the contents of the file at `path` take on its device. Holes punched
    /// into the file make them fewer than its length.
    fn held_bytes(&self, path: &Path) -> io::Result<u64> {
        self.file_bytes(path)
    }

    /// Frees the space of a part of the file at `path` on its device, also while the file is open.
    /// The file keeps its length, and reads as zeros in `range`, or as before within a page of
    /// either end. `range` lies within the file and consists of whole pages ([`PAGE_BYTES`]). After
    /// power loss the old bytes may be there again.
    /// Fails with `Unsupported`, and changes nothing, if this cannot be done.
    fn punch(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        let _ = (path, range);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes the file at `path`.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes the directory `dir`. Fails with `DirectoryNotEmpty`, and changes nothing, if it
    /// holds anything, and with `Unsupported` if this cannot be done.
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let _ = dir;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Renames a file. An existing file at `to` is replaced in one step.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives the file at `from` a second name, `to`. Fails if `to` exists. Fails with `Unsupported`
    /// or `CrossesDevices`, and changes nothing, if this cannot be done; callers then copy.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the number of names of the file at `path`, which [`link`](Env::link) adds to. Fails
    /// with `Unsupported` if this cannot be found out; callers then take it for more than one.
    fn link_count(&self, path: &Path) -> io::Result<u64> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Calls [`punch`](Env::punch) for each of `ranges` in order, up to the first that fails.
    fn punch_all(&self, path: &Path, ranges: &[Range<u64>]) -> io::Result<()> {
        ranges.iter().try_for_each(|range| self.punch(path, range.clone()))
    }

    /// Makes creations, links, removals and renames in `dir` survive power loss.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes the contents of the file at `path` survive power loss. They may have been written by
    /// any process, also one that has ended.
    fn sync_file(&self, path: &Path) -> io::Result<()>;

    /// Creates a file that is written from its start to its end. Fails if `path` exists.
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;

    /// Opens the file at `path` to be written on behind its first `at` bytes. What lies behind them
    /// is cut off; power loss before the next sync may bring it back. Fails with `UnexpectedEof` if
    /// the file is shorter, and with `Unsupported` if this cannot be done.
    fn append(&self, path: &Path, at: u64) -> io::Result<Box<dyn WriteFile>> {
        let _ = (path, at);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Opens a file that can be read at any offset.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>>;

    /// Creates a log file of `capacity` zero bytes and allocates all of its space, so that later
    /// appends cannot run out of room. Fails if `path` exists. Fails with `StorageFull`, and leaves
    /// no file, if there is no room.
    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>>;

    /// Creates a log file as [`create_log`](Env::create_log) does, for records of about
    /// `record_bytes` bytes that are seldom synced. 0 stands for all others. Affects only speed.
    fn create_log_for(
        &self,
        path: &Path,
        capacity: u64,
        record_bytes: u64,
    ) -> io::Result<Box<dyn LogFile>> {
        let _ = record_bytes;
        self.create_log(path, capacity)
    }

    /// Returns a path that leads to the same place as `path` wherever the process goes later.
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }

    /// Returns true if `path`, which need not exist, leads to the directory `dir` or into it, also
    /// through symbolic links if the environment has them.
    fn is_within(&self, path: &Path, dir: &Path) -> io::Result<bool> {
        Ok(common::plain(path).starts_with(common::plain(dir)))
    }

    /// Takes the one lock of `dir`, which is released when the value is dropped or the process
    /// ends, and holds the directory. Fails with `WouldBlock` if this process or another one holds
    /// the lock. A lock file of the directory may be removed while it is locked. The directory then
    /// stays locked, if the system can lock directories.
    fn lock(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>>;

    /// Holds `dir` without a lock.
    fn hold(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>>;

    /// Takes the one lock of the file at `path`, which is made empty if it is missing. The lock is
    /// released when the value is dropped or the process ends; the file stays. Fails with
    /// `WouldBlock` if this process or another one holds the lock, and with `Unsupported`, and
    /// changes nothing, if this cannot be done. Fails if the folder of the file is a symbolic link.
    /// While the lock is held, `path` leads to the locked
    /// file unless somebody removes it.
    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the number of free bytes on the device that holds `dir`.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;

    /// Returns a random number, another one for each call, process and machine. An environment for
    /// tests may return the same numbers in each run.
    fn random(&self) -> u128 {
        common::random()
    }

    /// Returns how the contents of files are encrypted, if they are. Logs ask it, because they
    /// encrypt their records themselves.
    fn encryption(&self) -> Option<&Encryption> {
        None
    }

    /// Returns the number of files that this process may have open at a time, or `None` if that is
    /// not limited or not known.
    fn open_files_max(&self) -> Option<u64> {
        None
    }

    /// Returns the bytes of memory that the control groups of this process leave to it, or `None`
    /// if that is not limited or not known.
    fn memory_max(&self) -> Option<u64> {
        None
    }

    /// Returns the bytes of memory that this process shares with the system's cache of its files,
    /// or `None` if that is not known.
    fn shared_memory(&self) -> Option<u64> {
        self.memory_max()
    }

    /// Returns the time since an arbitrary moment; it never goes back. Use it only for statistics,
    /// pacing, and estimates of how long something takes.
    fn now(&self) -> Duration;
}

/// How an environment encrypts: into which other one, and with which keys.
#[derive(Clone, Debug)]
pub struct Encryption {
    inner: Arc<dyn Env>,
    keys: Arc<Keys>,
}

impl Encryption {
    /// Returns the environment that has the encrypted files.
    pub fn inner(&self) -> &Arc<dyn Env> {
        &self.inner
    }

    /// Returns the keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the same keys for the files of `inner`.
    #[must_use]
    pub fn over(&self, inner: Arc<dyn Env>) -> Encryption {
        Encryption { inner, keys: Arc::clone(&self.keys) }
    }

    /// Returns a random salt.
    pub(crate) fn salt(&self) -> [u8; SALT_BYTES] {
        let mut salt = [0; SALT_BYTES];
        let (first, second) = salt.split_at_mut(SALT_BYTES / 2);
        first.copy_from_slice(&self.inner.random().to_le_bytes());
        second.copy_from_slice(&self.inner.random().to_le_bytes());
        salt
    }
}

/// A directory that is held: whatever happens to its path, it stays the same directory.
pub trait HeldDir: Debug + Send + Sync {
    /// Fails, and says what to do, if the path with which the directory was opened leads elsewhere
    /// now, or if the directory was locked and its lock file is not the locked one any more.
    fn check(&self) -> io::Result<()>;

    /// In a child of the process that opened the directory, forgets the directory without giving
    /// its lock back. The lock then ends with the parent.
    fn forget(&self) {}
}

/// A file that is written from its start, or from where an append begins, to its end.
///
/// Bytes may wait in a buffer. Bytes without a later [`sync`](WriteFile::sync) may be lost, even if
/// the process lives on and drops the file. After an error every later call fails, because the
/// contents of the file are then unknown.
pub trait WriteFile: Debug + Send {
    /// Appends all of `bytes`.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Says that what will be written need not stay in the system's cache. Affects only the speed
    /// of later reads, of this file and of others.
    fn set_uncached(&mut self) {}

    /// Makes all written bytes survive the death of the process, and shows them to readers. An
    /// environment that cannot tell this from a sync syncs.
    fn flush(&mut self) -> io::Result<()> {
        self.sync()
    }

    /// Makes all written bytes and the length survive power loss.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that many threads may read at any offset.
pub trait ReadFile: Debug + Send + Sync {
    /// Fills `buffer` from `offset` on. Fails with `UnexpectedEof` if the file ends earlier.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Like [`read_exact_at`](ReadFile::read_exact_at), for bytes that nobody will read again soon.
    /// So the system need not keep them in its cache, where others would have to go for them.
    fn read_once_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    /// Returns the length of the file in bytes.
    fn bytes(&self) -> io::Result<u64>;

    /// Announces that the bytes at `range` will soon be read, through the [map](ReadFile::map) if
    /// there is one. `range` may reach beyond the end of the file. Affects only the speed of those
    /// reads.
    fn announce(&self, _range: Range<u64>) {}

    /// Returns the file as memory that the system loads on access, or `None` if this environment
    /// has no maps. If the device fails during such a load, the process ends. Holes punched into
    /// the file turn to zeros here too, so no caller may still read those bytes.
    fn map(&self) -> io::Result<Option<Bytes>> {
        Ok(None)
    }

    /// Closes the descriptor of the file, because a process may have few. Maps stay. A later call
    /// that needs a descriptor opens the file again by its path, and fails if the path does not
    /// lead to the file any more.
    fn release(&self) {}
}

/// Says how much a sync makes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncReach {
    /// The contents, and the metadata needed to read them back.
    Data,
    /// The contents and all metadata.
    All,
}

/// A log file of fixed capacity whose space is allocated in advance. Bytes survive the death of the
/// process once `append` has returned, and power loss once `sync` has returned.
pub trait LogFile: Debug + Send + Sync {
    /// Stores `bytes` behind the bytes appended before. The first 8 bytes are stored last and in
    /// one step, so that they stay zero if the process dies before that. Fails with `InvalidInput`,
    /// and stores nothing, if `bytes` do not fit or their length is not a multiple of 8.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Makes all bytes appended before the call survive power loss. After an error it is unknown
    /// what is stored, also if a later sync succeeds. The caller must then append no more.
    fn sync(&self, reach: SyncReach) -> io::Result<()>;

    /// Returns the number of bytes appended so far.
    fn bytes(&self) -> u64;

    /// Returns the number of bytes that can be appended in total.
    fn capacity(&self) -> u64;

    /// Frees the unused room: the file ends behind the last byte appended, the capacity equals the
    /// length, and a later append finds no room. Before a sync with [`SyncReach::All`], power loss
    /// may undo the cut. Then zeros come back behind the appended bytes, which all stay. Fails with
    /// `Unsupported`, and changes nothing, if this cannot be done.
    fn cut(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Frees what only appends and cuts need, such as a descriptor of the file, because a process
    /// may have few. The caller does not append or cut any more. Syncs still work.
    fn release(&self) {}
}
