use super::*;
use crate::error::ErrorKind;
use crate::read::vec_cursor::{Owned, VecCursor, key};
use lsmith_tree::EntryKind;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

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

/// Returns writes with the sequence numbers from 1 up: a delete where the flag is set, otherwise a
/// put.
pub(crate) fn entries(writes: &[(Vec<u8>, bool)]) -> Vec<Owned> {
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
