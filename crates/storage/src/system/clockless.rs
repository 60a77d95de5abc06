//! A browser: the standard library has no clock there, and would panic.

use std::time::Duration;

/// A clock that stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instant;

impl Instant {
    /// Returns the only moment.
    pub(crate) fn now() -> Instant {
        Instant
    }

    /// Returns no time.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// Returns no time: nothing expires unless the caller gives a clock.
pub(super) fn since_1970() -> Duration {
    Duration::ZERO
}
