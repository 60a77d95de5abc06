//! Files in memory, on a disk that can be cut from its power.

mod crash;
mod disk;
mod node;

use super::common::{Buffered, LOCK_FILE, Sink, check_append, check_capacity};
use super::{Env, LogFile, ReadFile, SyncReach, WriteFile};
use crash::Dice;
use disk::Disk;
use node::{FileNode, NodeId};
use parking_lot::RwLock;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A disk in memory, which knows what is synced and what is not.
///
/// Clones share one disk. A path is taken from the root whether it starts with `/` or not. The
/// copies that [`crash_clone`](MemEnv::crash_clone) and
/// [`process_crash_clone`](MemEnv::process_crash_clone) make are disks of their own, taken at one
/// moment, also while other threads write.
///
/// # Examples
///
/// ```
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
    start: Instant,
    punches: bool,
}

impl MemEnv {
    /// An empty disk without limit.
    pub fn new() -> MemEnv {
        MemEnv::with_capacity(u64::MAX)
    }

    /// An empty disk that holds at most `capacity` bytes of file contents. The write that meets
    /// the limit fails with `StorageFull`, and its first bytes may be stored.
    pub fn with_capacity(capacity: u64) -> MemEnv {
        MemEnv::of(Disk::new(capacity))
    }

    fn of(disk: Disk) -> MemEnv {
        MemEnv { disk: Arc::new(RwLock::new(disk)), start: Instant::now(), punches: true }
    }

    /// The same disk for who cannot punch holes into files.
    #[must_use]
    pub fn without_punching(mut self) -> MemEnv {
        self.punches = false;
        self
    }

    /// What a machine finds after losing power now.
    ///
    /// All that was synced is there. Of the rest, every part survives with probability `keep`
    /// (0 to 1), whatever happens to the others: each 512-byte sector of a log, each 4 KiB page
    /// of another file, each length, each creation, removal and rename (a rename happened as a
    /// whole or not at all; across directories, its two halves are apart). Parts that did not
    /// survive read as zeros. A sector of a log may also have been stored between two appends.
    /// Equal seeds on equal disks give equal results.
    #[must_use]
    pub fn crash_clone(&self, seed: u64, keep: f64) -> MemEnv {
        let disk = self.disk.read().after_power_loss(Dice::new(seed, keep));
        MemEnv { punches: self.punches, ..MemEnv::of(disk) }
    }

    /// What the next process finds after this one was killed now: everything that was written,
    /// appends to logs included, but not what still waits in the buffer of a file being written;
    /// and no locks.
    #[must_use]
    pub fn process_crash_clone(&self) -> MemEnv {
        MemEnv { punches: self.punches, ..MemEnv::of(self.disk.read().after_process_death()) }
    }

    /// Damages the file at `path`: turns over the bits of `mask` in the byte at `offset`.
    ///
    /// # Errors
    ///
    /// `NotFound` where there is no such file, `UnexpectedEof` where it ends earlier.
    pub fn flip(&self, path: &Path, offset: u64, mask: u8) -> io::Result<()> {
        self.disk.write().change(path, |file| file.flip(offset, mask))
    }

    /// Damages the file at `path`: cuts it to its first `bytes` bytes; a shorter file stays.
    ///
    /// # Errors
    ///
    /// `NotFound` where there is no such file.
    pub fn truncate(&self, path: &Path, bytes: u64) -> io::Result<()> {
        self.disk.write().change(path, |file| {
            file.truncate(bytes);
            Ok(())
        })
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
        self.disk.write().change(path, |file| file.punch(range))
    }

    fn truncate(&self, path: &Path, bytes: u64) -> io::Result<()> {
        self.disk.write().change(path, |file| {
            file.shorten(bytes);
            Ok(())
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.write().remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.write().rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.write().sync_dir(dir)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.disk.write().change(path, |file| {
            file.sync();
            Ok(())
        })
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let id = self.disk.write().create(path, FileNode::written())?;
        Ok(Box::new(Buffered::new(MemSink(self.handle(id)))))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let id = self.disk.write().open(path)?;
        Ok(Arc::new(MemRead(self.handle(id))))
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        check_capacity(capacity)?;
        let id = self.disk.write().create(path, FileNode::log(capacity))?;
        Ok(Box::new(MemLog(self.handle(id))))
    }

    fn lock(&self, dir: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        let id = self.disk.write().lock(dir, LOCK_FILE)?;
        Ok(Box::new(MemLock(self.handle(id))))
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        let disk = self.disk.read();
        disk.find_dir(dir)?;
        Ok(disk.free_bytes())
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Keeps a node of the disk alive, also when no name leads to it any more.
#[derive(Debug)]
struct Handle {
    disk: Arc<RwLock<Disk>>,
    id: NodeId,
}

#[derive(Debug)]
struct MemSink(Handle);

impl Sink for MemSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.disk.write().write(self.0.id, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.disk.write().file_mut(self.0.id).sync();
        Ok(())
    }
}

impl Drop for MemSink {
    fn drop(&mut self) {
        self.0.disk.write().close(self.0.id);
    }
}

#[derive(Debug)]
struct MemRead(Handle);

impl ReadFile for MemRead {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.disk.read().file(self.0.id).read_exact_at(buffer, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.disk.read().file(self.0.id).length)
    }
}

impl Drop for MemRead {
    fn drop(&mut self) {
        self.0.disk.write().close(self.0.id);
    }
}

#[derive(Debug)]
struct MemLog(Handle);

impl LogFile for MemLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.0.disk.write();
        let file = disk.file_mut(self.0.id);
        check_append(bytes.len(), file.end, file.length)?;
        file.append(bytes);
        Ok(())
    }

    fn sync(&self, reach: SyncReach) -> io::Result<()> {
        let mut disk = self.0.disk.write();
        let file = disk.file_mut(self.0.id);
        match reach {
            SyncReach::Data => file.sync_data(),
            SyncReach::All => file.sync(),
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.0.disk.read().file(self.0.id).end
    }

    fn capacity(&self) -> u64 {
        self.0.disk.read().file(self.0.id).length
    }

    fn cut(&self) -> io::Result<()> {
        let mut disk = self.0.disk.write();
        disk.change_open(self.0.id, |file| {
            file.shorten(file.end);
            Ok(())
        })
    }
}

impl Drop for MemLog {
    fn drop(&mut self) {
        self.0.disk.write().close(self.0.id);
    }
}

#[derive(Debug)]
struct MemLock(Handle);

impl Drop for MemLock {
    fn drop(&mut self) {
        self.0.disk.write().unlock(self.0.id);
    }
}
