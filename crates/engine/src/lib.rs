//! A durable embedded LSM key-value store whose merge policy is a value you choose.
//!
//! * [`Store`]: open one with [`Store::builder`]; it has [`Keyspace`]s, each with a tree and a
//!   merge policy of its own.
//! * [`Batch`]: writes that happen together. [`PersistMode`]: how far a write must have got.
//! * [`Snapshot`]: what the store held at one moment. [`Iter`]: entries in key order, both ways.
//! * [`inspect`]: a look into single files, damaged ones too; [`repair`]: saves what can be read.
//! * [`Error`]: one type, with an [`ErrorKind`]; damage names the file and the offset.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! use lsmith::Store;
//!
//! let store = Store::builder(dir.path()).policy("leveled(ratio=4)").open()?;
//! let fruit = store.keyspace("fruit")?;
//! fruit.put("apple", "red")?;
//! fruit.put("pear", "green")?;
//! let last = fruit.iter().next_back().expect("two entries")?;
//! assert_eq!(&last.0[..], b"pear");
//! fruit.set_merge_policy("tiered(ratio=4)")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Layers, each using those below: `db` (handles) - `write`, `scheduler`, `commit`, `recovery`,
//! `verify` - `memory` - `merge`, `version`, `manifest` - `read` (cursors) - `table`, `memtable`,
//! `wal` - `format` - `env`, the only door to the operating system.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the store has clocks and hash maps; `env` is its door to files"
)]

mod bounds;
mod budget;
mod commit;
mod cursor;
mod db;
mod directory;
pub mod env;
mod error;
mod event;
mod format;
#[cfg(test)]
mod fuzz;
pub mod inspect;
mod left_out;
mod leftovers;
mod manifest;
mod memory;
mod memtable;
mod merge;
mod names;
mod pace;
mod panics;
mod pool;
mod read;
mod recovery;
mod repair;
mod scheduler;
mod shared;
mod spans;
mod stats;
mod sync;
mod table;
mod verify;
mod version;
mod wal;
mod write;

pub use db::{
    BATCH_BYTES_MAX, Batch, Builder, BulkLoad, DEFAULT_KEYSPACE, DEFAULT_POLICY, Iter,
    KEY_BYTES_MAX, Keyspace, KeyspaceOptions, KeyspaceStats, Loaded, PersistMode, Snapshot, Store,
    VALUE_BYTES_MAX, check_compression,
};
pub use error::{Error, ErrorKind, Result};
pub use event::{Event, Observer};
pub use left_out::{LeftOut, LeftOutReason};
pub use lsmith_tree::SeqNo;
pub use pool::Threads;
pub use repair::{Finding, FindingKind, RepairOptions, RepairReport, RepairedKeyspace, repair};
pub use stats::{Histogram, Histograms, MemoryUse, StoreStats};
pub use table::Cache;
