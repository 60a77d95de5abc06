//! Lim, Andersen, Kaminsky, "Towards accurate and fast evaluation of multi-stage log-structured
//! designs", FAST 2016.
//!
//! Measures the paper's designs by formula, in keyed simulation and on the real store: LevelDB's
//! and RocksDB's (the policies `leveldb` and `rocksdb`), COLA, SAMT and universal.
//! Write costs are defined as in the paper: bytes written, including the log, per byte of requests,
//! in the steady state after a load of all keys in order.

pub(super) mod buffer;
pub(super) mod density;
mod design;
pub(super) mod designs;
pub(super) mod levels;
mod panels;
mod requests;
pub(super) mod rocksdb;
pub(super) mod skew;
mod steady;
pub(super) mod throughput;
pub(super) mod unique;
pub(super) mod wa;
