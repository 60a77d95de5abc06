//! The directory in which a copy of a store is made.
//!
//! It has the file [`CURRENT_COMING`] from before the first other file until the copy is whole.
//! Then this file is renamed to [`CURRENT`], which it is already in content. So a directory has a
//! whole store or none, and a directory with a copy that was interrupted is known as such: it is
//! emptied before the next copy is made there.

use crate::identity::Identity;
use crate::manifest::{Account, current_text, write_account};
use crate::opening::take_lock;
use lsmith_storage::directory;
use lsmith_storage::env::{Env, HeldEnv};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{self, CURRENT, CURRENT_COMING, FileKind, LOCK, numbered};
use lsmith_storage::panics;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A locked directory that becomes a store. Dropping it before it is [finished](NewStore::finish)
/// empties it.
#[derive(Debug)]
pub(crate) struct NewStore {
    env: Arc<dyn Env>,
    dir: PathBuf,
    /// The file id of the manifest.
    manifest: u64,
    /// The files that were made, or may have been made.
    made: Vec<PathBuf>,
    is_finished: bool,
}

impl NewStore {
    /// Begins a store in `dir`, which must not exist, or be empty, or have a store that was begun
    /// and not finished. `manifest`, the file id of its manifest, is above all other file ids.
    ///
    /// # Errors
    /// `InvalidArgument` if the directory has other files; `Locked` if another process makes a
    /// store there; `Io`; `Full`.
    pub(crate) fn begin(env: &Arc<dyn Env>, dir: &Path, manifest: u64) -> Result<NewStore> {
        let dir = &*directory::absolute(&**env, dir)?;
        directory::make(&**env, dir)?;
        let held = take_lock(&**env, dir)?;
        let env: Arc<dyn Env> = Arc::new(HeldEnv::new(Arc::clone(env), dir, held));
        let found = list(&*env, dir)?;
        let is_unfinished = found.iter().any(|name| name == CURRENT_COMING);
        let may_be_there = |name: &&String| match name.as_str() {
            LOCK | CURRENT_COMING => true,
            name => is_unfinished && names::parse(name).is_some(),
        };
        if let Some(other) = found.iter().find(|name| !may_be_there(name)) {
            let message = format!("expected an empty directory for a new store, found {other}");
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(dir));
        }
        empty(&*env, dir)?;
        let new = NewStore {
            env,
            dir: dir.to_path_buf(),
            manifest,
            made: Vec::new(),
            is_finished: false,
        };
        let mark = dir.join(CURRENT_COMING);
        let write = || {
            let mut file = new.env.create(&mark)?;
            file.write_all(current_text(manifest).as_bytes())?;
            file.sync()
        };
        write().map_err(|error| Error::io("write", &mark, error))?;
        directory::sync(&*new.env, dir)?;
        Ok(new)
    }

    /// Makes a file of the new store with `make`, which gets its path and the environment that
    /// holds the directory.
    pub(crate) fn add<T>(
        &mut self,
        kind: FileKind,
        file_id: u64,
        make: impl FnOnce(&dyn Env, &Path) -> Result<T>,
    ) -> Result<T> {
        let path = numbered(&self.dir, kind, file_id);
        let made = make(&*self.env, &path);
        // A file that was there before is somebody else's.
        if !made.as_ref().is_err_and(|error| directory::is_taken(error, &path)) {
            self.made.push(path);
        }
        made
    }

    /// Writes the manifest, which says `account` and that this is a store of its own, and makes the
    /// directory a store. All other files are there, and their contents survive power loss.
    ///
    /// # Errors
    /// `Io` or `Full`.
    pub(crate) fn finish(mut self, account: &Account) -> Result<()> {
        let identity = Identity::new(&*self.env, account.identity.map(|original| original.id));
        let (file_id, identity) = (self.manifest, Some(identity));
        let account = Account { next_file: file_id + 1, identity, ..account.clone() };
        self.add(FileKind::Manifest, file_id, |env, path| {
            write_account(env, path, file_id, &account)
        })?;
        directory::sync(&*self.env, &self.dir)?;
        let mark = self.dir.join(CURRENT_COMING);
        let renamed = self.env.rename(&mark, &self.dir.join(CURRENT));
        renamed.map_err(|error| Error::io("rename to CURRENT", &mark, error))?;
        directory::sync(&*self.env, &self.dir)?;
        self.is_finished = true;
        Ok(())
    }
}

impl NewStore {
    /// Removes what was made, and nothing else. The last step may have failed after the directory
    /// became a store. Then it is made none again first, for good.
    fn take_back(&self) -> Result<()> {
        let current = self.dir.join(CURRENT);
        if list(&*self.env, &self.dir)?.iter().any(|name| name == CURRENT) {
            let renamed = self.env.rename(&current, &self.dir.join(CURRENT_COMING));
            renamed.map_err(|error| Error::io("rename", &current, error))?;
            directory::sync(&*self.env, &self.dir)?;
        }
        self.made.iter().try_for_each(|path| remove(&*self.env, path))?;
        directory::sync(&*self.env, &self.dir)?;
        remove(&*self.env, &self.dir.join(CURRENT_COMING))
    }
}

impl Drop for NewStore {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        panics::logged("the environment", || {
            if let Err(error) = self.take_back() {
                let dir = self.dir.display();
                tracing::warn!(%dir, %error, "a copy of a store that is not whole stays there");
            }
        });
    }
}

fn list(env: &dyn Env, dir: &Path) -> Result<Vec<String>> {
    env.list(dir).map_err(|error| Error::io("list", dir, error))
}

/// Removes all files of an unfinished store. The mark goes last, so that what an interruption
/// leaves is known as unfinished.
fn empty(env: &dyn Env, dir: &Path) -> Result<()> {
    let found = list(env, dir)?;
    let files: Vec<_> = found.iter().filter(|name| names::parse(name).is_some()).collect();
    files.iter().try_for_each(|name| remove(env, &dir.join(name)))?;
    if !files.is_empty() {
        directory::sync(env, dir)?;
    }
    if found.iter().any(|name| name == CURRENT_COMING) {
        remove(env, &dir.join(CURRENT_COMING))?;
    }
    Ok(())
}

/// Removes the file at `path`, if it is there.
fn remove(env: &dyn Env, path: &Path) -> Result<()> {
    match env.remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|error| Error::io("remove", path, error)),
    }
}
