//! Catches panics of the store's own code and of code given to it: merge policies, observers,
//! environments.
//!
//! A merge thread must not end by a panic, because writers and callers of `rest` wait for it. So it
//! does such work inside [`catch`], and reports the panic as an error.

use crate::error::{Error, ErrorKind, Result};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A panic that was caught. It prints as the message of the panic.
pub struct Panic(Box<dyn Any + Send>);

impl Panic {
    /// Continues the panic.
    pub fn resume(self) -> ! {
        resume_unwind(self.0)
    }

    /// Returns the error that says that `subject` panicked.
    pub fn of(&self, subject: &str) -> Error {
        Error::new(ErrorKind::Panicked, format!("{subject} panicked: {self}"))
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let string = self.0.downcast_ref::<String>().map(String::as_str);
        let message = string.or_else(|| self.0.downcast_ref::<&str>().copied());
        f.write_str(message.unwrap_or("without a message"))
    }
}

/// Runs `work` and catches a panic. The caller handles state that the panic leaves half changed.
pub fn catch<T>(work: impl FnOnce() -> T) -> std::result::Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(work)).map_err(Panic)
}

/// Runs `work`. A panic in it becomes an error that says that `subject` panicked.
pub fn as_error<T>(subject: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch(work).unwrap_or_else(|panic| Err(panic.of(subject)))
}

/// Runs `work`, whose result nobody needs. A panic in it is logged.
pub fn logged(subject: &str, work: impl FnOnce()) {
    if let Err(panic) = catch(work) {
        tracing::error!(%panic, "{subject} panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_an_error_with_its_message() {
        let error = as_error("a test", || -> Result<()> { panic!("number {}", 7) }).unwrap_err();
        assert_eq!(error.to_string(), "a test panicked: number 7");
        assert_eq!(error.kind(), ErrorKind::Panicked);
        let error = as_error("a test", || -> Result<()> { panic!("no number") }).unwrap_err();
        assert_eq!(error.to_string(), "a test panicked: no number");
        let odd = catch(|| std::panic::panic_any(7)).unwrap_err();
        assert_eq!(odd.to_string(), "without a message");
        assert_eq!(as_error("a test", || Ok(7)).unwrap(), 7);
    }
}
