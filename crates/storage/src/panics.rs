//! Panics, of the store's own code or of code that it was given: merge policies, observers,
//! environments.
//!
//! A thread that merges must not end by one, because writers and whoever waits for rest wait for
//! it. So what it does there is done behind [`catch`], and the panic is told like an error.

use crate::error::{Error, ErrorKind, Result};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A panic that was caught. Its text is what was said.
pub struct Panic(Box<dyn Any + Send>);

impl Panic {
    /// Lets it go on.
    pub fn resume(self) -> ! {
        resume_unwind(self.0)
    }

    /// Says who panicked.
    pub fn of(&self, who: &str) -> Error {
        Error::new(ErrorKind::Panicked, format!("{who} panicked: {self}"))
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| self.0.downcast_ref::<&str>().copied());
        f.write_str(text.unwrap_or("it did not say why"))
    }
}

/// Does `work`. Who calls this sees to what a panic leaves half done.
pub fn catch<T>(work: impl FnOnce() -> T) -> std::result::Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(work)).map_err(Panic)
}

/// Does `work`; a panic in it is an error that says so of `who`.
pub fn as_error<T>(who: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch(work).unwrap_or_else(|panic| Err(panic.of(who)))
}

/// Does `work`, for which nobody waits; a panic in it is logged.
pub fn logged(who: &str, work: impl FnOnce()) {
    if let Err(panic) = catch(work) {
        tracing::error!(%panic, "{who} panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_tells_what_was_said() {
        let error = as_error("a test", || -> Result<()> { panic!("number {}", 7) }).unwrap_err();
        assert_eq!(error.to_string(), "a test panicked: number 7");
        assert_eq!(error.kind(), ErrorKind::Panicked);
        let error = as_error("a test", || -> Result<()> { panic!("no number") }).unwrap_err();
        assert_eq!(error.to_string(), "a test panicked: no number");
        let odd = catch(|| std::panic::panic_any(7)).unwrap_err();
        assert_eq!(odd.to_string(), "it did not say why");
        assert_eq!(as_error("a test", || Ok(7)).unwrap(), 7);
    }
}
