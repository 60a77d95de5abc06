//! A whole store in any order of events.
//!
//! Built with `--cfg shuttle`, every lock, atomic, wait and thread of the store goes through a
//! scheduler that decides at each of their steps which thread takes the next one. The environment
//! is [`MemEnv`](lsmith::env::MemEnv), so each call of it is a step too. Programs of a few threads
//! are run in many orders, and what comes out is checked against what may. A lost wake-up is a
//! deadlock here, because nothing ends by waiting for a while.
//!
//! `cargo xtask schedules` runs some hundred, `LSMITH_FULL=1 cargo xtask schedules` more than ten
//! thousand. A failure prints a seed; `LSMITH_SEED` set to it repeats the order.
#![cfg(shuttle)]

mod batches;
mod closing;
mod keys;
mod loads;
mod runner;
mod spaces;
mod synced;

use lsmith_fuzz::dice;
