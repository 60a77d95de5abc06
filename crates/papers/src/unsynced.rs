//! The real file system without syncs.

use lsmith::env::{Env, HeldDir, LogFile, ReadFile, RealEnv, SyncReach, WriteFile};
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Bytes that an unfinished file buffers before it writes them.
const BUFFER_BYTES: usize = 256 << 10;

/// The files of this machine, never synced: for stores that are removed after a measurement. It
/// makes the same bytes, files and system calls as [`RealEnv`]. Only the wait for the device after
/// each of thousands of small merges is missing. Missing files are still reported as missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsynced {
    real: RealEnv,
    /// What all writes wait for, if anything.
    device: Option<Arc<Device>>,
    /// Counts reads, if given. Files are then not mapped.
    reads: Option<Arc<ReadCount>>,
}

/// How often files were read.
#[derive(Debug, Default)]
pub(crate) struct ReadCount(AtomicU64);

impl ReadCount {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Unsynced {
    /// Returns files that are read by calls, which `reads` counts.
    pub(crate) fn counting(reads: &Arc<ReadCount>) -> Unsynced {
        Unsynced { reads: Some(Arc::clone(reads)), ..Unsynced::default() }
    }

    /// Returns files whose writes wait for `device`, which takes one at a time.
    pub(crate) fn on(device: &Arc<Device>) -> Unsynced {
        Unsynced { device: Some(Arc::clone(device)), ..Unsynced::default() }
    }

    /// Returns `file`, to be written from where it stands.
    fn written(&self, file: File) -> Box<dyn WriteFile> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Box::new(UnsyncedFile { file, device: self.device.clone() })
    }
}

/// A device that takes so many bytes per second.
#[derive(Debug)]
pub(crate) struct Device {
    bytes_per_s: f64,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    /// When the device has taken everything that was given to it.
    done_at: Instant,
    bytes: u64,
}

/// A writer waits when the device has so much to do. It must not become idle while a writer that
/// has slept long enough waits for a processor.
const QUEUE_MAX: Duration = Duration::from_millis(50);

impl Device {
    /// Returns a device that takes `bytes_per_s` bytes per second.
    pub(crate) fn new(bytes_per_s: f64) -> Arc<Device> {
        let queue = Queue { done_at: Instant::now(), bytes: 0 };
        Arc::new(Device { bytes_per_s, queue: Mutex::new(queue) })
    }

    /// Returns the bytes that were written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.queue.lock().expect("no one panics while holding it").bytes
    }

    /// Waits until the device has taken everything.
    pub(crate) fn drain(&self) {
        let done_at = self.queue.lock().expect("no one panics while holding it").done_at;
        std::thread::sleep(done_at.saturating_duration_since(Instant::now()));
    }

    /// Writes `bytes` behind all that was written before. Waits while the queue is too long.
    fn write(&self, bytes: usize) {
        let done_at = {
            let mut queue = self.queue.lock().expect("no one panics while holding it");
            let taken = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s);
            queue.done_at = queue.done_at.max(Instant::now()) + taken;
            queue.bytes += bytes as u64;
            queue.done_at
        };
        let queued = done_at.saturating_duration_since(Instant::now());
        if queued > QUEUE_MAX {
            std::thread::sleep(queued - QUEUE_MAX);
        }
    }
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

    fn link_count(&self, path: &Path) -> io::Result<u64> {
        self.real.link_count(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        std::fs::metadata(dir).map(drop)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.real.file_bytes(path).map(drop)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let file = File::options().write(true).create_new(true).open(path)?;
        Ok(self.written(file))
    }

    fn append(&self, path: &Path, at: u64) -> io::Result<Box<dyn WriteFile>> {
        let mut file = File::options().write(true).open(path)?;
        if file.metadata()?.len() < at {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.set_len(at)?;
        file.seek(SeekFrom::Start(at))?;
        Ok(self.written(file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = self.real.open(path)?;
        Ok(match &self.reads {
            Some(reads) => Arc::new(CountedFile { file, reads: Arc::clone(reads) }),
            None => file,
        })
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        let log = self.real.create_log(path, capacity)?;
        Ok(Box::new(UnsyncedLog { log, device: self.device.clone() }))
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        self.real.absolute(path)
    }

    fn lock(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        self.real.lock(dir)
    }

    fn hold(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        self.real.hold(dir)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.real.free_bytes(dir)
    }

    fn now(&self) -> Duration {
        self.real.now()
    }
}

#[derive(Debug)]
struct CountedFile {
    file: Arc<dyn ReadFile>,
    reads: Arc<ReadCount>,
}

impl ReadFile for CountedFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.reads.0.fetch_add(1, Ordering::Relaxed);
        self.file.read_exact_at(buffer, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }
}

#[derive(Debug)]
struct UnsyncedFile {
    file: BufWriter<File>,
    device: Option<Arc<Device>>,
}

impl WriteFile for UnsyncedFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(device) = &self.device {
            device.write(bytes.len());
        }
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[derive(Debug)]
struct UnsyncedLog {
    log: Box<dyn LogFile>,
    device: Option<Arc<Device>>,
}

impl LogFile for UnsyncedLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        if let Some(device) = &self.device {
            device.write(bytes.len());
        }
        self.log.append(bytes)
    }

    fn sync(&self, _: SyncReach) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    fn capacity(&self) -> u64 {
        self.log.capacity()
    }

    fn cut(&self) -> io::Result<()> {
        self.log.cut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads write 2 MB to a device that takes 10 MB per second.
    #[test]
    fn a_device_takes_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let device = Device::new(10e6);
        let env = Unsynced::on(&device);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for name in ["one", "two"] {
                let mut file = env.create(&dir.path().join(name)).unwrap();
                scope.spawn(move || (0..1000).for_each(|_| file.write_all(&[0; 1000]).unwrap()));
            }
        });
        device.drain();
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(device.bytes(), 2_000_000);
        assert!(seconds > 0.19, "{seconds}");
    }

    #[test]
    fn keeps_every_promise_but_power_loss() {
        let dir = tempfile::tempdir().unwrap();
        lsmith::env::contract::check(&Unsynced::default(), &dir.path().join("new"));
        let reads = Arc::new(ReadCount::default());
        lsmith::env::contract::check(&Unsynced::counting(&reads), &dir.path().join("counted"));
        assert!(reads.get() > 0);
    }
}
