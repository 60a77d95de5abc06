//! What range deletes hide from a reader.

use lsmith_tree::{KeyRange, RangeDeleteWalk, RangeDeletes, SeqNo};

/// The range deletes that hide entries from a reader, in two lists: one of the active memtable, and
/// one of everything older. No range read joins the two lists: that would cost as much as they are
/// long.
#[derive(Clone, Debug, Default)]
pub struct Hidden {
    lists: [RangeDeleteWalk; 2],
    /// True if something may be hidden. Range reads ask for each entry.
    hides: bool,
}

impl Hidden {
    /// Returns what `older` range deletes and the `active` ones of the active memtable hide.
    pub fn new(older: RangeDeletes, active: RangeDeletes) -> Hidden {
        let hides = !(older.is_empty() && active.is_empty());
        Hidden { lists: [RangeDeleteWalk::new(older), RangeDeleteWalk::new(active)], hides }
    }

    /// Returns true if nothing is hidden.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.hides
    }

    /// Returns the sequence number below which entries of `key` are hidden from a reader at `at`; 0
    /// if none are.
    pub fn below(&mut self, key: &[u8], at: SeqNo) -> SeqNo {
        let newest = |list: &mut RangeDeleteWalk| list.part_of(key).map(|part| part.newest_at(at));
        self.lists.iter_mut().filter_map(newest).max().unwrap_or_default()
    }

    /// Returns the same sequence number, and a range around `key` in which the entries below it are
    /// hidden.
    pub(super) fn around(&mut self, key: &[u8], at: SeqNo) -> Option<(KeyRange, SeqNo)> {
        let parts = self.lists.iter_mut().filter_map(|list| list.part_of(key));
        let newest = parts.max_by_key(|part| part.newest_at(at))?;
        Some((newest.range.clone(), newest.newest_at(at)))
    }
}
