//! Leaves key ranges out of a walk.

use crate::cursor::{Cursor, EntryRef};
use crate::error::{Error, Result};
use crate::read::Leaps;
use bytes::Bytes;
use lsmith_tree::{KeyRange, RangeDeleteWalk, RangeDeletes, SeqNo};

/// Walks the entries of another cursor, but for those in deleted ranges, whatever their sequence
/// numbers. It seeks over each range.
pub struct Without<C> {
    cursor: C,
    range_deletes: RangeDeleteWalk,
    /// The passes over ranges since the last seek or turn.
    passes: Leaps,
    /// The direction of the last pass.
    is_back: bool,
}

impl<C: Cursor> Without<C> {
    /// Returns a cursor over the entries of `cursor` outside of what `range_deletes` cover.
    pub fn new(cursor: C, range_deletes: RangeDeletes) -> Without<C> {
        let range_deletes = RangeDeleteWalk::new(range_deletes);
        Without { cursor, range_deletes, passes: Leaps::default(), is_back: false }
    }

    /// Returns the range around the entry under the cursor that is left out, if there is one.
    fn deleted_here(&mut self) -> Option<KeyRange> {
        let entry = self.cursor.entry()?;
        self.range_deletes.part_of(entry.key).map(|part| part.range.clone())
    }

    /// Passes over deleted ranges, towards greater keys.
    fn settle(&mut self) -> Result<()> {
        self.face(false);
        while let Some(range) = self.deleted_here() {
            self.passes.pass(&mut self.cursor, &range)?;
        }
        Ok(())
    }

    /// Passes over deleted ranges, towards lesser keys.
    fn settle_back(&mut self) -> Result<()> {
        self.face(true);
        while let Some(range) = self.deleted_here() {
            self.passes.pass_back(&mut self.cursor, &range)?;
        }
        Ok(())
    }

    fn face(&mut self, is_back: bool) {
        if std::mem::replace(&mut self.is_back, is_back) != is_back {
            self.passes.restart();
        }
    }
}

impl<C: Cursor> Cursor for Without<C> {
    fn seek_first(&mut self) -> Result<()> {
        self.passes.restart();
        self.cursor.seek_first()?;
        self.settle()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.passes.restart();
        self.cursor.seek_last()?;
        self.settle_back()
    }

    fn approach(&mut self, key: &[u8]) -> bool {
        self.cursor.approach(key)
    }

    fn approach_before(&mut self, key: &[u8]) -> bool {
        self.cursor.approach_before(key)
    }

    fn touch(&self) -> u64 {
        self.cursor.touch()
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.passes.restart();
        self.cursor.seek(key)?;
        self.settle()
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.passes.restart();
        self.cursor.seek_before(key)?;
        self.settle_back()
    }

    fn next(&mut self) -> Result<()> {
        self.cursor.next()?;
        self.settle()
    }

    fn prev(&mut self) -> Result<()> {
        self.cursor.prev()?;
        self.settle_back()
    }

    fn leap(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        self.cursor.leap(range, below)?;
        self.settle()
    }

    fn leap_back(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        self.cursor.leap_back(range, below)?;
        self.settle_back()
    }

    fn newest(&self) -> SeqNo {
        self.cursor.newest()
    }

    fn disorder(&self) -> Error {
        self.cursor.disorder()
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        self.cursor.entry()
    }

    fn is_alone(&self) -> bool {
        self.cursor.is_alone()
    }

    fn has_opened(&self) -> bool {
        self.cursor.has_opened()
    }

    fn value(&self) -> Bytes {
        self.cursor.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::read::vec_cursor::{Owned, VecCursor, key};
    use crate::read::{MergingCursor, VisibleIter};
    use lsmith_tree::{Key, Readers};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::ops::Bound;

    fn range_deletes(ranges: &[(Vec<u8>, Option<Vec<u8>>)]) -> RangeDeletes {
        let mut range_deletes = RangeDeletes::default();
        for (start, end) in ranges {
            let range =
                KeyRange { start: Key::from(start.as_slice()), end: end.as_deref().map(Key::from) };
            range_deletes.delete_range(&range, SeqNo(1), &Readers::ANY);
        }
        range_deletes
    }

    fn ranges() -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
        vec((key(), proptest::option::of(key())), 0..4)
    }

    proptest! {
        #[test]
        fn entries_in_deleted_ranges_are_left_out(
            keys in vec(key(), 0..40),
            ranges in ranges(),
            steps in vec(any::<bool>(), 45),
        ) {
            let range_deletes = range_deletes(&ranges);
            let entries: Vec<Owned> =
                keys.iter().zip(1..).map(|(key, seq)| Owned::put(key, seq)).collect();
            let mut model = BTreeMap::new();
            for entry in &entries {
                model.insert(entry.key.clone(), entry.value.clone());
            }
            model.retain(|key, _| range_deletes.part_of(key).is_none());
            let (even, odd) = entries.into_iter().partition(|entry| entry.seq.0 % 2 == 0);
            let source = |entries| Without::new(VecCursor::new(entries), range_deletes.clone());
            let cursor = MergingCursor::new(vec![source(even), source(odd)]);
            let mut iter =
                VisibleIter::new(cursor, SeqNo::MAX, Bound::Unbounded, Bound::Unbounded);
            for back in steps {
                let expected = if back { model.pop_last() } else { model.pop_first() };
                let found = if back { iter.next_back() } else { iter.next() };
                prop_assert_eq!(found.map(|found| found.unwrap()), expected);
            }
        }

        /// Entries may be wrong, and there may be an error.
        #[test]
        fn walks_end_where_entries_are_in_a_wrong_order(
            keys in vec(key(), 0..40),
            ranges in ranges(),
            is_back in any::<bool>(),
        ) {
            let entries = keys.iter().zip(1..).map(|(key, seq)| Owned::put(key, seq)).collect();
            let mut cursor = Without::new(VecCursor::sorted(entries), range_deletes(&ranges));
            let mut walk = if is_back { cursor.seek_last() } else { cursor.seek_first() };
            let mut left = 1000;
            while walk.is_ok() && cursor.entry().is_some() {
                left -= 1;
                prop_assert!(left > 0);
                walk = if is_back { cursor.prev() } else { cursor.next() };
            }
            if let Err(error) = walk {
                prop_assert_eq!(error.kind(), ErrorKind::Corruption);
            }
        }
    }
}
