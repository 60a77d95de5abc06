//! What range deletes hide from the readers of a version, and from merges.

use super::{Moment, Version};
use lsmith_storage::read::Hidden;
use lsmith_storage::sync::atomic::Ordering;
use lsmith_tree::{Key, KeyRange, MergePlan, RangeDeletes, SeqNo};

impl Version {
    /// Returns the sequence number of the newest range delete that covers `key` at `moment`; 0 if
    /// there is none. Entries with smaller sequence numbers are hidden.
    ///
    /// A read without a snapshot calls this first, and looks for the entry then. Let `t` be the
    /// moment at which the range deletes were copied. The read then sees either the entry that was
    /// the newest at `t` or at the sequence number found here, or a later one, which was the newest
    /// when it became visible, during the read.
    #[inline]
    pub(super) fn newest_range_delete(&self, key: &[u8], moment: Moment<'_>) -> SeqNo {
        let hides = self.active.has_range_deletes() || self.range_deletes.is_some();
        if hides { self.find_range_delete(key, moment) } else { SeqNo(0) }
    }

    #[cold]
    fn find_range_delete(&self, key: &[u8], moment: Moment<'_>) -> SeqNo {
        let in_active = self.active.range_deletes();
        let at = match moment {
            Moment::Latest(visible) => SeqNo(visible.load(Ordering::Acquire)),
            Moment::Snapshot(seq) => seq,
        };
        let older =
            self.range_deletes.as_deref().map(|range_deletes| range_deletes.newest_at(key, at));
        in_active.newest_at(key, at).max(older.unwrap_or_default())
    }

    /// Returns what range deletes hide from readers, whose cost does not depend on how many there
    /// are.
    pub(crate) fn hidden(&self) -> Hidden {
        Hidden::new(
            self.range_deletes.as_deref().cloned().unwrap_or_default(),
            self.active.range_deletes(),
        )
    }

    /// Returns the sequence number of the newest range delete of `key`, visible or not; 0 if there
    /// is none.
    pub(super) fn newest_range_delete_of(&self, key: &[u8]) -> SeqNo {
        self.newest_range_delete(key, Moment::Snapshot(SeqNo::MAX))
    }

    /// Returns a key in `range` under a range delete newer than `since`, and its sequence number,
    /// if there is one.
    pub(super) fn range_delete_within(
        &self,
        range: &KeyRange,
        since: SeqNo,
    ) -> Option<(Key, SeqNo)> {
        let in_active = self.active.range_deletes();
        let first = |range_deletes: &RangeDeletes| {
            let part = range_deletes.overlapping(range).find(|part| part.seqs[0] > since)?;
            Some((part.range.intersection(range).start, part.seqs[0]))
        };
        self.range_deletes.as_deref().and_then(first).or_else(|| first(&in_active))
    }

    /// Returns all range deletes, for a merge: it costs as much as there are. Range deletes of the
    /// active memtable may not be visible yet.
    pub(crate) fn all_range_deletes(&self) -> RangeDeletes {
        let in_active = self.active.range_deletes();
        match self.range_deletes.as_deref() {
            None => in_active,
            Some(range_deletes) => RangeDeletes::all([range_deletes, &in_active]),
        }
    }

    /// Returns the sequence number up to which the merge of `plan` applies range deletes. They are
    /// in the tree, or leave memory with what the plan takes. A newer range delete may be in no
    /// table and in no synced log. Power loss would take it, and would not bring back what the
    /// merge has left out.
    ///
    /// All range deletes in memory up to the newest one in the tree are in the tree too.
    pub(crate) fn lasting_range_deletes(&self, plan: &MergePlan) -> SeqNo {
        let taken = plan.inputs.iter().filter_map(|input| self.memory_run(input.run));
        let newest_taken = taken.map(|run| run.newest()).max().unwrap_or_default();
        let in_tree =
            self.tree.range_deletes().parts().filter_map(|part| part.seqs.first().copied());
        newest_taken.max(in_tree.max().unwrap_or_default())
    }
}
