//! Counts the operations of a workload.

use crate::profile::entry_bytes;
use anyhow::Result;
use lsmith_workload::{OpKind, Workload};

/// The operations of a workload, after its load phase if it has one, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// Puts, deletes, operands and range deletes.
    pub(super) writes: f64,
    /// Lookups. Their keys count as present.
    pub(super) lookups: f64,
    /// Range reads.
    pub(super) scans: f64,
    /// Mean logical bytes of an entry.
    pub(super) entry_bytes: f64,
}

impl Counts {
    /// Counts the operations of `workload`. A workload that only loads is counted whole.
    ///
    /// # Errors
    /// Fails if the workload has a damaged line.
    pub(super) fn of(workload: &Workload) -> Result<Counts> {
        let mut counts = Counts { entry_bytes: entry_bytes(workload)?, ..Counts::default() };
        let load = workload.load_ops();
        let is_all_load = load >= workload.ops_max();
        let skipped = if is_all_load { 0 } else { load as usize };
        for op in workload.ops().skip(skipped) {
            match op?.kind {
                OpKind::Read => counts.lookups += 1.0,
                OpKind::Scan => counts.scans += 1.0,
                OpKind::ReadModifyWrite => {
                    counts.writes += 1.0;
                    counts.lookups += 1.0;
                }
                OpKind::Put
                | OpKind::Insert
                | OpKind::Delete
                | OpKind::Remove
                | OpKind::DeleteRange
                | OpKind::Combine => counts.writes += 1.0,
            }
        }
        Ok(counts)
    }

    /// Returns the share of range reads among all reads.
    pub(super) fn scan_share(&self) -> f64 {
        self.scans / (self.lookups + self.scans).max(1.0)
    }
}
