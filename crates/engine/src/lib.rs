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

mod budget;
mod commit;
mod db;
mod event;
#[cfg(test)]
mod fuzz;
pub mod inspect;
mod left_out;
mod leftovers;
mod manifest;
mod memory;
mod merge;
mod pace;
mod pool;
mod recovery;
mod repair;
mod scheduler;
mod shared;
mod stats;
mod verify;
mod version;
mod write;

pub use db::{
    BATCH_BYTES_MAX, Batch, Builder, BulkLoad, DEFAULT_KEYSPACE, DEFAULT_POLICY, Iter, Keyspace,
    KeyspaceOptions, KeyspaceStats, Loaded, PersistMode, Snapshot, Store, check_compression,
};
pub use event::{Event, Observer};
pub use left_out::{LeftOut, LeftOutReason};
pub use lsmith_storage::env;
pub use lsmith_storage::format::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use lsmith_storage::table::Cache;
pub use lsmith_storage::{Error, ErrorKind, Result};
pub use lsmith_tree::SeqNo;
pub use pool::Threads;
pub use repair::{Finding, FindingKind, RepairOptions, RepairReport, RepairedKeyspace, repair};
pub use stats::{Histogram, Histograms, MemoryUse, StoreStats};
