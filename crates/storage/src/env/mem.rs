//! Files in memory, on a disk that can lose its power.

mod crash;
mod disk;
mod files;
mod loss;
mod map;
mod node;

pub use loss::Loss;

use super::common::{Buffered, LOCK_FILE, check_capacity};
use super::{Env, HeldDir, LogFile, ReadFile, WriteFile};
use crate::sync::{Clock, RwLock};
use disk::Disk;
use files::{Handle, MemDir, MemLock, MemLog, MemRead, MemSink, StillDir};
use node::{FileNode, NodeId};
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A disk in memory, which knows what is synced and what is not.
///
/// Clones share one disk. A path starts at the root, with or without a leading `/`.
/// [`power_loss`](MemEnv::power_loss) and [`process_crash_clone`](MemEnv::process_crash_clone) make
/// independent copies of one moment, also while other threads write.
///
/// Files can be mapped. A map is a copy of the file at that moment. Where a hole is punched later,
/// the map turns to garbage, so that a test notices readers of the hole.
///
/// # Examples
///
/// ```
/// # use lsmith_storage as lsmith;
/// use lsmith::env::{Env, MemEnv};
/// use std::path::Path;
///
/// let env = MemEnv::new();
/// let path = Path::new("/greeting");
/// let mut file = env.create(path)?;
/// file.write_all(b"hello")?;
/// file.sync()?;
/// env.sync_dir(Path::new("/"))?;
/// file.write_all(b" world")?;
///
/// let after_power_loss = env.crash_clone(1, 0.5);
/// assert_eq!(after_power_loss.file_bytes(path)?, 5);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemEnv {
    disk: Arc<RwLock<Disk>>,
    start: Clock,
    punches: bool,
    maps: bool,
}

impl MemEnv {
    /// Creates an empty disk without limit.
    pub fn new() -> MemEnv {
        MemEnv::with_capacity(u64::MAX)
    }

    /// Creates an empty disk that holds at most `capacity` bytes of file contents. The write that
    /// meets the limit fails with `StorageFull`, and its first bytes may be stored.
    pub fn with_capacity(capacity: u64) -> MemEnv {
        MemEnv::of(Disk::new(capacity))
    }

    fn of(disk: Disk) -> MemEnv {
        let disk = Arc::new(RwLock::new(disk));
        MemEnv { disk, start: Clock::start(), punches: true, maps: true }
    }

    /// Returns an environment for `disk` with the abilities of this one.
    fn like(&self, disk: Disk) -> MemEnv {
        MemEnv { punches: self.punches, maps: self.maps, ..MemEnv::of(disk) }
    }

    /// Returns the same disk, unable to punch holes into files.
    #[must_use]
    pub fn without_punching(mut self) -> MemEnv {
        self.punches = false;
        self
    }

    /// Returns the same disk, unable to map files.
    #[must_use]
    pub fn unmapped(mut self) -> MemEnv {
        self.maps = false;
        self
    }

    /// Returns the disk that a machine finds after losing power now, where each change that is not
    /// synced survives with probability `keep`: [`Loss::Parts`].
    #[must_use]
    pub fn crash_clone(&self, seed: u64, keep: f64) -> MemEnv {
        self.power_loss(seed, Loss::Parts { keep })
    }

    /// Returns the disk that a machine finds after losing power now: everything that was synced,
    /// and of the rest what `loss` leaves. Random choices come from `seed`: equal seeds on equal
    /// disks give equal results.
    #[must_use]
    pub fn power_loss(&self, seed: u64, loss: Loss) -> MemEnv {
        self.like(self.disk.read().after_power_loss(seed, loss))
    }

    /// Returns the disk that the next process finds if this one is killed now. It has everything
    /// that was written, appends to logs included. It lacks bytes that wait in the buffer of a file
    /// being written, and it has no locks.
    #[must_use]
    pub fn process_crash_clone(&self) -> MemEnv {
        self.like(self.disk.read().after_process_death())
    }

    /// Damages the file at `path`: flips the bits of `mask` in the byte at `offset`.
    ///
    /// # Errors
    ///
    /// Fails with `NotFound` if there is no such file, and with `UnexpectedEof` if it ends earlier.
    pub fn flip(&self, path: &Path, offset: u64, mask: u8) -> io::Result<()> {
        self.disk.write().change(path, |file, _| file.flip(offset, mask))
    }

    /// Damages the file at `path`: cuts it to its first `bytes` bytes. A shorter file stays as it
    /// is.
    ///
    /// # Errors
    ///
    /// Fails with `NotFound` if there is no such file.
    pub fn truncate(&self, path: &Path, bytes: u64) -> io::Result<()> {
        self.disk.write().change(path, |file, _| {
            file.truncate(bytes);
            Ok(())
        })
    }

    /// Runs `sync`, a sync of the file at `path`, and then forgets its effect: the device never
    /// takes the bytes written since the previous sync, or takes only the first half of them. Reads
    /// still return the bytes, and later syncs report no error.
    pub(super) fn drop_unsynced(
        &self,
        path: &Path,
        half: bool,
        sync: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let (id, synced) = {
            let disk = self.disk.read();
            let id = disk.find_file(path)?;
            (id, disk.file(id).synced)
        };
        sync()?;
        let mut disk = self.disk.write();
        if disk.find_file(path)? == id {
            disk.file_mut(id).drop_unsynced(synced, half);
        }
        Ok(())
    }

    /// Makes the older half of the unsynced changes of names in `dir` survive.
    pub(super) fn sync_half_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.write().sync_half_dir(dir)
    }

    fn handle(&self, id: NodeId) -> Handle {
        Handle { disk: Arc::clone(&self.disk), id }
    }
}

impl Default for MemEnv {
    fn default() -> MemEnv {
        MemEnv::new()
    }
}

impl Env for MemEnv {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.write().create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.read().list(dir)
    }

    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        let disk = self.disk.read();
        Ok(disk.file(disk.find_file(path)?).length)
    }

    fn held_bytes(&self, path: &Path) -> io::Result<u64> {
        let disk = self.disk.read();
        Ok(disk.file(disk.find_file(path)?).held_bytes())
    }

    fn punch(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        if !self.punches {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.disk.write().change(path, |file, at| file.punch(range, at))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.write().remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.write().remove_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.write().rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.write().link(from, to)
    }

    fn link_count(&self, path: &Path) -> io::Result<u64> {
        let disk = self.disk.read();
        Ok(disk.file(disk.find_file(path)?).links as u64)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.write().sync_dir(dir)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.disk.write().change(path, |file, _| {
            file.sync();
            Ok(())
        })
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let id = self.disk.write().create(path, FileNode::new_file())?;
        Ok(Box::new(Buffered::new(MemSink(self.handle(id)))))
    }

    fn append(&self, path: &Path, at: u64) -> io::Result<Box<dyn WriteFile>> {
        let mut disk = self.disk.write();
        disk.change(path, |file, moment| match file.length < at {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => {
                file.shorten(at, moment);
                Ok(())
            }
        })?;
        let id = disk.open(path)?;
        drop(disk);
        Ok(Box::new(Buffered::new(MemSink(self.handle(id)))))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let id = self.disk.write().open(path)?;
        Ok(Arc::new(MemRead { handle: self.handle(id), maps: self.maps }))
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        check_capacity(capacity)?;
        let id = self.disk.write().create(path, FileNode::new_log(capacity))?;
        Ok(Box::new(MemLog::new(self.handle(id), capacity)))
    }

    fn lock(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        let (id, lock) = self.disk.write().lock(dir, LOCK_FILE)?;
        let path = dir.join(LOCK_FILE);
        Ok(Arc::new(MemDir { lock: MemLock(self.handle(id)), path, id: lock }))
    }

    /// A directory in memory cannot move.
    fn hold(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        self.disk.read().find_dir(dir)?;
        Ok(Arc::new(StillDir))
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        let id = self.disk.write().lock_file(path)?;
        Ok(Box::new(MemLock(self.handle(id))))
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        let disk = self.disk.read();
        disk.find_dir(dir)?;
        Ok(disk.free_bytes())
    }

    /// The numbers follow from how many were drawn before.
    fn random(&self) -> u128 {
        self.disk.write().random()
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}
