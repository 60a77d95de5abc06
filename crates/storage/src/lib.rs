//! The storage layer of lsmith, below its trees: files, memtables, tables, logs, and cursors.
//!
//! This crate does not know keyspaces, merge policies or merge threads. From the ground up:
//!
//! * [`sync`]: the only door to threads, locks, atomics and condition variables.
//! * [`system`]: all that is an operating system's own.
//! * [`env`](mod@env): the only door to files: real, in memory, with faults.
//! * [`error`]: the one error type. [`panics`]: turns panics into errors.
//! * [`cipher`]: encrypts and decrypts, and holds the keys of a store.
//! * [`names`], [`directory`], [`bounds`]: the names of files, the directory of a store, the
//!   greatest numbers that files may hold.
//! * [`format`](mod@format): decodes and encodes bytes, without I/O.
//! * [`combine`]: calls the operators of keyspaces.
//! * [`reference`](mod@reference): where a value is that lies in a value file.
//! * [`cursor`], [`read`], [`fold`]: walk sorted entries, merge several sorted sources into one,
//!   and decide which entries a merge writes.
//! * [`memtable`], [`table`], [`log`]: the three things that hold entries.
//!
//! Applications use the crate `lsmith`, which re-exports the items of this crate that its users
//! need.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate is the door to files and clocks"
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod account;
pub mod bounds;
pub mod cipher;
pub mod combine;
pub mod cursor;
pub mod directory;
pub mod env;
pub mod error;
pub mod expiry;
pub mod fold;
pub mod format;
#[cfg(test)]
mod fuzz;
pub mod log;
pub mod memtable;
pub mod names;
pub mod panics;
pub mod read;
pub mod reference;
pub mod spans;
pub mod sync;
pub mod system;
pub mod table;

pub use error::{Error, ErrorKind, Result};
