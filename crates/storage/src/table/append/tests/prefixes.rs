//! Prefixes in the filters of append tables, over many batches.

use super::*;
use crate::format::{FEATURE_PREFIXES, Filter, SealedPlace, prefix_hash, seal};
use crate::table::ReadTable;

fn prefixed(prefix_bytes: u16) -> TableOptions {
    TableOptions { block_bytes: 300, prefix_bytes, ..TableOptions::default() }
}

/// Returns the entries of batch `index`: two items for each of the users in it, of whom half are
/// new. Users have even ids, in four bytes.
fn batch(index: u32, users: u32) -> Vec<Owned> {
    let first = index * users / 2;
    let user = |index: u32| (2 * index).to_be_bytes();
    let items = (first..first + users).flat_map(|id| [0, 1].map(|item| (id, 2 * index + item)));
    let key = |(id, item): (u32, u32)| [user(id), item.to_be_bytes()].concat();
    items.map(|item| entry(key(item), u64::from(index) + 1, b"v")).collect()
}

/// Returns how many of 2000 absent prefixes pass.
fn passed(table: &AppendTable) -> usize {
    let absent = (0..2000u32).map(|index| (2 * index + 1).to_be_bytes());
    absent.filter(|user| !table.excludes(prefix_hash(user), &mut ReadCount::default())).count()
}

#[test]
fn prefixes_of_all_batches_are_held_and_most_others_are_not() {
    let mut bench = Bench::new(prefixed(4));
    for index in 0..30 {
        bench.append(batch(index, 40));
        bench.check();
        let table = bench.open();
        assert_eq!((table.facts().prefix_bytes, table.features & FEATURE_PREFIXES), (4, 16));
        let (root, keys) = (&table.root, table.keys());
        assert!(root.filter_prefixes + keys <= root.filter_room, "{root:?}");
        let users = u64::from((index + 2) * 20);
        assert!((users * 9 / 10..=users).contains(&root.filter_prefixes), "{users}: {root:?}");
        let passed = passed(&table);
        assert!(passed < 40, "{passed} of 2000 after batch {index}");
    }
}

#[test]
fn filter_that_excludes_a_prefix_is_found() {
    let mut bench = Bench::new(prefixed(4));
    bench.append(batch(0, 40));
    let part = bench.open().root.filter[0];
    // A filter of the same size that holds the keys, and other prefixes.
    let mut filter = Filter::with_room(bench.open().root.filter_room, 10.0);
    bench.model.iter().for_each(|entry| filter.insert(key_hash(&entry.key)));
    (0..40u64).for_each(|index| filter.insert(prefix_hash(&index.to_be_bytes())));
    let mut payload = filter.encode();
    seal(&mut payload, 0, SealedPlace { table: TABLE, offset: part.offset });
    let mut bytes = vec![0; bench.disk.file_bytes(path()).unwrap() as usize];
    bench.disk.open(path()).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    bytes[part.offset as usize..part.end() as usize].copy_from_slice(&payload);
    bench.disk = MemEnv::new();
    let mut file = bench.disk.create(path()).unwrap();
    file.write_all(&bytes).unwrap();
    file.sync().unwrap();
    let error = bench.open().verify(&[KeyRange::ALL]).unwrap_err();
    assert!(error.to_string().contains("excludes the prefix of a key"), "{error}");
}

#[test]
fn prefixes_of_another_length_make_a_new_filter() {
    let mut bench = Bench::new(prefixed(0));
    for (index, prefix_bytes) in (0..).zip([0, 4, 4, 3, 0, 5]) {
        bench.options = prefixed(prefix_bytes);
        bench.append(batch(index, 40));
        bench.check();
        let table = bench.open();
        assert_eq!(table.facts().prefix_bytes, prefix_bytes);
        assert_eq!(table.features & FEATURE_PREFIXES > 0, prefix_bytes > 0);
    }
    bench.options = TableOptions { filter_bits_per_key: 0, ..prefixed(4) };
    bench.append(batch(9, 40));
    bench.check();
    assert_eq!(bench.open().facts().prefix_bytes, 0, "there is no filter");
}
