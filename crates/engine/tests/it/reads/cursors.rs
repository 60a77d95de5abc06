//! Cursors, reads of several keys, sizes, merges of ranges, and what snapshots read.

use crate::dice::{Dice, with_seeds};
use crate::frame::contents::{Map, write};
use crate::frame::small::{plain, small};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{Cursor, ErrorKind, Keyspace, KeyspaceOptions, PersistMode, Store};
use std::ops::Bound;
use std::path::Path;

fn open(env: &MemEnv, policy: &str, lockstep: bool) -> Store {
    let builder = small(env).memtable_bytes(300).block_bytes(100);
    builder.policy(policy).lockstep(lockstep).open().unwrap()
}

fn spaces(store: &Store) -> [Keyspace; 2] {
    let in_group = |name: &str, group: Option<&str>| {
        let group = group.map(str::to_string);
        store.keyspace_with(name, &KeyspaceOptions { group, ..KeyspaceOptions::default() }).unwrap()
    };
    // Its neighbours in the group must not be seen.
    for neighbour in ["before", "member", "behind"] {
        in_group(neighbour, Some("g")).put("x", "neighbour").unwrap();
    }
    let member = in_group("member", Some("g"));
    member.delete("x").unwrap();
    [in_group("alone", None), member]
}

/// Letters of keys for small stores, and for those in which a tree has several leaves.
const FEW: &[u8] = &[0, b'a', b'b', 255];
const MANY: &[u8] = b"\0abcdefghijklmn\xff";

fn key(dice: &mut Dice, letters: &[u8]) -> Vec<u8> {
    let length = 1 + dice.below(3);
    (0..length).map(|_| *dice.pick(letters)).collect()
}

/// Writes up to `writes_max` times at random, and returns what is there.
fn write_at_random(keyspace: &Keyspace, dice: &mut Dice, writes_max: usize, letters: &[u8]) -> Map {
    let mut map = Map::new();
    for _ in 0..dice.below(writes_max) {
        let key = key(dice, letters);
        let length = dice.below(30);
        let value = (!dice.chance(25)).then(|| dice.bytes(length));
        write(keyspace, &mut map, key, value);
    }
    map
}

fn owned(entry: lsmith::Result<Option<(&[u8], &[u8])>>) -> Found {
    Ok(entry?.map(|(key, value)| (key.to_vec(), value.to_vec())))
}

/// Where a cursor over a map is.
#[derive(Clone, Debug)]
enum Place {
    Before,
    On(Vec<u8>),
    Behind,
}

fn at(map: &Map, place: &Place) -> Option<(Vec<u8>, Vec<u8>)> {
    let Place::On(key) = place else { return None };
    Some((key.clone(), map[key].clone()))
}

fn forward(map: &Map, from: Bound<Vec<u8>>) -> Place {
    let next = map.range((from, Bound::Unbounded)).next();
    next.map_or(Place::Behind, |(key, _)| Place::On(key.clone()))
}

fn backward(map: &Map, to: Bound<Vec<u8>>) -> Place {
    let last = map.range((Bound::Unbounded, to)).next_back();
    last.map_or(Place::Before, |(key, _)| Place::On(key.clone()))
}

/// What a cursor found, if it could read.
type Found = lsmith::Result<Option<(Vec<u8>, Vec<u8>)>>;

/// Moves `cursor`, which is at `place` of `map`, at random. Returns what it found, and the place at
/// which it should be.
fn step(
    cursor: &mut Cursor,
    map: &Map,
    place: &Place,
    dice: &mut Dice,
    letters: &[u8],
) -> (Found, Place) {
    let key = key(dice, letters);
    match (dice.below(8), place.clone()) {
        (0, _) => (owned(cursor.first()), forward(map, Bound::Unbounded)),
        (1, _) => (owned(cursor.last()), backward(map, Bound::Unbounded)),
        (2, _) => (owned(cursor.seek(&key)), forward(map, Bound::Included(key))),
        (3, _) => (owned(cursor.seek_back(&key)), backward(map, Bound::Included(key))),
        (4 | 5, Place::On(key)) => (owned(cursor.next()), forward(map, Bound::Excluded(key))),
        (4 | 5, Place::Before) => (owned(cursor.next()), forward(map, Bound::Unbounded)),
        (4 | 5, Place::Behind) => (owned(cursor.next()), Place::Behind),
        (_, Place::On(key)) => (owned(cursor.prev()), backward(map, Bound::Excluded(key))),
        (_, Place::Behind) => (owned(cursor.prev()), backward(map, Bound::Unbounded)),
        (_, Place::Before) => (owned(cursor.prev()), Place::Before),
    }
}

#[test]
fn cursors_walk_as_on_a_sorted_map_in_any_direction() {
    with_seeds(60, |seed| {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let store =
            open(&env, dice.pick::<&str>(&["minlatency(k=3)", "tiered(ratio=2)"]), seed % 2 == 0);
        let keyspace = spaces(&store)[dice.below(2)].clone();
        let map = write_at_random(&keyspace, &mut dice, 200, FEW);
        let snapshot = store.snapshot();
        let mut cursor =
            if dice.chance(50) { keyspace.cursor() } else { snapshot.cursor(&keyspace) };
        // Not seen by the cursor.
        write_at_random(&keyspace, &mut dice, 200, FEW);
        let mut place = Place::Before;
        for _ in 0..100 {
            let (found, now) = step(&mut cursor, &map, &place, &mut dice, FEW);
            assert_eq!(found.unwrap(), at(&map, &now), "from {place:?}");
            place = now;
        }
    });
}

#[test]
fn cursors_find_their_way_after_reads_that_failed() {
    let failed = std::cell::Cell::new(0);
    with_seeds(60, |seed| {
        let mut dice = Dice::new(seed);
        let env = FaultEnv::over(MemEnv::new().unmapped());
        let builder = plain(&env).lockstep(true);
        let (letters, writes_max, memtable) = *dice.pick(&[(FEW, 200, 300), (MANY, 4000, 4000)]);
        let policy =
            *dice.pick(&["minlatency(k=3)", "tiered(ratio=3)", "jungle(c=2, ratio=2, table=20kB)"]);
        let builder = builder.memtable_bytes(memtable).block_bytes(100).policy(policy);
        let keyspace = builder.cache_bytes(0).open().unwrap().keyspace("k").unwrap();
        let map = write_at_random(&keyspace, &mut dice, writes_max, letters);
        let mut cursor = keyspace.cursor();
        let mut place = Place::Before;
        for _ in 0..100 {
            let after = dice.below(8) as u64;
            let (class, kind) = (Some(OpClass::Read), std::io::ErrorKind::Other);
            let lasting = *dice.pick(&[Lasting::Once, Lasting::Forever]);
            env.set(Fault { class, after, lasting, kind });
            let (found, now) = step(&mut cursor, &map, &place, &mut dice, letters);
            env.clear();
            match found {
                Ok(found) => {
                    assert_eq!(found, at(&map, &now), "under {policy}, from {place:?}");
                    place = now;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                    let key = key(&mut dice, letters);
                    place = forward(&map, Bound::Included(key.clone()));
                    let found = owned(cursor.seek(&key)).unwrap();
                    assert_eq!(found, at(&map, &place), "under {policy}, to {key:?} after {error}");
                    failed.set(failed.get() + 1);
                }
            }
        }
    });
    assert!(failed.get() > 100, "{failed:?}");
}

#[test]
fn snapshots_read_all_that_keyspaces_read() {
    let env = MemEnv::new();
    let store = open(&env, "tiered(ratio=2)", true);
    for keyspace in spaces(&store) {
        assert!(keyspace.is_empty().unwrap());
        let empty = store.snapshot();
        for number in 0..100 {
            keyspace.put(format!("k{number:03}"), format!("{number}")).unwrap();
        }
        let full = store.snapshot();
        keyspace.delete("k007").unwrap();
        assert!(!keyspace.is_empty().unwrap() && !full.is_empty(&keyspace).unwrap());
        assert!(empty.is_empty(&keyspace).unwrap());
        let values = |found: Vec<Option<bytes::Bytes>>| -> Vec<Option<String>> {
            let text = |value: bytes::Bytes| String::from_utf8(value.to_vec()).unwrap();
            found.into_iter().map(|value| value.map(text)).collect()
        };
        let asked = ["k099", "absent", "", "k007", "k099"];
        let last = Some("99".to_string());
        let now = values(keyspace.multi_get(asked).unwrap());
        assert_eq!(now, [last.clone(), None, None, None, last.clone()]);
        let then = values(full.multi_get(&keyspace, asked).unwrap());
        assert_eq!(then, [last.clone(), None, None, Some("7".into()), last]);
        assert!(full.contains(&keyspace, "k007").unwrap() && !keyspace.contains("k007").unwrap());
        assert_eq!((full.iter(&keyspace).count(), keyspace.iter().count()), (100, 99));
        assert_eq!(full.prefix(&keyspace, "k00").count(), 10);
        assert_eq!(keyspace.prefix("k00").count(), 9);
        let other = open(&MemEnv::new(), "none", true).snapshot();
        let mut foreign = other.cursor(&keyspace);
        assert_eq!(foreign.first().unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(
            other.multi_get(&keyspace, ["k"]).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    }
}

#[test]
fn sizes_are_about_right_without_reading_tables() {
    for lockstep in [true, false] {
        let builder = plain(&MemEnv::new()).lockstep(lockstep);
        let store = builder.memtable_bytes(200_000).policy("tiered(ratio=4)").open().unwrap();
        for keyspace in spaces(&store) {
            let empty = (keyspace.approximate_len(), keyspace.approximate_bytes::<&str>(..));
            assert!(empty.0 == 0 && empty.1 < 50, "{empty:?}");
            let key = |number: u32| format!("{:05}", number * 7919 % 100_000);
            for number in 0..20_000 {
                keyspace.put(key(number), [b'v'; 90]).unwrap();
            }
            store.settle().unwrap();
            let read = || (store.stats().scan_blocks, store.stats().get_blocks_found);
            let before = read();
            let len = keyspace.approximate_len();
            assert!((19_000..=21_000).contains(&len), "{len}");
            let half = keyspace.approximate_bytes(.."50000");
            let all = keyspace.approximate_bytes::<&str>(..);
            assert!(all.abs_diff(20_000 * 103) < 100_000, "{all}");
            assert!((half * 2).abs_diff(all) < all / 4, "{half} of {all}");
            let few = keyspace.approximate_bytes("30000".."30100");
            assert!(few < 200_000, "{few}");
            assert_eq!(keyspace.approximate_bytes("7".."3"), 0);
            assert_eq!(read(), before);
            (0..5000).for_each(|number| keyspace.delete(key(number)).unwrap());
            keyspace.merge().unwrap();
            assert_eq!(keyspace.stats().entries, 15_000);
            assert_eq!(keyspace.approximate_len(), 15_000);
        }
    }
}

#[test]
fn a_range_is_merged_alone() {
    for lockstep in [true, false] {
        let env = MemEnv::new();
        let store = open(&env, "none", lockstep);
        let keyspace = store.keyspace("a").unwrap();
        let mut map = Map::new();
        for number in 0..600 {
            let key = format!("{:03}", number * 7 % 300).into_bytes();
            write(&keyspace, &mut map, key, Some(number.to_string().into_bytes()));
        }
        // So that a table has nothing but deletions: their number is then exact.
        keyspace.flush().unwrap();
        for number in 100..200 {
            write(&keyspace, &mut map, format!("{number:03}").into_bytes(), None);
        }
        store.flush().unwrap();
        let runs = |from: &str, to: &str| {
            let range = lsmith_tree::KeyRange::new(from, to);
            keyspace.tree().disk_runs().filter(|run| !run.overlapping(&range).is_empty()).count()
        };
        let before = runs("000", "090");
        assert!(before > 3 && runs("100", "200") > 3, "{}", keyspace.tree());
        assert_eq!(keyspace.stats().tombstones, 100);
        write(&keyspace, &mut map, b"150".to_vec(), Some(b"in memory".to_vec()));
        keyspace.merge_range("100".."200").unwrap();
        assert_eq!((runs("100", "200"), keyspace.stats().tombstones), (1, 0));
        assert!(runs("000", "090") >= before, "the rest stays as it is");
        let content = |store: &Store| -> Map {
            let pair = |entry: lsmith::Result<(bytes::Bytes, bytes::Bytes)>| {
                let (key, value) = entry.unwrap();
                (key.to_vec(), value.to_vec())
            };
            store.existing_keyspace("a").unwrap().iter().map(pair).collect()
        };
        assert_eq!(content(&store), map);
        assert_eq!(content(&open(&env.process_crash_clone(), "none", lockstep)), map);
        assert!(store.verify().unwrap().is_empty());
        keyspace.merge_range::<&str>(..).unwrap();
        assert_eq!(keyspace.tree().disk_runs().count(), 1);
        assert_eq!(content(&store), map);
        keyspace.merge_range("x".."a").unwrap();
        let [_, member] = spaces(&store);
        let error = member.merge_range::<&str>(..).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

#[test]
fn a_merge_of_a_range_that_fails_can_be_tried_again() {
    let disk = MemEnv::new();
    let env = FaultEnv::over(disk.clone());
    let builder = plain(&env).policy("none");
    let store = builder.memtable_bytes(300).threads(1).open().unwrap();
    let keyspace = store.keyspace("a").unwrap();
    for number in 0..300_u32 {
        keyspace.put((number % 100).to_be_bytes(), [7; 40]).unwrap();
    }
    store.flush().unwrap();
    let kind = std::io::ErrorKind::Other;
    let class = Some(OpClass::Write);
    env.set(Fault { class, after: 0, lasting: Lasting::Forever, kind });
    keyspace.merge_range::<&[u8]>(..).unwrap_err();
    env.clear();
    assert!(keyspace.view().reservations.is_empty());
    keyspace.merge_range::<&[u8]>(..).unwrap();
    store.settle().unwrap();
    assert_eq!((keyspace.tree().disk_runs().count(), keyspace.iter().count()), (1, 100));
    let names = disk.list(Path::new("/store")).unwrap();
    assert_eq!(names.iter().filter(|name| name.ends_with(".table")).count(), 1);
}

#[test]
fn ranges_are_merged_beside_writes_and_other_merges() {
    let env = MemEnv::new();
    let store = open(&env, "minlatency(k=3)", false);
    let keyspace = store.keyspace("a").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..8000_u32 {
                keyspace.put((number * 7919 % 10_000).to_be_bytes(), number.to_be_bytes()).unwrap();
            }
        });
        scope.spawn(|| {
            for round in 0..20_u32 {
                let from = round * 450;
                keyspace.merge_range(from.to_be_bytes()..(from + 900).to_be_bytes()).unwrap();
            }
        });
    });
    store.settle().unwrap();
    assert_eq!(keyspace.iter().count(), 8000);
    for number in (0..8000_u32).step_by(97) {
        let found = keyspace.get((number * 7919 % 10_000).to_be_bytes()).unwrap();
        assert_eq!(found.as_deref(), Some(&number.to_be_bytes()[..]));
    }
    assert!(store.verify().unwrap().is_empty());
    let names = env.list(Path::new("/store")).unwrap();
    let files = names.iter().filter(|name| name.ends_with(".table")).count();
    assert_eq!(files as u64, keyspace.stats().tables);
}

#[test]
fn a_write_is_as_durable_as_it_asks() {
    let env = MemEnv::new();
    let store = open(&env, "none", true);
    let keyspace = store.keyspace("a").unwrap();
    keyspace.put_with("a", "1", PersistMode::SyncData).unwrap();
    keyspace.put_with("b", "1", PersistMode::SyncData).unwrap();
    keyspace.delete_with("a", PersistMode::SyncAll).unwrap();
    keyspace.put_with("c", "1", PersistMode::Buffer).unwrap();
    let lost = env.power_loss(1, lsmith::env::Loss::Everything);
    let store = open(&lost, "none", true);
    let keys: Vec<_> =
        store.existing_keyspace("a").unwrap().iter().map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, ["b"]);
}

/// Promises more keys than any memory holds, ends after three, and goes on if it is asked again.
struct Odd(u32);

impl Iterator for Odd {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.0 += 1;
        (!self.0.is_multiple_of(4)).then(|| format!("key {}", self.0))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

#[test]
fn keys_may_come_from_any_iterator() {
    let store = open(&MemEnv::new(), "none", true);
    let keyspace = store.keyspace("k").unwrap();
    keyspace.put("key 2", "two").unwrap();
    let found = keyspace.multi_get(Odd(0)).unwrap();
    assert_eq!(found, [None, Some("two".into()), None]);
}
