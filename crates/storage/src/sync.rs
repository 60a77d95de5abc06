//! The only door to threads, locks, atomics and condition variables.
//!
//! Normally the items here are the real ones. In a build with `--cfg shuttle` they have the same
//! interface, and the `shuttle` crate decides which thread takes its next step. So a test can run a
//! whole store in any order of events, and repeat the order that failed (`tests/schedules`).
//!
//! * [`Mutex`], [`RwLock`], [`Condvar`]: without poisoning.
//! * [`atomic`]: atomics whose values decide what threads do. [`unscheduled`]: atomics whose values
//!   decide nothing. Those are counters for statistics, bytes of files, and words behind a lock. A
//!   lock that is held for no step of a thread.
//! * [`thread`], [`thread_local!`], [`Clock`].
//! * [`Process`]: which process this is.
//! * [`ArcSwap`] as in the crate `arc-swap`, [`BlockMap`] as `Cache` in `quick_cache`: foreign code
//!   with locks and atomics inside.
//!
//! `Arc` and `Weak` need no door: each of their operations is one step, and no thread waits for it.

mod locks;
mod process;
#[cfg(not(shuttle))]
mod real;
#[cfg(shuttle)]
mod scheduled;

#[cfg(not(shuttle))]
pub use real::*;
#[cfg(shuttle)]
pub use scheduled::*;

pub use locks::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};
pub use process::Process;

/// Atomics and a lock at which a test of schedules never switches threads.
pub mod unscheduled {
    pub use std::sync::Mutex;
    pub use std::sync::atomic::{AtomicU8, AtomicU64};
}
