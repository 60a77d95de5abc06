//! An environment that touches the files of a directory only while it is the directory that was
//! opened.
//!
//! A path can come to lead elsewhere: a directory is renamed, and another takes its name. What is
//! made, read or removed by name would then be a file of somebody else. So the directory is held,
//! and each such operation looks first whether its path still leads there. Files that are open
//! already go on without that.
//!
//! The files of the directory can have a limit on what they take together.

use super::space::Space;
use super::{Encryption, Env, HeldDir, LogFile, ReadFile, WriteFile};
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
    space: Option<Arc<Space>>,
}

impl HeldEnv {
    /// Returns `env` with the directory `dir` held, which must be an absolute path.
    pub fn new(env: Arc<dyn Env>, dir: &Path, held: Arc<dyn HeldDir>) -> HeldEnv {
        HeldEnv { env, dir: dir.to_path_buf(), held, space: None }
    }

    /// Lets the files in the directory take no more than `space` has.
    #[must_use]
    pub fn with_space(mut self, space: &Arc<Space>) -> HeldEnv {
        self.space = Some(Arc::clone(space));
        self
    }

    /// Returns the limit that holds for the file at `path`, if there is one.
    fn space_at(&self, path: &Path) -> Option<&Arc<Space>> {
        self.space.as_ref().filter(|_| path.parent() == Some(&self.dir))
    }

    /// Counts what the file at `path` takes after a change of unknown size.
    fn count_again(&self, path: &Path) {
        if let Some(space) = self.space_at(path)
            && let Ok(bytes) = self.env.held_bytes(path)
        {
            space.set(path, bytes);
        }
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
        self.at(path)?.punch(path, range)?;
        self.count_again(path);
        Ok(())
    }

    fn punch_all(&self, path: &Path, ranges: &[Range<u64>]) -> io::Result<()> {
        let punched = self.at(path)?.punch_all(path, ranges);
        self.count_again(path);
        punched
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let removed = self.at(path)?.remove_file(path);
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        if removed.as_ref().err().is_none_or(is_gone) {
            self.space_at(path).inspect(|space| space.remove(path));
        }
        removed
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.at(dir)?.remove_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.at(from)?;
        self.at(to)?.rename(from, to)?;
        self.space_at(to).inspect(|space| space.rename(from, to));
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.at(from)?;
        self.at(to)?.link(from, to)?;
        let Some(space) = self.space_at(to) else { return Ok(()) };
        // Refused, it would be in the way of the next try.
        space.add(to, self.env.held_bytes(to)?).inspect_err(|_| drop(self.env.remove_file(to)))
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
        let file = self.at(path)?.create(path)?;
        let Some(space) = self.space_at(path) else { return Ok(file) };
        space.add(path, 0)?;
        Ok(space.count(path, file))
    }

    fn append(&self, path: &Path, at: u64) -> io::Result<Box<dyn WriteFile>> {
        let file = self.at(path)?.append(path, at)?;
        let Some(space) = self.space_at(path) else { return Ok(file) };
        self.count_again(path);
        Ok(space.count(path, file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.at(path)?.open(path)
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
        let Some(space) = self.space_at(path) else {
            return self.at(path)?.create_log_for(path, capacity, record_bytes);
        };
        let env = self.at(path)?;
        if env.file_bytes(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        space.add(path, capacity)?;
        let log = env.create_log_for(path, capacity, record_bytes);
        log.inspect_err(|_| space.remove(path))
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

    fn shared_memory(&self) -> Option<u64> {
        self.env.shared_memory()
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
        let free = self.env.free_bytes(dir)?;
        Ok(self.space.as_ref().map_or(free, |space| free.min(space.free())))
    }

    fn encryption(&self) -> Option<&Encryption> {
        self.env.encryption()
    }

    fn random(&self) -> u128 {
        self.env.random()
    }

    fn now(&self) -> Duration {
        self.env.now()
    }
}
