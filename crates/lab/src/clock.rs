//! Measures wall-clock time and CPU time.

use lsmith::cpu::{process_cpu_time, thread_cpu_time};
use lsmith::env::{Env, RealEnv};
use std::time::Duration;

/// A clock that starts when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Counts time from its making, also on systems whose standard library has no clock.
    env: RealEnv,
    /// The CPU time that it counts.
    cpu_time: fn() -> Duration,
    cpu_start: f64,
}

impl Clock {
    /// Returns a clock that starts now, and counts the CPU time of the whole process.
    pub fn start() -> Clock {
        Clock::counting(process_cpu_time)
    }

    /// Returns a clock that starts now, and counts the CPU time of the thread that reads it. That
    /// must be the thread that started it.
    pub fn start_of_thread() -> Clock {
        Clock::counting(thread_cpu_time)
    }

    fn counting(cpu_time: fn() -> Duration) -> Clock {
        Clock { env: RealEnv::new(), cpu_time, cpu_start: cpu_time().as_secs_f64() }
    }

    /// Returns the wall-clock seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.env.now().as_secs_f64()
    }

    /// Returns the CPU seconds of the process or of the thread since the start, user and system.
    pub fn cpu_seconds(&self) -> f64 {
        (self.cpu_time)().as_secs_f64() - self.cpu_start
    }
}

/// Returns the CPU seconds of this thread so far, user and system.
pub fn thread_cpu_seconds() -> f64 {
    thread_cpu_time().as_secs_f64()
}
