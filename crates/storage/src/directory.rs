//! The directory of a store: how it is created and synced, how files are copied, and how leftover
//! files are removed.

use crate::env::Env;
use crate::error::{self, Error, Result};
use crate::names::{self, FileKind};
use crate::sync::atomic::{AtomicU64, Ordering};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The most files of others, one id after the other, that are left alone in one call. A
/// directory with more has a problem that people must see.
const SKIPPED_MAX: u32 = 1000;

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
    env.absolute(path)
        .map_err(|error| Error::io("find the directory of the process for", path, error))
}

/// Fails if `path`, which `what` describes, leads into `dir`, the directory of `whose`.
///
/// # Errors
/// `InvalidArgument` if it does; `Io` if that cannot be found out.
pub fn check_outside(
    env: &dyn Env,
    path: &Path,
    what: &str,
    dir: &Path,
    whose: &str,
) -> Result<()> {
    let is_within = env.is_within(path, dir);
    if !is_within.map_err(|error| Error::io("look where the path leads", path, error))? {
        return Ok(());
    }
    let message = format!("expected {what} outside of the directory of {whose}, found one inside");
    Err(Error::new(error::ErrorKind::InvalidArgument, message).at(path))
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

/// Makes a file of `kind` in `dir` under the next id of `counter`, with `make`, which gets its
/// path and its id. Returns the id and what `make` returns. A file that somebody else has
/// put there is left alone, and the id after it is tried.
///
/// # Errors
/// The error of `make`, which must leave no file then.
pub fn make_numbered<T>(
    dir: &Path,
    kind: FileKind,
    counter: &AtomicU64,
    mut make: impl FnMut(&Path, u64) -> Result<T>,
) -> Result<(u64, T)> {
    let mut skipped = 0;
    loop {
        let file_id = counter.fetch_add(1, Ordering::Relaxed);
        let path = names::numbered(dir, kind, file_id);
        match make(&path, file_id) {
            Err(error) if skipped < SKIPPED_MAX && is_taken(&error, &path) => {
                tracing::warn!(
                    path = %path.display(),
                    "somebody else has made a file under the next number of the store: it is left \
                     alone"
                );
                skipped += 1;
            }
            made => return Ok((file_id, made?)),
        }
    }
}

/// Returns true if `error` says that a new file at `path` could not be made because one exists.
pub fn is_taken(error: &Error, path: &Path) -> bool {
    error.path() == Some(path)
        && error.io_error().is_some_and(|error| error.kind() == ErrorKind::AlreadyExists)
}

/// Copies the first `bytes` bytes of the file `from` to a new file `to`, which survives power loss
/// then, except for its name. Calls `see` with all bytes, part by part. Each file has an
/// environment and a path.
///
/// # Errors
/// `Io` or `Full`. The new file is removed then.
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
    let mut write = || {
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
    };
    write().inspect_err(|_| remove(to_env, to, "a copy that failed"))
}
