//! Measures wall-clock time and CPU time.

use rustix::time::{ClockId, clock_gettime};
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
        Clock { start: Instant::now(), cpu_start: seconds_of(ClockId::ProcessCPUTime) }
    }

    /// Returns the wall-clock seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Returns the CPU seconds of the whole process since the start, user and system.
    pub fn cpu_seconds(&self) -> f64 {
        seconds_of(ClockId::ProcessCPUTime) - self.cpu_start
    }
}

/// Returns the CPU seconds of this thread so far, user and system.
pub fn thread_cpu_seconds() -> f64 {
    seconds_of(ClockId::ThreadCPUTime)
}

fn seconds_of(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
