//! Merging (compaction): carries out plans. One merge, from start to end:
//!
//! 1. A merging thread asks the policy for a plan, checks it against the rules of the tree, and
//!    reserves its inputs, so that no other plan takes them (`Scheduler::next_merge`).
//! 2. The log is synced first if the plan takes a memtable while older writes are in the log alone,
//!    of this keyspace or of another one. Otherwise power loss could leave later writes without
//!    earlier ones (`Scheduler::needs_synced_logs`).
//! 3. The inputs are read from one version of the tree, in key order, newest entry first
//!    ([`InputCursor`]). A move or a drop reads nothing (`relabel`, `dropped`).
//! 4. A [`Fold`](lsmith_storage::fold::Fold) says which entries are written. It drops what no
//!    snapshot sees, what range tombstones hide, and what has expired. A tombstone goes once
//!    nothing older may lie below the output ([`hiding`] says what is applied).
//! 5. The output is cut into tables at the size that the plan names ([`Output::put`]). Each table
//!    is synced when it is complete.
//! 6. The change of the tree goes to the manifest, and then the new version is shown
//!    (`Committer::commit`). Memtables that were sealed meanwhile stay above the output.
//! 7. Readers may still hold the old version. The last one to let it go removes the input files
//!    (`Version::drop`).
//!
//! After an error no file of the output stays ([`Output::remove`]). The plan is tried again once
//! the cause is gone (`Scheduler::give_up`).
//!
//! Step 5 has four forms. A plan without [`Reuse`](lsmith_tree::Reuse) writes all its entries anew
//! (`rewrite` if one table is only rewritten), except for tables that it keeps (`kept`). If it is
//! large, it is split into parts (`split`), which commit one by one if possible (`by_part`). A plan
//! with `Reuse` keeps blocks where no other input has keys, and joins small ones (`preserve`). The
//! driver in [`lsmith_tree::blocks`] decides at every block of the two inputs (`side`, `part`). A
//! plan whose output are append tables writes them table by table (`append`).

mod append;
mod by_part;
mod filters;
mod input;
mod kept;
mod output;
mod part;
mod plan_output;
mod preserve;
mod reserved;
mod rewrite;
mod side;
mod split;
mod values;

pub(crate) use by_part::PlanPart;
use input::{InputCursor, TakenSizes, entry_size};
use output::Output;
pub(crate) use plan_output::PlanOutput;
pub(crate) use reserved::ReservedPlan;
use split::Split;
use values::{NEVER, Separation};

use crate::context::Context;
use crate::keyspace::KeyspaceShared;
use crate::throttle::Throttle;
use crate::version::Version;
use crate::wal::Wal;
use lsmith_storage::combine::Combiner;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::fold::{FoldCounts, Hiding};
use lsmith_storage::panics;
use lsmith_storage::sync::Mutex;
use lsmith_storage::table::{ProfileGrain, ReadTable, TableOptions};
use lsmith_tree::{Input, MergePlan, Mode, Outcome, SeqNo, TableId, Tree};
use std::sync::Arc;

/// Entries between two checks whether the store is closing.
const ENTRIES_PER_LOOK: u64 = 4096;

/// The tables of a merge do not stay in the system's cache if they have more than this part of the
/// memory: they would push out what reads have asked for, and most of themselves.
const UNCACHED_PART: u64 = 4;

/// Returns the logical bytes of the inputs of `plan`.
fn input_bytes(plan: &MergePlan, tree: &Tree) -> u64 {
    let inputs = plan.inputs.iter().filter_map(|input| Some((tree.run(input.run)?.1, input)));
    inputs.map(|(run, input)| run.size_within(&input.range).bytes).sum()
}

/// Carries out merge plans, on all threads of a store.
#[derive(Debug)]
pub(crate) struct Merger {
    context: Arc<Context>,
    wal: Arc<Wal>,
    throttle: Throttle,
    /// Merges with parts that any thread may take.
    splits: Mutex<Vec<Arc<Split>>>,
}

impl Merger {
    /// Returns a merger. `throttle` limits the bytes that it writes per second.
    pub(crate) fn new(context: &Arc<Context>, wal: &Arc<Wal>, throttle: Throttle) -> Merger {
        let context = Arc::clone(context);
        let wal = Arc::clone(wal);
        Merger { context, wal, throttle, splits: Mutex::default() }
    }

    /// Returns an output without tables. A table is cut once it has `cut_bytes` logical bytes.
    /// `table` has the options of the tables.
    fn output(&self, cut_bytes: Option<u64>, table: TableOptions) -> Output<'_> {
        Output::new(&self.context, &self.throttle, cut_bytes, table)
    }

    /// Carries out the plan of `reserved`, whose inputs are in `version`. After an error no file of
    /// the output stays on the device.
    pub(crate) fn execute(
        &self,
        reserved: &ReservedPlan,
        version: &Arc<Version>,
    ) -> Result<PlanOutput> {
        if reserved.plan.mode == Mode::Move {
            return Ok(PlanOutput::new(relabel(&reserved.plan, version), &reserved.plan, version));
        }
        if reserved.plan.mode == Mode::Drop {
            return Ok(PlanOutput::new(dropped(&reserved.plan, version), &reserved.plan, version));
        }
        let options = self.table_options(reserved, version);
        let era = self.begin_era(&reserved.keyspace);
        if reserved.plan.makes_append() {
            return self.grow(reserved, version, options, era);
        }
        let output = self.output(reserved.plan.cut_bytes, options.clone());
        let mut output = output
            .limited(reserved.is_limited())
            .separating(self.separation(&reserved.keyspace))
            .cutting_keyspaces(reserved.keyspace.members.is_some());
        let execute = || match (reserved.rewrites, reserved.plan.reuse) {
            (Some(table), _) => self.rewrite(reserved, table, version, &mut output),
            (None, Some(reuse)) => self.preserve(reserved, reuse, version, &mut output),
            (None, None) => self.merge(reserved, version, &mut output, options),
        };
        let executed = panics::as_error("a merge", execute);
        match executed {
            Ok(Merged { outcome, bytes_read, is_filtered }) => {
                let done = PlanOutput::new(outcome, &reserved.plan, version);
                Ok(done.written(output, bytes_read).filtered(is_filtered, era))
            }
            Err(error) => {
                output.remove();
                Err(named(error, &reserved.plan.inputs, version))
            }
        }
    }

    /// Begins an era for a merge in `keyspace`, whose filter may change what it writes. A filter
    /// leaves alone what the snapshots of earlier eras see. Returns the first era whose snapshots
    /// the merge may not know.
    fn begin_era(&self, keyspace: &KeyspaceShared) -> u64 {
        if keyspace.rules.has_filters() { self.context.snapshots.begin_era() } else { 0 }
    }

    /// Returns the options for the tables of the output.
    pub(crate) fn table_options(&self, reserved: &ReservedPlan, version: &Version) -> TableOptions {
        let state = reserved.keyspace.state.lock();
        let by_block = reserved.plan.reuse.is_some() || state.policy.wants_blocks();
        let grain = if by_block { ProfileGrain::Blocks } else { ProfileGrain::Steps };
        let codec = state.compression.of_level(reserved.output_level(&version.tree));
        let table = reserved.keyspace.table_options(&self.context.options);
        let average = f64::from(table.filter_bits_per_key);
        let by_size = self.context.options.filters_by_size && average > 0.0;
        let bits = || filters::bits_by_size(average, &reserved.plan, &version.tree);
        let filter_bits = by_size.then(bits);
        let input_bytes = input_bytes(&reserved.plan, &version.tree);
        let shared = self.context.options.shared_memory;
        let uncached = shared.is_some_and(|shared| input_bytes > shared / UNCACHED_PART);
        TableOptions { grain, codec, filter_bits, uncached, ..table }
    }

    /// Returns which values merges of `keyspace` put into value files. Values that operators,
    /// expiry, filters or append tables need stay in tables.
    fn separation(&self, keyspace: &KeyspaceShared) -> Separation {
        let state = keyspace.state.lock();
        let stay = keyspace.rules.for_merges().is_some() || state.policy.appends();
        let from_bytes = self.context.options.values_from.filter(|_| !stay);
        let from_bytes = from_bytes.map_or(NEVER, |bytes| usize::try_from(bytes).unwrap_or(NEVER));
        Separation { from_bytes, codec: state.compression.of_values() }
    }

    /// Acts once in [`ENTRIES_PER_LOOK`] entries of a merge in `keyspace`: fails if the store is
    /// closing or the keyspace is halted, and creates the next log if writers will need one soon.
    fn check_open(&self, keyspace: &KeyspaceShared, entries: u64) -> Result<()> {
        if !entries.is_multiple_of(ENTRIES_PER_LOOK) {
            return Ok(());
        }
        self.context.check_open()?;
        keyspace.check_not_halted()?;
        if self.context.progress.has_threads() {
            self.wal.make_log_ahead();
        }
        Ok(())
    }
}

/// What came out of a merge.
struct Merged {
    outcome: Outcome,
    /// Bytes read from files.
    bytes_read: u64,
    /// True if a filter has dropped or changed values.
    is_filtered: bool,
}

/// Returns the range deletes as the merge of `plan` in `version` applies them, and the live
/// snapshots, newest first. The inputs are fixed already: later snapshots see the newest version of
/// all keys. If a filter takes that away, they read the version from before the merge.
fn hiding(context: &Context, plan: &MergePlan, version: &Version) -> (Hiding, Vec<SeqNo>) {
    let range_deletes = version.all_range_deletes();
    let lasting = version.lasting_range_deletes(plan);
    let (visible, snapshots) = context.readers();
    (Hiding::new(range_deletes, visible.min(lasting)), snapshots)
}

/// If `error` is a corruption, returns the damage in the tables of `inputs` instead, if there is
/// any. Otherwise returns `error`. Entries of a damaged table can be impossible to write. `error`
/// then describes the output, which does not stay on the device.
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

/// Returns an outcome with the sizes of the inputs and the number of dropped entries.
fn outcome_of(counts: FoldCounts, taken: TakenSizes) -> Outcome {
    Outcome {
        from_memory: taken.memory,
        read: taken.storage,
        entries_dropped: counts.entries_in - counts.entries_out,
        dropped_below: counts.dropped_below,
        ..Outcome::default()
    }
}

/// Returns the outcome of a plan that drops: nothing comes out. Unless range deletes hide them, the
/// entries that are gone may have hidden older ones, as tombstones do.
fn dropped(plan: &MergePlan, version: &Version) -> Outcome {
    let is_hidden = plan.is_hidden(&version.tree, SeqNo::MAX);
    let dropped_below = if is_hidden { SeqNo(0) } else { plan.newest_taken(&version.tree) };
    Outcome { dropped_below, ..Outcome::default() }
}

/// Returns the outcome of a plan that moves: the clipped slices of its inputs, in key order.
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
