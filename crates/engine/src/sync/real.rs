//! The real ones.

pub(crate) use arc_swap::{ArcSwap, Guard};
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};
pub(crate) use quick_cache::sync::Cache as BlockMap;
pub(crate) use std::sync::OnceLock;
pub(crate) use std::sync::atomic;
pub(crate) use std::thread;
pub(crate) use std::thread_local;

use std::time::{Duration, Instant};

/// Locks whose waiters are woken in one step: those above have each woken by the one before, and
/// the last one late.
pub(crate) mod crowd {
    pub(crate) use std::sync::{Condvar, Mutex};
}

/// Called where a device would be at work for a long time, while other threads go on.
pub(crate) fn device_works() {}

/// Time since it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// One that starts now.
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Never goes back.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
