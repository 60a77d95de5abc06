//! Runs a choice on the real store and compares it with the predictions.

use super::scale::shrunk;
use crate::compare::{Comparison, Row};
use crate::profile::Profile;
use crate::progress::Progress;
use crate::run::Options;
use anyhow::Result;
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::KeyedWorkload;
use lsmith_workload::Workload;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// The most logical bytes of all writes, so that a run takes seconds.
const BYTES_MAX: f64 = 32e6;

/// The smallest memtable. In smaller ones whole blocks and files weigh more than at full scale.
const MEMTABLE_BYTES_MIN: u64 = 32 << 10;

/// The results of a choice and of the default policy on the real store in lockstep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verified {
    /// The factor by which keys, operations and memtables are reduced.
    pub shrink: f64,
    /// The full spec of the workload that was run.
    pub workload: String,
    /// Logical bytes at which a memtable was sealed.
    pub memtable_bytes: u64,
    /// The choice, and the default policy if it differs: predictions at this scale, results of
    /// the store, and prediction errors.
    pub rows: Vec<Row>,
}

/// Runs `policies`, without duplicates, at a scale that takes seconds.
///
/// # Errors
/// Fails like [`Comparison::run`].
pub(super) fn verify(
    policies: &[&str],
    workload: &Workload,
    memtable_bytes: u64,
    dir: &Path,
    progress: &dyn Progress,
) -> Result<Verified> {
    let profile = Profile::of(workload)?;
    let shrink = (profile.writes * profile.entry_bytes / BYTES_MAX).max(1.0);
    let memtable_bytes =
        ((memtable_bytes as f64 / shrink) as u64).max(MEMTABLE_BYTES_MIN.min(memtable_bytes));
    let options = Options { memtable_bytes, ..Options::default() };
    let mut built: Vec<Arc<dyn MergePolicy>> = Vec::new();
    for spec in policies {
        let policy = Registry::builtin().build(spec)?;
        if built.iter().all(|known| known.spec() != policy.spec()) {
            built.push(policy);
        }
    }
    let workload = &KeyedWorkload::new(shrunk(workload, shrink)?);
    let comparison =
        Comparison { policies: &built, workload, dir, options: &options, free: false, runs: 1 };
    let mut rows = Vec::new();
    comparison.run(progress, &mut |row| rows.push(row))?;
    let workload = workload.workload().spec().to_string();
    Ok(Verified { shrink, workload, memtable_bytes, rows })
}
