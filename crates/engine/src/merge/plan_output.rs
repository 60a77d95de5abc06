//! The result of a plan.

use super::output::Output;
use crate::version::{TableHandle, Version};
use lsmith_tree::{Input, MergePlan, Outcome, Slice, Tree};
use std::sync::Arc;

/// The result of a plan: its outcome and its new tables.
pub(crate) struct PlanOutput {
    pub(crate) outcome: Outcome,
    /// Key ranges of runs, with the slices that these must still have when the plan commits.
    relies_on: Vec<(Input, Vec<Slice>)>,
    pub(crate) tables: Vec<Arc<TableHandle>>,
    /// Bytes read from files, and bytes of the files written.
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// If a filter has dropped or changed values: the first era of snapshots that the merge did not
    /// know.
    pub(crate) filtered_from: Option<u64>,
}

impl PlanOutput {
    /// Returns `outcome` of `plan`, whose inputs are in `version`, without tables.
    pub(super) fn new(outcome: Outcome, plan: &MergePlan, version: &Version) -> PlanOutput {
        let rewritten = outcome.rewritten.iter().map(|(part, _)| part);
        let parts = plan.inputs.iter().chain(rewritten);
        let shares = parts.filter_map(|part| {
            let run = version.disk_run(part.run)?.run();
            Some((part.clone(), run.clip(&part.range).collect()))
        });
        let relies_on = shares.collect();
        PlanOutput {
            outcome,
            relies_on,
            tables: Vec::new(),
            bytes_read: 0,
            bytes_written: 0,
            filtered_from: None,
        }
    }

    /// Adds the tables of `output`, all of them open, and the bytes read from files.
    pub(super) fn written(self, output: Output<'_>, bytes_read: u64) -> PlanOutput {
        let bytes_written = output.file_bytes();
        self.with(output.handles, bytes_read, bytes_written)
    }

    /// Adds the era from `era` on whose snapshots the merge did not know, if it `is_filtered`.
    pub(super) fn filtered(self, is_filtered: bool, era: u64) -> PlanOutput {
        PlanOutput { filtered_from: is_filtered.then_some(era), ..self }
    }

    /// Adds `tables`, and the bytes read from files and written to them.
    pub(super) fn with(
        self,
        tables: Vec<Arc<TableHandle>>,
        bytes_read: u64,
        bytes_written: u64,
    ) -> PlanOutput {
        PlanOutput { tables, bytes_read, bytes_written, ..self }
    }

    /// Returns true if `tree` still has the slices that the plan took or rewrote on storage. A plan
    /// may rewrite blocks next to its inputs. If another plan takes or rewrites these at the same
    /// time, the first one to commit wins.
    pub(crate) fn still_holds(&self, tree: &Tree) -> bool {
        self.relies_on.iter().all(|(part, slices)| {
            let now = tree.run(part.run).map(|(_, run)| run.clip(&part.range));
            now.is_some_and(|now| now.eq(slices.iter().cloned()))
        })
    }
}
