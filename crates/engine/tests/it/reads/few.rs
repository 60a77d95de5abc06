//! Reads of few or no entries, and the blocks that reads look at.
//!
//! Promised: empty keyspaces and those with one entry are read as any other. A get of an absent key
//! looks at almost no block where there are filters. A scan looks at no block behind its bound,
//! however much is there.

use crate::frame::small::small;
use lsmith::env::MemEnv;
use lsmith::{Cursor, Keyspace, KeyspaceOptions, Snapshot, Store};

fn spaces(store: &Store) -> [Keyspace; 2] {
    let options = |group: Option<&str>| KeyspaceOptions {
        group: group.map(str::to_string),
        ..KeyspaceOptions::default()
    };
    let alone = store.keyspace_with("alone", &options(None)).unwrap();
    let [before, member, behind] = ["before", "member", "behind"]
        .map(|name| store.keyspace_with(name, &options(Some("g"))).unwrap());
    // Its neighbours in the group must not be seen.
    before.put("key", "neighbour").unwrap();
    behind.put("key", "neighbour").unwrap();
    [alone, member]
}

type Entry = Option<(Vec<u8>, Vec<u8>)>;

fn owned(entry: lsmith::Result<Option<(&[u8], &[u8])>>) -> Entry {
    entry.unwrap().map(|(key, value)| (key.to_vec(), value.to_vec()))
}

/// Asserts all that can be read where there is `one` entry, of key `key`, or none.
fn check(space: &Keyspace, snapshot: &Snapshot, one: &Entry) {
    let count = usize::from(one.is_some());
    let value = one.as_ref().map(|(_, value)| &value[..]);
    let none: [&str; 0] = [];
    for found in [space.multi_get(none).unwrap(), snapshot.multi_get(space, none).unwrap()] {
        assert!(found.is_empty());
    }
    let asked = ["", "key", "ke", "key\0", "key"];
    for found in [space.multi_get(asked).unwrap(), snapshot.multi_get(space, asked).unwrap()] {
        let found: Vec<_> = found.iter().map(|value| value.as_deref()).collect();
        assert_eq!(found, [None, value, None, None, value]);
    }
    assert_eq!(space.is_empty().unwrap(), one.is_none());
    for range in [("a", "z"), ("key", "z"), ("key", "key\0")] {
        assert_eq!(space.range(range.0..range.1).count(), count);
        assert_eq!(space.range(range.0..range.1).rev().count(), count);
    }
    for range in [("a", "key"), ("key\0", "z"), ("key", "key")] {
        assert_eq!(space.range(range.0..range.1).count(), 0);
    }
    let mut both = space.iter();
    assert_eq!((both.next().is_some(), both.next_back().is_some()), (one.is_some(), false));
    let mut both = snapshot.iter(space);
    assert_eq!((both.next_back().is_some(), both.next().is_some()), (one.is_some(), false));
    assert_eq!((space.prefix("k").count(), space.prefix("l").count()), (count, 0));
    for mut cursor in [space.cursor(), snapshot.cursor(space)] {
        walk(&mut cursor, one);
    }
}

fn walk(cursor: &mut Cursor, one: &Entry) {
    let none = &None;
    for _ in 0..2 {
        assert_eq!(&owned(cursor.first()), one);
        assert_eq!(&owned(cursor.next()), none);
        assert_eq!(&owned(cursor.next()), none, "behind the end is no way on");
        assert_eq!(&owned(cursor.prev()), one);
        assert_eq!(&owned(cursor.prev()), none);
        assert_eq!(&owned(cursor.next()), one);
        assert_eq!(&owned(cursor.last()), one);
        assert_eq!(&owned(cursor.prev()), none);
        for (key, forward, backward) in [("a", one, none), ("key", one, one), ("z", none, one)] {
            assert_eq!(&owned(cursor.seek(key)), forward, "from {key} on");
            assert_eq!(&owned(cursor.seek_back(key)), backward, "back from {key}");
        }
    }
}

#[test]
fn nothing_and_one_entry_are_read_in_every_way() {
    let env = MemEnv::new();
    let mut store = small(&env).policy("none").memtable_bytes(1 << 20).open().unwrap();
    let one = Some((b"key".to_vec(), b"value".to_vec()));
    for life in 0..3 {
        for space in spaces(&store) {
            check(&space, &store.snapshot(), &None);
            let empty = store.snapshot();
            space.put("key", "value").unwrap();
            for step in 0..3 {
                check(&space, &store.snapshot(), &one);
                assert_eq!(empty.iter(&space).count(), 0, "life {life}");
                match step {
                    0 => space.flush().unwrap(),
                    _ => space.merge().unwrap(),
                }
            }
            space.delete("key").unwrap();
            check(&space, &store.snapshot(), &None);
            space.flush().unwrap();
            check(&space, &store.snapshot(), &None);
            drop(empty);
            space.merge().unwrap();
            check(&space, &store.snapshot(), &None);
        }
        drop(store);
        store = small(&env).policy("none").memtable_bytes(1 << 20).open().unwrap();
    }
}

/// Six runs of 500 entries each, whose keys interleave.
fn filled(env: &MemEnv, filter_bits: Option<u8>) -> (Store, Keyspace) {
    let store = small(env).policy("none").memtable_bytes(1 << 20).open().unwrap();
    let options = KeyspaceOptions { filter_bits, ..KeyspaceOptions::default() };
    let space = store.keyspace_with("k", &options).unwrap();
    for run in 0..6_u32 {
        for number in 0..500 {
            space.put(key(number * 6 + run), [7; 40]).unwrap();
        }
        space.flush().unwrap();
    }
    assert_eq!(space.tree().disk_run_count(), 6);
    (store, space)
}

fn key(number: u32) -> String {
    format!("{number:06}")
}

#[test]
fn gets_of_absent_keys_look_at_few_blocks() {
    for (bits, most) in [(Some(10), 0.2), (Some(0), 12.0)] {
        let env = MemEnv::new();
        let (mut store, mut space) = filled(&env, bits);
        for life in 0..2 {
            let before = store.stats();
            for number in 0..3000 {
                assert_eq!(space.get(format!("{}x", key(number))).unwrap(), None);
            }
            let absent: Vec<String> = (0..3000).map(|number| format!("{}y", key(number))).collect();
            assert!(space.multi_get(&absent).unwrap().iter().all(Option::is_none));
            let blocks = store.stats().get_blocks_absent - before.get_blocks_absent;
            let each = blocks as f64 / 6000.0;
            assert!(each <= most, "{bits:?} bits, life {life}: {each} blocks for a key");
            assert_eq!(bits == Some(0), each > 5.0, "without filters each run is looked at");
            assert_eq!(store.stats().get_blocks_found, before.get_blocks_found);
            // Behind all keys and in front of them, no run has anything.
            for outside in ["", "zzz"] {
                let before = store.stats().get_blocks_absent;
                assert_eq!(space.get(outside).unwrap(), None);
                assert_eq!(store.stats().get_blocks_absent, before, "{outside:?}");
            }
            drop((store, space));
            store = small(&env).policy("none").memtable_bytes(1 << 20).open().unwrap();
            space = store.existing_keyspace("k").unwrap();
        }
    }
}

fn scan_blocks(store: &Store, scan: impl FnOnce() -> usize, expected: usize) -> u64 {
    let before = store.stats().scan_blocks;
    assert_eq!(scan(), expected);
    store.stats().scan_blocks - before
}

/// A block has several entries of a run. Behind the bound of the scan are 3000 entries, or as many
/// deletions, which a scan without the bound would step over.
#[test]
fn a_scan_looks_at_no_block_behind_its_bound() {
    for is_deleted in [false, true] {
        let env = MemEnv::new();
        let (store, space) = filled(&env, None);
        if is_deleted {
            (0..3000).filter(|number| !(1500..1506).contains(number)).for_each(|number| {
                space.delete(key(number)).unwrap();
            });
            space.flush().unwrap();
        }
        let runs = space.tree().disk_run_count() as u64;
        let ranges = [(1500, 1506, 6), (1500, 1501, 1), (1503, 1503, 0), (1500, 1500, 0)];
        for (start, end, expected) in ranges {
            for is_backward in [false, true] {
                let scan = || {
                    let range = space.range(key(start)..key(end));
                    if is_backward { range.rev().count() } else { range.count() }
                };
                let blocks = scan_blocks(&store, scan, expected);
                // One block of each run, and one more where the range lies at the edge of a block.
                let what = format!("{start}..{end}, backward {is_backward}, {is_deleted}");
                assert!(blocks <= 2 * runs, "{blocks} blocks of {runs} runs: {what}");
            }
        }
        let snapshot = store.snapshot();
        let backward = || snapshot.range(&space, key(1500)..key(1506)).rev().count();
        assert!(scan_blocks(&store, backward, 6) <= 2 * runs);
        let all = scan_blocks(&store, || space.iter().count(), if is_deleted { 6 } else { 3000 });
        assert!(all > 200, "{all} blocks in all");
    }
}

/// Of a thousand versions of a key, steps over newer ones that a snapshot does not see, and over
/// older ones that its version hides.
#[test]
fn versions_that_are_not_asked_for_are_stepped_over() {
    for is_flushed in [false, true] {
        let env = MemEnv::new();
        let store = small(&env).policy("none").memtable_bytes(1 << 20).open().unwrap();
        let space = store.keyspace("k").unwrap();
        for key in ["a", "b", "c"] {
            space.put(key, "first").unwrap();
        }
        let mut held = vec![(store.snapshot(), "first".to_string())];
        for number in 0..1000 {
            space.put("b", format!("{number}")).unwrap();
            if number % 100 == 50 {
                held.push((store.snapshot(), format!("{number}")));
            }
        }
        if is_flushed {
            space.flush().unwrap();
        }
        for (snapshot, value) in &held {
            let mut cursor = snapshot.cursor(&space);
            for turn in 0..4 {
                let expected = [("a", "first"), ("b", value), ("c", "first")]
                    .map(|(key, value)| Some((key.into(), value.into())));
                let found = match turn % 2 {
                    0 => [owned(cursor.first()), owned(cursor.next()), owned(cursor.next())],
                    _ => {
                        let mut back =
                            [owned(cursor.last()), owned(cursor.prev()), owned(cursor.prev())];
                        back.reverse();
                        back
                    }
                };
                assert_eq!(found, expected, "flushed {is_flushed}");
                assert_eq!(owned(cursor.seek("b")), expected[1]);
                assert_eq!(owned(cursor.prev()), expected[0]);
                assert_eq!(owned(cursor.seek_back("b")), expected[1]);
                assert_eq!(owned(cursor.next()), expected[2]);
            }
        }
        if is_flushed {
            let before = store.stats().scan_blocks;
            assert_eq!(space.range("c"..).count(), 1);
            let blocks = store.stats().scan_blocks - before;
            assert!(blocks <= 2, "{blocks} blocks for the last key");
        }
    }
}
