//! Carrying out a plan: read the inputs, write the output tables.

use crate::error::{Error, ErrorKind, Result};
use crate::merge::FoldCounts;
use crate::merge::filters;
use crate::merge::input::Passed;
use crate::merge::output::Output;
use crate::panics;
use crate::shared::Shared;
use crate::sync::atomic::Ordering;
use crate::table::{ProfileGrain, TableOptions};
use crate::version::{Space, TableHandle, Version};
use lsmith_tree::{Input, LevelId, MergePlan, Mode, Outcome, Place, RunId, Slice, TableId, Tree};
use std::sync::Arc;

/// Entries between two looks at whether the store is closing.
const ENTRIES_PER_LOOK: u64 = 4096;

/// A plan that is being carried out.
pub(crate) struct Job {
    pub(crate) space: Arc<Space>,
    pub(crate) plan: MergePlan,
    /// Whether nothing older than the output holds keys of it.
    pub(crate) bottom: bool,
    /// Whether sequence numbers that no snapshot needs are not kept.
    pub(crate) forgets: bool,
    /// Whether a memtable is among the inputs.
    pub(crate) takes_memory: bool,
    /// Whether memory keeps writes that are older than some that the plan takes.
    pub(crate) keeps_older: bool,
    /// The table whose last parts are all that the plan is to write anew, if it is one of the
    /// engine's own.
    pub(crate) rewrites: Option<TableId>,
    /// Whether it is the plan of all runs that was asked for by hand.
    pub(crate) by_hand: bool,
    /// Logical bytes of a part in the mean, if it is committed part by part.
    pub(crate) part_bytes: Option<u64>,
}

impl Job {
    /// Whether there may be a limit on how fast its output is written: on all but flushes.
    pub(super) fn is_limited(&self) -> bool {
        !self.takes_memory || self.plan.inputs.len() > 1
    }
}

/// What came out of a plan.
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    /// Parts of runs that must still be as they were.
    relies_on: Vec<(Input, Vec<Slice>)>,
    pub(crate) tables: Vec<Arc<TableHandle>>,
    /// Bytes of the files read and written.
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
}

impl Done {
    /// `outcome` of `plan`, whose inputs are in `version`; no tables yet.
    pub(super) fn new(outcome: Outcome, plan: &MergePlan, version: &Version) -> Done {
        let rewritten = outcome.rewritten.iter().map(|(part, _)| part);
        let parts = plan.inputs.iter().chain(rewritten);
        let relies_on = parts.filter_map(|part| {
            let run = version.disk_run(part.run)?.run();
            Some((part.clone(), run.clip(&part.range).collect()))
        });
        let relies_on = relies_on.collect();
        Done { outcome, relies_on, tables: Vec::new(), bytes_read: 0, bytes_written: 0 }
    }

    /// With the tables that were written, all open, and the bytes that were read for them.
    pub(super) fn written(self, output: Output<'_>, bytes_read: u64) -> Done {
        let bytes_written = output.facts.iter().map(|facts| facts.file_bytes).sum();
        Done { tables: output.handles, bytes_read, bytes_written, ..self }
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

impl Shared {
    /// Carries out the plan of `job`, whose inputs are in `version`. On an error nothing is left on
    /// the device.
    pub(crate) fn execute(&self, job: &Job, version: &Arc<Version>) -> Result<Done> {
        if job.plan.mode == Mode::Move {
            return Ok(Done::new(relabel(&job.plan, version), &job.plan, version));
        }
        let options = self.table_options(job, version);
        let mut output =
            Output::new(self, job.plan.cut_bytes, options.clone()).limited(job.is_limited());
        let execute = || match (job.rewrites, job.plan.reuse) {
            (Some(table), _) => self.rewrite(job, table, version, &mut output),
            (None, Some(reuse)) => self.preserve(job, reuse, version, &mut output),
            (None, None) => self.merge(job, version, &mut output, options),
        };
        let executed = panics::as_error("a merge", execute);
        match executed {
            Ok((outcome, bytes_read)) => {
                Ok(Done::new(outcome, &job.plan, version).written(output, bytes_read))
            }
            Err(error) => {
                output.remove();
                Err(named(error, &job.plan.inputs, version))
            }
        }
    }

    /// How the tables of the output are written.
    pub(super) fn table_options(&self, job: &Job, version: &Version) -> TableOptions {
        let core = job.space.core.lock();
        let by_block = job.plan.reuse.is_some() || core.policy.wants_blocks();
        let grain = if by_block { ProfileGrain::Blocks } else { ProfileGrain::Steps };
        let codec = core.compression.of_level(output_level(&job.plan, &version.tree));
        let average = f64::from(self.options.table.filter_bits_per_key);
        let filter_bits = match self.options.filters_by_size && average > 0.0 {
            true => Some(filters::bits_by_size(average, &job.plan, &version.tree)),
            false => None,
        };
        TableOptions { grain, codec, filter_bits, ..self.options.table.clone() }
    }

    /// Looks up now and then from a merge that may be long: an error where the store is closing; a
    /// log is made where the writers will need one soon.
    pub(super) fn check_open(&self, entries: u64) -> Result<()> {
        if !entries.is_multiple_of(ENTRIES_PER_LOOK) {
            return Ok(());
        }
        if self.closing.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Io, "the store is closing"));
        }
        if self.work.has_threads() {
            self.make_log_ahead();
        }
        Ok(())
    }
}

/// `error`, or where a merge of `inputs` met entries that cannot be written, the damage that they
/// come from: what was to be written is told otherwise, and nobody can look there.
pub(crate) fn named(error: Error, inputs: &[Input], version: &Version) -> Error {
    if error.kind() != ErrorKind::Corruption {
        return error;
    }
    let runs = inputs.iter().filter_map(|input| Some((version.disk_run(input.run)?, input)));
    let slices = runs.flat_map(|(open, input)| open.run().overlapping(&input.range));
    let tables: Vec<TableId> = slices.map(|slice| slice.table().id).collect();
    let shown = version.shown(|table| tables.contains(&table));
    let damage = shown.values().find_map(|(table, ranges)| table.table().verify(ranges).err());
    damage.unwrap_or(error)
}

/// What went in, and what was dropped of it.
pub(super) fn outcome_of(counts: FoldCounts, passed: Passed) -> Outcome {
    Outcome {
        from_memory: passed.memory,
        read: passed.storage,
        entries_dropped: counts.entries_in - counts.entries_out,
        dropped_below: counts.dropped_below,
        ..Outcome::default()
    }
}

/// The level that the output of `plan` goes to.
fn output_level(plan: &MergePlan, tree: &Tree) -> usize {
    let of = |run: RunId| match tree.run(run) {
        Some((LevelId::Disk(level), _)) => level,
        Some((LevelId::Memory, _)) | None => 0,
    };
    match plan.place {
        Place::NewRun(level) => level,
        Place::Into(run) | Place::Append(run) => of(run),
        Place::Oldest => plan.inputs.last().map_or(0, |input| of(input.run)),
    }
}

/// All of an open table.
pub(super) fn whole(handle: &TableHandle) -> Slice {
    Slice::whole(Arc::clone(handle.table().tree_table()))
}

/// The output of a plan that moves: its inputs, clipped.
fn relabel(plan: &MergePlan, version: &Version) -> Outcome {
    let mut outcome = Outcome::default();
    for input in &plan.inputs {
        if let Some((_, run)) = version.tree.run(input.run) {
            outcome.slices.extend(run.clip(&input.range));
        }
    }
    outcome.slices.sort_by(|left, right| left.range().start.cmp(&right.range().start));
    outcome
}
