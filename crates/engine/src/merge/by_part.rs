//! A large merge that is committed part by part.
//!
//! A merge of whole runs into one needs, while it goes on, as much room again as it reads. Where
//! it comes in [parts](super::split), each can be committed when it and all below it are over: the
//! oldest run takes the output in between its slices, as with the merge of a key range, the newer
//! runs lose those keys, and what the files of all of them held there is given back. So the room
//! that a merge needs is that of a few parts, a failure loses these only, and no reader sees more
//! runs than before.

use super::input::Passed;
use super::outcome_of;
use super::output::Output;
use super::split::{PartOutput, Split, SplitPlan};
use super::{Merger, PlanOutput, ReservedPlan};
use crate::version::Version;
use lsmith_storage::error::Result;
use lsmith_storage::panics;
use lsmith_tree::{Key, KeyRange, MergePlan};
use std::sync::Arc;

/// A part of a plan, or all of it, to be committed.
pub(crate) struct PlanPart {
    pub(crate) plan: MergePlan,
    /// Where the rest of the plan begins; `None` for the last part.
    pub(crate) end: Option<Key>,
    /// Bytes in files of parts that are over and not committed yet.
    pub(crate) waiting_bytes: u64,
}

/// Commits what came out of a part of a plan. Returns whether it could be; see
/// [`Committer::commit`](crate::commit::Committer::commit).
pub(crate) type Commit<'a> =
    dyn FnMut(&mut ReservedPlan, PlanPart, PlanOutput) -> Result<bool> + 'a;

impl Merger {
    /// The parts in which `job` is to be carried out and committed; `None` where it is to be done
    /// in one go.
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

    /// Carries out `job` in `parts`, and commits each. What is not committed is left in the plan
    /// of the job; on an error nothing of it is left on the device.
    pub(crate) fn merge_by_part(
        &self,
        reserved: &mut ReservedPlan,
        version: Arc<Version>,
        parts: Vec<KeyRange>,
        commit: &mut Commit<'_>,
    ) -> Result<()> {
        let keyspace = Arc::clone(&reserved.keyspace);
        // Dropped last: the parts hold versions, and these hold files of merged tables.
        let _busy = keyspace.keep_busy();
        let table = self.table_options(reserved, &version);
        let inputs = version.tree.disk_runs().filter(|run| reserved.plan.takes(run.id()));
        let bytes: u64 = inputs.map(|run| run.bytes()).sum();
        reserved.part_bytes = Some(bytes.div_ceil(parts.len() as u64));
        let plan = SplitPlan::new(&self.context, reserved, table);
        let split = self.offer(plan, parts, version, self.parts_ahead());
        // Whatever happens, nobody takes a part of it afterwards, or keeps its version.
        let result = panics::as_error("a merge", || self.commit_parts(reserved, &split, commit));
        self.splits.lock().retain(|other| !Arc::ptr_eq(other, &split));
        // Those that came after one that failed, or after the tree has become another.
        for done in split.finish().into_iter().flatten() {
            self.output_of(&split, done).remove();
        }
        result
    }

    /// Parts that may be begun before those below them are committed: what all threads can do at
    /// once, and one more.
    fn parts_ahead(&self) -> usize {
        self.context.options.threads + 1
    }

    fn commit_parts(
        &self,
        reserved: &mut ReservedPlan,
        split: &Arc<Split>,
        commit: &mut Commit<'_>,
    ) -> Result<()> {
        let (mut blocks, mut bytes) = (0, 0);
        for part in 0..split.parts.len() {
            let done = loop {
                match split.result_of(part) {
                    Some(done) => break done?,
                    None if self.carry_out_part(split) => {}
                    None => split.wait_for(part),
                }
            };
            let (range, tally) = (&split.parts[part], &split.plan.tally);
            let version = reserved.keyspace.version.load_full();
            let Some(mut plan) = reserved.within(range, &version.tree) else {
                self.output_of(split, done).remove();
                continue;
            };
            if range.end.is_some() {
                plan.memo.clear();
            } else {
                // The plan is over with this part: whoever waits for rest finds the files gone that
                // nobody needs, of this plan and of the next.
                split.let_go();
            }
            let read = (tally.blocks() - blocks, tally.bytes() - bytes);
            (blocks, bytes) = (blocks + read.0, bytes + read.1);
            let done = self.done_of(split, done, &plan, &version, read)?;
            drop(version);
            let waiting_bytes = split.waiting_bytes();
            let plan_part = PlanPart { plan, end: range.end.clone(), waiting_bytes };
            if !commit(reserved, plan_part, done)? || range.end.is_none() {
                return Ok(());
            }
            split.show(reserved.keyspace.version.load_full(), part + 1 + self.parts_ahead());
            self.context.progress.notify();
        }
        Ok(())
    }

    fn output_of(&self, split: &Split, done: PartOutput) -> Output<'_> {
        let mut output = self.output(None, split.plan.table.clone());
        output.append(done.written);
        output
    }

    /// What came out of `plan`, a part of that of a job, with `read` blocks and bytes.
    fn done_of(
        &self,
        split: &Split,
        done: PartOutput,
        plan: &MergePlan,
        version: &Version,
        read: (u64, u64),
    ) -> Result<PlanOutput> {
        let passed = Passed { storage: done.passed.iter().copied().sum(), ..Passed::default() };
        let mut outcome = outcome_of(done.counts, passed);
        let mut output = self.output_of(split, done);
        if let Err(error) = panics::as_error("a merge", || output.open_tables()) {
            output.remove();
            return Err(error);
        }
        outcome.blocks.read = read.0;
        output.tell(&mut outcome);
        Ok(PlanOutput::new(outcome, plan, version).written(output, read.1))
    }
}
