//! A durable embedded LSM key-value store.

mod cursor;
pub mod env;
mod error;
mod format;
mod memtable;
mod merge;
mod read;
mod table;
mod wal;

pub use error::{Error, ErrorKind, Result};
