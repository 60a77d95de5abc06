//! Files whose operations fail by rules.

use super::class::{Effect, OpClass};
use super::rules::{Due, FaultRules};
use crate::env::common::unless_failed;
use crate::env::{LogFile, MemEnv, ReadFile, SyncReach, WriteFile};
use crate::sync::device_works;
use bytes::Bytes;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The contents of the buffer of a failed read.
const GARBAGE: u8 = 0xDB;

/// The context that all files share.
#[derive(Clone, Debug)]
pub(super) struct Around {
    pub(super) rules: Arc<FaultRules>,
    /// The disk of the file, if it is one in memory.
    pub(super) disk: Option<MemEnv>,
    pub(super) path: PathBuf,
}

impl Around {
    /// Runs `sync`, which syncs the contents of the file, unless a rule makes it fail.
    pub(super) fn sync(
        &self,
        class: OpClass,
        sync: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(Due { effect, error }) = self.rules.due(class, &self.path) else { return sync() };
        device_works();
        match (effect, &self.disk) {
            (Effect::Wholly, _) => drop(sync()),
            (Effect::Partly, Some(disk)) => drop(disk.drop_unsynced(&self.path, true, sync)),
            (Effect::Dropped, Some(disk)) => drop(disk.drop_unsynced(&self.path, false, sync)),
            _ => {}
        }
        Err(error)
    }

    fn check(&self, class: OpClass) -> io::Result<()> {
        self.rules.run_whole(class, &self.path, || Ok(()))
    }
}

#[derive(Debug)]
pub(super) struct FaultWrite {
    pub(super) inner: Box<dyn WriteFile>,
    pub(super) around: Around,
    pub(super) failed: bool,
}

impl FaultWrite {
    fn unless_failed(&mut self, step: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        unless_failed(self, |file| &mut file.failed, step)
    }
}

impl WriteFile for FaultWrite {
    fn set_uncached(&mut self) {
        self.inner.set_uncached();
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unless_failed(|file| {
            let Some(Due { effect, error }) =
                file.around.rules.due(OpClass::Write, &file.around.path)
            else {
                return file.inner.write_all(bytes);
            };
            let stored = match effect {
                Effect::Wholly => bytes.len(),
                Effect::Partly => bytes.len() / 2,
                _ => return Err(error),
            };
            // The sync stores the bytes now. They would stay in the buffer otherwise.
            let _ = file.inner.write_all(&bytes[..stored]).and_then(|()| file.inner.sync());
            Err(error)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_failed(|file| file.inner.flush())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.unless_failed(|file| file.around.sync(OpClass::Sync, || file.inner.sync()))
    }
}

#[derive(Debug)]
pub(super) struct FaultRead {
    pub(super) inner: Arc<dyn ReadFile>,
    pub(super) around: Around,
}

impl FaultRead {
    /// Calls `read` to fill `buffer`, unless a fault is due.
    fn unless_due(
        &self,
        buffer: &mut [u8],
        read: impl FnOnce(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(Due { effect, error }) = self.around.rules.due(OpClass::Read, &self.around.path)
        else {
            return read(buffer);
        };
        if effect == Effect::Partly {
            buffer.fill(GARBAGE);
        }
        Err(error)
    }
}

impl ReadFile for FaultRead {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.unless_due(buffer, |buffer| self.inner.read_exact_at(buffer, offset))
    }

    fn read_once_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.unless_due(buffer, |buffer| self.inner.read_once_at(buffer, offset))
    }

    fn bytes(&self) -> io::Result<u64> {
        self.around.check(OpClass::Measure)?;
        self.inner.bytes()
    }

    fn announce(&self, range: Range<u64>) {
        self.inner.announce(range);
    }

    fn map(&self) -> io::Result<Option<Bytes>> {
        self.around.check(OpClass::Map)?;
        self.inner.map()
    }

    fn release(&self) {
        self.inner.release();
    }
}

#[derive(Debug)]
pub(super) struct FaultLog {
    pub(super) inner: Box<dyn LogFile>,
    pub(super) around: Around,
}

impl FaultLog {
    fn run_whole(&self, class: OpClass, wholly: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.around.rules.run_whole(class, &self.around.path, wholly)
    }

    /// Stores half of the bytes behind the first 8. The caller must not append after an error, so
    /// no later append overwrites them.
    fn append_half(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stored = bytes.to_vec();
        let head = bytes.len().min(8);
        let half = head + (bytes.len() - head) / 2;
        stored[..head].fill(0);
        stored[half..].fill(0);
        self.inner.append(&stored)
    }
}

impl LogFile for FaultLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let wholly = || self.inner.append(bytes);
        self.around
            .rules
            .run(OpClass::Append, &self.around.path, wholly, || self.append_half(bytes))
    }

    fn sync(&self, reach: SyncReach) -> io::Result<()> {
        self.around.sync(OpClass::LogSync, || self.inner.sync(reach))
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn cut(&self) -> io::Result<()> {
        self.run_whole(OpClass::Cut, || self.inner.cut())
    }

    fn release(&self) {
        self.inner.release();
    }
}

/// Creates an incomplete log at `path`: half of its `capacity` (at most 1 MiB) as a plain file.
pub(super) fn create_half_log(
    create: impl FnOnce(&Path) -> io::Result<Box<dyn WriteFile>>,
    path: &Path,
    capacity: u64,
) -> io::Result<()> {
    let mut file = create(path)?;
    file.write_all(&vec![0; (capacity / 2).min(1 << 20) as usize])?;
    file.sync()
}
