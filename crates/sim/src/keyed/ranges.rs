//! The range deletes of a simulation.

use super::merge::Erasing;
use super::table::rank_key;
use lsmith_tree::{Erased, KeyRange, MergePlan, Readers, RunId, SeqNo, Tree};
use std::ops::Range;

/// The range deletes in memory. Those that have left memory are in the tree.
#[derive(Clone, Debug)]
pub(super) struct RangeDeletes {
    /// True if merges forget sequence numbers.
    pub(super) forgets: bool,
    /// Those of the active memtable.
    active: Erased,
    /// Those of sealed memtables.
    sealed: Vec<Sealed>,
}

/// The range deletes of a sealed memtable.
#[derive(Clone, Debug)]
struct Sealed {
    run: RunId,
    /// The number of the last write to the memtable.
    newest: SeqNo,
    erased: Erased,
}

impl RangeDeletes {
    pub(super) fn new(forgets: bool) -> RangeDeletes {
        RangeDeletes { forgets, active: Erased::default(), sealed: Vec::new() }
    }

    /// Deletes the keys of `ranks` by the write `seq`.
    pub(super) fn add(&mut self, ranks: Range<u64>, seq: SeqNo) {
        let range = KeyRange { start: rank_key(ranks.start), end: Some(rank_key(ranks.end)) };
        // No reader sees the write before it is done.
        let readers = Readers { visible: SeqNo(seq.0 - 1), snapshots: &[] };
        self.active.erase(&range, seq, &readers);
    }

    /// Notes that the active memtable, whose last write is `newest`, becomes `run` in memory.
    pub(super) fn seal(&mut self, run: RunId, newest: SeqNo) {
        let erased = std::mem::take(&mut self.active);
        self.sealed.push(Sealed { run, newest, erased });
    }

    /// Notes that all runs in memory and the active memtable become `run`.
    pub(super) fn seal_together(&mut self, run: RunId, newest: SeqNo) {
        let sealed = self.sealed.drain(..).map(|sealed| sealed.erased);
        let older: Vec<Erased> = sealed.collect();
        self.active = Erased::all(older.iter().chain([&self.active]));
        self.seal(run, newest);
    }

    /// Returns the range deletes that the merge of `plan` applies; `None` if there are none.
    pub(super) fn applied_by(&self, tree: &Tree, plan: &MergePlan) -> Option<Erasing> {
        let erased = self.all(tree);
        let in_tree = tree.erased().parts().filter_map(|part| part.seqs.first().copied());
        let upto = in_tree.max().max(self.newest_taken(plan)).unwrap_or_default();
        (!erased.is_empty()).then(|| Erasing::new(erased, upto))
    }

    /// Returns the range deletes that readers see, without those of the active memtable; `None` if
    /// there are none.
    pub(super) fn seen_by_readers(&self, tree: &Tree) -> Option<Erasing> {
        let erased = self.all(tree);
        (!erased.is_empty()).then(|| Erasing::new(erased, SeqNo::MAX))
    }

    fn all(&self, tree: &Tree) -> Erased {
        let in_memory = self.sealed.iter().map(|sealed| &sealed.erased);
        Erased::all(std::iter::once(tree.erased()).chain(in_memory))
    }

    /// Returns the range deletes that leave memory with what `plan` takes.
    pub(super) fn leave_memory(&mut self, plan: &MergePlan) -> Vec<(KeyRange, SeqNo)> {
        let Some(newest) = self.newest_taken(plan) else { return Vec::new() };
        let left = self.sealed.extract_if(.., |sealed| sealed.newest <= newest);
        let erased = left.map(|sealed| sealed.erased);
        let all: Vec<Erased> = erased.collect();
        let parts = all.iter().flat_map(Erased::parts);
        parts.flat_map(|part| part.seqs.iter().map(|seq| (part.range.clone(), *seq))).collect()
    }

    /// Returns the number of the last write of the memtables that `plan` takes, if it takes any.
    fn newest_taken(&self, plan: &MergePlan) -> Option<SeqNo> {
        let taken = self.sealed.iter().filter(|sealed| plan.takes(sealed.run));
        taken.map(|sealed| sealed.newest).max()
    }
}
