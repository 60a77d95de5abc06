//! A large merge that is committed part by part.
//!
//! A merge of whole runs into one needs, until it commits, as much free space as its inputs take.
//! If it is split into [parts](super::split), each part can commit once it and all parts below it
//! are finished. The oldest run takes the output in between its slices, as in the merge of a key
//! range. The newer runs lose the keys of the part, and the files of all inputs free the space of
//! these keys. So a merge needs the space of a few parts, a failure loses only these parts, and
//! readers never see more runs than before.

use super::input::TakenSizes;
use super::kept::add_kept;
use super::outcome_of;
use super::output::Output;
use super::split::{PartOutput, Split, SplitPlan};
use super::{Merger, PlanOutput, ReservedPlan};
use crate::threads::LOOK_AGAIN;
use crate::version::Version;
use lsmith_storage::error::Result;
use lsmith_storage::panics;
use lsmith_tree::{Key, KeyRange, MergePlan};
use std::sync::Arc;
use std::time::Duration;

/// How long a merge waits for readers that hold what its parts have freed, all in all.
const PATIENCE: Duration = Duration::from_secs(2);

/// A plan, or a part of one, that is ready to commit.
pub(crate) struct PlanPart {
    pub(crate) plan: MergePlan,
    /// The first key of the rest of the plan; `None` for the last part.
    pub(crate) end: Option<Key>,
    /// Bytes in the files of later parts that are finished and not committed yet.
    pub(crate) waiting_bytes: u64,
}

/// Commits the output of a part of a plan. Returns false if the tree no longer allows it; see
/// [`Committer::commit`](crate::commit::Committer::commit).
pub(crate) type Commit<'a> =
    dyn FnMut(&mut ReservedPlan, PlanPart, PlanOutput) -> Result<bool> + 'a;

impl Merger {
    /// Returns the parts in which the plan of `reserved` is carried out and committed. Returns
    /// `None` if the plan commits as a whole.
    pub(crate) fn parts_to_commit(
        &self,
        reserved: &ReservedPlan,
        version: &Version,
    ) -> Option<Vec<KeyRange>> {
        if !reserved.may_commit_by_part(&version.tree) {
            return None;
        }
        Some(self.parts_of(reserved, version)).filter(|parts| parts.len() > 1)
    }

    /// Carries out the plan of `reserved` in `parts`, and commits each. The rest that is not
    /// committed stays in the plan. On an error, no file of that rest stays on the device.
    pub(crate) fn merge_by_part(
        &self,
        reserved: &mut ReservedPlan,
        version: Arc<Version>,
        parts: Vec<KeyRange>,
        commit: &mut Commit<'_>,
    ) -> Result<()> {
        let keyspace = Arc::clone(&reserved.keyspace);
        // Dropped last: the parts hold versions, and versions hold the files of merged tables.
        let _busy = keyspace.keep_busy();
        let table = self.table_options(reserved, &version);
        let inputs = version.tree.disk_runs().filter(|run| reserved.plan.takes(run.id()));
        let bytes: u64 = inputs.map(|run| run.bytes()).sum();
        reserved.part_bytes = Some(bytes.div_ceil(parts.len() as u64));
        let era = self.begin_era(&keyspace);
        let plan = SplitPlan::new(self, reserved, &version, table);
        let split = self.offer(plan, parts, version, self.parts_ahead());
        // Even after a panic, no thread may take another part or keep the version.
        let result =
            panics::as_error("a merge", || self.commit_parts(reserved, &split, era, commit));
        self.splits.lock().retain(|other| !Arc::ptr_eq(other, &split));
        // Parts after one that failed, or after one that the changed tree did not allow.
        for done in split.finish().into_iter().flatten() {
            self.output_of(&split, done).remove();
        }
        result
    }

    /// Returns the number of parts that may begin before those below them are committed: one for
    /// each thread, and one more.
    fn parts_ahead(&self) -> usize {
        self.context.options.threads + 1
    }

    fn commit_parts(
        &self,
        reserved: &mut ReservedPlan,
        split: &Arc<Split>,
        era: u64,
        commit: &mut Commit<'_>,
    ) -> Result<()> {
        let mut blocks = 0;
        let mut bytes = 0;
        let mut patience = PATIENCE;
        for part in 0..split.parts.len() {
            let done = loop {
                match split.result_of(part) {
                    Some(done) => break done?,
                    None if self.carry_out_part(split) => {}
                    None => split.wait_for(part),
                }
            };
            let range = &split.parts[part];
            let tally = &split.plan.tally;
            let version = reserved.keyspace.version.load_full();
            let Some(mut plan) = reserved.within(range, &version.tree) else {
                self.output_of(split, done).remove();
                continue;
            };
            if range.end.is_some() {
                plan.memo.clear();
            } else {
                // The plan ends with this part. Callers that wait for rest then find no obsolete
                // files of this plan or the next.
                split.drop_version();
            }
            let read = (tally.blocks() - blocks, tally.bytes() - bytes);
            (blocks, bytes) = (blocks + read.0, bytes + read.1);
            let is_filtered = done.counts.filtered > 0;
            let output = self.done_of(split, done, &plan, &version, read)?;
            let output = output.filtered(is_filtered, era);
            drop(version);
            let waiting_bytes = split.waiting_bytes();
            let plan_part = PlanPart { plan, end: range.end.clone(), waiting_bytes };
            if !commit(reserved, plan_part, output)? || range.end.is_none() {
                return Ok(());
            }
            split.set_version(reserved.keyspace.version.load_full(), part + 1 + self.parts_ahead());
            self.wait_for_room(reserved.part_bytes.unwrap_or(0), &mut patience);
            self.context.progress.notify();
        }
        Ok(())
    }

    /// Waits until the limit on space has room for the parts that may begin, because other work and
    /// readers still hold the inputs of earlier ones. `patience` is how long the merge still waits.
    fn wait_for_room(&self, part_bytes: u64, patience: &mut Duration) {
        let Some(space) = &self.context.space else { return };
        let needed = part_bytes * (self.parts_ahead() as u64 + 1);
        let env = &self.context.options.env;
        let start = env.now();
        loop {
            let turn = self.context.progress.turn();
            self.context.leftovers.drop_all();
            let waited = env.now().saturating_sub(start);
            let is_over = waited >= *patience || self.context.options.lockstep;
            if space.0.free() >= needed || is_over || self.context.is_closing() {
                *patience = patience.saturating_sub(waited);
                return;
            }
            self.context.progress.wait_beyond(turn, LOOK_AGAIN);
        }
    }

    fn output_of(&self, split: &Split, done: PartOutput) -> Output<'_> {
        let mut output = self.output(None, split.plan.table.clone());
        output.append(done.written);
        output
    }

    /// Returns the output of `plan`, a part of a larger plan that read `read` blocks and bytes.
    /// Fails, and removes the files, if the tables cannot be opened.
    fn done_of(
        &self,
        split: &Split,
        done: PartOutput,
        plan: &MergePlan,
        version: &Version,
        read: (u64, u64),
    ) -> Result<PlanOutput> {
        let storage = done.taken.iter().copied().sum();
        let taken = TakenSizes { storage, ..TakenSizes::default() };
        let mut outcome = outcome_of(done.counts, taken);
        outcome.deletes_applied =
            split.plan.hiding.deletes_applied(&plan.hull(), &split.plan.snapshots);
        let mut output = self.output_of(split, done);
        if let Err(error) = panics::as_error("a merge", || output.open_tables()) {
            output.remove();
            return Err(error);
        }
        outcome.blocks.read = read.0;
        output.add_to(&mut outcome);
        add_kept(&split.plan.kept, &plan.hull(), version, &mut outcome);
        Ok(PlanOutput::new(outcome, plan, version).written(output, read.1))
    }
}
