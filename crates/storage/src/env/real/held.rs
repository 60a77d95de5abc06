//! Directories and files that are held by descriptors, and their locks.
//!
//! A directory is locked twice: itself, because nobody can remove a directory that has files, and
//! its lock file, because earlier versions lock that alone, and because it names the lock's holder.

use super::{holder, open};
use crate::env::HeldDir;
use crate::env::common::LOCK_FILE;
use crate::sync::{Mutex, Process};
use crate::system::{self, FileId};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Returns true if `found`, what was found at a path, is `id`.
fn is_of(id: FileId, found: io::Result<FileId>) -> io::Result<bool> {
    match found {
        Ok(found) => Ok(found == id),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the id of the regular file at `path`.
fn file_at(path: &Path) -> io::Result<FileId> {
    open::metadata(path)?;
    system::id_at(path)
}

/// An open file or directory, whose inode number goes to no other file as long as it is open. Its
/// lock, if it was taken, is released when it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
    id: FileId,
    is_locked: bool,
    /// The process that opened it.
    process: Process,
}

impl Held {
    fn new(file: File) -> io::Result<Held> {
        let id = system::id_of(&file)?;
        Ok(Held { file, id, is_locked: false, process: Process::here() })
    }

    /// Opens the file at `path`, which is made if it is missing, and takes its lock.
    pub(super) fn locked(path: &Path) -> io::Result<Held> {
        Held::locked_with(system::for_lock(&mut OpenOptions::new()), path)
    }

    /// As [`Held::locked`], with `options` that may say what others can do meanwhile.
    fn locked_with(options: &mut OpenOptions, path: &Path) -> io::Result<Held> {
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = open::open(options, path).map_err(system::met_at_lock)?;
        let mut held = Held::new(file)?;
        held.lock()?;
        Ok(held)
    }

    /// Takes the lock. It belongs to one opening of the file. So it excludes other handles of this
    /// process too, and the system releases it however the process ends.
    fn lock(&mut self) -> io::Result<()> {
        system::lock(&self.file)?;
        self.is_locked = true;
        Ok(())
    }

    /// Returns true if `path` leads to the file.
    pub(super) fn is_at(&self, path: &Path) -> io::Result<bool> {
        is_of(self.id, file_at(path))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A child that was forked would give back the lock of its parent.
        if self.is_locked && self.process.is_here() {
            // The explicit unlock is needed if this process is just starting another one. Until
            // that child runs its own program, it has the file open too, and a close here would
            // not release the lock.
            system::unlock(&self.file);
        }
    }
}

/// A directory that is held, and may be locked.
#[derive(Debug)]
pub(super) struct RealDir {
    path: PathBuf,
    id: FileId,
    /// The lock file, if the directory is locked.
    lock: Option<FileId>,
    /// The directory and the lock file, as long as they are not forgotten.
    open: Mutex<Vec<Held>>,
}

impl RealDir {
    /// Holds the directory at `path`.
    pub(super) fn open(path: &Path) -> io::Result<RealDir> {
        Ok(RealDir::of(path, Held::new(open::dir(path)?)?, None))
    }

    fn of(path: &Path, dir: Held, lock: Option<Held>) -> RealDir {
        RealDir {
            path: path.to_path_buf(),
            id: dir.id,
            lock: lock.as_ref().map(|lock| lock.id),
            open: Mutex::new(lock.into_iter().chain([dir]).collect()),
        }
    }

    /// Holds and locks the directory at `path`.
    pub(super) fn locked(path: &Path) -> io::Result<RealDir> {
        let mut dir = Held::new(open::dir(path)?)?;
        let file = path.join(LOCK_FILE);
        match dir.lock() {
            // Some file systems can lock files only.
            Err(error) if system::cannot_lock(&error) => {}
            locked => locked.map_err(|error| holder::of(&file, error))?,
        }
        let lock = Held::locked_with(system::for_lock_of_dir(&mut OpenOptions::new()), &file)
            .map_err(|error| holder::of(&file, error))?;
        holder::note(&lock.file);
        let held = RealDir::of(path, dir, Some(lock));
        // Something may have moved while the locks were taken.
        held.check()?;
        Ok(held)
    }
}

impl HeldDir for RealDir {
    fn check(&self) -> io::Result<()> {
        let dir = self.path.display();
        if !is_of(self.id, system::id_at(open::here(&self.path)))? {
            return Err(io::Error::other(format!(
                "{dir} is not the directory any more that was opened under this path: put it back, \
                 or close the store and open it where it is now"
            )));
        }
        let Some(lock) = self.lock else { return Ok(()) };
        if !is_of(lock, file_at(&self.path.join(LOCK_FILE)))? {
            return Err(io::Error::other(format!(
                "{dir}/{LOCK_FILE} was removed or replaced while it was locked, so another process \
                 may have written to the store: close it and open it again"
            )));
        }
        Ok(())
    }

    fn forget(&self) {
        // The files of a thread that is in here at the fork stay open.
        if let Some(mut open) = self.open.try_lock() {
            open.clear();
        }
    }
}
