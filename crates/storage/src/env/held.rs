//! An environment that touches the files of a directory only while it is the directory that was
//! opened.
//!
//! A path can come to lead elsewhere: a directory is renamed, and another takes its name. What is
//! made, read or removed by name would then be a file of somebody else. So the directory is held,
//! and each such operation looks first whether its path still leads there. Files that are open
//! already go on without that.

use super::{Env, HeldDir, LogFile, ReadFile, WriteFile};
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// An environment in which one directory is held. Paths that do not lead into it are left to the
/// environment beneath.
#[derive(Clone, Debug)]
pub struct HeldEnv {
    env: Arc<dyn Env>,
    dir: PathBuf,
    held: Arc<dyn HeldDir>,
}

impl HeldEnv {
    /// Returns `env` with the directory `dir` held, which must be an absolute path.
    pub fn new(env: Arc<dyn Env>, dir: &Path, held: Arc<dyn HeldDir>) -> HeldEnv {
        HeldEnv { env, dir: dir.to_path_buf(), held }
    }

    /// Returns the environment beneath, for an operation on `path`. Fails if `path` leads into the
    /// held directory, and that is elsewhere now.
    fn at(&self, path: &Path) -> io::Result<&dyn Env> {
        if path.starts_with(&self.dir) {
            self.held.check()?;
        }
        Ok(&*self.env)
    }
}

impl Env for HeldEnv {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.at(dir)?.create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.at(dir)?.list(dir)
    }

    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        self.at(path)?.file_bytes(path)
    }

    fn held_bytes(&self, path: &Path) -> io::Result<u64> {
        self.at(path)?.held_bytes(path)
    }

    fn punch(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        self.at(path)?.punch(path, range)
    }

    fn punch_all(&self, path: &Path, ranges: &[Range<u64>]) -> io::Result<()> {
        self.at(path)?.punch_all(path, ranges)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.at(path)?.remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.at(dir)?.remove_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.at(from)?;
        self.at(to)?.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.at(from)?;
        self.at(to)?.link(from, to)
    }

    fn link_count(&self, path: &Path) -> io::Result<u64> {
        self.at(path)?.link_count(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.at(dir)?.sync_dir(dir)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.at(path)?.sync_file(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.at(path)?.create(path)
    }

    fn append(&self, path: &Path, at: u64) -> io::Result<Box<dyn WriteFile>> {
        self.at(path)?.append(path, at)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.at(path)?.open(path)
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        self.at(path)?.create_log(path, capacity)
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        self.env.absolute(path)
    }

    fn is_within(&self, path: &Path, dir: &Path) -> io::Result<bool> {
        self.env.is_within(path, dir)
    }

    fn open_files_max(&self) -> Option<u64> {
        self.env.open_files_max()
    }

    fn memory_max(&self) -> Option<u64> {
        self.env.memory_max()
    }

    fn lock(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        self.at(dir)?.lock(dir)
    }

    fn hold(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        self.at(dir)?.hold(dir)
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        self.at(path)?.lock_file(path)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.env.free_bytes(dir)
    }

    fn random(&self) -> u128 {
        self.env.random()
    }

    fn now(&self) -> Duration {
        self.env.now()
    }
}
