//! The one error type of the store.
//!
//! One opaque type with a [`kind`](Error::kind): callers decide by kind (try again? give up? fix
//! the call?), people read the sentence. Damage always names the file and the offset.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused an operation.
    Io,
    /// No room on the device. Reads go on; writes work again once there is room.
    Full,
    /// A file does not hold what was written to it.
    Corruption,
    /// The call broke a rule that is stated where the call is documented.
    InvalidArgument,
    /// Another process or another handle has the store open.
    Locked,
    /// A log or manifest write failed earlier, or a panic left one half done: writes are refused
    /// until the store is reopened.
    Poisoned,
    /// The directory holds no store, or the named keyspace does not exist.
    NotFound,
    /// The files were written by a newer version, or by a policy that is not registered.
    Unsupported,
    /// The store was opened for reading only.
    ReadOnly,
    /// Something panicked on a thread that merges: a merge policy, an observer, an environment, or
    /// the store itself. `Store::retry` has it tried again.
    Panicked,
}

/// Why an operation failed: a kind, a sentence, where it happened, and what the operating system
/// said.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    source: Option<io::Error>,
}

/// The result of an operation on the store.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind`, told by `message`: a lower-case sentence without full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            path: None,
            offset: None,
            source: None,
        }))
    }

    /// The operating system refused `operation` (such as "read") on `path`.
    pub fn io(operation: &str, path: &Path, source: io::Error) -> Error {
        let kind = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
            _ => ErrorKind::Io,
        };
        let mut error = Error::new(kind, format!("cannot {operation}")).at(path);
        error.0.source = Some(source);
        error
    }

    /// `path` does not hold at `offset` (bytes from its start) what it must hold.
    pub fn corruption(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        let mut error = Error::new(ErrorKind::Corruption, what).at(path);
        error.0.offset = Some(offset);
        error
    }

    /// The same error, said to have happened in `path`.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Error {
        self.0.path = Some(path.to_path_buf());
        self
    }

    /// The same error for another caller, with `told` in front of its message.
    pub fn said_again(&self, told: &str) -> Error {
        let Inner { kind, message, path, offset, source } = &*self.0;
        Error(Box::new(Inner {
            kind: *kind,
            message: format!("{told}{message}"),
            path: path.clone(),
            offset: *offset,
            source: source.as_ref().map(copy),
        }))
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What happened, without where.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file concerned, where there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Where in the file, in bytes from its start, where that is known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// What the operating system said, where it refused something. The message ends with it.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }
}

/// As much of `error` as can be said twice.
fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(path) = &self.0.path {
            write!(f, " in {}", path.display())?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, " at offset {offset}")?;
        }
        match &self.0.source {
            // In one way, whoever says it: the system, an environment that knows its limits.
            Some(source) if source.kind() == io::ErrorKind::StorageFull => {
                f.write_str(": no space left on device")
            }
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    /// What is beneath the [error of the operating system](Error::io_error), which is part of the
    /// message already.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().and_then(|source| source.source())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_device_is_told_by_the_path_and_in_the_same_words_by_all() {
        let path = Path::new("/store/000012.table");
        for source in [io::Error::from_raw_os_error(28), io::ErrorKind::StorageFull.into()] {
            let error = Error::io("write", path, source);
            assert_eq!(error.kind(), ErrorKind::Full);
            let told = "cannot write in /store/000012.table: no space left on device";
            assert_eq!(error.to_string(), told);
            let again = error.said_again("a merge failed: ");
            assert_eq!(again.to_string(), format!("a merge failed: {told}"));
            assert_eq!((again.kind(), again.path()), (ErrorKind::Full, Some(path)));
            assert_eq!(again.io_error().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
            assert!(std::error::Error::source(&again).is_none(), "it would be said twice");
        }
    }
}
