use super::*;
use crate::error::ErrorKind;
use crate::read::vec_cursor::{Owned, VecCursor, key, sort};
use crate::read::{ConcatCursor, MergingCursor, Parts};
use lsmith_tree::{EntryKind, Erased, Key, Readers};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn bound() -> impl Strategy<Value = Bound<Bytes>> {
    let key = || key().prop_map(Bytes::from);
    prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
    ]
}

fn is_within(key: &Bytes, lower: &Bound<Bytes>, upper: &Bound<Bytes>) -> bool {
    let above = match lower {
        Bound::Unbounded => true,
        Bound::Included(lower) => lower <= key,
        Bound::Excluded(lower) => lower < key,
    };
    let below = match upper {
        Bound::Unbounded => true,
        Bound::Included(upper) => key <= upper,
        Bound::Excluded(upper) => key < upper,
    };
    above && below
}

fn entries(writes: &[(Vec<u8>, bool)]) -> Vec<Owned> {
    let entry = |(i, (key, tombstone)): (usize, &(Vec<u8>, bool))| {
        let put = Owned::put(key, i as u64 + 1);
        if *tombstone { put.with(EntryKind::Delete) } else { put }
    };
    writes.iter().enumerate().map(entry).collect()
}

proptest! {
    #[test]
    fn both_ends_show_the_view_of_the_snapshot(
        writes in vec((key(), any::<bool>()), 0..40),
        snapshot in 0u64..42,
        (lower, upper) in (bound(), bound()),
        steps in vec((any::<bool>(), any::<bool>()), 45),
    ) {
        let entries = entries(&writes);
        let mut model = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.seq.0 <= snapshot) {
            model.insert(entry.key.clone(), entry.clone());
        }
        model.retain(|key, entry| !entry.kind.is_tombstone() && is_within(key, &lower, &upper));

        let cursor = VecCursor::new(entries);
        let mut iter = VisibleIter::new(cursor, SeqNo(snapshot), lower, upper);
        for (back, lent) in steps {
            let expected = if back { model.pop_last() } else { model.pop_first() };
            let outcome = if lent {
                let next = if back { iter.next_back_ref() } else { iter.next_ref() };
                let copy = Bytes::copy_from_slice;
                next.map(|found| found.map(|(key, value)| (copy(key), copy(value))))
            } else if back {
                iter.next_back()
            } else {
                iter.next()
            };
            let found = outcome.map(|found| found.unwrap());
            prop_assert_eq!(found, expected.map(|(key, entry)| (key, entry.value)));
        }
    }
}

#[test]
fn error_is_returned_once_and_ends_the_iteration() {
    let cursor = VecCursor::new(vec![Owned::put(b"a", 1), Owned::put(b"b", 2)]).failing_after(1);
    let mut iter = VisibleIter::new(cursor, SeqNo::MAX, Bound::Unbounded, Bound::Unbounded);
    assert_eq!(iter.next().unwrap().unwrap().0, "a");
    assert_eq!(iter.next().unwrap().unwrap_err().kind(), ErrorKind::Io);
    assert!(iter.next().is_none());
    assert!(iter.next_back().is_none());
}

/// An error among the older versions of a key, met while going backward, is not the end of the
/// versions: the value found so far may not be the newest.
#[test]
fn incompletely_read_key_is_not_returned() {
    let cursor = VecCursor::new(vec![Owned::put(b"a", 1), Owned::put(b"a", 2)]).failing_after(1);
    let mut iter = VisibleIter::new(cursor, SeqNo::MAX, Bound::Unbounded, Bound::Unbounded);
    assert!(iter.next_back().unwrap().is_err());
    assert!(iter.next_back().is_none());
}

/// Tables of one run, with the keys at which each but the first begins.
struct Tables {
    starts: Vec<Vec<u8>>,
    tables: Vec<Vec<Owned>>,
}

impl Tables {
    /// Cuts `entries`, which may be in any order, at `borders`.
    fn new(entries: &[Owned], borders: &BTreeSet<Vec<u8>>) -> Tables {
        let starts: Vec<Vec<u8>> = [Vec::new()].into_iter().chain(borders.clone()).collect();
        let lies = |key: &[u8], at: usize| {
            *starts[at] <= *key && starts.get(at + 1).is_none_or(|end| *key < **end)
        };
        let table = |at| entries.iter().filter(|entry| lies(&entry.key, at)).cloned().collect();
        let tables = (0..starts.len()).map(table).collect();
        Tables { starts, tables }
    }
}

impl Parts for Tables {
    type Cursor = VecCursor;

    fn count(&self) -> usize {
        self.tables.len()
    }

    fn start(&self, index: usize) -> &[u8] {
        &self.starts[index]
    }

    fn end(&self, index: usize) -> Option<&[u8]> {
        self.starts.get(index + 1).map(Vec::as_slice)
    }

    fn source(&self, index: usize) -> usize {
        index
    }

    fn newest(&self, index: usize) -> SeqNo {
        self.tables[index].iter().map(|entry| entry.seq).max().unwrap_or_default()
    }

    fn open(&self, index: usize) -> Result<VecCursor> {
        Ok(VecCursor::sorted(self.tables[index].clone()))
    }

    fn enter(&self, _: usize, _: &mut VecCursor) {}
}

/// A range delete: the first key, the first key behind the range, and the number.
type Delete = (Vec<u8>, Option<Vec<u8>>, u64);

fn erased(deletes: &[Delete]) -> Erased {
    let mut erased = Erased::default();
    for (start, end, seq) in deletes {
        let range =
            KeyRange { start: Key::from(start.as_slice()), end: end.as_deref().map(Key::from) };
        erased.erase(&range, SeqNo(*seq), &Readers::ANY);
    }
    erased
}

/// Range deletes with odd numbers.
fn deletes() -> impl Strategy<Value = Vec<Delete>> {
    vec((key(), proptest::option::of(key()), (0u64..42).prop_map(|number| 2 * number + 1)), 0..5)
}

proptest! {
    #[test]
    fn leaps_leave_out_what_range_deletes_hide_and_nothing_else(
        writes in vec((key(), any::<bool>()), 0..40),
        deletes in deletes(),
        older in 0usize..40,
        borders in btree_set(key(), 0..5),
        snapshot in 0u64..84,
        steps in vec(any::<bool>(), 45),
    ) {
        let mut entries = entries(&writes);
        entries.iter_mut().for_each(|entry| entry.seq.0 *= 2);
        let erased = erased(&deletes);
        let mut model = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.seq.0 <= snapshot) {
            model.insert(entry.key.clone(), entry.clone());
        }
        model.retain(|key, entry| {
            !entry.kind.is_tombstone() && erased.newest_at(key, SeqNo(snapshot)) <= entry.seq
        });

        let run = |entries: &[Owned]| {
            let mut sorted = entries.to_vec();
            sort(&mut sorted);
            ConcatCursor::new(Tables::new(&sorted, &borders))
        };
        let (older, newer) = entries.split_at(older.min(entries.len()));
        let cursor = MergingCursor::new(vec![run(newer), run(older)]);
        let iter = VisibleIter::new(cursor, SeqNo(snapshot), Bound::Unbounded, Bound::Unbounded);
        let mut iter = iter.hiding(ErasedWalk::new(erased));
        for back in steps {
            let expected = if back { model.pop_last() } else { model.pop_first() };
            let found = if back { iter.next_back() } else { iter.next() };
            let found = found.map(|found| found.unwrap());
            prop_assert_eq!(found, expected.map(|(key, entry)| (key, entry.value)));
        }
    }

    /// Answers may be wrong, and there may be an error.
    #[test]
    fn walks_with_leaps_end_where_entries_are_in_a_wrong_order(
        writes in vec((key(), any::<bool>()), 0..40),
        deletes in deletes(),
        borders in btree_set(key(), 0..5),
        snapshot in 0u64..42,
        is_back in any::<bool>(),
        order in Just((0..40usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let entries = entries(&writes);
        let shuffled: Vec<Owned> =
            order.iter().filter_map(|at| entries.get(*at)).cloned().collect();
        let cursor = ConcatCursor::new(Tables::new(&shuffled, &borders));
        let cursor = MergingCursor::new(vec![Fuel { cursor, left: 10_000 }]);
        let iter = VisibleIter::new(cursor, SeqNo(snapshot), Bound::Unbounded, Bound::Unbounded);
        let mut iter = iter.hiding(ErasedWalk::new(erased(&deletes)));
        loop {
            match if is_back { iter.next_back() } else { iter.next() } {
                None => break,
                Some(Err(error)) => {
                    prop_assert_eq!(error.kind(), ErrorKind::Corruption);
                    break;
                }
                Some(Ok(_)) => {}
            }
        }
    }
}

/// A cursor that panics after so many moves.
struct Fuel<C> {
    cursor: C,
    left: usize,
}

impl<C> Fuel<C> {
    fn burn(&mut self) -> &mut C {
        self.left = self.left.checked_sub(1).expect("a walk that ends");
        &mut self.cursor
    }
}

impl<C: Cursor> Cursor for Fuel<C> {
    fn seek_first(&mut self) -> Result<()> {
        self.burn().seek_first()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.burn().seek_last()
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.burn().seek(key)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.burn().seek_before(key)
    }

    fn next(&mut self) -> Result<()> {
        self.burn().next()
    }

    fn prev(&mut self) -> Result<()> {
        self.burn().prev()
    }

    fn leap(&mut self, range: &KeyRange, upto: SeqNo) -> Result<()> {
        self.burn().leap(range, upto)
    }

    fn leap_back(&mut self, range: &KeyRange, upto: SeqNo) -> Result<()> {
        self.burn().leap_back(range, upto)
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        self.cursor.entry()
    }

    fn value(&self) -> Bytes {
        self.cursor.value()
    }
}
