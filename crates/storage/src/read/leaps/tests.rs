//! Walks that leap over what range deletes hide, of readers and of merges.

use super::*;
use crate::cursor::EntryRef;
use crate::error::ErrorKind;
use crate::fold::{Fold, Hiding, Walk};
use crate::read::vec_cursor::{Owned, VecCursor, key, sort};
use crate::read::visible::tests::entries;
use crate::read::{ConcatCursor, Hidden, MergingCursor, Parts, VisibleIter};
use bytes::Bytes;
use lsmith_tree::{Key, RangeDeletes, Readers};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

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

/// Returns a cursor over `entries` in two runs, with the `older` first ones in the older run. Both
/// are cut at `borders`.
fn two_runs(
    entries: &[Owned],
    older: usize,
    borders: &BTreeSet<Vec<u8>>,
) -> MergingCursor<ConcatCursor<Tables>> {
    let run = |entries: &[Owned]| {
        let mut sorted = entries.to_vec();
        sort(&mut sorted);
        ConcatCursor::new(Tables::new(&sorted, borders))
    };
    let (older, newer) = entries.split_at(older.min(entries.len()));
    MergingCursor::new(vec![run(newer), run(older)])
}

/// A range delete: the first key, the first key behind the range, and the sequence number.
type Delete = (Vec<u8>, Option<Vec<u8>>, u64);

fn range_deletes(deletes: &[Delete]) -> RangeDeletes {
    let mut range_deletes = RangeDeletes::default();
    for (start, end, seq) in deletes {
        let range =
            KeyRange { start: Key::from(start.as_slice()), end: end.as_deref().map(Key::from) };
        range_deletes.delete_range(&range, SeqNo(*seq), &Readers::ANY);
    }
    range_deletes
}

/// Range deletes with odd numbers.
fn deletes() -> impl Strategy<Value = Vec<Delete>> {
    vec((key(), proptest::option::of(key()), (0u64..42).prop_map(|half| 2 * half + 1)), 0..5)
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
        let range_deletes = range_deletes(&deletes);
        let mut model = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.seq.0 <= snapshot) {
            model.insert(entry.key.clone(), entry.clone());
        }
        model.retain(|key, entry| {
            !entry.kind.is_tombstone() && range_deletes.newest_at(key, SeqNo(snapshot)) <= entry.seq
        });

        let cursor = two_runs(&entries, older, &borders);
        let iter = VisibleIter::new(cursor, SeqNo(snapshot), Bound::Unbounded, Bound::Unbounded);
        let mut iter = iter.hiding(Hidden::new(range_deletes, RangeDeletes::default()));
        for back in steps {
            let expected = if back { model.pop_last() } else { model.pop_first() };
            let found = if back { iter.next_back() } else { iter.next() };
            let found = found.map(|found| found.unwrap());
            prop_assert_eq!(found, expected.map(|(key, entry)| (key, entry.value)));
        }
    }

    #[test]
    fn merges_that_leap_write_the_same_entries(
        writes in vec((key(), any::<bool>()), 0..40),
        deletes in deletes(),
        older in 0usize..40,
        borders in btree_set(key(), 0..5),
        visible in 0u64..84,
        snapshots in btree_set(0u64..84, 0..3),
    ) {
        let mut entries = entries(&writes);
        entries.iter_mut().for_each(|entry| entry.seq.0 *= 2);
        let snapshots: Vec<SeqNo> = snapshots.iter().rev().map(|seq| SeqNo(*seq)).collect();
        let hiding = Hiding::new(range_deletes(&deletes), SeqNo(visible));
        let cursor = two_runs(&entries, older, &borders);
        let walk = Leaping { cursor, hiding: hiding.clone(), snapshots: snapshots.clone() };
        let leaping = merged(walk, hiding.clone(), &snapshots).unwrap();
        let plain = merged(two_runs(&entries, older, &borders), hiding, &snapshots).unwrap();
        prop_assert_eq!(leaping, plain);
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
        let cursor = in_order(&entries(&writes), &order, &borders);
        let iter = VisibleIter::new(cursor, SeqNo(snapshot), Bound::Unbounded, Bound::Unbounded);
        let mut iter = iter.hiding(Hidden::new(RangeDeletes::default(), range_deletes(&deletes)));
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

    /// The output may be wrong, and there may be an error.
    #[test]
    fn merges_with_leaps_end_where_entries_are_in_a_wrong_order(
        writes in vec((key(), any::<bool>()), 0..40),
        deletes in deletes(),
        borders in btree_set(key(), 0..5),
        visible in 0u64..42,
        order in Just((0..40usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let hiding = Hiding::new(range_deletes(&deletes), SeqNo(visible));
        let cursor = in_order(&entries(&writes), &order, &borders);
        let walk = Leaping { cursor, hiding: hiding.clone(), snapshots: Vec::new() };
        if let Err(error) = merged(walk, hiding, &[]) {
            prop_assert_eq!(error.kind(), ErrorKind::Corruption);
        }
    }
}

/// Returns a cursor over the first of `entries` in the wrong order `order`, cut at `borders`.
fn in_order(
    entries: &[Owned],
    order: &[usize],
    borders: &BTreeSet<Vec<u8>>,
) -> MergingCursor<Fuel<ConcatCursor<Tables>>> {
    let shuffled: Vec<Owned> = order.iter().filter_map(|at| entries.get(*at)).cloned().collect();
    let cursor = ConcatCursor::new(Tables::new(&shuffled, borders));
    MergingCursor::new(vec![Fuel { cursor, left: 10_000 }])
}

/// The walk of a merge over its inputs.
struct Leaping<C> {
    cursor: C,
    hiding: Hiding,
    snapshots: Vec<SeqNo>,
}

impl<C: Cursor> Walk for Leaping<C> {
    fn begin(&mut self) -> Result<()> {
        self.cursor.seek_first()?;
        self.hiding.leap(&mut self.cursor, &self.snapshots)
    }

    fn advance(&mut self) -> Result<()> {
        self.cursor.next()?;
        self.hiding.leap(&mut self.cursor, &self.snapshots)
    }

    fn here(&self) -> Option<EntryRef<'_>> {
        self.cursor.entry()
    }
}

/// Returns what a merge of `cursor` writes, to the first error.
fn merged(cursor: impl Walk, hiding: Hiding, snapshots: &[SeqNo]) -> Result<Vec<Owned>> {
    let mut fold = Fold::new(cursor, snapshots.to_vec(), |_: &[u8]| false)?.hiding(hiding);
    let mut output = Vec::new();
    while let Some(entry) = fold.next_entry()? {
        output.push(Owned::from(entry));
    }
    Ok(output)
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

    fn newest(&self) -> SeqNo {
        self.cursor.newest()
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        self.cursor.entry()
    }

    fn value(&self) -> Bytes {
        self.cursor.value()
    }
}
