//! Making the directory of a store.

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
