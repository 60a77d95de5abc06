//! Measures wall-clock time and CPU time.

use lsmith::cpu::{process_cpu_time, thread_cpu_time};
use lsmith::env::{Env, RealEnv};

/// A clock that starts when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Counts time from its making, also on systems whose standard library has no clock.
    env: RealEnv,
    cpu_start: f64,
}

impl Clock {
    /// Returns a clock that starts now.
    pub fn start() -> Clock {
        Clock { env: RealEnv::new(), cpu_start: process_cpu_time().as_secs_f64() }
    }

    /// Returns the wall-clock seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.env.now().as_secs_f64()
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
