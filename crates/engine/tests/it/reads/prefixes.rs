//! Keyspaces that choose their filters, and range reads that filters with prefixes let skip runs.
//!
//! Promised: whatever filters hold, each range read returns what a sorted map returns, from both
//! ends, of now and of snapshots, in transactions, whatever else is in tables or in memory. A read
//! of a prefix that no key has reads no blocks, but for about one filter in a hundred.

use crate::dice::{Dice, with_seeds};
use crate::frame::contents::{Map, pair};
use crate::frame::small::{DIR, plain, small};
use lsmith::env::{Env, MemEnv};
use lsmith::{
    ErrorKind, IngestOptions, Isolation, Keyspace, KeyspaceOptions, RepairOptions, Snapshot, Store,
    TableWriter, TableWriterOptions, repair,
};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Policies with few runs and many, with whole tables and slices of them, and with append tables.
const POLICIES: [&str; 6] = [
    "none",
    "minlatency(k=3)",
    "tiered(ratio=3)",
    "leveled(ratio=2, l0=1, pick=round_robin, table=400B)",
    "mixed(ratio=2, rate=0.3)",
    "jungle(c=1.5, ratio=2, table=500B)",
];

fn prefixed(prefix_bytes: u16) -> KeyspaceOptions {
    KeyspaceOptions { prefix_bytes: Some(prefix_bytes), ..KeyspaceOptions::default() }
}

fn in_group(prefix_bytes: u16) -> KeyspaceOptions {
    KeyspaceOptions { group: Some("group".into()), ..prefixed(prefix_bytes) }
}

/// Returns a short key of few different bytes, the least and the greatest among them, so that many
/// keys share prefixes.
fn key(dice: &mut Dice) -> Vec<u8> {
    let length = 1 + dice.below(6);
    (0..length).map(|_| *dice.pick(&[0, b'a', b'b', 254, 255])).collect()
}

/// A keyspace, and what it must hold.
struct Model {
    space: Keyspace,
    map: Map,
    /// Whether ranges are deleted. What these do beside tables from outside is not tested here.
    deletes_ranges: bool,
    held: Vec<(Snapshot, Map)>,
}

impl Model {
    fn write(&mut self, dice: &mut Dice) {
        for _ in 0..dice.below(150) {
            let key = key(dice);
            match dice.below(40) {
                0 if self.deletes_ranges => {
                    let bounds = self.bounds(dice);
                    self.space.delete_range(bounds.clone()).unwrap();
                    self.map.retain(|key, _| !std::ops::RangeBounds::contains(&bounds, key));
                }
                0..=8 => {
                    self.space.delete(&key).unwrap();
                    self.map.remove(&key);
                }
                _ => {
                    let length = dice.below(30);
                    let value = dice.bytes(length);
                    self.space.put(&key, &value).unwrap();
                    self.map.insert(key, value);
                }
            }
        }
    }

    /// Returns bounds that often leave only keys with a prefix: a prefix, or two keys that share
    /// one.
    fn bounds(&self, dice: &mut Dice) -> Bounds {
        let first = key(dice);
        if dice.chance(40) {
            let (lower, upper) = lsmith::prefix_bounds(&first);
            return (lower.map(|key| key.to_vec()), upper.map(|key| key.to_vec()));
        }
        let shared = dice.below(first.len() + 1);
        let mut ends = [first.clone(), [&first[..shared], &key(dice)].concat()];
        ends.sort();
        let mut bound = |key: &Vec<u8>| match dice.below(7) {
            0 => Bound::Unbounded,
            1..=3 => Bound::Excluded(key.clone()),
            _ => Bound::Included(key.clone()),
        };
        match (bound(&ends[0]), bound(&ends[1])) {
            (Bound::Excluded(low), Bound::Excluded(high)) if low == high => {
                (Bound::Included(low), Bound::Excluded(high))
            }
            bounds => bounds,
        }
    }

    /// Compares one range read of each kind, and a cursor, with the maps.
    fn check(&self, dice: &mut Dice) {
        let bounds = self.bounds(dice);
        let expected: Vec<_> = pairs(&self.map, &bounds);
        let both = || (self.space.range(bounds.clone()), expected.clone());
        check_both_ends(both().0.map(pair), both().1, dice);
        assert!(both().0.map(pair).eq(both().1), "{bounds:?}");
        assert!(both().0.rev().map(pair).eq(both().1.into_iter().rev()), "{bounds:?}");
        for (snapshot, map) in &self.held {
            let found = snapshot.range(&self.space, bounds.clone()).map(pair);
            assert!(found.eq(pairs(map, &bounds)), "{bounds:?} of a snapshot");
        }
        let mut transaction = self.space.store().transaction(Isolation::Serializable);
        let own = key(dice);
        transaction.put(&self.space, &own, "own").unwrap();
        let mut with_own = self.map.clone();
        with_own.insert(own, b"own".to_vec());
        let found = transaction.range(&self.space, bounds.clone());
        assert!(found.map(pair).eq(pairs(&with_own, &bounds)), "{bounds:?} of a transaction");
        let mut cursor = self.space.cursor();
        for _ in 0..3 {
            let key = key(dice);
            let found = cursor.seek(&key).unwrap().map(|(key, _)| key.to_vec());
            assert_eq!(found.as_ref(), self.map.range(key.clone()..).next().map(|(key, _)| key));
            let found = cursor.seek_back(&key).unwrap().map(|(key, _)| key.to_vec());
            assert_eq!(found.as_ref(), self.map.range(..=key).next_back().map(|(key, _)| key));
        }
    }
}

fn pairs(map: &Map, bounds: &Bounds) -> Vec<(Vec<u8>, Vec<u8>)> {
    let entries = map.range::<Vec<u8>, _>(bounds.clone());
    entries.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn check_both_ends<T: PartialEq + std::fmt::Debug>(
    mut found: impl DoubleEndedIterator<Item = T>,
    expected: Vec<T>,
    dice: &mut Dice,
) {
    let mut expected = expected.into_iter();
    loop {
        let (found, expected) = match dice.below(2) {
            0 => (found.next(), expected.next()),
            _ => (found.next_back(), expected.next_back()),
        };
        assert_eq!(found, expected);
        if found.is_none() {
            return;
        }
    }
}

/// Tables with prefixes, without, and without filters lie side by side, because the store is opened
/// with other options and tables come from outside.
#[test]
fn range_reads_give_what_sorted_maps_give() {
    with_seeds(12, |seed| {
        for policy in POLICIES {
            let mut dice = Dice::new(seed);
            let env = MemEnv::new();
            let prefix_bytes = 1 + dice.below(4) as u16;
            // Groups merge whole runs.
            let is_group = POLICIES[..3].contains(&policy) && dice.chance(50);
            let options = if is_group { in_group(prefix_bytes) } else { prefixed(prefix_bytes) };
            let deletes_ranges = is_group || dice.chance(50);
            let mut map = Map::new();
            for round in 0..5 {
                let store = small(&env)
                    .memtable_bytes(1200)
                    .policy(policy)
                    .filter_bits([0, 10, 10][dice.below(3)])
                    .open()
                    .unwrap();
                if is_group {
                    neighbour(&store, &mut dice, prefix_bytes);
                }
                let space = store.keyspace_with("space", &options).unwrap();
                let map_before = std::mem::take(&mut map);
                let held = Vec::new();
                let mut model = Model { space, map: map_before, deletes_ranges, held };
                for _ in 0..4 {
                    model.write(&mut dice);
                    if dice.chance(30) {
                        model.held.push((store.snapshot(), model.map.clone()));
                    }
                    match dice.below(8) {
                        0 => model.space.merge().unwrap(),
                        1..=3 => model.space.flush().unwrap(),
                        _ => {}
                    }
                    (0..30).for_each(|_| model.check(&mut dice));
                }
                if !deletes_ranges && dice.chance(50) {
                    ingest(&env, &mut model, round, &mut dice);
                    (0..30).for_each(|_| model.check(&mut dice));
                }
                assert_eq!(store.verify().unwrap().len(), 0);
                map = model.map;
            }
        }
    });
}

/// Writes to a keyspace of the group that must not be seen.
fn neighbour(store: &Store, dice: &mut Dice, prefix_bytes: u16) {
    for name in ["before", "space", "behind"] {
        let space = store.keyspace_with(name, &in_group(prefix_bytes)).unwrap();
        if name != "space" {
            (0..20).for_each(|_| space.put(key(dice), "neighbour").unwrap());
        }
    }
}

/// Ingests a table without prefixes, or with prefixes of any length.
fn ingest(env: &MemEnv, model: &mut Model, round: u64, dice: &mut Dice) {
    let path = format!("/outside{round}");
    let shared: Arc<dyn Env> = Arc::new(env.clone());
    let prefix_bytes = dice.chance(70).then(|| 1 + dice.below(5) as u16);
    let options = TableWriterOptions { env: shared, prefix_bytes, ..Default::default() };
    let mut writer = TableWriter::create_with(&path, &options).unwrap();
    for first in [b"a", b"b"] {
        let key = [&first[..], b"from outside"].concat();
        writer.put(&key, "outside").unwrap();
        model.map.insert(key, b"outside".to_vec());
    }
    writer.finish().unwrap();
    let store = model.space.store();
    store.ingest(&model.space, &[Path::new(&path)], &IngestOptions::default()).unwrap();
}

/// Filters with prefixes of several lengths lie side by side, and each is asked for its own.
#[test]
fn ingested_tables_are_asked_for_prefixes_of_their_own_length() {
    for own in [None, Some(8)] {
        let env = MemEnv::new();
        let store = small(&env).memtable_bytes(1200).policy("none").open().unwrap();
        let options = KeyspaceOptions { prefix_bytes: own, ..KeyspaceOptions::default() };
        let space = store.keyspace_with("space", &options).unwrap();
        for prefix_bytes in [4, 6] {
            let shared: Arc<dyn Env> = Arc::new(env.clone());
            let prefix_bytes = Some(prefix_bytes);
            let options = TableWriterOptions { env: shared, prefix_bytes, ..Default::default() };
            let mut writer = TableWriter::create_with("/made", &options).unwrap();
            for number in (0..200).step_by(2) {
                writer.put(format!("k{number:03}/abc"), "outside").unwrap();
            }
            writer.finish().unwrap();
            store.ingest(&space, &[Path::new("/made")], &IngestOptions::default()).unwrap();
            env.remove_file(Path::new("/made")).unwrap();
        }
        let negatives = |prefix: &str, found: usize| {
            let before = store.stats().scan_filter_negatives;
            assert_eq!(space.prefix(prefix).count(), found, "{prefix}");
            store.stats().scan_filter_negatives - before
        };
        // One has four bytes of each key, the other six.
        assert_eq!(negatives("k004/abc", 1), 0);
        assert_eq!(negatives("k004", 1), 0);
        assert_eq!(negatives("k0", 50), 0);
        assert_eq!(negatives("k005", 0), 1);
        assert_eq!(negatives("k004/x", 0), 1);
        assert_eq!(negatives("k005/x", 0), 2);
        space.merge().unwrap();
        assert_eq!(negatives("k005", 0), 0);
        assert_eq!(negatives("k005/xyz", 0), u64::from(own.is_some()));
        assert_eq!(negatives("k004/abc", 1), 0);
    }
}

/// Writes five runs, each with an order of each user. Users have even numbers.
fn fill_with_orders(space: &Keyspace) {
    for order in 0..5u32 {
        for user in (0..400).step_by(2) {
            space.put(order_key(user, order), [7; 20]).unwrap();
        }
        space.flush().unwrap();
    }
}

fn order_key(user: u32, order: u32) -> String {
    format!("user{user:04}/{order:04}")
}

/// Returns the runs, the blocks, and the tables that filters excluded, of scans of 200 users.
fn scans(space: &Keyspace, first: u32, is_backward: bool) -> (u64, u64, u64) {
    let before = space.store().stats();
    let mut found = 0;
    for user in (first..400).step_by(2) {
        let mut orders = space.prefix(format!("user{user:04}"));
        let mut step = || if is_backward { orders.next_back() } else { orders.next() };
        while let Some(entry) = step() {
            assert!(pair(entry).0.starts_with(format!("user{user:04}/").as_bytes()));
            found += 1;
        }
    }
    assert_eq!(found, if first.is_multiple_of(2) { 1000 } else { 0 });
    let after = space.store().stats();
    (
        after.scan_runs - before.scan_runs,
        after.scan_blocks - before.scan_blocks,
        after.scan_filter_negatives - before.scan_filter_negatives,
    )
}

#[test]
fn scans_of_absent_prefixes_read_no_blocks() {
    for policy in ["none", "leveled(ratio=4, l0=9)", "jungle(c=3, ratio=4, table=4kB)"] {
        let group = if policy == "none" { vec![false, true] } else { vec![false] };
        for is_group in group {
            let store = small(&MemEnv::new()).memtable_bytes(20_000).policy(policy).open().unwrap();
            let options = if is_group { in_group(8) } else { prefixed(8) };
            let space = store.keyspace_with("orders", &options).unwrap();
            fill_with_orders(&space);
            let runs = space.stats().runs;
            for is_backward in [false, true] {
                let what = format!("{policy}, group {is_group}, backward {is_backward}");
                let (looked, blocks, excluded) = scans(&space, 1, is_backward);
                assert!(looked < 20 && blocks < 40, "{looked} runs, {blocks} blocks: {what}");
                // Some prefixes lie between two tables, or beyond the last one.
                assert!(excluded > 140 * runs, "{excluded} tables: {what}");
                // What is there is found, and read as ever.
                let (looked, _, excluded) = scans(&space, 0, is_backward);
                assert!(looked > 140 * runs && excluded < 20, "{looked} {excluded}: {what}");
            }
        }
    }
}

/// Without the option each run is looked at, and no filter asked. So is it if a prefix is shorter.
#[test]
fn scans_without_prefixes_in_filters_look_at_each_run() {
    for options in [KeyspaceOptions::default(), prefixed(9)] {
        let store = small(&MemEnv::new()).memtable_bytes(20_000).policy("none").open().unwrap();
        let space = store.keyspace_with("orders", &options).unwrap();
        fill_with_orders(&space);
        let runs = space.stats().runs;
        let (looked, blocks, excluded) = scans(&space, 1, false);
        assert!(looked > 190 * runs && blocks > 190 * runs, "{looked} runs, {blocks} blocks");
        assert_eq!((runs, excluded), (5, 0));
    }
}

#[test]
fn keyspace_has_bits_of_filter_of_its_own() {
    let store = small(&MemEnv::new()).memtable_bytes(20_000).policy("none").open().unwrap();
    let bytes = |bits: Option<u8>| {
        let options = KeyspaceOptions { filter_bits: bits, ..KeyspaceOptions::default() };
        let name = format!("bits_{}", bits.unwrap_or(u8::MAX));
        let before = store.memory().filters;
        fill_with_orders(&store.keyspace_with(&name, &options).unwrap());
        store.memory().filters - before
    };
    assert_eq!(bytes(Some(0)), 0);
    let [few, stores_own, many] = [Some(4), None, Some(20)].map(bytes);
    assert!(few < stores_own && stores_own < many, "{few} {stores_own} {many}");
}

#[track_caller]
fn refused(made: lsmith::Result<Keyspace>, what: &str) {
    let error = made.expect_err("it is no choice that a keyspace has");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains(what), "{error}");
}

#[test]
fn filters_are_chosen_once() {
    let env = MemEnv::new();
    let bits = |bits| KeyspaceOptions { filter_bits: Some(bits), ..KeyspaceOptions::default() };
    let store = small(&env).memtable_bytes(1200).policy("none").open().unwrap();
    for wrong in [0, 1025, u16::MAX] {
        let expected = format!("prefixes of {wrong} bytes: expected 1 to 1024");
        refused(store.keyspace_with("wrong", &prefixed(wrong)), &expected);
    }
    let neither = KeyspaceOptions { filter_bits: Some(0), ..prefixed(8) };
    refused(store.keyspace_with("wrong", &neither), "filters hold the prefixes");
    assert!(!store.keyspaces().contains(&"wrong".to_string()));
    store.keyspace("plain").unwrap();
    let both = KeyspaceOptions { filter_bits: Some(4), ..prefixed(1024) };
    store.keyspace_with("both", &both).unwrap();
    let operator = Some("counter".to_string());
    store.keyspace_with("ruled", &KeyspaceOptions { operator, ..prefixed(7) }).unwrap();
    store.keyspace_with("row", &in_group(8)).unwrap();
    store.keyspace_with("column", &KeyspaceOptions { prefix_bytes: None, ..in_group(8) }).unwrap();
    let check = |store: &Store| {
        store.keyspace_with("both", &both).unwrap();
        store.keyspace("both").unwrap();
        store.keyspace_with("both", &bits(4)).unwrap();
        refused(store.keyspace_with("both", &bits(5)), "4 bits of filter per key, not 5");
        refused(store.keyspace_with("both", &prefixed(9)), "1024-byte prefixes in its filters");
        refused(store.keyspace_with("plain", &prefixed(9)), "no prefixes in its filters");
        refused(store.keyspace_with("plain", &bits(10)), "the store's bits of filter per key");
        refused(store.keyspace_with("new", &in_group(9)), "the group `group` exists with 8-byte");
        refused(store.keyspace_with("row", &in_group(9)), "the group `group` exists with 8-byte");
    };
    check(&store);
    drop(store);
    check(&small(&env).memtable_bytes(1200).policy("none").open().unwrap());
    // Opening has written the manifest anew.
    check(&small(&env).memtable_bytes(1200).policy("none").filter_bits(0).open().unwrap());
    let found = plain(&env).list_keyspaces().unwrap();
    let listed: Vec<_> =
        found.iter().map(|info| (&*info.name, info.filter_bits, info.prefix_bytes)).collect();
    let expected = [
        ("both", Some(4), Some(1024)),
        ("column", None, Some(8)),
        ("plain", None, None),
        ("row", None, Some(8)),
        ("ruled", None, Some(7)),
    ];
    let listed: Vec<_> = listed.into_iter().filter(|(name, ..)| *name != "default").collect();
    assert_eq!(listed, expected);
    let options = RepairOptions { env: Arc::new(env.clone()), ..RepairOptions::default() };
    repair(&options, DIR, "/repaired").unwrap();
    let shared: Arc<dyn Env> = Arc::new(env);
    check(&Store::builder("/repaired").env(shared).open().unwrap());
}
