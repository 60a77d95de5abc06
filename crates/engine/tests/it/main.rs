//! Tests of the store through its public face.

#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

#[macro_use]
mod disk_env;

mod basic;
mod budget;
mod by_part;
mod close;
mod cold;
mod compression;
mod crash;
mod damage;
mod dice;
mod faults;
mod full;
mod gate;
mod histograms;
mod hostile;
mod load;
mod mapped;
mod model;
mod numbered;
mod panics;
mod pool;
mod power;
mod reopen;
mod rogue;
mod space;
mod threads;
mod watchdog;
