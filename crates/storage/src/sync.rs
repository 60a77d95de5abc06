//! The only door to threads, locks, atomics and condition variables.
//!
//! What is behind it is the real thing, or, in a build with `--cfg shuttle`, something that looks
//! the same and lets the `shuttle` crate decide which thread takes its next step. So a test can run
//! a whole store in any order of events, and repeat the one that failed (`tests/schedules`).
//!
//! * [`Mutex`], [`RwLock`], [`Condvar`]: as in the `parking_lot` crate, without poisoning.
//! * [`crowd`]: as in `std`; those who wait there are woken in one step.
//! * [`atomic`]: atomics that threads decide by. [`unscheduled`]: atomics that no thread decides
//!   by. Those are counters for statistics, bytes of files, and words that a lock guards.
//! * [`thread`], [`thread_local!`], [`Clock`].
//! * [`ArcSwap`] as in the crate `arc-swap`, [`BlockMap`] as `Cache` in `quick_cache`: others'
//!   code with locks and atomics inside.
//!
//! `Arc` and `Weak` need no door: what they do takes one step, and nobody waits for it.

#[cfg(not(shuttle))]
mod real;
#[cfg(shuttle)]
mod scheduled;

#[cfg(not(shuttle))]
pub use real::*;
#[cfg(shuttle)]
pub use scheduled::*;

/// Atomics that are no points at which another thread may go on in a test of schedules.
pub mod unscheduled {
    pub use std::sync::atomic::{AtomicU8, AtomicU64};
}
