//! Seeded streams of operations for stores and simulations.
//!
//! A [`Workload`] is built from its spec and iterated. It is pure: equal specs and equal input
//! files give equal operations, on any machine, in any thread, at any time. This crate opens no
//! file; the caller opens them, through [`Inputs`].
//!
//! Operations use *items*, dense numbers from 0. [`Workload::key`] writes the key of an item.
//! [`Workload::ranks`] returns the rank of each key in byte order, so that a simulation can sort
//! numbers instead of strings.
//!
//! | spelling | operations |
//! |---|---|
//! | `load(keys=1M, value=1kB, order=hashed)` | every key put once; `order` is `hashed`, `sequential` or `zipf` (`keys` draws with repetitions) |
//! | `ycsb(a)`, `ycsb(FILE, records=1M, ops=1M)` | a YCSB core workload, built in (`a` to `f`) or from a property file: first the load phase, then the run phase; `value` overrides the record size |
//! | `mix(get=0.6, get_absent=0.2, scan=0.05, put=0.15, keys=1M, ops=1M, dist=uniform)` | the same with the shares of operations in the spec, which add up to 1; also `insert`, `delete`, `scan_length`; `dist` is `uniform`, `zipf` or `latest` |
//! | `update(keys=1M, share=0.7, dist=latest, skew=0.99)` | a share of the puts goes to existing keys: the `latest`, the oldest (`zipf`) or any (`uniform`); a share `deletes` of these deletes |
//! | `churn(keys=1M, ops=2M, deletes=0.1, ranges=0, span=10k)` | puts and deletes of random keys of a fixed set; a share `ranges` of the operations deletes 1 to `span` neighbouring keys |
//! | `queue(keys=1M, keep=100k, purge=10k)` | keys are put in ascending order; range deletes take the oldest ones |
//! | `uniform(keys=1M, ops=2M, deletes=0.5)` | absent keys are inserted, present ones removed, each with equal chance |
//! | `normal(sigma=0.005, omega=10k)` | the same, but inserted around a mean that moves after `omega` inserts |
//! | `tpc(warehouses=100, districts=10)` | orders are entered in random districts; the ten oldest of a district go together |
//! | `trace(FILE, format=NAME)` | a recorded history: our own lines, or a trace of RocksDB, YCSB or a cache |
//!
//! `uniform`, `normal` and `tpc` are the experiments of Thonangi & Yang, "On log-structured merge
//! for solid-state drives" (2017), section V. Their load phase inserts `keys` records; of the `ops`
//! operations of their run phase a share `deletes` (0.5: as many records go as come) removes any
//! record, or the oldest ones. Keys are numbers of four bytes in key order, of `uniform` and
//! `normal` below `domain` (1G). Values have 100 bytes. With `weigh=records` a remove counts for as
//! many bytes as a record, as in the paper; with `weigh=entries`, the default, for its key. That is
//! for simulations: a store writes removes as small as they are.
//!
//! Each takes `ops` (of workloads with a load phase: operations of the run phase), `bytes` (stop
//! after that many user bytes, key and value, were written), `flushes` (for drivers, see
//! [`Workload::limit_flushes`]), `key_bytes` (0: the length to which shorter keys are filled up
//! with zero bytes), `compressible` (0: the share of each value that is zeros, for codecs),
//! `expire` (entries stay: the number of writes after which an entry expires, or `recorded`) and
//! `seed` (1).
//!
//! ```
//! use lsmith_workload::{NoInputs, OpKind, Workload};
//!
//! let workload = Workload::from_spec(&"load(keys=3, value=100B)".parse()?, &NoInputs)?;
//! let mut key = Vec::new();
//! for op in workload.ops() {
//!     let op = op?;
//!     assert_eq!((op.kind, op.value_bytes), (OpKind::Put, 100));
//!     workload.key(op.item, &mut key);
//!     assert!(key.starts_with(b"user"));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod churn;
mod error;
mod flush_sizes;
mod group;
mod info;
mod inputs;
mod keys;
mod live;
mod lives;
mod load;
mod normal;
mod op;
mod parts;
mod present;
mod queue;
mod random;
mod ranks;
mod steady;
mod tpc;
mod trace;
mod uniform;
mod update;
mod workload;
mod ycsb;
mod zipf;

pub use error::WorkloadError;
pub use flush_sizes::FlushSizes;
pub use info::{ParamUnit, WorkloadInfo, WorkloadParam};
pub use inputs::{Inputs, NoInputs};
pub use live::{LiveBytes, TIME_BYTES};
pub use lives::Lives;
pub use op::{Op, OpKind};
pub use parts::VALUE_BYTES_MAX;
pub use random::{Rng, fill_value, value_seed};
pub use ranks::Ranks;
pub use trace::{Recorded, RecordedCounts};
pub use workload::{Ops, Workload};
pub use zipf::Zipf;
