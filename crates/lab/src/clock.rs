//! Measures wall-clock time and CPU time.

use lsmith::cpu::{process_cpu_time, thread_cpu_time};
use std::time::Instant;

/// A clock that starts when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    cpu_start: f64,
}

impl Clock {
    /// Returns a clock that starts now.
    pub fn start() -> Clock {
        Clock { start: Instant::now(), cpu_start: process_cpu_time().as_secs_f64() }
    }

    /// Returns the wall-clock seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Returns the CPU seconds of the whole process since the start, user and system.
    pub fn cpu_seconds(&self) -> f64 {
        process_cpu_time().as_secs_f64() - self.cpu_start
    }
}

/// Returns the CPU seconds of this thread so far, user and system.
pub fn thread_cpu_seconds() -> f64 {
    thread_cpu_time().as_secs_f64()
}
