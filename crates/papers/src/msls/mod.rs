//! Lim, Andersen, Kaminsky, "Towards accurate and fast evaluation of multi-stage log-structured
//! designs", FAST 2016.
//!
//! Measures the paper's designs by formula, in keyed simulation and on the real store: LevelDB's
//! and RocksDB's (the policies `leveldb` and `rocksdb`), COLA, SAMT and universal.
//! Write costs are defined as in the paper: bytes written, including the log, per byte of requests,
//! in the steady state after a load of all keys in order.

mod buffer;
mod density;
mod design;
mod designs;
mod levels;
mod panels;
mod requests;
mod rocksdb;
mod skew;
mod steady;
mod throughput;
mod unique;
mod wa;

pub(super) use buffer::measure as buffer;
pub(super) use density::measure as density;
pub(super) use designs::measure as designs;
pub(super) use levels::measure as levels;
pub(super) use rocksdb::measure as rocksdb;
pub(super) use skew::measure as skew;
pub(super) use throughput::measure as throughput;
pub(super) use unique::measure as unique;
pub(super) use wa::measure as wa;
