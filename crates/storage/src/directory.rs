//! The directory of a store: how it is created and synced, how files are copied, and how leftover
//! files are removed.

use crate::env::Env;
use crate::error::{self, Error, Result};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The bytes that are copied at once.
const COPIED_BYTES: u64 = 256 * 1024;

/// Creates `dir` and its missing parents, and makes them survive power loss. A store whose
/// directory is lost is lost too, whatever it has synced.
///
/// # Errors
/// `InvalidArgument` if the path is empty; `Io`.
pub fn make(env: &dyn Env, dir: &Path) -> Result<()> {
    if dir.as_os_str().is_empty() {
        let message = "expected the path of a directory, found an empty one: `.` is this directory";
        return Err(Error::new(error::ErrorKind::InvalidArgument, message));
    }
    let is_missing =
        |dir: &&Path| env.list(dir).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let missing = dir.ancestors().take_while(is_missing).count();
    env.create_dir_all(dir).map_err(|error| Error::io("create the directory", dir, error))?;
    for (index, child) in dir.ancestors().enumerate() {
        let Some(parent) = child.parent() else { break };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        match env.sync_dir(parent) {
            // The process that created this directory may have died before it synced it, so the
            // sync is tried. It may fail: some systems do not let every user sync every directory.
            Err(_) if index > 0 && index >= missing => {}
            Err(error) => return Err(Error::io("sync the directory", parent, error)),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Returns a path that leads to the same place as `path` wherever the process goes later. An empty
/// path, which is none, stays empty.
///
/// # Errors
/// `Io` if nobody can say where the process is.
pub fn absolute(env: &dyn Env, path: &Path) -> Result<PathBuf> {
    if path.as_os_str().is_empty() {
        return Ok(PathBuf::new());
    }
    env.absolute(path).map_err(|error| Error::io("find the directory of the process for", path, error))
}

/// Makes creations, removals and renames in `dir` survive power loss.
///
/// # Errors
/// `Io`.
pub fn sync(env: &dyn Env, dir: &Path) -> Result<()> {
    env.sync_dir(dir).map_err(|error| Error::io("sync the directory", dir, error))
}

/// Removes the file at `path`, which nothing refers to any more, if it exists. `what` describes the
/// file in the log, for example "an old log". A file that cannot be removed costs only space, and
/// the next opening of the store removes it.
pub fn remove(env: &dyn Env, path: &Path, what: &str) {
    match env.remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "cannot remove {what}");
        }
        _ => {}
    }
}

/// Copies the first `bytes` bytes of the file `from` to a new file `to`, which survives power loss
/// then, except for its name. Calls `see` with all bytes, part by part. Each file has an
/// environment and a path.
///
/// # Errors
/// `Io` or `Full`. A part of the new file may then be there.
pub fn copy(
    (from_env, from): (&dyn Env, &Path),
    (to_env, to): (&dyn Env, &Path),
    bytes: u64,
    mut see: impl FnMut(&[u8]),
) -> Result<()> {
    let failed = |operation: &'static str, path: &Path| {
        let path = path.to_path_buf();
        move |error| Error::io(operation, &path, error)
    };
    let source = from_env.open(from).map_err(failed("open", from))?;
    let mut target = to_env.create(to).map_err(failed("create", to))?;
    let mut buffer = Vec::new();
    let mut offset = 0;
    while offset < bytes {
        buffer.resize((bytes - offset).min(COPIED_BYTES) as usize, 0);
        source.read_exact_at(&mut buffer, offset).map_err(failed("read", from))?;
        see(&buffer);
        target.write_all(&buffer).map_err(failed("write", to))?;
        offset += buffer.len() as u64;
    }
    target.sync().map_err(failed("sync", to))
}
