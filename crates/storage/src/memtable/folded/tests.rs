use super::builder::count_while;
use super::*;
use crate::read::vec_cursor::{Call, Owned, VecCursor, calls, compare, key, sort};
use bytes::Bytes;
use lsmith_tree::Table;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn fold(entries: &[Owned], block_bytes: u64) -> Option<(Arc<Folded>, Table)> {
    let mut builder = FoldedBuilder::new(7, block_bytes);
    entries.iter().for_each(|entry| builder.add(entry.as_ref()));
    builder.finish(None).map(|(folded, table)| (Arc::new(folded), table))
}

/// Generates entries in the store's order, without duplicates of key and sequence number.
fn entries() -> impl Strategy<Value = Vec<Owned>> {
    vec((key(), 1..40_u64, 0..4_u8), 1..60).prop_map(|parts| {
        let mut entries: Vec<Owned> = parts
            .into_iter()
            .filter(|(key, ..)| !key.is_empty())
            .map(|(key, seq, kind)| Owned::put(&key, seq).with(EntryKind::from_byte(kind).unwrap()))
            .collect();
        sort(&mut entries);
        entries.dedup_by(|left, right| (&left.key, left.seq) == (&right.key, right.seq));
        entries
    })
}

proptest! {
    #[test]
    fn cursor_walks_like_one_over_a_sorted_vector(entries in entries(), calls in calls()) {
        if let Some((folded, _)) = fold(&entries, 64) {
            compare(&mut VecCursor::new(entries), &mut folded.cursor(), &calls);
        }
    }

    #[test]
    fn a_get_finds_the_newest_version_that_a_snapshot_sees(
        entries in entries(), key in key(), seq in 0..45_u64,
    ) {
        let Some((folded, table)) = fold(&entries, 64) else { return Ok(()) };
        let seen = |entry: &&Owned| entry.key == key && entry.seq <= SeqNo(seq);
        let expected = entries.iter().find(seen);
        let found = folded.get(&key, SeqNo(seq));
        prop_assert_eq!(found.is_some(), expected.is_some());
        if let (Some(found), Some(expected)) = (found, expected) {
            prop_assert_eq!(found.seq, expected.seq);
            prop_assert_eq!(found.kind, expected.kind);
            prop_assert_eq!(&found.value, &expected.value);
        }
        prop_assert_eq!(table.size.entries, entries.len() as u64);
        prop_assert!(entries.iter().all(|entry| table.range.contains(&entry.key)));
    }
}

/// One step of memory: keys that are written, and keys that leave.
#[derive(Clone, Debug)]
struct Fill {
    written: Vec<Bytes>,
    gone: Vec<Bytes>,
}

fn fills() -> impl Strategy<Value = Vec<Fill>> {
    let keys = || vec(key().prop_filter("keys are not empty", |key| !key.is_empty()), 0..25);
    let fill = (keys(), keys()).prop_map(|(written, gone)| Fill {
        written: written.into_iter().map(Bytes::from).collect(),
        gone: gone.into_iter().map(Bytes::from).collect(),
    });
    vec(fill, 1..8)
}

impl Fill {
    /// Folds new entries over what stays of `old`, and applies the same to `model`.
    fn take(
        &self,
        old: &Arc<Folded>,
        model: &mut BTreeMap<Bytes, Owned>,
        (fill_id, block_bytes): (u64, u64),
    ) -> Option<(Folded, Table)> {
        let stays: Vec<_> = model.keys().filter(|key| !self.gone.contains(key)).cloned().collect();
        let ranges = stays.iter().map(|key| KeyRange::inclusive(key, key));
        let mut rest = old.entries_within(ranges.collect::<Vec<_>>());
        let mut builder = FoldedBuilder::new(7, block_bytes);
        if fill_id % 3 > 0 {
            builder.share(&rest, self.written.len());
        }
        model.retain(|key, _| !self.gone.contains(key));
        let written: BTreeSet<_> = self.written.iter().collect();
        for (index, key) in written.into_iter().enumerate() {
            let kind = EntryKind::from_byte((fill_id as u8 + index as u8) % 4).unwrap();
            let entry = Owned::put(key, 1000 * fill_id + index as u64).with(kind);
            builder.keep_below(&mut rest, Some(key));
            if rest.entry().is_some_and(|old| old.key == *key) {
                rest.advance();
            }
            builder.add(entry.as_ref());
            model.insert(key.clone(), entry);
        }
        builder.keep_below(&mut rest, None);
        builder.finish(Some(&rest))
    }
}

proptest! {
    /// Entries that stay in their chunks, from one fold to the next, are packed as if they were
    /// copied, which every third fold does. Chunks are in memory as long as one of their entries
    /// is.
    #[test]
    fn entries_that_stay_are_packed_like_added_ones(fills in fills(), block_bytes in 20..300_u64) {
        let mut model = BTreeMap::new();
        let mut folded = Arc::new(Folded::default());
        for (fill_id, fill) in (1..).zip(&fills) {
            let found = fill.take(&folded, &mut model, (fill_id, block_bytes));
            let all: Vec<Owned> = model.values().cloned().collect();
            let Some((new, table)) = found else {
                prop_assert!(all.is_empty());
                return Ok(());
            };
            folded = Arc::new(new);
            let (packed, expected) = fold(&all, block_bytes).unwrap();
            let Table { seq_min, seq_max, .. } = table;
            prop_assert_eq!(&table, &Table { seq_min, seq_max, ..expected });
            prop_assert_eq!(&folded.sums, &packed.sums);
            let steps = std::iter::repeat_with(|| Call::Next).take(all.len());
            let walk: Vec<Call> = std::iter::once(Call::First).chain(steps).collect();
            compare(&mut VecCursor::new(all), &mut folded.cursor(), &walk);
            let mut in_chunks = vec![0; folded.chunks.len()];
            folded.places.iter().for_each(|place| in_chunks[place.chunk as usize] += 1);
            prop_assert_eq!(&folded.in_chunks, &in_chunks);
            let empty = folded.chunks.iter().map(|chunk| chunk.is_empty());
            prop_assert!(empty.eq(in_chunks.iter().map(|entries| *entries == 0)));
        }
    }
}

#[test]
fn builder_without_entries_returns_nothing() {
    assert!(fold(&[], 64).is_none());
}

#[test]
fn the_profile_has_a_point_at_each_border_of_a_block() {
    let put = |key: &str, value_bytes: usize| Owned {
        value: vec![7; value_bytes].into(),
        ..Owned::put(key.as_bytes(), 1)
    };
    // Of 109, 109, 59, 409 and 9 logical bytes, in blocks of 200.
    let entries = [put("a", 100), put("b", 100), put("c", 50), put("d", 400), put("e", 0)];
    let (_, table) = fold(&entries, 200).unwrap();
    let points: Vec<_> = table
        .profile
        .iter()
        .map(|point| (&point.key[..], point.below.bytes, point.after.as_deref().unwrap()))
        .collect();
    let expected: [(&[u8], u64, &[u8]); 3] =
        [(b"b", 109, b"a\0"), (b"d", 277, b"c\0"), (b"e", 686, b"d\0")];
    assert_eq!(points, expected);
}

#[test]
fn long_entries_get_chunks_of_their_own() {
    let long = |key: &str, bytes: usize| Owned {
        value: vec![key.as_bytes()[0]; bytes].into(),
        ..Owned::put(key.as_bytes(), 1)
    };
    let entries = [long("a", 20_000), long("b", 100_000), long("c", 20_000), long("d", 0)];
    let (folded, _) = fold(&entries, 4096).unwrap();
    for entry in &entries {
        assert_eq!(folded.get(&entry.key, SeqNo(1)).unwrap().value, entry.value);
    }
    assert!((140_000..150_000).contains(&folded.allocated_bytes()));
}

/// Entries of 100 logical bytes, with these numbers as keys.
fn numbered(numbers: impl Iterator<Item = u32>) -> impl Iterator<Item = Owned> {
    numbers.map(|key| Owned {
        value: vec![7; 88].into(),
        ..Owned::put(&key.to_be_bytes(), u64::from(key) + 1)
    })
}

/// What is asked for: an entry is folded when it comes, and hardly ever again, however many times
/// memory is folded until it leaves.
#[test]
fn entries_that_stay_are_not_looked_at_again() {
    let mut builder = FoldedBuilder::new(1, 4096);
    numbered((0..20_000).map(|index| index * 1000)).for_each(|entry| builder.add(entry.as_ref()));
    let mut folded = Arc::new(builder.finish(None).unwrap().0);
    let mut looked_at = 0;
    for round in 1..=20 {
        let mut rest = folded.entries_within([KeyRange::ALL]);
        let mut builder = FoldedBuilder::new(1, 4096);
        builder.share(&rest, 1000);
        for entry in numbered((0..1000).map(|index| index * 20_000 + round)) {
            builder.keep_below(&mut rest, Some(&entry.key));
            builder.add(entry.as_ref());
        }
        builder.keep_below(&mut rest, None);
        looked_at += builder.folded_entries();
        folded = Arc::new(builder.finish(Some(&rest)).unwrap().0);
    }
    // Of the 20 * 30,000 entries that were in memory on average, 20,000 were new. One in 40 begins
    // a block.
    assert_eq!(folded.places.len(), 40_000);
    assert!((20_000..36_000).contains(&looked_at), "{looked_at}");
}

#[test]
fn chunks_take_the_numbers_of_those_that_are_free() {
    let mut folded = Arc::new(Folded::default());
    for round in 0..50 {
        let mut rest = folded.entries_within([]);
        let mut builder = FoldedBuilder::new(1, 4096);
        builder.share(&rest, 1000);
        builder.keep_below(&mut rest, None);
        numbered(round..round + 1000).for_each(|entry| builder.add(entry.as_ref()));
        folded = Arc::new(builder.finish(Some(&rest)).unwrap().0);
    }
    assert_eq!(folded.chunks.len(), 3);
}

#[test]
fn a_count_needs_no_look_at_all_items() {
    let items: Vec<usize> = (0..1000).collect();
    for end in 0..=200 {
        for count in 0..=end {
            assert_eq!(count_while(&items[..end], |item| *item < count), count);
        }
    }
    let looks = std::cell::Cell::new(0);
    let is_before = |item: &usize| {
        looks.set(looks.get() + 1);
        *item < 900
    };
    assert_eq!(count_while(&items, is_before), 900);
    assert!(looks.get() <= 50, "{looks:?}");
}
