//! The one error type of the store.
//!
//! The type is opaque and has a [`kind`](Error::kind). Callers decide by the kind whether to try
//! again, give up, or fix the call. The message is for people. An error about damage always names
//! the file and the offset.

use crate::cipher::{CipherError, NEEDS_KEY};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Tells a caller what it can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused an operation.
    Io,
    /// The device has no room left. Reads go on; writes work again once there is room.
    Full,
    /// The contents of a file are not what was written to it.
    Corruption,
    /// The call broke a rule that the documentation of the call states.
    InvalidArgument,
    /// Another process or another handle has the store open.
    Locked,
    /// Others have changed what a transaction used. Nothing was written. A new transaction may
    /// succeed.
    Conflict,
    /// A write to a log or the manifest failed earlier, or was left half done by a panic. The store
    /// refuses writes until it is reopened.
    Poisoned,
    /// The directory holds no store, or the named keyspace does not exist.
    NotFound,
    /// The log does not hold the changes that were asked for any more.
    Gone,
    /// A newer version wrote the files, or they need a policy that is not registered, or a key that
    /// was not given.
    Unsupported,
    /// The store was opened for reading only.
    ReadOnly,
    /// A merge thread panicked: in a merge policy, an observer, an environment, or the store
    /// itself. `Store::retry` tries the work again.
    Panicked,
    /// Code of the application that the store calls for single keys failed, panicked, or returned
    /// what no value can be: a combine operator or a merge filter. `Store::retry` tries merges
    /// again.
    Callback,
}

/// Why an operation failed: a kind, a message, the file and offset, and the error of the operating
/// system.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    key: Option<Box<[u8]>>,
    source: Option<io::Error>,
}

/// The result of an operation on the store.
pub type Result<T> = std::result::Result<T, Error>;

/// The constructors are hidden: only the crates of this project make errors.
impl Error {
    /// Creates an error of `kind`. `message` is a lower-case sentence without full stop.
    #[doc(hidden)]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            path: None,
            offset: None,
            key: None,
            source: None,
        }))
    }

    /// Creates the error for an `operation` (such as "read") on `path` that the operating system
    /// refused. The kind is `Full` if the device or the quota is full, otherwise `Io`. An encrypted
    /// file that is damaged is `Corruption`, and one that needs another key `Unsupported`.
    #[doc(hidden)]
    pub fn io(operation: &str, path: &Path, source: io::Error) -> Error {
        match CipherError::of(&source) {
            Some(CipherError { offset: Some(offset), message }) => {
                return Error::corruption(path, *offset, message);
            }
            Some(CipherError { offset: None, message }) => {
                return Error::new(ErrorKind::Unsupported, message).at(path);
            }
            None => {}
        }
        let kind = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
            _ => ErrorKind::Io,
        };
        let mut error = Error::new(kind, format!("cannot {operation}")).at(path);
        error.0.source = Some(source);
        error
    }

    /// Creates the error for damage in `path` at `offset`, in bytes from the start of the file.
    /// `what` says what was expected there and what was found.
    #[doc(hidden)]
    pub fn corruption(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        let mut error = Error::new(ErrorKind::Corruption, what).at(path);
        error.0.offset = Some(offset);
        error
    }

    /// Creates the error for the encrypted file at `path`, for which no key was given.
    #[doc(hidden)]
    pub fn needs_key(path: &Path) -> Error {
        Error::new(ErrorKind::Unsupported, NEEDS_KEY).at(path)
    }

    /// Sets the path where the error happened.
    #[doc(hidden)]
    #[must_use]
    pub fn at(mut self, path: &Path) -> Error {
        self.0.path = Some(path.to_path_buf());
        self
    }

    /// Sets the key that the error is about. No other key is affected.
    #[doc(hidden)]
    #[must_use]
    pub fn of_key(mut self, key: &[u8]) -> Error {
        self.0.key = Some(key.into());
        self
    }

    /// Returns a copy of the error for another caller, with `prefix` in front of its message.
    #[doc(hidden)]
    pub fn said_again(&self, prefix: &str) -> Error {
        let Inner { kind, message, path, offset, key, source } = &*self.0;
        Error(Box::new(Inner {
            kind: *kind,
            message: format!("{prefix}{message}"),
            path: path.clone(),
            offset: *offset,
            key: key.clone(),
            source: source.as_ref().map(copy),
        }))
    }

    /// Returns what a caller can do about the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns what happened, without the path and the offset.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the file concerned, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the offset in the file, in bytes from its start, if it is known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the key, if the error is about one key alone: its value cannot be combined, or lies
    /// in a value file and cannot be read.
    /// Iterators go on behind it, and a put or a delete of the key ends the error.
    pub fn key(&self) -> Option<&[u8]> {
        self.0.key.as_deref()
    }

    /// Returns the error of the operating system, if there is one. `Display` ends with it.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }
}

/// Copies `error` as far as that is possible: its code, or its kind and text.
fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// `{:#}` leaves the message out if it names a key: for log lines, which others may read.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.key {
            Some(_) if f.alternate() => write!(f, "{:?} at one key", self.0.kind)?,
            _ => f.write_str(&self.0.message)?,
        }
        if let Some(path) = &self.0.path {
            write!(f, " in {}", path.display())?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, " at offset {offset}")?;
        }
        match &self.0.source {
            // The same text for an error of the system and for one of an environment with a limit.
            Some(source) if source.kind() == io::ErrorKind::StorageFull => {
                f.write_str(": no space left on device")
            }
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    /// Returns the source of the [error of the operating system](Error::io_error). That error
    /// itself is already part of the message.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().and_then(|source| source.source())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_device_has_the_same_message_from_system_and_environment() {
        let path = Path::new("/store/000012.table");
        let full = if cfg!(windows) { 112 } else { 28 };
        for source in [io::Error::from_raw_os_error(full), io::ErrorKind::StorageFull.into()] {
            let error = Error::io("write", path, source);
            assert_eq!(error.kind(), ErrorKind::Full);
            let message = "cannot write in /store/000012.table: no space left on device";
            assert_eq!(error.to_string(), message);
            let again = error.said_again("a merge failed: ");
            assert_eq!(again.to_string(), format!("a merge failed: {message}"));
            assert_eq!((again.kind(), again.path()), (ErrorKind::Full, Some(path)));
            assert_eq!(again.io_error().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
            assert!(std::error::Error::source(&again).is_none(), "the message already includes it");
        }
    }
}
