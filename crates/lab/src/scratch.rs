//! Directories for stores that are gone after the experiment, even if a signal ends it.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// All scratch directories of the process.
static ALL: Mutex<Scratches> = Mutex::new(Scratches { dirs: Vec::new(), ended: false });

struct Scratches {
    dirs: Vec<PathBuf>,
    /// True if no further directory may be made.
    ended: bool,
}

fn all() -> MutexGuard<'static, Scratches> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A new, empty directory. It is removed when this value is dropped.
#[derive(Debug)]
pub struct Scratch(Option<TempDir>);

impl Scratch {
    /// Makes a directory in `parent`. Its name starts with `prefix`.
    ///
    /// # Errors
    /// Fails if the directory cannot be made, and after [`remove_scratch`].
    pub fn new_in(parent: &Path, prefix: &str) -> anyhow::Result<Scratch> {
        let mut all = all();
        if all.ended {
            bail!("the experiment was ended");
        }
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(parent);
        let message = || format!("cannot make a directory in {}", parent.display());
        let dir = made.with_context(message)?;
        all.dirs.push(dir.path().to_path_buf());
        Ok(Scratch(Some(dir)))
    }

    /// Makes a directory where the system keeps temporary files.
    ///
    /// # Errors
    /// Fails as [`new_in`](Scratch::new_in) does.
    pub fn new(prefix: &str) -> anyhow::Result<Scratch> {
        Scratch::new_in(&std::env::temp_dir(), prefix)
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        self.0.as_ref().expect("it is taken on drop only").path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut all = all();
        all.dirs.retain(|dir| dir != self.path());
        // Under the lock, so that `remove_scratch` does not meet a directory half removed.
        drop(self.0.take());
    }
}

/// Removes the directories of all experiments that are running, and returns their paths. The
/// experiments then fail, and no further one begins. For programs that a signal ends.
///
/// A directory that cannot be removed is not returned.
pub fn remove_scratch() -> Vec<PathBuf> {
    let mut all = all();
    all.ended = true;
    let dirs = std::mem::take(&mut all.dirs);
    dirs.into_iter().filter(|dir| remove(dir).is_ok()).collect()
}

/// Removes a directory in which a store may be making files. Under another name nobody adds to it.
fn remove(dir: &Path) -> std::io::Result<()> {
    let mut name = dir.as_os_str().to_owned();
    name.push("-ended");
    std::fs::rename(dir, &name)?;
    std::fs::remove_dir_all(&name)
}
