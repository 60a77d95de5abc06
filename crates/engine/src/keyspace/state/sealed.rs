//! The runs in memory of a keyspace, and the writes that they hold.

use super::KeyspaceState;
use crate::keyspace::Request;
use crate::manifest::Mark;
use crate::stats::MemoryUse;
use lsmith_storage::memtable::{Folded, Sealed};
use lsmith_tree::{
    AddPlace, Addition, Input, LevelId, MergePlan, Place, Reason, Run, RunId, SeqNo, Slice, Table,
    Tree, TreeEdit, apply,
};
use std::sync::Arc;

/// Sealed memtables that may be there whatever the policy says: memory is bounded.
pub(crate) const SEALED_MAX: usize = 4;

/// A run in memory.
#[derive(Clone, Debug)]
pub(crate) struct SealedRun {
    pub(crate) run: RunId,
    pub(crate) sealed: Sealed,
    pub(crate) writes: WriteSpan,
}

/// A stretch of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteSpan {
    /// The number of the first.
    pub(crate) oldest: SeqNo,
    /// The number of the last.
    pub(crate) newest: SeqNo,
    /// The log that holds the oldest of those that are in the log alone; `None` where a copy of
    /// memory has them all.
    pub(crate) log: Option<u64>,
}

impl WriteSpan {
    /// Both stretches and what lies between them.
    pub(crate) fn with(self, other: WriteSpan) -> WriteSpan {
        WriteSpan {
            oldest: self.oldest.min(other.oldest),
            newest: self.newest.max(other.newest),
            log: self.log.into_iter().chain(other.log).min(),
        }
    }
}

/// What stands in the place of runs in memory.
pub(crate) struct Replacement {
    /// `None` where all entries have cancelled.
    pub(crate) folded: Option<(Folded, Table)>,
    /// The writes that went into it.
    pub(crate) writes: WriteSpan,
    pub(crate) place: AddPlace,
}

impl KeyspaceState {
    /// Makes `memtable` the newest run in memory, of the tree that is coming too. Its name, which
    /// is none that the manifest is being told.
    pub(crate) fn add_to_memory(&mut self, memtable: Slice) -> RunId {
        let run = self.coming.as_ref().unwrap_or(&self.view.tree).next_run();
        let edit = TreeEdit::seal(run, memtable);
        for tree in std::iter::once(&mut self.view.tree).chain(&mut self.coming) {
            apply(tree, &edit).expect("a new run fits any tree");
        }
        self.at_rest = false;
        run
    }

    /// Puts `new` in the place of the `old` runs, which are the oldest in memory.
    pub(crate) fn replace_memory(&mut self, old: &[RunId], new: Replacement) {
        let Replacement { folded, writes, place } = new;
        let mut edit = TreeEdit::default();
        edit.remove.extend(old.iter().copied().map(Input::all));
        self.sealed.retain(|held| !old.contains(&held.run));
        let run = self.view.tree.next_run();
        match folded {
            Some((folded, table)) => {
                let table = Table { seq_min: writes.oldest, seq_max: writes.newest, ..table };
                let slices = vec![Slice::whole(table)];
                edit.add.push(Addition { run, place, knot: None, slices });
                let sealed = Sealed::Folded(Arc::new(folded));
                self.sealed.push(SealedRun { run, sealed, writes });
            }
            None => {
                let before = self.vanished.take();
                self.vanished = Some(before.map_or(writes, |before| before.with(writes)));
            }
        }
        apply(&mut self.view.tree, &edit).expect("memory is what the tree says");
        self.at_rest = false;
    }

    /// Takes part of no merge, but keeps plans away from all runs in memory.
    pub(crate) fn reserve_memory(&mut self, reason: &'static str) -> MergePlan {
        let runs = self.sealed.iter().map(|held| held.run);
        let plan = MergePlan::merge(runs, Place::Oldest, Reason::new(reason, [0; 3]));
        self.reserve(plan.clone());
        plan
    }

    /// Whether a plan, under way or failed, takes from memory.
    pub(crate) fn is_memory_reserved(&self) -> bool {
        self.view.reservations.iter().any(|reservation| {
            reservation.plan.inputs.iter().any(|input| self.held(input.run).is_some())
        })
    }

    /// The run in memory called `run`.
    pub(super) fn held(&self, run: RunId) -> Option<&SealedRun> {
        self.sealed.iter().find(|held| held.run == run)
    }

    /// The writes of the newest run in memory that `plan` takes from.
    fn newest_taken(&self, plan: &MergePlan) -> Option<SeqNo> {
        let taken = plan.inputs.iter().filter_map(|input| self.held(input.run));
        taken.map(|held| held.writes.newest).max()
    }

    /// Returns true if `plan` takes a run in memory.
    pub(crate) fn takes_memory(&self, plan: &MergePlan) -> bool {
        let level = |run| self.view.tree.run(run).map(|(level, _)| level);
        plan.inputs.iter().any(|input| level(input.run) == Some(LevelId::Memory))
    }

    /// Whether memory keeps writes that are older than some that `plan` takes. What it takes must
    /// then not become durable before they are.
    pub(crate) fn keeps_older_than(&self, plan: &MergePlan) -> bool {
        let Some(newest) = self.newest_taken(plan) else { return false };
        let goes = |run: &Run| {
            let input = plan.inputs.iter().find(|input| input.run == run.id());
            input.is_some_and(|input| run.lies_within(&input.range))
        };
        let kept = self.view.tree.memory().runs().iter().filter(|run| !goes(run));
        let mut kept = kept.filter_map(|run| self.held(run.id()));
        kept.any(|held| held.writes.oldest < newest)
    }

    /// What the manifest must know of memory when `plan` has made the tree what is in `after`: up
    /// to which number all writes have left memory, and what else the plan took.
    pub(crate) fn taken_by(&self, plan: &MergePlan, after: &Tree) -> (SeqNo, Vec<Mark>) {
        let Some(newest) = self.newest_taken(plan) else { return (SeqNo(0), Vec::new()) };
        let left = self.sealed.iter().filter(|held| after.run(held.run).is_some());
        let oldest_left = left.map(|held| held.writes.oldest).min();
        let flushed_seq = match oldest_left {
            Some(oldest) if oldest <= newest => SeqNo(oldest.0.saturating_sub(1)),
            _ => newest,
        };
        let marks = plan.inputs.iter().filter_map(|input| {
            let upto = self.held(input.run)?.writes.newest;
            (upto > flushed_seq).then(|| Mark { range: input.range.clone(), upto })
        });
        (flushed_seq, marks.collect())
    }

    /// Forgets runs in memory that the tree does not have any more, after a plan that has taken
    /// from it, of which the manifest knows.
    pub(crate) fn forget_taken(&mut self, plan: &MergePlan, flushed_seq: SeqNo) {
        let newest = self.newest_taken(plan);
        self.vanished = self.vanished.filter(|writes| newest.is_none_or(|n| n < writes.newest));
        let tree = &self.view.tree;
        self.sealed.retain(|held| tree.run(held.run).is_some());
        if self.sealed.is_empty() {
            self.requests.withdraw(Request::Flush);
        }
        self.spill = self.spill.filter(|spill| spill.upto > flushed_seq);
    }

    /// The oldest log that is still needed.
    pub(crate) fn oldest_log(&self) -> Option<u64> {
        let writes = self.sealed.iter().map(|held| &held.writes).chain(&self.vanished);
        writes.filter_map(|writes| writes.log).chain(self.active.log()).min()
    }

    /// All writes that went into `runs`.
    pub(crate) fn writes_of<'a>(
        &self,
        runs: impl IntoIterator<Item = &'a RunId>,
    ) -> Option<WriteSpan> {
        let held = |run: &RunId| self.sealed.iter().find(|held| held.run == *run);
        let writes = runs.into_iter().filter_map(held).map(|held| held.writes);
        writes.reduce(WriteSpan::with)
    }

    /// Whether memory must be folded, and can be now: no plan takes from it.
    pub(crate) fn is_fold_due(&self) -> bool {
        let is_one = || matches!(&self.sealed[..], [held] if held.sealed.is_folded());
        self.policy.wants_blocks()
            && !self.sealed.is_empty()
            && !is_one()
            && !self.is_memory_reserved()
    }

    /// Whether memory is to be copied, and holds on to a log.
    pub(crate) fn is_spill_due(&self) -> bool {
        let mut writes = self.sealed.iter().map(|held| &held.writes).chain(&self.vanished);
        self.requests.has(Request::Spill) && writes.any(|writes| writes.log.is_some())
    }

    /// Whether what waits in memory is flushed where the policy has no plan for it.
    pub(crate) fn flushes_memory(&self) -> bool {
        let memory_max = self.view.memtable_bytes.saturating_mul(SEALED_MAX as u64);
        !self.policy.wants_blocks()
            || self.requests.has(Request::Flush)
            || self.view.tree.memory().bytes() > memory_max
    }

    /// Runs in memory that wait to be taken, or under policies that leave memory where it is, to be
    /// folded.
    pub(crate) fn waiting_memtables(&self) -> usize {
        self.waiting().count()
    }

    /// Their logical bytes.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        let runs = self.waiting().filter_map(|held| self.view.tree.run(held.run));
        runs.map(|(_, run)| run.bytes()).sum()
    }

    fn waiting(&self) -> impl Iterator<Item = &SealedRun> {
        let stays = |held: &&SealedRun| self.policy.wants_blocks() && held.sealed.is_folded();
        self.sealed.iter().filter(move |held| !stays(held))
    }

    /// What the memtables and the open tables of the keyspace hold.
    pub(crate) fn memory(&self) -> MemoryUse {
        let sealed = self.sealed.iter().map(|held| held.sealed.allocated_bytes() as u64);
        let mut held = MemoryUse {
            memtables: sealed.sum::<u64>() + self.active.memtable.allocated_bytes() as u64,
            ..MemoryUse::default()
        };
        for table in self.tables.values() {
            let of = table.table().memory();
            held.fences += of.fences;
            held.filters += of.filters;
            held.profiles += of.profiles;
        }
        held
    }
}
