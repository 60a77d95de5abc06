use super::*;
use crate::read::vec_cursor::{Owned, VecCursor, calls, compare, key, sort};
use proptest::collection::vec;
use proptest::prelude::*;

fn fold(entries: &[Owned], block_bytes: u64) -> Option<(Arc<Folded>, Table)> {
    let mut builder = FoldedBuilder::new(7, block_bytes);
    entries.iter().for_each(|entry| builder.add(entry.as_ref()));
    builder.finish().map(|(folded, table)| (Arc::new(folded), table))
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

proptest! {
    /// Entries that stay in their chunks are packed as if they were copied.
    #[test]
    fn kept_entries_are_packed_like_added_ones(
        entries in entries(), news in vec(any::<bool>(), 60), gone in vec(any::<bool>(), 60),
        block_bytes in 20..300_u64,
    ) {
        let mut all = entries;
        all.dedup_by(|left, right| left.key == right.key);
        let is_new = |index: usize| news[index];
        let is_gone = |index: usize| gone[index] && !is_new(index);
        let those = |is_there: &dyn Fn(usize) -> bool| -> Vec<Owned> {
            let there = (0..all.len()).filter(|index| is_there(*index));
            there.map(|index| all[index].clone()).collect()
        };
        let old = those(&|index| !is_new(index));
        let Some((folded, _)) = fold(&old, 4096) else { return Ok(()) };
        let ranges = (0..all.len())
            .filter(|index| !is_new(*index) && !is_gone(*index))
            .map(|index| KeyRange::inclusive(&all[index].key, &all[index].key));
        let mut rest = folded.entries_within(ranges.collect::<Vec<_>>());
        let mut builder = FoldedBuilder::new(7, block_bytes);
        builder.share(&rest, 1);
        for index in (0..all.len()).filter(|index| is_new(*index)) {
            builder.keep_below(&mut rest, Some(&all[index].key));
            builder.add(all[index].as_ref());
        }
        builder.keep_below(&mut rest, None);
        let left = those(&|index| !is_gone(index));
        let found = builder.finish();
        let expected = fold(&left, block_bytes);
        prop_assert_eq!(found.as_ref().map(|(_, table)| table), expected.as_ref().map(|(_, t)| t));
        if let Some((folded, _)) = found {
            let mut cursor = Arc::new(folded).cursor();
            cursor.seek_first().unwrap();
            for entry in left {
                prop_assert_eq!(cursor.entry(), Some(entry.as_ref()));
                cursor.next().unwrap();
            }
            prop_assert!(cursor.entry().is_none());
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
