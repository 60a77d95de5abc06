//! The real ones.

pub use arc_swap::{ArcSwap, Guard};
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};
pub use quick_cache::sync::Cache as BlockMap;
pub use std::sync::OnceLock;
pub use std::sync::atomic;
pub use std::thread;
pub use std::thread_local;

use std::time::{Duration, Instant};

/// Locks whose waiters are woken in one step: those above have each woken by the one before, and
/// the last one late.
pub mod crowd {
    pub use std::sync::{Condvar, Mutex};
}

/// Called where a device would be at work for a long time, while other threads go on.
pub fn device_works() {}

/// Time since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// One that starts now.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Never goes back.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
