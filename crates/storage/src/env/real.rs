//! The environment that calls the operating system.

mod descriptor;
mod direct;
mod early;
mod group;
mod held;
mod holder;
mod log;
mod open;
mod written_log;

use super::common::{Buffered, Sink, check_capacity};
use super::{Env, HeldDir, LogFile, ReadFile, WriteFile, is_too_many_files};
use crate::sync::{Clock, OnceLock};
use crate::system;
use bytes::Bytes;
use descriptor::Descriptor;
use direct::Direct;
use held::{Held, RealDir};
use log::RealLog;
use memmap2::Mmap;
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use written_log::WrittenLog;

/// Files on the disks of this machine.
///
/// New files are for their owner only (mode 0600), and so are new directories (0700). Existing ones
/// keep their modes. Only regular files are opened. A symbolic link is followed only on the way to
/// the directory.
///
/// A store owns its directory. If another program shortens a log file while it is open, the process
/// dies, because logs and tables are mapped into memory.
#[derive(Clone, Copy, Debug)]
pub struct RealEnv {
    start: Clock,
    maps_tables: bool,
    maps_logs: bool,
    syncs_dirs: bool,
    punches: bool,
    is_direct: bool,
}

impl RealEnv {
    /// Creates the environment of this process.
    pub fn new() -> RealEnv {
        RealEnv {
            start: Clock::start(),
            maps_tables: system::MAPS_TABLES,
            maps_logs: system::MAPS_LOGS,
            syncs_dirs: system::SYNCS_DIRS,
            punches: true,
            is_direct: false,
        }
    }

    /// Returns the same environment, but without maps: tables and value files are read by system
    /// calls. The store then keeps blocks of tables in its own cache. A device that cannot be read
    /// is an error of the read; with maps it ends the process. Reads of data that the system has in
    /// memory take about twice as long.
    #[must_use]
    pub fn unmapped(mut self) -> RealEnv {
        self.maps_tables = false;
        self
    }

    /// Returns the same environment, but tables are read from the device itself (direct I/O), and
    /// what was written leaves the system's cache with its sync. So only the store's own cache
    /// keeps blocks: see [`cache_bytes`]. Where tables are larger than memory, the hot pages of
    /// other files stay, and a lookup is one read of the device.
    ///
    /// A file system that has no direct I/O is read through the system's cache. So are all on
    /// Windows.
    ///
    /// [`cache_bytes`]: https://docs.rs/lsmith/latest/lsmith/struct.Builder.html#method.cache_bytes
    #[must_use]
    pub fn direct(self) -> RealEnv {
        RealEnv { is_direct: true, ..self.unmapped() }
    }

    /// Returns an environment that asks of the system only what every system has: no maps, no holes
    /// in files, and no syncs of directories. That is how a store works on Windows. On another
    /// system, names of new files may not survive power loss.
    #[must_use]
    pub fn plain(self) -> RealEnv {
        RealEnv { maps_logs: false, syncs_dirs: false, punches: false, ..self.unmapped() }
    }
}

impl RealEnv {
    fn sink(&self, file: File) -> RealSink {
        RealSink { file, is_direct: self.is_direct, is_uncached: false }
    }
}

impl Default for RealEnv {
    fn default() -> RealEnv {
        RealEnv::new()
    }
}

impl Env for RealEnv {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        system::private_dirs().recursive(true).create(open::here(dir))
    }

    /// A name that is not UTF-8 is listed with replacement characters. The store has no such names.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        let found = open::opened(|| fs::read_dir(open::here(dir)))?;
        let mut names = found.map(name).collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        Ok(open::metadata(path)?.len())
    }

    fn held_bytes(&self, path: &Path) -> io::Result<u64> {
        Ok(system::held_bytes(&open::metadata(path)?))
    }

    fn punch(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        self.punch_all(path, &[range])
    }

    fn punch_all(&self, path: &Path, ranges: &[Range<u64>]) -> io::Result<()> {
        if !self.punches {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let file = open::open(OpenOptions::new().write(true), path)?;
        system::punch(&file, ranges)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path).map_err(system::met_at_removal)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(open::here(dir))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(system::met_at_rename)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        open::metadata(from)?;
        fs::hard_link(from, to)
    }

    fn link_count(&self, path: &Path) -> io::Result<u64> {
        open::metadata(path)?;
        system::link_count(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if !self.syncs_dirs {
            // A directory that is missing is an error all the same.
            return fs::metadata(open::here(dir)).map(drop);
        }
        match open::dir(dir) {
            // What was done cannot be undone for want of a descriptor. So all is synced that any
            // program has written: that needs none.
            Err(error) if is_too_many_files(&error) => {
                system::sync_everything();
                Ok(())
            }
            opened => opened?.sync_all(),
        }
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        open::open(system::for_sync(&mut OpenOptions::new()), path)?.sync_all()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let file = open::open(OpenOptions::new().write(true).create_new(true), path)?;
        Ok(Box::new(Buffered::new(self.sink(file))))
    }

    fn append(&self, path: &Path, at: u64) -> io::Result<Box<dyn WriteFile>> {
        let mut file = open::open(OpenOptions::new().write(true), path)?;
        if file.metadata()?.len() < at {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.set_len(at)?;
        file.seek(SeekFrom::Start(at))?;
        Ok(Box::new(Buffered::new(self.sink(file))))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        let mut file = Descriptor::open(options, path)?;
        let mut direct = None;
        if self.is_direct {
            file.prepare(direct::prepare)?;
            direct = Some(file.with(|file| Ok(Direct::new(file)))?);
        }
        Ok(Arc::new(RealRead { file, maps: self.maps_tables, direct, map: OnceLock::new() }))
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        self.create_log_for(path, capacity, 0)
    }

    fn create_log_for(
        &self,
        path: &Path,
        capacity: u64,
        record_bytes: u64,
    ) -> io::Result<Box<dyn LogFile>> {
        check_capacity(capacity)?;
        // The room is checked first, so that a log that cannot fit does not fill the disk for other
        // programs before it is refused.
        if self.free_bytes(path.parent().unwrap_or(Path::new(".")))? < capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut options = OpenOptions::new();
        let file = open::open(options.read(true).write(true).create_new(true), path)?;
        let made: io::Result<Box<dyn LogFile>> = if self.maps_logs {
            RealLog::new(file, path, capacity, record_bytes).map(|log| Box::new(log) as _)
        } else {
            WrittenLog::new(file, path, capacity).map(|log| Box::new(log) as _)
        };
        match made {
            Ok(log) => Ok(log),
            Err(error) => {
                // The first error is the useful one. A file that cannot be removed now is found at
                // the next opening of the store.
                let _ = fs::remove_file(path);
                Err(error)
            }
        }
    }

    fn is_within(&self, path: &Path, dir: &Path) -> io::Result<bool> {
        open::is_within(path, dir)
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        path::absolute(path)
    }

    fn lock(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        Ok(Arc::new(RealDir::locked(dir)?))
    }

    fn hold(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        Ok(Arc::new(RealDir::open(dir)?))
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        // The folder of the file is no path that the user chose.
        if let Some(folder) = path.parent() {
            open::check_folder(folder)?;
        }
        loop {
            let lock = Held::locked(path)?;
            // Another process may have removed the file before it was locked here.
            if lock.is_at(path)? {
                return Ok(Box::new(lock));
            }
        }
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        system::free_bytes(open::here(dir))
    }

    fn open_files_max(&self) -> Option<u64> {
        open::files_max()
    }

    fn memory_max(&self) -> Option<u64> {
        group::memory_max()
    }

    fn shared_memory(&self) -> Option<u64> {
        group::memory_max().into_iter().chain(system::memory_bytes()).min()
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

#[derive(Debug)]
struct RealSink {
    file: File,
    is_direct: bool,
    is_uncached: bool,
}

impl Sink for RealSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.is_uncached {
            true => system::write_uncached(&self.file, bytes),
            false => self.file.write_all(bytes),
        }
    }

    fn set_uncached(&mut self) {
        self.is_uncached = true;
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if self.is_direct {
            system::forget_cached(&self.file);
        }
        Ok(())
    }
}

#[derive(Debug)]
struct RealRead {
    file: Descriptor,
    maps: bool,
    /// Reads go past the system's cache.
    direct: Option<Direct>,
    /// The first map, by which ranges are announced without a descriptor.
    map: OnceLock<Arc<Mmap>>,
}

/// The owner of the bytes of a map.
struct MapOwner(Arc<Mmap>);

impl AsRef<[u8]> for MapOwner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Fills `buffer` with the bytes of `file` from `offset` on, by calls of `read`.
fn read_all(
    file: &File,
    buffer: &mut [u8],
    offset: u64,
    read: impl Fn(&File, &mut [u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match read(file, &mut buffer[done..], offset + done as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => done += bytes,
        }
    }
    Ok(())
}

impl ReadFile for RealRead {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if let Some(direct) = self.direct {
            return self.file.with(|file| direct.read_exact_at(file, buffer, offset));
        }
        self.file.with(|file| read_all(file, buffer, offset, system::read_at))
    }

    fn read_once_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if self.direct.is_some() {
            return self.read_exact_at(buffer, offset);
        }
        self.file.with(|file| read_all(file, buffer, offset, system::read_once_at))
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.with(|file| Ok(file.metadata()?.len()))
    }

    // A system that ignores the advice reads later, on access.
    fn announce(&self, range: Range<u64>) {
        if let Some(direct) = self.direct {
            // A file that cannot be opened again says so when it is read.
            let announce = |file: &File| {
                direct.announce(file, range);
                Ok(())
            };
            let _ = self.file.with(announce);
            return;
        }
        let Some(map) = self.map.get() else {
            if let Some(file) = &*self.file.now() {
                system::will_need(file, range);
            }
            return;
        };
        let end = range.end.min(map.len() as u64);
        if let Some(bytes) = end.checked_sub(range.start).filter(|bytes| *bytes > 0) {
            system::map_will_need(map, range.start as usize, bytes as usize);
        }
    }

    fn release(&self) {
        self.file.release();
    }

    #[allow(unsafe_code, reason = "a system call for maps")]
    fn map(&self) -> io::Result<Option<Bytes>> {
        if !self.maps {
            return Ok(None);
        }
        // SAFETY: The bytes of a map must not change while they are borrowed. The store owns the
        // files of its directory. A caller that maps a file writes it before it opens it and never
        // after. A caller that punches a hole makes sure that nobody reads there any more, as the
        // trait demands.
        let map = self.file.with(|file| unsafe { Mmap::map(file) })?;
        // Blocks around a requested one are no more likely to be requested next.
        system::is_read_at_random(&map)?;
        let map = Arc::new(map);
        let _ = self.map.set(Arc::clone(&map));
        Ok(Some(Bytes::from_owner(MapOwner(map))))
    }
}
