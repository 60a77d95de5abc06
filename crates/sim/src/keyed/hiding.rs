//! Range deletes, as a merge applies them.

use super::entry::KeyedEntry;
use super::rank::rank_key;
use lsmith_tree::{KeyRange, RangeDeleteWalk, RangeDeletes, SeqNo, Table};

/// The range deletes that a merge applies.
#[derive(Clone, Debug)]
pub(super) struct Hiding {
    walk: RangeDeleteWalk,
    /// Range deletes up to this sequence number are applied. Entries that are newer than one of the
    /// others keep their sequence numbers.
    upto: SeqNo,
}

impl Hiding {
    pub(super) fn new(range_deletes: RangeDeletes, upto: SeqNo) -> Hiding {
        Hiding { walk: RangeDeleteWalk::new(range_deletes), upto }
    }

    pub(super) fn range_deletes(&self) -> &RangeDeletes {
        self.walk.range_deletes()
    }

    /// Returns the greatest sequence number up to which the range deletes over `range` are applied.
    pub(super) fn deletes_applied(&self, range: &KeyRange) -> SeqNo {
        self.walk.range_deletes().cleared_by(range, self.upto)
    }

    /// Returns what is left of `range` of `table` without the ranges in which range deletes hide
    /// all entries of the table. A merge passes over the others without a visit.
    pub(super) fn visited(&self, table: &Table, range: &KeyRange) -> Vec<KeyRange> {
        self.walk.range_deletes().shown(range, table.seq_max, self.upto)
    }

    /// Returns true if a range delete hides `entry`, or if it is the tombstone that stands for a
    /// range delete in memory.
    pub(super) fn hides<E: KeyedEntry>(&mut self, entry: E) -> bool {
        let part = self.walk.part_of(&rank_key(u64::from(entry.rank())));
        let hides = part.and_then(|part| part.hiding(entry.kind(), entry.seq()));
        hides.is_some_and(|seq| seq <= self.upto)
    }

    /// Returns true if `entry` would lie under a range delete without its sequence number.
    pub(super) fn needs_seq<E: KeyedEntry>(&mut self, entry: E) -> bool {
        let part = self.walk.part_of(&rank_key(u64::from(entry.rank())));
        part.is_some_and(|part| part.oldest() <= entry.seq())
    }
}
