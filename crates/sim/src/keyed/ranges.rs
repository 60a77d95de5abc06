//! The range deletes of a simulation.

use super::hiding::Hiding;
use super::rank::rank_key;
use lsmith_tree::{KeyRange, MergePlan, RangeDeletes, Readers, RunId, SeqNo, Tree};
use std::ops::Range;

/// The range deletes in memory. Range deletes that have left memory are in the tree.
#[derive(Clone, Debug)]
pub(super) struct Ranges {
    /// True if merges forget sequence numbers.
    pub(super) forgets: bool,
    /// The sequence number of the first write to the active memtable, if there is one.
    first: SeqNo,
    /// The range deletes of the active memtable.
    active: RangeDeletes,
    /// The memtables in memory.
    sealed: Vec<Sealed>,
}

/// A sealed memtable, or several that were folded into one run.
#[derive(Clone, Debug)]
struct Sealed {
    run: RunId,
    writes: WriteSpan,
    /// The range deletes that have not left memory.
    range_deletes: RangeDeletes,
}

/// The sequence numbers of the first and of the last write to a memtable, whether or not they left
/// entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteSpan {
    pub(super) oldest: SeqNo,
    pub(super) newest: SeqNo,
}

impl Ranges {
    pub(super) fn new(forgets: bool) -> Ranges {
        Ranges { forgets, first: SeqNo(1), active: RangeDeletes::default(), sealed: Vec::new() }
    }

    /// Deletes the keys of `ranks` by the write `seq`.
    pub(super) fn add(&mut self, ranks: Range<u64>, seq: SeqNo) {
        let range = KeyRange { start: rank_key(ranks.start), end: Some(rank_key(ranks.end)) };
        // No reader sees the write before it is done.
        let readers = Readers { visible: SeqNo(seq.0 - 1), snapshots: &[] };
        self.active.delete_range(&range, seq, &readers);
    }

    /// Notes that the active memtable, whose last write is `newest`, becomes `run` in the memory of
    /// `tree`; if it `folds`, together with all that is there. Returns the writes of the run.
    pub(super) fn seal(
        &mut self,
        tree: &Tree,
        run: RunId,
        newest: SeqNo,
        folds: bool,
    ) -> WriteSpan {
        self.sealed.retain(|sealed| tree.run(sealed.run).is_some());
        let oldest = std::mem::replace(&mut self.first, SeqNo(newest.0 + 1));
        let range_deletes = std::mem::take(&mut self.active);
        let writes = WriteSpan { oldest, newest };
        self.sealed.push(Sealed { run, writes, range_deletes });
        if folds { self.fold(run) } else { writes }
    }

    /// Notes that all of memory, where there is something, becomes `run`. Returns the writes of the
    /// run.
    pub(super) fn fold(&mut self, run: RunId) -> WriteSpan {
        let span = |all: WriteSpan, writes: WriteSpan| WriteSpan {
            oldest: all.oldest.min(writes.oldest),
            newest: all.newest.max(writes.newest),
        };
        let writes = self.sealed.iter().map(|sealed| sealed.writes).reduce(span);
        let writes = writes.unwrap_or(WriteSpan { oldest: SeqNo(0), newest: SeqNo(0) });
        let range_deletes = RangeDeletes::all(self.sealed.iter().map(|one| &one.range_deletes));
        self.sealed.clear();
        self.sealed.push(Sealed { run, writes, range_deletes });
        writes
    }

    /// Returns the range deletes that the merge of `plan` applies; `None` if there are none.
    pub(super) fn applied_by(&self, tree: &Tree, plan: &MergePlan) -> Option<Hiding> {
        let range_deletes = self.all(tree);
        let in_tree = tree.range_deletes().parts().filter_map(|part| part.seqs.first().copied());
        let upto = in_tree.max().max(self.newest_taken(plan)).unwrap_or_default();
        (!range_deletes.is_empty()).then(|| Hiding::new(range_deletes, upto))
    }

    /// Returns the range deletes that readers see, except in the active memtable; `None` if there
    /// are none.
    pub(super) fn seen_by_readers(&self, tree: &Tree) -> Option<Hiding> {
        let range_deletes = self.all(tree);
        (!range_deletes.is_empty()).then(|| Hiding::new(range_deletes, SeqNo::MAX))
    }

    fn all(&self, tree: &Tree) -> RangeDeletes {
        let in_memory = self.sealed.iter().map(|sealed| &sealed.range_deletes);
        RangeDeletes::all(std::iter::once(tree.range_deletes()).chain(in_memory))
    }

    /// Returns the range deletes that leave memory with what `plan` takes.
    pub(super) fn leave_memory(&mut self, plan: &MergePlan) -> Vec<(KeyRange, SeqNo)> {
        let Some(newest) = self.newest_taken(plan) else { return Vec::new() };
        let leaving = self.sealed.iter_mut().filter(|sealed| sealed.writes.newest <= newest);
        let all: Vec<RangeDeletes> =
            leaving.map(|sealed| std::mem::take(&mut sealed.range_deletes)).collect();
        let parts = all.iter().flat_map(RangeDeletes::parts);
        parts.flat_map(|part| part.seqs.iter().map(|seq| (part.range.clone(), *seq))).collect()
    }

    /// Returns the sequence number of the last write of the memtables that `plan` takes, if it
    /// takes any.
    fn newest_taken(&self, plan: &MergePlan) -> Option<SeqNo> {
        let taken = self.sealed.iter().filter(|sealed| plan.takes(sealed.run));
        taken.map(|sealed| sealed.writes.newest).max()
    }
}
