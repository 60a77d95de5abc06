//! A durable embedded LSM key-value store whose merge policy is a value you choose.
//!
//! A merge policy is what others call a compaction strategy: it decides when which sorted runs are
//! merged (compacted). It trades write amplification against read and space amplification.
//!
//! # Open, write, read
//!
//! A [`Store`] lives in a directory of its own. It has [`Keyspace`]s (column families): sorted maps
//! from keys to values, each with a tree and a merge policy of its own. Keys and values are bytes.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! use lsmith::Store;
//!
//! let store = Store::builder(dir.path()).open()?;
//! let fruit = store.keyspace("fruit")?;
//! fruit.put("apple", "red")?;
//! fruit.put("pear", "green")?;
//! fruit.delete("apple")?;
//! assert_eq!(fruit.get("apple")?, None);
//! assert_eq!(fruit.get("pear")?.as_deref(), Some(&b"green"[..]));
//! for entry in fruit.range("a".."z").rev() {
//!     let (key, value) = entry?;
//!     println!("{key:?} is {value:?}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Handles are cheap to clone and can be shared by threads. The store closes when the last handle
//! is dropped. [`Keyspace::bulk_load`] writes sorted entries into tables at once, past the
//! write-ahead log.
//!
//! # Batches and snapshots
//!
//! A [`Batch`] (write batch) takes effect as a whole, also across keyspaces and across a crash. A
//! [`Snapshot`] is a sequence number. It shows what the store held at one moment, and delays
//! nobody.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! use lsmith::{Batch, PersistMode, Store};
//!
//! let store = Store::builder(dir.path()).open()?;
//! let users = store.keyspace("users")?;
//! let names = store.keyspace("names")?;
//! let before = store.snapshot();
//! let mut batch = Batch::new();
//! batch.put(&users, "7", "ada");
//! batch.put(&names, "ada", "7");
//! store.write(batch, PersistMode::SyncData)?;
//! assert_eq!(before.get(&users, "7")?, None);
//! assert_eq!(users.get("7")?.as_deref(), Some(&b"ada"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What survives
//!
//! The [`PersistMode`] of a write says how far it must have got when the call returns:
//!
//! | mode | death of the process | power loss | cost |
//! |---|---|---|---|
//! | [`Buffer`](PersistMode::Buffer) | survives | the store opens on a prefix of the batches | a copy into memory, no system call |
//! | [`SyncData`](PersistMode::SyncData) | survives | survives | one sync of the device, shared by concurrent writers |
//! | [`SyncAll`](PersistMode::SyncAll) | survives | survives, with all metadata of the log file | the same, and a little more |
//!
//! [`Builder::persist`] chooses the mode of single writes, `Buffer` by default.
//! [`Store::persist`] syncs everything written so far. After a failed write of the log or the
//! manifest the store refuses writes ([`ErrorKind::Poisoned`]) until it is opened again. Files are
//! checksummed: damage is an error ([`ErrorKind::Corruption`]) that names the file and the offset.
//! [`repair`] saves what can be read of a damaged store.
//!
//! # Choosing a merge policy
//!
//! The policy decides which runs are merged when. Write amplification is the bytes that flushes and
//! merges write per byte flushed. Read amplification is the mean number of runs that a lookup
//! considers. The figures are from a simulation: 1,000 memtables of 256 KiB with updates of 400,000
//! keys in random order.
//!
//! | policy | write amplification | read amplification | for |
//! |---|---|---|---|
//! | `minlatency(k=6)`, the default | 5.0 | 5.1 | most uses: few writes, at most 6 runs |
//! | `tiered(ratio=4)` | 4.2 | 7.4 | writes that are seldom read; runs grow with the data |
//! | `bigtable(k=6)` | 5.2 | 4.8 | the same bound on runs, merges of very different sizes |
//! | `leveled(ratio=10)` | 18.6 | 4.9 | reads, and little space whatever the updates |
//! | `constant(k=6)` | 26.9 | 3.5 | few runs, at any cost |
//!
//! `tiered` is size-tiered compaction, and `leveled` is leveled compaction. `choose_best` and
//! `mixed` keep one run per level and merge it in parts: smooth merges that need little room.
//!
//! The command `lsmith policies` lists all of them, `lsmith tune` finds the best for a workload.
//! A policy is given as text or as a value. A keyspace can change its policy at any time:
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! use lsmith::policy::Tiered;
//! use lsmith::{KeyspaceOptions, Store};
//!
//! let store = Store::builder(dir.path()).policy("leveled(ratio=10)").open()?;
//! let log = KeyspaceOptions { policy: Some(Tiered::new(4)?.into()), ..Default::default() };
//! let events = store.keyspace_with("events", &log)?;
//! events.put("1", "started")?;
//! events.set_merge_policy("minlatency(k=4)")?;
//! assert_eq!(events.merge_policy(), "minlatency(k=4)");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What each option costs
//!
//! | option | default | more of it | less of it |
//! |---|---|---|---|
//! | [`memtable_bytes`](Builder::memtable_bytes) | 56 MiB | fewer bytes rewritten; memory, longer recovery | more merges |
//! | [`cache_bytes`](Builder::cache_bytes) | 64 MiB | compressed blocks are read less often; memory | more reads |
//! | [`memory_bytes`](Builder::memory_bytes) | half of a control group below 512 MiB, else none | one limit on all memory in place of the two above | |
//! | [`space_bytes`](Builder::space_bytes) | none | a limit on what the files take | |
//! | [`filter_bits`](Builder::filter_bits) | 10 per key | fewer reads of absent keys; memory | 0: each run is read |
//! | [`prefix_bytes`](KeyspaceOptions::prefix_bytes) | none | scans of absent prefixes skip runs; memory | |
//! | [`block_bytes`](Builder::block_bytes) | 4096 | less memory for fence pointers | less read per lookup |
//! | [`compression`](Builder::compression) | `none` | `lz4`, `zstd`: fewer bytes, more CPU; reads need the cache | |
//! | [`threads`](Builder::threads) | 2 | merges keep up with more writers; CPU | 1: a long merge delays flushes |
//! | [`merge_bytes_per_s`](Builder::merge_bytes_per_s) | no limit | | merges leave the device to others, and may fall behind |
//! | [`log_bytes_max`](Builder::log_bytes_max) | 4 memtables | longer recovery | memory is copied more often |
//! | [`changes_bytes`](Builder::changes_bytes) | 0 | change feeds go further back; disk space | |
//! | [`histograms`](Builder::histograms) | off | two looks at the clock per call | |
//!
//! When merges fall behind, writers are slowed and then stopped (back-pressure, a write stall), so
//! that memory stays bounded; [`KeyspaceStats::pressure`] and [`StoreStats`] tell how much.
//!
//! # Where files and threads come from
//!
//! All files are reached through [`env::Env`]: the operating system's, one in memory, or one that
//! injects faults for tests. Merges run on [`Threads`] of the store, or on threads that several
//! stores share. In lockstep ([`Builder::lockstep`]) there are no threads, and the same writes lead
//! to the same plans, as in a simulation.
//!
//! # The field's words
//!
//! | in the field | here |
//! |---|---|
//! | compaction, manual compaction | a merge, [`Keyspace::merge`] |
//! | compaction strategy, compaction style | a merge policy, [`Builder::policy`] |
//! | column family | [`Keyspace`] |
//! | insert, remove | [`Keyspace::put`], [`Keyspace::delete`] |
//! | compare and swap, put if absent | [`Keyspace::compare_and_swap`] |
//! | write batch, iterator | [`Batch`], [`Iter`] and [`Cursor`] |
//! | merge operator | a combine operator, [`Combine`] and [`Keyspace::combine`] |
//! | compaction filter | a filter of merges, [`MergeFilter`] |
//! | range tombstone | a range delete, [`Keyspace::delete_range`] |
//! | single delete | [`Keyspace::delete_single_unchecked`] |
//! | TTL | [`Expiry`], [`Keyspace::put_with_ttl`] |
//! | SST file writer, ingestion of external files | [`TableWriter`], [`Store::ingest`] |
//! | secondary instance | a reader, [`Builder::read_only`] and [`Store::refresh`] |
//! | change data capture | a change feed, [`Store::changes`] |
//! | workload trace, query trace | a recording, [`Store::record`] |
//! | write stall | back-pressure, [`KeyspaceStats::pressure`] |
//!
//! # Examples
//!
//! The folder `examples` of this crate has a program for each of these jobs. A test runs all of
//! them. `cargo run -p lsmith --example hello` runs the first.
//!
//! | example | job |
//! |---|---|
//! | `hello` | open, write, read, iterate |
//! | `secondary_index` | an index that batches keep right |
//! | `counters` | updates without a read, by a merge operator |
//! | `typed` | values of Rust types by serde, and a counter of ids |
//! | `sessions` | entries that expire (TTL) |
//! | `queue` | tasks taken from the front by range deletes |
//! | `time_series` | a bounded time series under `fifo` |
//! | `backup` | backups, restore, and a checkpoint |
//! | `readers` | a reader process beside the writer |
//! | `change_feed` | a copy that follows a store |
//! | `async_writer` | a store behind tokio |
//! | `custom_policy` | a merge policy of your own |
//! | `draw_tree` | an observer that draws the tree after each merge |
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the store has clocks and hash maps; `env` is its door to files"
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/combine.md")]
struct CombinePage;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/readers.md")]
struct ReadersPage;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/recording.md")]
struct RecordingPage;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/reads.md")]
struct ReadsPage;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/transactions.md")]
struct TransactionsPage;

mod backup;
mod budget;
mod catalog;
mod checkpoint;
mod clock;
mod commit;
mod compression;
mod context;
mod db;
mod engine;
mod event;
mod examine;
mod followers;
#[cfg(test)]
mod fuzz;
mod group;
mod identity;
pub mod inspect;
mod keyspace;
mod keyspaces;
mod leases;
mod left_out;
mod leftovers;
mod limit;
mod manifest;
mod memory;
mod merge;
mod name;
mod opening;
mod options;
mod progress;
mod record;
mod recorder;
mod repair;
mod rules;
mod scheduler;
mod snapshots;
mod space;
mod stats;
mod threads;
mod throttle;
mod values;
mod version;
mod wal;
mod write;

pub use budget::Memory;
pub use clock::{Clock, Until};
pub use compression::check_compression;
pub use db::{
    Backup, BackupOptions, Backups, Batch, Builder, BulkLoad, Change, ChangeBatch, Changes,
    Checkpoint, Cursor, DetachedBatch, Ingest, IngestOptions, Isolation, Iter, Keyspace,
    KeyspaceInfo, KeyspaceStats, Loaded, Snapshot, Store, TableWriter, TableWriterOptions,
    Transaction, TransactionIter, prefix_bounds,
};
pub use event::{Event, Observer};
pub use identity::StoreId;
pub use left_out::{LeftOut, LeftOutReason};
pub use lsmith_storage::cipher;
#[doc(inline)]
pub use lsmith_storage::combine::{Combine, CombineError, Verdict};
#[doc(inline)]
pub use lsmith_storage::env;
pub use lsmith_storage::format::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use lsmith_storage::table::Cache;
pub use lsmith_storage::{Error, ErrorKind, Result};
pub use lsmith_tree::SeqNo;
pub use options::{DEFAULT_KEYSPACE, DEFAULT_POLICY, KeyspaceOptions, PersistMode, RecordOptions};
pub use record::RecordRequest;
pub use recorder::Recording;
pub use repair::{Finding, FindingKind, RepairOptions, RepairReport, RepairedKeyspace, repair};
pub use rules::{CombineOperators, Counter, Expiry, Life, MergeFilter};
pub use stats::{Histogram, Histograms, MemoryUse, SpaceUse, StoreStats};
pub use threads::Threads;
pub use write::BATCH_BYTES_MAX;

/// Merge policies: the trait [`MergePolicy`](policy::MergePolicy), the policies of this crate, the
/// registry that builds them from specs, and the laws that every policy keeps.
pub mod policy {
    #[doc(inline)]
    pub use lsmith_policy::*;
    #[doc(inline)]
    pub use lsmith_spec::{Params, Spec, SpecError};
}

/// The tree as policies, observers and [`Keyspace::tree`] show it: levels, sorted runs, tables, key
/// ranges and merge plans.
pub mod tree {
    #[doc(inline)]
    pub use lsmith_tree::*;
}

/// The CPU time that threads and the process have used, as the store counts it for merges.
pub mod cpu {
    #[doc(inline)]
    pub use lsmith_storage::system::{process_cpu_time, thread_cpu_time};
}
