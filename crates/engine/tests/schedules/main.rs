//! A whole store in any order of events.
//!
//! With `--cfg shuttle`, every lock, atomic, wait and thread of the store goes through a scheduler,
//! which decides at each step which thread goes on. The environment is
//! [`MemEnv`](lsmith::env::MemEnv), so each call of it is a step too. Programs of a few threads run
//! in many orders, and their results are checked. A lost wake-up is a deadlock here, because no
//! wait ends after a time.
//!
//! `cargo xtask schedules` runs some hundred orders, `LSMITH_FULL=1 cargo xtask schedules` more
//! than ten thousand. A failure prints a seed; `LSMITH_SEED` set to it repeats the order.
#![cfg(shuttle)]

mod batches;
mod closing;
mod combines;
mod copies;
mod ends;
mod feeds;
mod keys;
mod loads;
mod ranges;
mod runner;
mod spaces;
mod synced;
mod transactions;

use lsmith_fuzz::dice;
