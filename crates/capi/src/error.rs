//! Errors, and the border that no panic crosses.

use lsmith::ErrorKind;
use lsmith::policy::SpecError;
use std::any::Any;
use std::ffi::{CString, c_char};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The kind of an error.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum lsmith_error_kind_t {
    /// The operating system refused an operation.
    LSMITH_IO = 1,
    /// The device has no room left. Reads go on; writes work again once there is room.
    LSMITH_FULL = 2,
    /// The contents of a file are not what was written to it.
    LSMITH_CORRUPTION = 3,
    /// The call broke a rule that its description states.
    LSMITH_INVALID_ARGUMENT = 4,
    /// Another process or another handle has the store open.
    LSMITH_LOCKED = 5,
    /// Others have changed what a transaction used. Nothing was written. A new one may succeed.
    LSMITH_CONFLICT = 6,
    /// A write to a log or the manifest failed earlier. Writes are refused until the store is
    /// reopened.
    LSMITH_POISONED = 7,
    /// The directory holds no store, or the named keyspace does not exist.
    LSMITH_NOT_FOUND = 8,
    /// The log does not hold the changes that were asked for any more.
    LSMITH_GONE = 9,
    /// A newer version wrote the files, or they need a policy that is not there.
    LSMITH_UNSUPPORTED = 10,
    /// The store was opened for reading only.
    LSMITH_READ_ONLY = 11,
    /// A merge policy panicked or answered nonsense, or a thread that merges panicked.
    /// `lsmith_retry` tries again.
    LSMITH_PANICKED = 12,
    /// Code of the application that the store calls for single keys failed.
    LSMITH_CALLBACK = 13,
    /// A call panicked. This is a bug of lsmith; destroy the handles that it used.
    LSMITH_INTERNAL = 14,
}

use lsmith_error_kind_t::*;

/// Why a call failed.
#[derive(Debug)]
pub struct lsmith_error_t {
    kind: lsmith_error_kind_t,
    message: CString,
}

/// The outcome of the work of a call.
pub(crate) type Done<T> = Result<T, lsmith_error_t>;

impl lsmith_error_t {
    pub(crate) fn new(kind: lsmith_error_kind_t, message: impl Into<Vec<u8>>) -> lsmith_error_t {
        let mut message: Vec<u8> = message.into();
        message.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b'?');
        // No zero byte is left.
        lsmith_error_t { kind, message: CString::new(message).unwrap_or_default() }
    }
}

impl fmt::Display for lsmith_error_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message.to_string_lossy())
    }
}

/// Returns the error of a call that broke a rule.
pub(crate) fn invalid(message: impl Into<Vec<u8>>) -> lsmith_error_t {
    lsmith_error_t::new(LSMITH_INVALID_ARGUMENT, message)
}

impl From<lsmith::Error> for lsmith_error_t {
    fn from(error: lsmith::Error) -> lsmith_error_t {
        let kind = match error.kind() {
            ErrorKind::Io => LSMITH_IO,
            ErrorKind::Full => LSMITH_FULL,
            ErrorKind::Corruption => LSMITH_CORRUPTION,
            ErrorKind::InvalidArgument => LSMITH_INVALID_ARGUMENT,
            ErrorKind::Locked => LSMITH_LOCKED,
            ErrorKind::Conflict => LSMITH_CONFLICT,
            ErrorKind::Poisoned => LSMITH_POISONED,
            ErrorKind::NotFound => LSMITH_NOT_FOUND,
            ErrorKind::Gone => LSMITH_GONE,
            ErrorKind::Unsupported => LSMITH_UNSUPPORTED,
            ErrorKind::ReadOnly => LSMITH_READ_ONLY,
            ErrorKind::Panicked => LSMITH_PANICKED,
            ErrorKind::Callback => LSMITH_CALLBACK,
            _ => LSMITH_INTERNAL,
        };
        lsmith_error_t::new(kind, error.to_string())
    }
}

impl From<SpecError> for lsmith_error_t {
    fn from(error: SpecError) -> lsmith_error_t {
        invalid(error.to_string())
    }
}

/// Where a call tells of its error.
pub(crate) type ErrorPlace<'a> = Option<&'a mut Option<Box<lsmith_error_t>>>;

/// Puts `error` into `place`, if the caller gave one that is still empty.
pub(crate) fn tell(place: ErrorPlace<'_>, error: lsmith_error_t) {
    if let Some(place) = place {
        place.get_or_insert_with(|| Box::new(error));
    }
}

/// Does the work of a call. If it fails or panics, tells of it and returns `otherwise`.
pub(crate) fn call<T>(place: ErrorPlace<'_>, otherwise: T, work: impl FnOnce() -> Done<T>) -> T {
    // Callers who heed the error use nothing that the work has left behind.
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)));
    done.unwrap_or_else(|error| {
        tell(place, error);
        otherwise
    })
}

/// Does work that cannot fail. If it panics, returns `otherwise`.
pub(crate) fn quietly<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    call(None, otherwise, || Ok(work()))
}

fn panicked(panic: &(dyn Any + Send)) -> lsmith_error_t {
    lsmith_error_t::new(LSMITH_INTERNAL, format!("the call panicked: {}", words_of(panic)))
}

/// Returns the message of a panic.
pub(crate) fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_string())
}

/// Returns the handle, or the error for one that is null.
pub(crate) fn given<T>(handle: Option<T>, what: &str) -> Done<T> {
    handle.ok_or_else(|| invalid(format!("expected a {what}, found a null pointer")))
}

/// Returns the kind of an error.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_error_kind(error: Option<&lsmith_error_t>) -> lsmith_error_kind_t {
    error.map_or(LSMITH_INVALID_ARGUMENT, |error| error.kind)
}

/// Returns what happened, where, and the way out, as a text that lives as long as the error.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_error_message(error: Option<&lsmith_error_t>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Destroys an error. Set the pointer to null before the next call.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_error_destroy(error: Option<Box<lsmith_error_t>>) {
    drop(error);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_panic_leaves_a_call() {
        let mut place = None;
        let returned = call(Some(&mut place), 7, || -> Done<i32> { panic!("a bug") });
        assert_eq!(returned, 7);
        let error = place.expect("the call tells of it");
        assert_eq!(error.kind, LSMITH_INTERNAL);
        assert_eq!(error.to_string(), "the call panicked: a bug");
        assert_eq!(quietly(3, || panic!("a bug")), 3);
    }
}
