//! The figures of one phase on one store, and of one store over another.

use serde::{Deserialize, Serialize};

/// What one phase has cost on one store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The store.
    pub(crate) store: String,
    /// The phase.
    pub(crate) phase: String,
    /// Threads that called the store.
    pub(crate) threads: usize,
    /// Operations of all threads; entries of a scan, keys of a `multi_get`.
    pub(crate) ops: u64,
    /// Operations in a second on the clock, until the last has returned.
    pub(crate) ops_per_s: f64,
    /// User and system time of the process for an operation, until work in the background has
    /// come to rest, in microseconds.
    pub(crate) cpu_us_per_op: f64,
    /// Bytes that reach the device for a byte of key or value written; `None` where none is.
    pub(crate) device_bytes_per_user_byte: Option<f64>,
    /// Bytes of pages written for an operation, whether they reach the device or vanish before.
    pub(crate) written_bytes_per_op: f64,
    /// Bytes that were read from the device for an operation.
    pub(crate) read_bytes_per_op: f64,
    /// The time of half of all operations at most, in nanoseconds.
    pub(crate) p50_ns: u64,
    /// The time of 99 % of all operations at most.
    pub(crate) p99_ns: u64,
    /// The time of 99.9 % of all operations at most.
    pub(crate) p999_ns: u64,
    /// The longest time of an operation.
    pub(crate) max_ns: u64,
    /// Bytes that all files take on the device at the end.
    pub(crate) disk_bytes: u64,
    /// Memory of the process at the end, mapped files included.
    pub(crate) rss_bytes: u64,
    /// Bytes of all files over the bytes of live keys and values, on average over the last quarter
    /// of an overwrite.
    pub(crate) space_over_live: Option<f64>,
}

/// How one store compares with another in one phase: the first's figure over the other's, the
/// median over turns. Below 1 is better, except for operations a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    pub(super) phase: String,
    pub(super) store: String,
    pub(super) rival: String,
    pub(super) ops_per_s: Option<f64>,
    pub(super) cpu_us_per_op: Option<f64>,
    pub(super) device_bytes_per_user_byte: Option<f64>,
    pub(super) p50_ns: Option<f64>,
    pub(super) p99_ns: Option<f64>,
    pub(super) p999_ns: Option<f64>,
    pub(super) max_ns: Option<f64>,
    pub(super) disk_bytes: Option<f64>,
    pub(super) rss_bytes: Option<f64>,
}
