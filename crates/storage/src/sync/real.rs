//! The real threads, locks and clocks.

pub use arc_swap::{ArcSwap, Guard};
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};
pub use quick_cache::sync::Cache as BlockMap;
pub use std::sync::OnceLock;
pub use std::sync::atomic;
pub use std::thread;
pub use std::thread_local;

use std::time::{Duration, Instant};

/// Locks that wake all their waiters in one step. With the locks above, each waiter wakes the next,
/// and the last one wakes late.
pub mod crowd {
    pub use std::sync::{Condvar, Mutex};
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
