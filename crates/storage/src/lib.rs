//! What an lsmith store is made of below its trees: files, memtables, and cursors over them.
//!
//! Nothing here knows a keyspace, a merge policy or a thread that merges. From the ground up:
//!
//! * [`sync`]: the only door to threads, locks, atomics and condition variables.
//! * [`env`](mod@env): the only door to files: real, in memory, with faults.
//! * [`error`], [`panics`], [`names`], [`directory`], [`bounds`]: the one error type, caught
//!   panics, the names of files, the directory of a store, the greatest numbers in files.
//! * [`format`](mod@format): bytes to values and back, without I/O.
//! * [`cursor`], [`read`], [`fold`]: walking sorted entries, merging several sorted sources into
//!   one, and the rule that says which entries a merge writes.
//! * [`memtable`], [`table`], [`log`]: the three things that hold entries.
//!
//! Applications use the crate `lsmith`, which re-exports what its users need of this one.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "files have clocks and hash maps; `env` is the door to them"
)]

pub mod bounds;
pub mod cursor;
pub mod directory;
pub mod env;
pub mod error;
pub mod fold;
pub mod format;
#[cfg(test)]
mod fuzz;
pub mod log;
pub mod memtable;
pub mod names;
pub mod panics;
pub mod read;
pub mod spans;
pub mod sync;
pub mod table;

pub use error::{Error, ErrorKind, Result};
