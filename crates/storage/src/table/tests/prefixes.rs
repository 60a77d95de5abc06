//! Filters with prefixes: they exclude no prefix of a key, and most others.

use super::*;
use crate::format::{
    FEATURE_PREFIXES, FilterBuilder, SealedPlace, prefix_hash, prefix_hash_of, seal,
};
use crate::table::ReadTable;

fn prefixed(prefix_bytes: u16) -> TableOptions {
    TableOptions { prefix_bytes, ..options(300) }
}

fn excludes(table: &Table, prefix: &[u8]) -> bool {
    table.excludes(prefix_hash(prefix), &mut ReadCount::default())
}

#[test]
fn no_prefix_of_a_key_is_excluded() {
    let mut dice = Dice(17);
    for shape in SHAPES {
        for prefix_bytes in [1, 2, 3, 5, 29, 400] {
            let entries = random_entries(&mut dice, shape);
            let table = table(&entries, &prefixed(prefix_bytes));
            assert_eq!(table.facts().prefix_bytes, prefix_bytes);
            table.verify(&[KeyRange::ALL]).unwrap();
            for entry in &entries {
                if let Some(prefix) = entry.key.get(..usize::from(prefix_bytes)) {
                    assert!(!excludes(&table, prefix), "{shape:?} {prefix:?}");
                }
                let found = table.get(&entry.key, SeqNo::MAX, &mut ReadCount::default()).unwrap();
                assert!(found.is_some(), "keys stay in the filter");
            }
        }
    }
}

/// Keys of `users` users, of four bytes, with `each` items each.
fn items(users: u32, each: u32) -> Vec<Entry> {
    let key = |index: u32| [(index / each * 2).to_be_bytes(), index.to_be_bytes()].concat();
    (0..users * each).map(|index| Entry::put(key(index), 7, "value")).collect()
}

#[test]
fn most_other_prefixes_are_excluded() {
    for each in [1, 7] {
        let table = table(&items(3000, each), &prefixed(4));
        let passed = (0..3000u32).filter(|user| !excludes(&table, &(user * 2 + 1).to_be_bytes()));
        let passed = passed.count();
        assert!(passed < 60, "{passed} of 3000 absent users, {each} items each");
        let user = |index: u32| (index * 2).to_be_bytes();
        assert!((0..3000).all(|index| !excludes(&table, &user(index))));
    }
}

#[test]
fn filters_grow_by_distinct_prefixes() {
    let bits = |users, each, prefix_bytes| {
        let memory = table(&items(users, each), &prefixed(prefix_bytes)).memory();
        memory.filters as f64 * 8.0 / 6000.0
    };
    for (users, each, expected) in [(6000, 1, 20.0), (3000, 2, 15.0), (60, 100, 10.1)] {
        let (with, without) = (bits(users, each, 4), bits(users, each, 0));
        assert!((without - 10.0).abs() < 0.1, "{without} bits per key without prefixes");
        assert!((with - expected).abs() < 0.1, "{with} bits per key for {users} users");
    }
}

#[test]
fn footers_say_that_there_are_prefixes() {
    let features = |options: &TableOptions| {
        let table = table(&items(10, 10), options);
        let parts = table.file.parts().unwrap();
        assert_eq!(parts.facts.prefix_bytes > 0, parts.footer.features & FEATURE_PREFIXES > 0);
        parts.footer.features
    };
    assert_eq!(features(&prefixed(4)), FEATURE_PREFIXES);
    assert_eq!(features(&prefixed(0)), 0);
    let no_filter = TableOptions { filter_bits_per_key: 0, ..prefixed(4) };
    assert_eq!(features(&no_filter), 0, "without a filter there are no prefixes");
}

#[test]
fn filter_that_excludes_a_prefix_is_found() {
    let entries = items(40, 3);
    let (disk, _) = write(&entries, &prefixed(4));
    let section = open(&disk, &Arc::new(BlockCache::new(0))).unwrap().file.parts().unwrap();
    let section = section.footer.filter;
    // A filter of the same size that holds the keys, and other prefixes.
    let mut builder = FilterBuilder::new(10);
    entries.iter().for_each(|entry| builder.add(key_hash(&entry.key)));
    (0..40u64).for_each(|index| builder.add(prefix_hash(&index.to_be_bytes())));
    let mut payload = builder.finish();
    seal(&mut payload, 0, SealedPlace { table: TABLE, offset: section.start });
    let disk = changed(&disk, |bytes| {
        bytes[section.start as usize..section.end as usize].copy_from_slice(&payload);
    });
    let table = open(&disk, &Arc::new(BlockCache::new(0))).unwrap();
    let error = table.verify(&[KeyRange::ALL]).unwrap_err();
    assert!(error.to_string().contains("excludes the prefix of a key"), "{error}");
    assert_eq!(error.offset(), Some(section.start));
}

#[test]
fn keys_shorter_than_the_prefix_have_none() {
    let entries: Vec<Entry> =
        ["a", "ab", "abc", "abcd", "abce", "b", "bcde"].map(|key| Entry::put(key, 7, "")).into();
    let table = table(&entries, &prefixed(3));
    let held = ["abc", "bcd"].map(|prefix| prefix_hash_of(prefix.as_bytes(), 3).unwrap());
    assert!(held.iter().all(|hash| !table.excludes(*hash, &mut ReadCount::default())));
    table.verify(&[KeyRange::ALL]).unwrap();
}
