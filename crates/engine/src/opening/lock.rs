//! The lock of the directory of a store.

use lsmith_storage::env::{Env, HeldDir};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::LOCK;
use std::path::Path;
use std::sync::Arc;

/// Returns the error that there is no store in `dir`.
pub(crate) fn no_store(dir: &Path) -> Error {
    Error::new(ErrorKind::NotFound, "there is no store").at(dir)
}

/// Takes the lock of the store in `dir`, and holds it and the directory as long as the returned
/// value lives.
///
/// # Errors
/// `Locked` if the store is open already; `Io` if the lock file cannot be made.
pub(crate) fn take_lock(env: &dyn Env, dir: &Path) -> Result<Arc<dyn HeldDir>> {
    env.lock(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let message = match error.get_ref() {
                Some(holder) => format!(
                    "the store is open already: {holder}, holds it with a handle of the store, a \
                     keyspace, a snapshot, an iterator or a bulk load"
                ),
                None => "the store is open already, in this process or another".into(),
            };
            Error::new(ErrorKind::Locked, message).at(dir)
        }
        _ => Error::io("lock", &dir.join(LOCK), error),
    })
}

/// Takes the lock of the store in `dir` for a reader. On a read-only or full medium, or in a
/// directory of another user, no lock can be made. Then it returns the directory without a lock,
/// and the caller must detect whether somebody has written meanwhile.
///
/// # Errors
/// As [`take_lock`], but for these.
pub(crate) fn take_lock_to_read(env: &dyn Env, dir: &Path) -> Result<Arc<dyn HeldDir>> {
    match take_lock(env, dir) {
        Err(error) if is_unwritable(&error) => {
            tracing::warn!(%error, "read without a lock: nobody may write meanwhile");
            env.hold(dir).map_err(|error| Error::io("open the directory", dir, error))
        }
        taken => taken,
    }
}

/// Returns true if `error` says that nothing can be written in a directory that may be readable.
pub(super) fn is_unwritable(error: &Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    error.io_error().is_some_and(|error| {
        matches!(error.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
    })
}
