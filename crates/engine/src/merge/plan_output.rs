//! What comes out of a plan.

use super::output::Output;
use crate::version::{TableHandle, Version};
use lsmith_tree::{Input, MergePlan, Outcome, Slice, Tree};
use std::sync::Arc;

/// What came out of a plan.
pub(crate) struct PlanOutput {
    pub(crate) outcome: Outcome,
    /// Parts of runs that must still be as they were.
    relies_on: Vec<(Input, Vec<Slice>)>,
    pub(crate) tables: Vec<Arc<TableHandle>>,
    /// Bytes of the files read and written.
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
}

impl PlanOutput {
    /// `outcome` of `plan`, whose inputs are in `version`; no tables yet.
    pub(super) fn new(outcome: Outcome, plan: &MergePlan, version: &Version) -> PlanOutput {
        let rewritten = outcome.rewritten.iter().map(|(part, _)| part);
        let parts = plan.inputs.iter().chain(rewritten);
        let relies_on = parts.filter_map(|part| {
            let run = version.disk_run(part.run)?.run();
            Some((part.clone(), run.clip(&part.range).collect()))
        });
        let relies_on = relies_on.collect();
        PlanOutput { outcome, relies_on, tables: Vec::new(), bytes_read: 0, bytes_written: 0 }
    }

    /// With the tables that were written, all open, and the bytes that were read for them.
    pub(super) fn written(self, output: Output<'_>, bytes_read: u64) -> PlanOutput {
        let bytes_written = output.facts.iter().map(|facts| facts.file_bytes).sum();
        PlanOutput { tables: output.handles, bytes_read, bytes_written, ..self }
    }

    /// Whether what the plan took or rewrote on storage is as it was. A plan may rewrite blocks
    /// beside what it takes, which others take or rewrite at the same time: the first one wins.
    pub(crate) fn still_holds(&self, tree: &Tree) -> bool {
        self.relies_on.iter().all(|(part, slices)| {
            let now = tree.run(part.run).map(|(_, run)| run.clip(&part.range));
            now.is_some_and(|now| now.eq(slices.iter().cloned()))
        })
    }
}
