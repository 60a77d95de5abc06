//! The directory of a store: made, synced, and rid of files that nothing names.

use crate::env::Env;
use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::path::Path;

/// Makes `dir` and what is missing of its parents, and makes them survive power loss: a store in a
/// directory that is lost is lost too, whatever it has synced.
///
/// # Errors
/// `Io`.
pub fn make(env: &dyn Env, dir: &Path) -> Result<()> {
    let is_missing =
        |dir: &&Path| env.list(dir).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let missing = dir.ancestors().take_while(is_missing).count();
    env.create_dir_all(dir).map_err(|error| Error::io("create the directory", dir, error))?;
    for (index, child) in dir.ancestors().enumerate() {
        let Some(parent) = child.parent() else { break };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        match env.sync_dir(parent) {
            // Whoever made this one before may have died before it was synced, so it was tried. But
            // not every system lets everybody sync every directory.
            Err(_) if index > 0 && index >= missing => {}
            Err(error) => return Err(Error::io("sync the directory", parent, error)),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Makes creations, removals and renames in `dir` survive power loss.
///
/// # Errors
/// `Io`.
pub fn sync(env: &dyn Env, dir: &Path) -> Result<()> {
    env.sync_dir(dir).map_err(|error| Error::io("sync the directory", dir, error))
}

/// Removes the file at `path`, which nothing names any more, if it is there. `what` says in the log
/// what it is, for example "an old log". A file that cannot be removed costs space only: the next
/// opening of the store removes it.
pub fn remove(env: &dyn Env, path: &Path, what: &str) {
    match env.remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "cannot remove {what}");
        }
        _ => {}
    }
}
