//! The real file system without syncs.

use lsmith::env::{Env, LogFile, ReadFile, RealEnv, SyncReach, WriteFile};
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that an unfinished file buffers before it writes them.
const BUFFER_BYTES: usize = 256 << 10;

/// The files of this machine, never synced: for stores that are removed after a measurement. Bytes,
/// files and system calls are those of [`RealEnv`]. Only the wait for the device after each of
/// thousands of small merges is missing. Missing files are still reported as missing.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::reproduce) struct Unsynced {
    real: RealEnv,
}

impl Env for Unsynced {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.real.create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.real.list(dir)
    }

    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        self.real.file_bytes(path)
    }

    fn held_bytes(&self, path: &Path) -> io::Result<u64> {
        self.real.held_bytes(path)
    }

    fn punch(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        self.real.punch(path, range)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.real.remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        std::fs::metadata(dir).map(drop)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.real.file_bytes(path).map(drop)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let file = File::options().write(true).create_new(true).open(path)?;
        Ok(Box::new(UnsyncedFile(BufWriter::with_capacity(BUFFER_BYTES, file))))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.real.open(path)
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(UnsyncedLog(self.real.create_log(path, capacity)?)))
    }

    fn lock(&self, dir: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        self.real.lock(dir)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.real.free_bytes(dir)
    }

    fn now(&self) -> Duration {
        self.real.now()
    }
}

#[derive(Debug)]
struct UnsyncedFile(BufWriter<File>);

impl WriteFile for UnsyncedFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[derive(Debug)]
struct UnsyncedLog(Box<dyn LogFile>);

impl LogFile for UnsyncedLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes)
    }

    fn sync(&self, _: SyncReach) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn capacity(&self) -> u64 {
        self.0.capacity()
    }

    fn cut(&self) -> io::Result<()> {
        self.0.cut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_every_promise_but_power_loss() {
        let dir = tempfile::tempdir().unwrap();
        lsmith::env::contract::check(&Unsynced::default(), &dir.path().join("new"));
    }
}
