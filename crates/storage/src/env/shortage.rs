//! What is done when too many files are open.
//!
//! A process may have few files open. If no more can be opened, all stores of the process close the
//! files that they keep open for speed alone. Then the call is tried again.

use crate::sync::unscheduled::Mutex;
use crate::sync::{OnceLock, Process};
use crate::system::{Shortage, shortage};
use std::fmt;
use std::io;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

/// Who keeps files open that could be opened again, to save the time.
pub trait KeepsOpen: Send + Sync {
    /// Closes them.
    fn close_all(&self);
}

/// The keepers of open files in one process. A child of `fork` also has the list of its parent. A
/// thread that is not there may hold its lock.
struct Keepers {
    process: Process,
    list: Mutex<Vec<Weak<dyn KeepsOpen>>>,
    of_child: OnceLock<Box<Keepers>>,
}

impl Keepers {
    fn new() -> Keepers {
        Keepers { process: Process::here(), list: Mutex::default(), of_child: OnceLock::new() }
    }

    /// Locks the list of this process.
    fn lock() -> MutexGuard<'static, Vec<Weak<dyn KeepsOpen>>> {
        static FIRST: OnceLock<Keepers> = OnceLock::new();
        let mut keepers = FIRST.get_or_init(Keepers::new);
        while !keepers.process.is_here() {
            keepers = keepers.of_child.get_or_init(|| Box::new(Keepers::new()));
        }
        keepers.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has `keeper` close its files, as long as it lives, whenever too many are open.
pub fn close_when_short(keeper: &Arc<impl KeepsOpen + 'static>) {
    let keeper: Arc<dyn KeepsOpen> = Arc::clone(keeper) as _;
    let mut keepers = Keepers::lock();
    keepers.retain(|keeper| keeper.strong_count() > 0);
    keepers.push(Arc::downgrade(&keeper));
}

/// Calls `open`, which opens a file. If too many files are open, closes the files that are kept
/// open for speed and calls it again.
pub(super) fn open_again<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    open().or_else(|error| {
        if !is_too_many_files(&error) {
            return Err(error);
        }
        let keepers = Keepers::lock().clone();
        keepers.iter().filter_map(Weak::upgrade).for_each(|keeper| keeper.close_all());
        open()
    })
}

/// The error of a process, or of all of them, that has too many files open.
#[derive(Debug)]
struct TooManyFiles(String);

impl fmt::Display for TooManyFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooManyFiles {}

/// Returns true if `error` says that too many files are open. Nothing was done then, and the same
/// call works once others are closed.
pub fn is_too_many_files(error: &io::Error) -> bool {
    shortage(error).is_some() || error.get_ref().is_some_and(|inner| inner.is::<TooManyFiles>())
}

/// Returns `error`. If it says that too many files are open, it then names the limit and the way
/// out. This process may have `max` files open.
pub(super) fn explained(error: io::Error, max: Option<u64>) -> io::Error {
    let limit = match (shortage(&error), max) {
        (Some(Shortage::Process), Some(max)) => {
            format!("this process may have {max} files open (RLIMIT_NOFILE)")
        }
        (Some(Shortage::Process), None) => {
            "this process has as many files open as it may".to_string()
        }
        (Some(Shortage::All), _) => {
            "all processes together have as many files open as they may".to_string()
        }
        _ => return error,
    };
    let text = format!(
        "{error}: {limit}: raise that limit (`ulimit -n`), ask for fewer with `max_open_files`, or \
         close others"
    );
    io::Error::new(error.kind(), TooManyFiles(text))
}
