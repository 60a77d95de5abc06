//! The runs in memory of a keyspace, and the log that they need.

use super::KeyspaceState;
use crate::context::Context;
use crate::keyspace::Request;
use crate::manifest::Mark;
use crate::stats::MemoryUse;
use lsmith_storage::memtable::{Folded, Sealed};
use lsmith_storage::table::ReadTable;
use lsmith_tree::{
    AddPlace, Addition, DoneReaders, Input, KeyRange, LevelId, MergePlan, Place, RangeDeletes,
    Reason, Reservation, ReservationState, Run, RunId, SeqNo, Slice, Table, Tree, TreeEdit,
};
use std::sync::Arc;

/// Writers stop when this many sealed memtables wait, whatever the policy says. This bounds memory.
pub(crate) const SEALED_MAX: usize = lsmith_policy::back_pressure::WAITING_MEMTABLES_MAX;

/// The entries of a run in memory.
#[derive(Clone, Debug)]
pub(crate) struct SealedRun {
    pub(crate) run: RunId,
    pub(crate) sealed: Sealed,
    pub(crate) writes: WriteSpan,
    /// The range deletes among the writes that are not in the tree yet.
    pub(crate) range_deletes: RangeDeletes,
}

/// A range of writes, by sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteSpan {
    /// The first write.
    pub(crate) oldest: SeqNo,
    /// The last write.
    pub(crate) newest: SeqNo,
    /// The log that holds the oldest write that is not copied elsewhere. `None` if a spill
    /// has all of them.
    pub(crate) log: Option<u64>,
}

impl WriteSpan {
    /// Returns the smallest range that covers both.
    pub(crate) fn with(self, other: WriteSpan) -> WriteSpan {
        WriteSpan {
            oldest: self.oldest.min(other.oldest),
            newest: self.newest.max(other.newest),
            log: self.log.into_iter().chain(other.log).min(),
        }
    }
}

/// The folded run that replaces runs in memory.
pub(crate) struct Replacement {
    /// `None` if all entries have cancelled each other.
    pub(crate) folded: Option<(Folded, Table)>,
    /// The writes of the replaced runs.
    pub(crate) writes: WriteSpan,
    pub(crate) place: AddPlace,
    /// The range deletes of a memtable that was no run yet.
    pub(crate) range_deletes: RangeDeletes,
}

impl KeyspaceState {
    /// Tells the tree how often it was read while the active memtable was filled, if the policy
    /// needs that.
    pub(crate) fn note_reads(&mut self) {
        let Some(counted) = self.policy.counted() else { return };
        let edit =
            TreeEdit { reads: Some(counted.next(self.view.tree.reads())), ..TreeEdit::default() };
        for tree in std::iter::once(&mut self.view.tree).chain(&mut self.coming) {
            edit.clone().apply_to(tree).expect("it changes no run");
        }
    }

    /// Makes `memtable` the newest run in memory, also in the next tree. Returns the id of the run.
    /// The edit that is being written to the manifest does not use this file id.
    pub(crate) fn add_to_memory(&mut self, memtable: Slice) -> RunId {
        let run = self.coming.as_ref().unwrap_or(&self.view.tree).next_run();
        let edit = TreeEdit::seal(run, memtable);
        for tree in std::iter::once(&mut self.view.tree).chain(&mut self.coming) {
            edit.clone().apply_to(tree).expect("a new run fits any tree");
        }
        self.at_rest = false;
        run
    }

    /// Replaces the `old` runs, which are the oldest in memory, by `new`.
    pub(crate) fn replace_memory(&mut self, old: &[RunId], new: Replacement) {
        let Replacement { folded, writes, place, range_deletes: new_range_deletes } = new;
        let mut edit = TreeEdit::default();
        edit.remove.extend(old.iter().copied().map(Input::all));
        let replaced = self.sealed.iter().filter(|sealed| old.contains(&sealed.run));
        let range_deletes = RangeDeletes::all(
            replaced.map(|sealed| &sealed.range_deletes).chain([&new_range_deletes]),
        );
        self.sealed.retain(|sealed| !old.contains(&sealed.run));
        let run = self.view.tree.next_run();
        match folded {
            Some((folded, table)) => {
                let table = Table { seq_min: writes.oldest, seq_max: writes.newest, ..table };
                let slices = vec![Slice::whole(table)];
                edit.add.push(Addition { run, place, knot: None, slices });
                let sealed = Sealed::Folded(Arc::new(folded));
                self.sealed.push(SealedRun { run, sealed, writes, range_deletes });
            }
            None => {
                let before = self.vanished.take();
                self.vanished = Some(before.map_or(writes, |before| before.with(writes)));
            }
        }
        edit.clone().apply_to(&mut self.view.tree).expect("memory agrees with the tree");
        self.at_rest = false;
    }

    /// Reserves all runs in memory, so that no plan takes from them. Returns the plan to release.
    pub(crate) fn reserve_memory(&mut self, reason: &'static str) -> MergePlan {
        let runs = self.sealed.iter().map(|sealed| sealed.run);
        let plan = MergePlan::merge(runs, Place::Oldest, Reason::new(reason, [0; 3]));
        self.reserve(plan.clone());
        plan
    }

    /// Returns true if a reservation, under way or blocked, takes from a run in memory.
    pub(crate) fn is_memory_reserved(&self) -> bool {
        self.view.reservations.iter().any(|reservation| self.takes_sealed(reservation))
    }

    /// Returns true if work under way takes from a run in memory.
    pub(crate) fn is_memory_in_work(&self) -> bool {
        let mut reservations = self.view.reservations.iter();
        reservations.any(|reservation| {
            reservation.state == ReservationState::UnderWay && self.takes_sealed(reservation)
        })
    }

    fn takes_sealed(&self, reservation: &Reservation) -> bool {
        reservation.plan.inputs.iter().any(|input| self.sealed_run(input.run).is_some())
    }

    /// Returns the entries of `run`, if it is a run in memory.
    pub(super) fn sealed_run(&self, run: RunId) -> Option<&SealedRun> {
        self.sealed.iter().find(|sealed| sealed.run == run)
    }

    /// Returns the newest write of the runs in memory that `plan` takes from, if it takes any.
    fn newest_taken(&self, plan: &MergePlan) -> Option<SeqNo> {
        let taken = plan.inputs.iter().filter_map(|input| self.sealed_run(input.run));
        taken.map(|sealed| sealed.writes.newest).max()
    }

    /// Returns true if `plan` takes from a run in memory.
    pub(crate) fn takes_memory(&self, plan: &MergePlan) -> bool {
        let level = |run| self.view.tree.run(run).map(|(level, _)| level);
        plan.inputs.iter().any(|input| level(input.run) == Some(LevelId::Memory))
    }

    /// Returns true if memory keeps writes that are older than some that `plan` takes. The output
    /// of the plan must then not become durable before those older writes are.
    pub(crate) fn keeps_older_than(&self, plan: &MergePlan) -> bool {
        let Some(newest) = self.newest_taken(plan) else { return false };
        let leaves = |run: &Run| {
            let input = plan.inputs.iter().find(|input| input.run == run.id());
            input.is_some_and(|input| run.lies_within(&input.range))
        };
        let kept = self.view.tree.memory().runs().iter().filter(|run| !leaves(run));
        let mut writes = kept.filter_map(|run| Some(self.sealed_run(run.id())?.writes));
        writes.any(|writes| writes.oldest < newest)
    }

    /// Returns what the manifest must record of memory when `plan` leads to the tree `after`: the
    /// sequence number up to which all writes have left memory, and marks for newer writes that
    /// have.
    pub(crate) fn taken_by(&self, plan: &MergePlan, after: &Tree) -> (SeqNo, Vec<Mark>) {
        let Some(newest) = self.newest_taken(plan) else { return (SeqNo(0), Vec::new()) };
        let left = self.sealed.iter().filter(|sealed| after.run(sealed.run).is_some());
        let oldest_left = left.map(|sealed| sealed.writes.oldest).min();
        let flushed_seq = match oldest_left {
            Some(oldest) if oldest <= newest => SeqNo(oldest.0.saturating_sub(1)),
            _ => newest,
        };
        let marks = plan.inputs.iter().filter_map(|input| {
            let newest = self.sealed_run(input.run)?.writes.newest;
            (newest > flushed_seq).then(|| Mark { range: input.range.clone(), newest })
        });
        (flushed_seq, marks.collect())
    }

    /// Returns the range deletes that leave memory with `plan`: those up to the newest write that
    /// it takes, also of runs that it does not take, because replay skips all of them.
    pub(crate) fn hidden_by(&self, plan: &MergePlan) -> Vec<(KeyRange, SeqNo)> {
        let newest = self.newest_taken(plan);
        newest.map(|newest| self.range_deletes_upto(newest)).unwrap_or_default()
    }

    /// Returns the range deletes in memory with sequence numbers up to `newest`, the newest write
    /// of a run.
    pub(crate) fn range_deletes_upto(&self, newest: SeqNo) -> Vec<(KeyRange, SeqNo)> {
        let older = self.sealed.iter().filter(|sealed| sealed.writes.newest <= newest);
        let parts = older.flat_map(|sealed| sealed.range_deletes.parts());
        parts.flat_map(|part| part.seqs.iter().map(|seq| (part.range.clone(), *seq))).collect()
    }

    /// Returns the range deletes in memory with sequence numbers up to `newest`, of all memtables.
    pub(crate) fn range_deletes_in_memory(&self, newest: SeqNo) -> Vec<(KeyRange, SeqNo)> {
        let active = self.active.memtable.range_deletes();
        let all = self.sealed.iter().map(|sealed| &sealed.range_deletes).chain([&active]);
        let parts = all.flat_map(|range_deletes| range_deletes.parts());
        let each = parts.flat_map(|part| part.seqs.iter().map(|seq| (part.range.clone(), *seq)));
        each.filter(|(_, seq)| *seq <= newest).collect()
    }

    /// Forgets the range deletes that [`range_deletes_upto`](KeyspaceState::range_deletes_upto)
    /// returns, which are in the tree now.
    pub(crate) fn forget_range_deletes(&mut self, newest: SeqNo) {
        for sealed in self.sealed.iter_mut().filter(|sealed| sealed.writes.newest <= newest) {
            sealed.range_deletes = RangeDeletes::default();
        }
    }

    /// Returns what the range deletes of readers and of the active memtable keep in the tree.
    pub(crate) fn done_readers(&self, context: &Context) -> DoneReaders {
        let oldest = context.oldest_reader();
        let unsealed = self.active.memtable.seq_range().map_or(SeqNo::MAX, |(oldest, _)| oldest);
        DoneReaders { oldest, unsealed }
    }

    /// Drops the entries of runs that the tree no longer has, after `plan` has taken from memory
    /// and the manifest has recorded `flushed_seq`.
    pub(crate) fn forget_taken(&mut self, plan: &MergePlan, flushed_seq: SeqNo) {
        let newest = self.newest_taken(plan);
        self.vanished = self.vanished.filter(|writes| newest.is_none_or(|n| n < writes.newest));
        if let Some(newest) = newest {
            self.forget_range_deletes(newest);
        }
        let tree = &self.view.tree;
        self.sealed.retain(|sealed| tree.run(sealed.run).is_some());
        if self.sealed.is_empty() {
            self.requests.withdraw(Request::Flush);
        }
        self.spill = self.spill.filter(|spill| spill.newest > flushed_seq);
    }

    /// Returns the oldest log that this keyspace needs, or `None` if it needs none.
    pub(crate) fn oldest_log(&self) -> Option<u64> {
        let writes = self.sealed.iter().map(|sealed| &sealed.writes).chain(&self.vanished);
        writes.filter_map(|writes| writes.log).chain(self.active.log()).min()
    }

    /// Returns the range of all writes in `runs`, which are runs in memory.
    pub(crate) fn writes_of<'a>(
        &self,
        runs: impl IntoIterator<Item = &'a RunId>,
    ) -> Option<WriteSpan> {
        let sealed = runs.into_iter().filter_map(|run| self.sealed_run(*run));
        sealed.map(|sealed| sealed.writes).reduce(WriteSpan::with)
    }

    /// Returns true if memory must be folded and no plan takes from it.
    pub(crate) fn is_fold_due(&self) -> bool {
        let is_one = || matches!(&self.sealed[..], [run] if run.sealed.is_folded());
        self.policy.wants_blocks()
            && !self.sealed.is_empty()
            && !is_one()
            && !self.is_memory_reserved()
    }

    /// Returns true if a spill is requested, and memory needs a log.
    pub(crate) fn is_spill_due(&self) -> bool {
        let mut writes = self.sealed.iter().map(|sealed| &sealed.writes).chain(&self.vanished);
        self.requests.has(Request::Spill) && writes.any(|writes| writes.log.is_some())
    }

    /// Returns true if memory is to be flushed when the policy has no plan for it.
    pub(crate) fn flushes_memory(&self) -> bool {
        let memory_max = self.view.memtable_bytes.saturating_mul(SEALED_MAX as u64);
        !self.policy.wants_blocks()
            || self.requests.has(Request::Flush)
            || self.view.tree.memory().bytes() > memory_max
    }

    /// Returns the number of runs in memory that wait for a plan. Under a policy that counts in
    /// blocks, returns the number of runs that wait for a fold.
    pub(crate) fn waiting_memtables(&self) -> usize {
        self.waiting().count()
    }

    /// Returns the logical bytes of the runs that [`waiting_memtables`] counts.
    ///
    /// [`waiting_memtables`]: KeyspaceState::waiting_memtables
    pub(crate) fn waiting_bytes(&self) -> u64 {
        let runs = self.waiting().filter_map(|sealed| self.view.tree.run(sealed.run));
        runs.map(|(_, run)| run.bytes()).sum()
    }

    fn waiting(&self) -> impl Iterator<Item = &SealedRun> {
        let stays = |run: &&SealedRun| self.policy.wants_blocks() && run.sealed.is_folded();
        self.sealed.iter().filter(move |run| !stays(run))
    }

    /// Returns the bytes that memtables hold in memory as they were written.
    pub(crate) fn written_bytes(&self) -> u64 {
        let sealed = self.sealed.iter().filter(|run| !run.sealed.is_folded());
        let sealed = sealed.map(|run| run.sealed.allocated_bytes() as u64);
        sealed.sum::<u64>() + self.active.memtable.allocated_bytes() as u64
    }

    /// Returns the bytes that memtables and open tables of the keyspace hold in memory.
    pub(crate) fn memory(&self) -> MemoryUse {
        let sealed = self.sealed.iter().map(|run| run.sealed.allocated_bytes() as u64);
        let mut memory = MemoryUse {
            memtables: sealed.sum::<u64>() + self.active.memtable.allocated_bytes() as u64,
            ..MemoryUse::default()
        };
        for table in self.tables.values() {
            let of_table = table.table().memory();
            memory.fences += of_table.fences;
            memory.filters += of_table.filters;
            memory.profiles += of_table.profiles;
        }
        memory
    }
}
