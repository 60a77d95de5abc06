//! Destroys a store: removes its files, and no others.
//!
//! `CURRENT` becomes [`CURRENT_COMING`] first, and the directory is synced. From then on it holds
//! no store, but the remains of one, which are known as such. If a removal is stopped, the next one
//! goes on from there.

use super::{Builder, Store};
use crate::leases::has_readers;
use crate::manifest::read_current;
use crate::opening::{no_store, take_lock};
use lsmith_storage::directory;
use lsmith_storage::env::{Env, HeldEnv};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{
    self, CURRENT, CURRENT_COMING, CURRENT_NEW, LOCK, READERS, RECORD, RECORD_NEW,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Store {
    /// Destroys the store in the directory `dir`: all of its entries are lost. See
    /// [`Builder::destroy`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let dir = dir.path().join("store");
    /// use lsmith::{ErrorKind, Store};
    ///
    /// let store = Store::builder(&dir).open()?;
    /// assert_eq!(Store::destroy(&dir).unwrap_err().kind(), ErrorKind::Locked);
    /// drop(store);
    /// Store::destroy(&dir)?;
    /// assert!(!dir.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::destroy`].
    pub fn destroy(dir: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        Store::builder(dir).destroy()
    }
}

impl Builder {
    /// Destroys the store: removes its files, and its directory if this is empty then. Returns the
    /// paths of what is left in the directory because it does not belong to the store.
    ///
    /// Removes only files that have a name from `docs/format.md` and a file id that the store can
    /// have given. Does not read tables or logs, so a damaged store can be destroyed too.
    /// Checkpoints and backups stay as they are.
    ///
    /// If the call is stopped, by an error or by the end of the process, the store is either as it
    /// was, or its remains are no store any more. Then another call goes on. It also removes what
    /// an interrupted checkpoint left.
    ///
    /// # Errors
    /// * `NotFound` if there is no store, nor the remains of one. Nothing is removed.
    /// * `Locked` if the store is open, for writing or reading. Nothing is removed.
    /// * `Corruption` if `CURRENT` is damaged, or the file of another program: then nobody knows
    ///   whose directory it is. `Unsupported` if the store has another format. Nothing is removed.
    /// * `Io`.
    pub fn destroy(&self) -> Result<Vec<PathBuf>> {
        let outer = &self.options.env;
        let dir = &*directory::absolute(&**outer, &self.options.dir)?;
        let found = list(&**outer, dir)?;
        let is_ours = |name: &String| [CURRENT, CURRENT_COMING].contains(&name.as_str());
        if !found.iter().any(is_ours) {
            return Err(no_store(dir));
        }
        let held = take_lock(&**outer, dir)?;
        let env: Arc<dyn Env> = Arc::new(HeldEnv::new(Arc::clone(outer), dir, held));
        end_store(&env, dir)?;
        // The mark may be empty, if power loss has stopped the checkpoint that made it.
        let mark = dir.join(CURRENT_COMING);
        let next = read_current(&*env, &mark).ok().flatten().unwrap_or(0);
        for name in list(&*env, dir)?.iter().filter(|name| is_own(name, next)) {
            remove(&*env, &dir.join(name))?;
        }
        // It holds files of others, or there is none: both are no error.
        let _ = env.remove_dir(&dir.join(READERS));
        directory::sync(&*env, dir)?;
        remove(&*env, &mark)?;
        directory::sync(&*env, dir)?;
        let lock = dir.join(LOCK);
        match remove(&*env, &lock) {
            // A system may let nobody remove it while it is locked. Then this does not remove the
            // lock of somebody who comes now either.
            Err(error) if is_busy(&error) => {
                drop(env);
                remove(&**outer, &lock)
                    .or_else(|error| is_busy(&error).then_some(()).ok_or(error))?;
            }
            removed => removed?,
        }
        // Nothing is held any more without the lock file.
        remove_directory(&**outer, dir)
    }
}

/// Makes the directory of a store one of remains, unless it is one already.
fn end_store(env: &Arc<dyn Env>, dir: &Path) -> Result<()> {
    let (current, mark) = (dir.join(CURRENT), dir.join(CURRENT_COMING));
    if read_current(&**env, &current)?.is_none() {
        return Ok(());
    }
    let check = || match has_readers(env, dir) {
        true => {
            let message = "a reader has the store open, in this process or another";
            Err(Error::new(ErrorKind::Locked, message).at(dir))
        }
        false => Ok(()),
    };
    let rename = |from: &Path, to: &Path| {
        env.rename(from, to).map_err(|error| Error::io("rename", from, error))?;
        directory::sync(&**env, dir)
    };
    check()?;
    rename(&current, &mark)?;
    // No reader can come now. One may have come since the first look.
    check().or_else(|refusal| rename(&mark, &current).and(Err(refusal)))
}

/// Returns true if the store has given `name` to a file, and has file ids up to about `next`.
fn is_own(name: &str, next: u64) -> bool {
    let file_id =
        names::parse(name).or_else(|| names::parse_lost(name)).map(|(_, file_id)| file_id);
    let is_named = [CURRENT_NEW, RECORD, RECORD_NEW].contains(&name);
    is_named || file_id.is_some_and(|file_id| names::is_near(file_id, next))
}

/// Removes the directory `dir` if it is empty. Returns the paths of what it holds otherwise.
fn remove_directory(env: &dyn Env, dir: &Path) -> Result<Vec<PathBuf>> {
    let left = list(env, dir)?;
    // An environment may be unable to remove directories. Somebody may have made a file there.
    if !left.is_empty() || env.remove_dir(dir).is_err() {
        directory::sync(env, dir)?;
        return Ok(left.iter().map(|name| dir.join(name)).collect());
    }
    if let Some(parent) = dir.parent() {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        directory::sync(env, parent)?;
    }
    Ok(Vec::new())
}

fn list(env: &dyn Env, dir: &Path) -> Result<Vec<String>> {
    env.list(dir).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => no_store(dir),
        _ => Error::io("list", dir, error),
    })
}

/// Returns true if `error` says that somebody who has the file open does not let it be removed.
fn is_busy(error: &Error) -> bool {
    error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
}

/// Removes the file at `path`, if there is one. A directory with the name of a file is not the
/// store's, and stays.
fn remove(env: &dyn Env, path: &Path) -> Result<()> {
    match env.remove_file(path) {
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Ok(()),
            _ => Err(Error::io("remove", path, error)),
        },
        Ok(()) => Ok(()),
    }
}
