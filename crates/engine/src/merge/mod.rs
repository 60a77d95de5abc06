//! Merging: what goes on ([`Fold`](lsmith_storage::fold::Fold)), and how a plan is carried out.
//!
//! A plan without [`Reuse`](lsmith_tree::Reuse) writes all that it takes anew, in parts where it is
//! large (`split`), which are committed one by one where they can be (`by_part`). One with
//! it keeps blocks that meet nothing, and joins small ones (`preserve`): the driver in
//! [`lsmith_tree::blocks`] decides at every block of two inputs (`side`, `part`).

mod by_part;
mod filters;
mod input;
mod output;
mod part;
mod plan_output;
mod preserve;
mod reserved;
mod rewrite;
mod side;
mod split;

pub(crate) use by_part::PlanPart;
use input::{InputCursor, Passed, entry_size};
use output::Output;
pub(crate) use plan_output::PlanOutput;
pub(crate) use reserved::ReservedPlan;
use split::Split;

use crate::context::Context;
use crate::throttle::Throttle;
use crate::version::Version;
use crate::wal::Wal;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::fold::FoldCounts;
use lsmith_storage::panics;
use lsmith_storage::sync::Mutex;
use lsmith_storage::table::{ProfileGrain, TableOptions};
use lsmith_tree::{Input, LevelId, MergePlan, Mode, Outcome, Place, RunId, TableId, Tree};
use std::sync::Arc;

/// Entries between two looks at whether the store is closing.
const ENTRIES_PER_LOOK: u64 = 4096;

/// Carries out merge plans, by all threads of a store.
#[derive(Debug)]
pub(crate) struct Merger {
    context: Arc<Context>,
    wal: Arc<Wal>,
    throttle: Throttle,
    /// Merges of which parts may be left for other threads.
    splits: Mutex<Vec<Arc<Split>>>,
}

impl Merger {
    /// Returns a merger whose output keeps to the limit `throttle`.
    pub(crate) fn new(context: &Arc<Context>, wal: &Arc<Wal>, throttle: Throttle) -> Merger {
        let (context, wal) = (Arc::clone(context), Arc::clone(wal));
        Merger { context, wal, throttle, splits: Mutex::default() }
    }

    /// Returns an output without tables yet. Tables are cut when they have reached `cut_bytes`
    /// logical bytes, and written as `table` says.
    fn output(&self, cut_bytes: Option<u64>, table: TableOptions) -> Output<'_> {
        Output::new(&self.context, &self.throttle, cut_bytes, table)
    }

    /// Carries out the plan of `reserved`, whose inputs are in `version`. After an error no file is
    /// left on the device.
    pub(crate) fn execute(
        &self,
        reserved: &ReservedPlan,
        version: &Arc<Version>,
    ) -> Result<PlanOutput> {
        if reserved.plan.mode == Mode::Move {
            return Ok(PlanOutput::new(relabel(&reserved.plan, version), &reserved.plan, version));
        }
        let options = self.table_options(reserved, version);
        let mut output =
            self.output(reserved.plan.cut_bytes, options.clone()).limited(reserved.is_limited());
        let execute = || match (reserved.rewrites, reserved.plan.reuse) {
            (Some(table), _) => self.rewrite(reserved, table, version, &mut output),
            (None, Some(reuse)) => self.preserve(reserved, reuse, version, &mut output),
            (None, None) => self.merge(reserved, version, &mut output, options),
        };
        let executed = panics::as_error("a merge", execute);
        match executed {
            Ok((outcome, bytes_read)) => {
                Ok(PlanOutput::new(outcome, &reserved.plan, version).written(output, bytes_read))
            }
            Err(error) => {
                output.remove();
                Err(named(error, &reserved.plan.inputs, version))
            }
        }
    }

    /// How the tables of the output are written.
    pub(crate) fn table_options(&self, reserved: &ReservedPlan, version: &Version) -> TableOptions {
        let state = reserved.keyspace.state.lock();
        let by_block = reserved.plan.reuse.is_some() || state.policy.wants_blocks();
        let grain = if by_block { ProfileGrain::Blocks } else { ProfileGrain::Steps };
        let codec = state.compression.of_level(output_level(&reserved.plan, &version.tree));
        let average = f64::from(self.context.options.table.filter_bits_per_key);
        let filter_bits = match self.context.options.filters_by_size && average > 0.0 {
            true => Some(filters::bits_by_size(average, &reserved.plan, &version.tree)),
            false => None,
        };
        TableOptions { grain, codec, filter_bits, ..self.context.options.table.clone() }
    }

    /// Looks up now and then from a merge that may be long: an error where the store is closing; a
    /// log is made where the writers will need one soon.
    fn check_open(&self, entries: u64) -> Result<()> {
        if !entries.is_multiple_of(ENTRIES_PER_LOOK) {
            return Ok(());
        }
        self.context.check_open()?;
        if self.context.progress.has_threads() {
            self.wal.make_log_ahead();
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
fn outcome_of(counts: FoldCounts, passed: Passed) -> Outcome {
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
