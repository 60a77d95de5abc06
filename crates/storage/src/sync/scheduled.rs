//! Threads, locks and clocks for tests in which `shuttle` decides every step. `shuttle` runs all
//! threads of a test as one.
//!
//! Time advances only when a thread reads the clock or waits. A timed wait shorter than
//! [`SAFETY_NET`] ends at once, after other threads may have taken steps. Longer timed waits exist
//! for events that nobody announces, such as room on a device. They last until a thread wakes them,
//! so that a forgotten wake-up shows as a deadlock.

#![allow(missing_docs, reason = "as in the real ones, which are documented where they come from")]

mod swap;

pub use shuttle::sync::atomic;
pub use shuttle::thread;
pub use shuttle::thread_local;
pub use std::sync::OnceLock;
pub use swap::{ArcSwap, BlockMap, Guard};

use super::locks::{Condvar, MutexGuard};
use shuttle::rand::{Rng, thread_rng};
use std::cell::Cell;
use std::time::Duration;

/// Timed waits of this length and longer do not end by themselves.
const SAFETY_NET: Duration = Duration::from_millis(100);

/// The time that passes when a thread reads the clock.
const TICK: Duration = Duration::from_micros(1);

// All threads of a test are one thread of the system.
std::thread_local! {
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn advance(time: Duration) -> Duration {
    NOW.with(|now| {
        now.set(now.get() + time);
        now.get()
    })
}

/// The number of steps that other threads may take while a slow device works.
const STEPS_OF_DEVICE: usize = 30;

/// A device is slow once in this many times.
const SLOW_ONCE_IN: u32 = 8;

/// Marks a long wait for a device, in which other threads go on.
pub fn device_works() {
    if thread_rng().gen_ratio(1, SLOW_ONCE_IN) {
        (0..STEPS_OF_DEVICE).for_each(|_| thread::yield_now());
    }
}

/// Measures the time since its creation.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Duration);

impl Clock {
    /// Creates a clock that starts now.
    pub fn start() -> Clock {
        Clock(advance(TICK))
    }

    /// Returns the time since the start. It never goes back.
    pub fn elapsed(&self) -> Duration {
        advance(TICK) - self.0
    }
}

impl Condvar {
    /// Waits as [`wait`](Condvar::wait) does, for `time` at most. Returns true if it is over.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> bool {
        if time >= SAFETY_NET {
            self.wait(guard);
            return false;
        }
        advance(time);
        MutexGuard::unlocked(guard, thread::yield_now);
        true
    }
}
