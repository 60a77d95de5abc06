//! Entries that expire, and filters of merges.
//!
//! Promised: an entry is gone from all reads when the clock shows its time, whatever holds it:
//! memory, log or tables. Merges free its space, and nothing that it hid comes back. A filter
//! decides on what no live snapshot sees. A clock or a filter that panics costs the read or the
//! merge that called it.

use crate::dice::{Dice, with_seeds};
use crate::frame::contents::get;
use crate::frame::small::{DIR, plain, threaded};
use crate::store::model::policies;
use lsmith::env::{Env, MemEnv};
use lsmith::{
    Batch, Builder, Change, Clock, ErrorKind, Expiry, IngestOptions, Isolation, Keyspace,
    KeyspaceOptions, Life, PersistMode, RepairOptions, Store, TableWriter, TableWriterOptions,
    Verdict, repair,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that the test sets. It panics at [`BROKEN`].
#[derive(Clone, Default)]
struct Hands(Arc<AtomicU64>);

const BROKEN: u64 = u64::MAX;

impl Hands {
    fn set(&self, time: u64) {
        self.0.store(time, Ordering::SeqCst);
    }

    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn read(&self) -> u64 {
        let now = self.now();
        assert!(now != BROKEN, "the clock is broken");
        now
    }
}

fn builder(env: &MemEnv, hands: &Hands) -> Builder {
    let hands = hands.clone();
    threaded(env).memtable_bytes(2000).clock(Clock::new("hands", move || hands.read()))
}

fn expiring(after: Option<u64>) -> KeyspaceOptions {
    KeyspaceOptions {
        expiry: Some(Expiry { after: after.map(Life::Ticks) }),
        ..KeyspaceOptions::default()
    }
}

fn entries_on_storage(space: &Keyspace) -> u64 {
    space.tree().disk_runs().map(|run| run.size().entries).sum()
}

#[test]
fn entries_vanish_from_reads_at_once_and_from_space_by_merges() {
    let env = MemEnv::new();
    let hands = Hands::default();
    let store = builder(&env, &hands).lockstep(true).open().unwrap();
    let space = store.keyspace_with("sessions", &expiring(Some(10))).unwrap();
    space.put_until("hidden", "older", 1000).unwrap();
    store.flush().unwrap();
    space.put("hidden", "newer").unwrap();
    space.put("by keyspace", "10").unwrap();
    space.put_until("entry", "20", 20).unwrap();
    let mut batch = Batch::new();
    batch.put(&space, "in a batch", "10");
    batch.put_until(&space, "in a batch, late", "30", 30);
    store.write(batch, PersistMode::Buffer).unwrap();
    let snapshot = store.snapshot();
    let check = |store: &Store| {
        let space = store.existing_keyspace("sessions").unwrap();
        let now = hands.now();
        let there = |key: &str, value: &str, time: u64| {
            let expected = (now < time).then(|| value.to_string());
            assert_eq!(get(&space, key), expected, "{key} at {now}");
            let found: Vec<_> = space.iter().map(|entry| entry.unwrap()).collect();
            let value = found.iter().find(|(found, _)| *found == *key).map(|(_, value)| value);
            assert_eq!(value.map(|value| &value[..]), expected.as_deref().map(str::as_bytes));
            let mut back: Vec<_> = space.iter().rev().map(|entry| entry.unwrap()).collect();
            back.reverse();
            assert_eq!(back, found);
        };
        there("hidden", "newer", 10);
        there("by keyspace", "10", 10);
        there("entry", "20", 20);
        there("in a batch", "10", 10);
        there("in a batch, late", "30", 30);
    };
    check(&store);
    hands.set(10);
    check(&store);
    assert_eq!(snapshot.get(&space, "by keyspace").unwrap(), None);
    store.flush().unwrap();
    check(&store);
    drop(snapshot);
    space.merge().unwrap();
    check(&store);
    assert_eq!(entries_on_storage(&space), 2, "{}", space.tree());
    drop((space, store));
    let store = builder(&env, &hands).lockstep(true).open().unwrap();
    check(&store);
    hands.set(30);
    check(&store);
    let space = store.keyspace("sessions").unwrap();
    assert_eq!(space.expiry(), Some(Expiry::after(10)));
    space.merge().unwrap();
    assert_eq!(entries_on_storage(&space), 0, "{}", space.tree());
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn expiry_is_chosen_when_a_keyspace_is_made() {
    let env = MemEnv::new();
    let hands = Hands::default();
    let store = builder(&env, &hands).open().unwrap();
    let plain = store.keyspace("plain").unwrap();
    let error = plain.put_until("key", "value", 7).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let mut batch = Batch::new();
    batch.put_until(&plain, "key", "value", 7);
    assert_eq!(
        store.write(batch, PersistMode::Buffer).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert!(store.keyspace_with("plain", &expiring(None)).is_err());
    store.keyspace_with("entry", &expiring(None)).unwrap();
    assert!(store.keyspace_with("entry", &expiring(Some(3))).is_err());
    let both = KeyspaceOptions { operator: Some("counter".into()), ..expiring(None) };
    assert_eq!(store.keyspace_with("both", &both).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// Random writes with and without times, while the clock goes on: as in a map without the entries
/// whose time has come. Under every policy, across flushes, merges, crashes and reopenings.
#[test]
fn expiring_entries_are_as_in_a_map_under_every_policy() {
    with_seeds(2, |seed| {
        for (index, policy) in policies().iter().enumerate() {
            play(&mut Dice::new(seed * 1000 + index as u64), policy);
        }
    });
}

fn play(dice: &mut Dice, policy: &str) {
    let mut env = MemEnv::new();
    let hands = Hands::default();
    let lockstep = dice.chance(50);
    let open = |env: &MemEnv| {
        let builder = builder(env, &hands).policy(policy).block_bytes(80).log_bytes(64 << 10);
        let store = builder.memtable_bytes(600).lockstep(lockstep).open().unwrap();
        store.keyspace_with("space", &expiring(None)).unwrap();
        store
    };
    let mut store = open(&env);
    let mut map: BTreeMap<Vec<u8>, (u64, Vec<u8>)> = BTreeMap::new();
    for step in 0..400_u64 {
        let space = store.keyspace("space").unwrap();
        let key = format!("{:03}", dice.below(60)).into_bytes();
        match dice.below(20) {
            0..8 => {
                let time = hands.now() + dice.below(40) as u64;
                let value = step.to_string().into_bytes();
                space.put_until(&key, &value, time).unwrap();
                map.insert(key, (time, value));
            }
            8..11 => {
                let value = vec![b'v'; dice.below(50)];
                space.put(&key, &value).unwrap();
                map.insert(key, (BROKEN, value));
            }
            11 | 12 => {
                space.delete(&key).unwrap();
                map.remove(&key);
            }
            13..16 => hands.set(hands.now() + dice.below(5) as u64),
            16 => store.flush().unwrap(),
            17 if dice.chance(30) => space.merge().unwrap(),
            18 if dice.chance(20) => {
                drop(space);
                env = env.process_crash_clone();
                store = open(&env);
            }
            19 if dice.chance(30) => arrive(&env, &space, &mut map, hands.now(), dice),
            _ => {}
        }
        let space = store.keyspace("space").unwrap();
        let now = hands.now();
        let key = format!("{:03}", dice.below(60)).into_bytes();
        let expected = map.get(&key).filter(|(time, _)| now < *time).map(|(_, value)| value);
        assert_eq!(space.get(&key).unwrap().as_deref(), expected.map(Vec::as_slice), "{policy}");
        if dice.chance(10) {
            check(&space, &map, now, policy);
        }
    }
    store.flush().unwrap();
    check(&store.keyspace("space").unwrap(), &map, hands.now(), policy);
    assert!(store.verify().unwrap().is_empty());
}

/// Ingests a table of a few entries with and without times.
fn arrive(
    env: &MemEnv,
    space: &Keyspace,
    map: &mut BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
    now: u64,
    dice: &mut Dice,
) {
    let shared: Arc<dyn Env> = Arc::new(env.clone());
    let options = TableWriterOptions { env: shared, block_bytes: 80, ..Default::default() };
    let mut writer = TableWriter::create_with("/made", &options).unwrap();
    let all_expire = dice.chance(50);
    let numbers: BTreeSet<usize> = (0..1 + dice.below(8)).map(|_| dice.below(60)).collect();
    for number in numbers {
        let key = format!("{number:03}").into_bytes();
        match dice.below(6) {
            0 => {
                writer.delete(&key).unwrap();
                map.remove(&key);
            }
            1 | 2 if !all_expire => {
                writer.put(&key, "made").unwrap();
                map.insert(key, (BROKEN, b"made".to_vec()));
            }
            _ => {
                let time = now + dice.below(40) as u64;
                writer.put_until(&key, "timed", time).unwrap();
                map.insert(key, (time, b"timed".to_vec()));
            }
        }
    }
    writer.finish().unwrap();
    let options = IngestOptions::default().link(dice.chance(50));
    space.store().ingest(space, &["/made"], &options).unwrap();
    env.remove_file(Path::new("/made")).unwrap();
}

fn check(space: &Keyspace, map: &BTreeMap<Vec<u8>, (u64, Vec<u8>)>, now: u64, policy: &str) {
    let there = map.iter().filter(|(_, (time, _))| now < *time);
    let expected: Vec<_> = there.map(|(key, (_, value))| (key.clone(), value.clone())).collect();
    let pair = |entry: lsmith::Result<(bytes::Bytes, bytes::Bytes)>| {
        let (key, value) = entry.unwrap();
        (key.to_vec(), value.to_vec())
    };
    assert_eq!(space.iter().map(pair).collect::<Vec<_>>(), expected, "{policy}");
    let mut back: Vec<_> = space.iter().rev().map(pair).collect();
    back.reverse();
    assert_eq!(back, expected, "{policy}");
}

#[test]
fn broken_clock_costs_only_what_needs_it() {
    let env = MemEnv::new();
    let hands = Hands::default();
    let store = builder(&env, &hands).open().unwrap();
    let space = store.keyspace_with("space", &expiring(Some(5))).unwrap();
    let plain = store.keyspace("plain").unwrap();
    space.put("key", "value").unwrap();
    hands.set(BROKEN);
    assert_eq!(space.get("key").unwrap_err().kind(), ErrorKind::Callback);
    assert_eq!(space.put("other", "value").unwrap_err().kind(), ErrorKind::Callback);
    assert_eq!(space.iter().next().unwrap().unwrap_err().kind(), ErrorKind::Callback);
    plain.put("key", "value").unwrap();
    assert_eq!(get(&plain, "key").as_deref(), Some("value"));
    // Merges drop nothing then.
    space.merge().unwrap();
    hands.set(4);
    assert_eq!(get(&space, "key").as_deref(), Some("value"));
}

#[test]
fn repair_keeps_the_times_of_entries() {
    let env = MemEnv::new();
    let hands = Hands::default();
    let store = builder(&env, &hands).open().unwrap();
    let space = store.keyspace_with("space", &expiring(Some(5))).unwrap();
    space.put("short", "value").unwrap();
    store.flush().unwrap();
    space.put_until("long", "value", 50).unwrap();
    let mut load = space.bulk_load().unwrap();
    load.put("loaded", "value").unwrap();
    load.finish().unwrap();
    drop((space, store));
    let options = RepairOptions { env: Arc::new(env.clone()), ..RepairOptions::default() };
    assert!(repair(&options, DIR, "/saved").unwrap().is_exact());
    let moved = hands.clone();
    let saved = Store::builder("/saved")
        .env(Arc::new(env))
        .clock(Clock::new("hands", move || moved.read()));
    let saved = saved.open().unwrap();
    let space = saved.existing_keyspace("space").unwrap();
    for (now, expected) in [(4, [true, true, true]), (5, [false, true, false]), (50, [false; 3])] {
        hands.set(now);
        let found = ["short", "long", "loaded"].map(|key| space.contains(key).unwrap());
        assert_eq!(found, expected, "at {now}");
    }
}

#[test]
fn filter_keeps_drops_and_changes_what_no_snapshot_sees() {
    let env = MemEnv::new();
    let filter = |key: &[u8], value: &[u8]| match key[0] {
        b'd' => Verdict::Drop,
        b'c' if value != b"changed" => Verdict::Change(b"changed".to_vec()),
        b'p' => panic!("a bad key"),
        _ => Verdict::Keep,
    };
    let builder = || {
        let builder = plain(&env).memtable_bytes(2000);
        builder.merge_filter("space", filter).threads(2)
    };
    let store = builder().open().unwrap();
    let space = store.keyspace("space").unwrap();
    let other = store.keyspace("other").unwrap();
    space.put("drop", "hidden").unwrap();
    let before = store.snapshot();
    space.merge().unwrap();
    assert_eq!(get(&space, "drop").as_deref(), Some("hidden"), "the snapshot sees it");
    for key in ["keep", "drop", "change"] {
        space.put(key, "value").unwrap();
        other.put(key, "value").unwrap();
    }
    space.merge().unwrap();
    other.merge().unwrap();
    assert_eq!(get(&space, "drop"), None, "what it hid stays hidden");
    assert_eq!(before.get(&space, "drop").unwrap().unwrap(), "hidden");
    assert_eq!(get(&space, "keep").as_deref(), Some("value"));
    assert_eq!(get(&space, "change").as_deref(), Some("changed"));
    assert_eq!(get(&other, "drop").as_deref(), Some("value"), "it has no filter");
    drop(before);
    space.merge().unwrap();
    assert_eq!(entries_on_storage(&space), 2, "{}", space.tree());
    // A filter that panics blocks the merge, and loses nothing.
    space.put("panic", "value").unwrap();
    assert_eq!(space.merge().unwrap_err().kind(), ErrorKind::Callback);
    assert_eq!(get(&space, "panic").as_deref(), Some("value"));
    drop((space, other, store));
    let store = plain(&env).open().unwrap();
    let space = store.keyspace("space").unwrap();
    space.merge().unwrap();
    assert_eq!(get(&space, "panic").as_deref(), Some("value"));
    assert_eq!(get(&space, "drop"), None);
}

/// Also in the memtable of a reader of its own, and under a transaction.
#[test]
fn transactions_read_combines_and_write_values_that_expire() {
    let env = MemEnv::new();
    let hands = Hands::default();
    let store = builder(&env, &hands).open().unwrap();
    let space = store.keyspace_with("space", &expiring(Some(5))).unwrap();
    let counter = KeyspaceOptions { operator: Some("counter".into()), ..Default::default() };
    let visits = store.keyspace_with("visits", &counter).unwrap();
    for _ in 0..3 {
        visits.combine("key", 1_i64.to_le_bytes()).unwrap();
        store.flush().unwrap();
    }
    let mut transaction = store.transaction(Isolation::Snapshot);
    let found = transaction.get(&visits, "key").unwrap();
    assert_eq!(found.as_deref(), Some(&3_i64.to_le_bytes()[..]));
    let counted = transaction.range::<&[u8]>(&visits, ..).next().unwrap().unwrap();
    assert_eq!(&counted.1[..], 3_i64.to_le_bytes());
    transaction.put(&space, "key", "value").unwrap();
    transaction.commit(PersistMode::Buffer).unwrap();
    assert_eq!(get(&space, "key").as_deref(), Some("value"));
    hands.set(5);
    assert_eq!(get(&space, "key"), None);
}

#[test]
fn change_feed_tells_operands_and_times() {
    let env = MemEnv::new();
    let store = builder(&env, &Hands::default()).open().unwrap();
    let space = store.keyspace_with("space", &expiring(Some(5))).unwrap();
    let counter = KeyspaceOptions { operator: Some("counter".into()), ..Default::default() };
    let visits = store.keyspace_with("visits", &counter).unwrap();
    let mut feed = store.changes(store.next_seq()).unwrap();
    let mut batch = Batch::new();
    batch.put(&space, "a", "v");
    batch.combine(&visits, "b", "operands");
    store.write(batch, PersistMode::Buffer).unwrap();
    let changes = feed.next_batch().unwrap().unwrap().changes;
    let bytes = |text: &'static str| bytes::Bytes::from_static(text.as_bytes());
    let put = Change::PutUntil {
        keyspace: Arc::from("space"),
        key: bytes("a"),
        value: bytes("v"),
        time: 5,
    };
    let combine = Change::Combine {
        keyspace: Arc::from("visits"),
        key: bytes("b"),
        operand: bytes("operands"),
    };
    assert_eq!(changes, [put, combine]);
}
