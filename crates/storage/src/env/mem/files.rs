//! Open files on the disk in memory.

use super::disk::Disk;
use super::node::NodeId;
use crate::env::common::{Sink, check_append};
use crate::env::{HeldDir, LogFile, ReadFile, SyncReach};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{RwLock, device_works};
use bytes::Bytes;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Keeps a node of the disk alive, also if no name leads to it any more.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) disk: Arc<RwLock<Disk>>,
    pub(super) id: NodeId,
}

#[derive(Debug)]
pub(super) struct MemSink(pub(super) Handle);

impl Sink for MemSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.disk.write().write(self.0.id, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        device_works();
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
pub(super) struct MemRead {
    pub(super) handle: Handle,
    pub(super) maps: bool,
}

impl ReadFile for MemRead {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.handle.disk.read().file(self.handle.id).read_exact_at(buffer, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.handle.disk.read().file(self.handle.id).length)
    }

    fn map(&self) -> io::Result<Option<Bytes>> {
        let map = || self.handle.disk.write().file_mut(self.handle.id).map();
        Ok(self.maps.then(map))
    }
}

impl Drop for MemRead {
    fn drop(&mut self) {
        self.handle.disk.write().close(self.handle.id);
    }
}

#[derive(Debug)]
pub(super) struct MemLog {
    handle: Handle,
    /// The length of the file, read often. Changed only while the disk is locked.
    capacity: AtomicU64,
}

impl MemLog {
    pub(super) fn new(handle: Handle, capacity: u64) -> MemLog {
        MemLog { handle, capacity: AtomicU64::new(capacity) }
    }
}

impl LogFile for MemLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.handle.disk.write();
        let file = disk.file(self.handle.id);
        check_append(bytes.len(), file.end, file.length)?;
        disk.append(self.handle.id, bytes);
        Ok(())
    }

    fn sync(&self, reach: SyncReach) -> io::Result<()> {
        device_works();
        let mut disk = self.handle.disk.write();
        let file = disk.file_mut(self.handle.id);
        match reach {
            SyncReach::Data => file.sync_data(),
            SyncReach::All => file.sync(),
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.handle.disk.read().file(self.handle.id).end
    }

    fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    fn cut(&self) -> io::Result<()> {
        let mut disk = self.handle.disk.write();
        disk.change_open(self.handle.id, |file, at| {
            file.shorten(file.end, at);
            self.capacity.store(file.length, Ordering::Relaxed);
            Ok(())
        })
    }
}

impl Drop for MemLog {
    fn drop(&mut self) {
        self.handle.disk.write().close(self.handle.id);
    }
}

#[derive(Debug)]
pub(super) struct MemLock(pub(super) Handle);

impl Drop for MemLock {
    fn drop(&mut self) {
        self.0.disk.write().unlock(self.0.id);
    }
}

/// A locked directory, whose lock file `id` is at `path`.
#[derive(Debug)]
pub(super) struct MemDir {
    pub(super) lock: MemLock,
    pub(super) path: PathBuf,
    pub(super) id: NodeId,
}

impl HeldDir for MemDir {
    fn check(&self) -> io::Result<()> {
        let found = self.lock.0.disk.read().find_file(&self.path);
        if found.is_ok_and(|found| found == self.id) {
            return Ok(());
        }
        let path = self.path.display();
        Err(io::Error::other(format!("{path} was removed or replaced while it was locked")))
    }
}

/// A directory that is not locked.
#[derive(Debug)]
pub(super) struct StillDir;

impl HeldDir for StillDir {
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}
