//! The real threads, locks and clocks.

pub use arc_swap::{ArcSwap, Guard};
pub use quick_cache::sync::Cache as BlockMap;
pub use std::sync::OnceLock;
pub use std::sync::atomic;
pub use std::thread;
pub use std::thread_local;

use super::locks::{Condvar, MutexGuard};
use crate::system::Instant;
use std::sync::PoisonError;
use std::time::Duration;

impl Condvar {
    /// Waits as [`wait`](Condvar::wait) does, for `time` at most. Returns true if it is over.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> bool {
        let held = guard.held.take().expect("a waiting thread holds the lock");
        let waited = self.0.wait_timeout(held, time).unwrap_or_else(PoisonError::into_inner);
        guard.held = Some(waited.0);
        waited.1.timed_out()
    }
}

/// Marks a long wait for a device, in which other threads go on. Does nothing here.
pub fn device_works() {}

/// Measures the time since its creation.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Creates a clock that starts now.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Returns the time since the start. It never goes back.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
