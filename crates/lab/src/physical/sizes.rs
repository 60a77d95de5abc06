//! What files of a workload take, measured on its first writes.

use super::append::{AppendSizes, beside_entry};
use crate::meter::Mode;
use crate::profile::entry_bytes;
use crate::progress::NoProgress;
use crate::run::{Options, run};
use lsmith::env::MemEnv;
use lsmith_workload::{LiveBytes, Workload};
use std::path::Path;
use std::sync::Arc;

/// The most logical bytes of the small table and of the large table that are measured.
const SMALL_BYTES_MAX: u64 = 4 << 20;
const LARGE_BYTES: u64 = 16 << 20;

/// The most operations that are looked at, and played. A workload may read for hours before its
/// writes fill a table.
const OPS_MAX: usize = 1_000_000;

/// Logical bytes of an entry besides its key and value.
const ENTRY_BYTES: f64 = 8.0;

/// What the files of a workload take per logical byte. A table of the first writes is measured, of
/// the size of a memtable, and a larger one. In a larger run neighbouring keys have more bytes in
/// common.
#[derive(Clone, Copy, Debug)]
pub struct FileSizes {
    /// Bytes of the log per byte of keys and values.
    pub(super) log: f64,
    /// Bytes of keys and values per logical byte of write requests.
    pub(super) user: f64,
    small: Sample,
    large: Sample,
    pub(super) append: AppendSizes,
    /// Bytes of a key.
    pub(super) key: f64,
    /// Bytes of a table's filter and index per logical byte.
    pub(super) beside: f64,
    /// The share of the workload's bytes that is simulated. Pages and records of the manifest count
    /// with this share of their bytes, so that they are the same part of a sample as of the whole.
    pub(super) share: f64,
}

/// A table that was measured.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Logical bytes.
    bytes: f64,
    /// Bytes of the file per logical byte.
    ratio: f64,
}

/// What one flush of the store wrote.
struct Flush {
    /// Bytes of the log per byte of keys and values.
    log: f64,
    table: Sample,
}

impl FileSizes {
    /// Writes the beginning of `workload` to a store in memory, with memtables of at most
    /// [`memtable_bytes`](Options::memtable_bytes) and the codecs of `options`. `None` if
    /// the entries of its first million operations do not fill a memtable.
    ///
    /// # Errors
    /// Fails if the store fails or the workload has a damaged line.
    pub fn measured(workload: &Workload, options: &Options) -> anyhow::Result<Option<FileSizes>> {
        let small_bytes = options.memtable_bytes.min(SMALL_BYTES_MAX);
        let live_bytes = live_bytes(workload)?;
        if live_bytes < small_bytes {
            return Ok(None);
        }
        let Some(small) = flushed(workload, options, small_bytes)? else { return Ok(None) };
        let large = match live_bytes > 2 * small_bytes {
            true => flushed(workload, options, live_bytes)?.map_or(small.table, |it| it.table),
            false => small.table,
        };
        let key_bytes = workload.ops().next().transpose()?.map(|op| workload.key_bytes(op.item));
        let key_bytes = key_bytes.unwrap_or_default() as f64;
        let logical = entry_bytes(workload)?;
        let user = (logical - ENTRY_BYTES) / logical;
        let is_compressed = options.compression.as_ref().is_some_and(|codecs| codecs != "none");
        let append = AppendSizes::of(key_bytes, logical, large.ratio, is_compressed);
        let beside = beside_entry(key_bytes, logical) / logical;
        let (log, small) = (small.log, small.table);
        let (key, share) = (key_bytes, 1.0);
        Ok(Some(FileSizes { log, user, small, large, append, key, beside, share }))
    }

    /// Returns the sizes for a sample with a `share` of the workload's bytes, in files that are
    /// smaller by the same factor.
    pub(crate) fn of_share(self, share: f64) -> FileSizes {
        let smaller = |sample: Sample| Sample { bytes: sample.bytes * share, ..sample };
        FileSizes { small: smaller(self.small), large: smaller(self.large), share, ..self }
    }

    /// Returns the bytes of a sorted table per logical byte, in a run of `run_bytes`.
    pub(super) fn sorted(&self, run_bytes: f64) -> f64 {
        let steps = (self.large.bytes / self.small.bytes).ln();
        if steps <= 0.0 {
            return self.small.ratio;
        }
        let at = ((run_bytes / self.small.bytes).max(1.0).ln() / steps).min(2.0);
        self.small.ratio + at * (self.large.ratio - self.small.ratio)
    }
}

/// Returns the logical bytes that are live after the first operations, at most [`LARGE_BYTES`]. A
/// memtable of so many is full by then.
fn live_bytes(workload: &Workload) -> anyhow::Result<u64> {
    let mut live = LiveBytes::of(workload);
    let mut most = 0;
    for op in workload.ops().take(OPS_MAX) {
        let op = op?;
        live.observe(&op, workload.key_bytes(op.item));
        most = most.max(live.bytes());
        if most >= LARGE_BYTES {
            break;
        }
    }
    Ok(most.min(LARGE_BYTES))
}

/// Returns what a store writes that flushes one memtable of `bytes`; `None` if the workload does
/// not fill it.
fn flushed(workload: &Workload, options: &Options, bytes: u64) -> anyhow::Result<Option<Flush>> {
    let options = Options {
        memtable_bytes: bytes,
        flush_sizes: Arc::default(),
        compression: options.compression.clone(),
        env: Arc::new(MemEnv::new()),
        mode: Mode::Lockstep,
        ..Options::default()
    };
    let report = run("none", &workload.limited_to(1), Path::new("/files"), &options, &NoProgress)?;
    let (logical, physical) = (report.bytes.logical, report.bytes.physical);
    if logical.flush_written == 0 {
        return Ok(None);
    }
    Ok(Some(Flush {
        log: physical.log as f64 / physical.user.max(1) as f64,
        table: Sample {
            bytes: logical.flush_written as f64,
            ratio: physical.flush as f64 / logical.flush_written as f64,
        },
    }))
}
