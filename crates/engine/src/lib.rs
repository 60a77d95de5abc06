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

mod catalog;
mod commit;
mod compression;
mod context;
mod db;
mod engine;
mod event;
mod examine;
#[cfg(test)]
mod fuzz;
pub mod inspect;
mod keyspace;
mod keyspaces;
mod left_out;
mod leftovers;
mod manifest;
mod memory;
mod merge;
mod opening;
mod options;
mod progress;
mod repair;
mod scheduler;
mod snapshots;
mod stats;
mod threads;
mod throttle;
mod version;
mod wal;
mod write;

pub use compression::check_compression;
pub use db::{Batch, Builder, BulkLoad, Iter, Keyspace, KeyspaceStats, Loaded, Snapshot, Store};
pub use event::{Event, Observer};
pub use left_out::{LeftOut, LeftOutReason};
#[doc(inline)]
pub use lsmith_storage::env;
pub use lsmith_storage::format::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use lsmith_storage::table::Cache;
pub use lsmith_storage::{Error, ErrorKind, Result};
pub use lsmith_tree::SeqNo;
pub use options::{DEFAULT_KEYSPACE, DEFAULT_POLICY, KeyspaceOptions, PersistMode};
pub use repair::{Finding, FindingKind, RepairOptions, RepairReport, RepairedKeyspace, repair};
pub use stats::{Histogram, Histograms, MemoryUse, StoreStats};
pub use threads::Threads;
pub use write::BATCH_BYTES_MAX;
