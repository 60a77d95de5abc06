//! Range deletes over a memtable that is sealed and not yet in a table.
//!
//! Promised: reads see the same whether what a range delete hides lies in the active memtable, in a
//! sealed one that waits for its flush, or in tables. So do snapshots from before and between. A
//! flush drops what its own memtable has deleted, unless a snapshot sees it.

use crate::dice::{Dice, with_seeds};
use crate::frame::contents::Map;
use crate::frame::gate::{Gate, GateEnv, Step};
use crate::frame::small::threaded;
use crate::frame::watchdog::Watchdog;
use lsmith::env::{Env, MemEnv};
use lsmith::{Builder, Keyspace, KeyspaceOptions, Snapshot, Store};
use std::thread;

const KEYS: usize = 60;

fn key(number: usize) -> Vec<u8> {
    format!("{number:03}").into_bytes()
}

fn builder(env: &(impl Env + Clone), policy: &str) -> Builder {
    threaded(env).policy(policy).threads(1).memtable_bytes(1 << 20).block_bytes(100)
}

fn open(builder: Builder, in_group: bool) -> (Store, Keyspace) {
    let store = builder.open().unwrap();
    let group = in_group.then(|| "both".to_string());
    let options = KeyspaceOptions { group, ..KeyspaceOptions::default() };
    let space = store.keyspace_with("one", &options).unwrap();
    // A neighbour, whose keys are not touched.
    store.keyspace_with("two", &options).unwrap().put(key(7), "other").unwrap();
    (store, space)
}

/// What is there, and what snapshots must go on to see.
#[derive(Default)]
struct Model {
    map: Map,
    held: Vec<(Snapshot, Map)>,
}

impl Model {
    /// Writes and deletes ranges at random, and takes snapshots meanwhile.
    fn change(&mut self, space: &Keyspace, dice: &mut Dice) {
        for number in 0..60 {
            let at = dice.below(KEYS);
            match dice.below(10) {
                0 => {
                    let end = at + dice.below(20);
                    space.delete_range(key(at)..key(end)).unwrap();
                    self.map.retain(|found, _| *found < key(at) || *found >= key(end));
                }
                1 => {
                    space.delete(key(at)).unwrap();
                    self.map.remove(&key(at));
                }
                2 if self.held.len() < 12 => {
                    self.held.push((space.store().snapshot(), self.map.clone()));
                }
                _ => {
                    let value = format!("{number} of {at}").into_bytes();
                    space.put(key(at), &value).unwrap();
                    self.map.insert(key(at), value);
                }
            }
        }
        // There is something to flush in any case.
        space.put("last", "").unwrap();
        self.map.insert(b"last".into(), Vec::new());
    }

    fn check(&self, space: &Keyspace) {
        check(space, &space.store().snapshot(), &self.map);
        for number in 0..KEYS {
            let found = space.get(key(number)).unwrap();
            assert_eq!(found.as_deref(), self.map.get(&key(number)).map(|value| &value[..]));
        }
        for (snapshot, map) in &self.held {
            check(space, snapshot, map);
        }
    }
}

/// Reads `snapshot` in every way.
fn check(space: &Keyspace, snapshot: &Snapshot, map: &Map) {
    let pair = |entry: lsmith::Result<(bytes::Bytes, bytes::Bytes)>| {
        let (key, value) = entry.unwrap();
        (key.to_vec(), value.to_vec())
    };
    let forward: Map = snapshot.iter(space).map(pair).collect();
    assert_eq!(forward, *map);
    assert!(snapshot.iter(space).rev().map(pair).eq(map.clone().into_iter().rev()));
    let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    let found = snapshot.multi_get(space, &keys).unwrap();
    let mut cursor = snapshot.cursor(space);
    for (key, found) in keys.iter().zip(found) {
        let value = map.get(key).map(|value| &value[..]);
        assert_eq!(found.as_deref(), value);
        assert_eq!(snapshot.get(space, key).unwrap().as_deref(), value);
        let next = map.range(key.clone()..).next();
        let at = cursor.seek(key).unwrap().map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert_eq!(at.as_ref().map(|(key, value)| (key, value)), next);
        let before = map.range(..=key.clone()).next_back();
        let at = cursor.seek_back(key).unwrap();
        assert_eq!(at, before.map(|(key, value)| (&key[..], &value[..])));
        let range = map.range(key.clone()..self::key(KEYS / 2).max(key.clone()));
        let half = snapshot.range(space, key.clone()..self::key(KEYS / 2).max(key.clone()));
        assert!(half.map(pair).eq(range.map(|(key, value)| (key.clone(), value.clone()))));
    }
}

/// Opens the gate in any case: a thread that is held would never end.
struct Release<'a>(&'a GateEnv);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

fn memory_runs(space: &Keyspace) -> usize {
    space.tree().memory().runs().len()
}

#[test]
fn range_deletes_hide_what_lies_in_sealed_memory() {
    let _watchdog = Watchdog::new("a flush that is held does not go on");
    let policies = ["minlatency(k=2)", "leveled(ratio=2, l0=1, table=2kB)", "constant(k=1)"];
    with_seeds(18, |seed| {
        let mut dice = Dice::new(seed);
        let (disk, in_group) = (MemEnv::new(), seed % 3 == 0);
        let gate = Gate::over(disk.clone());
        let policies = if in_group { &policies[..1] } else { &policies };
        let policy = dice.pick::<&str>(policies);
        let (store, space) = open(builder(&gate, policy), in_group);
        let mut model = Model::default();
        model.change(&space, &mut dice);
        store.flush().unwrap();
        model.check(&space);
        model.change(&space, &mut dice);
        gate.hold_at(Step::Create, 1);
        let crashed = thread::scope(|scope| {
            scope.spawn(|| store.flush().unwrap());
            let _release = Release(&gate);
            gate.wait_until_held();
            assert!(memory_runs(&space) > 0, "{policy}: a sealed memtable waits");
            model.check(&space);
            model.change(&space, &mut dice);
            model.check(&space);
            disk.process_crash_clone()
        });
        model.check(&space);
        store.flush().unwrap();
        space.merge().unwrap();
        assert_eq!(memory_runs(&space), 0);
        model.check(&space);
        model.held.clear();
        space.merge().unwrap();
        model.check(&space);
        drop((store, space));
        for disk in [crashed, disk] {
            let (store, space) = open(builder(&disk, policy), in_group);
            model.check(&space);
            store.flush().unwrap();
            space.merge().unwrap();
            model.check(&space);
            assert!(store.verify().unwrap().is_empty(), "{policy}");
        }
    });
}

#[test]
fn a_flush_drops_what_its_own_memtable_has_deleted() {
    for is_seen in [false, true] {
        let env = MemEnv::new();
        let (store, space) = open(builder(&env, "none"), false);
        for number in 0..1000 {
            space.put(key(number), [7; 100]).unwrap();
        }
        let snapshot = is_seen.then(|| store.snapshot());
        space.delete_range(key(100)..).unwrap();
        space.put(key(500), "new").unwrap();
        let before = store.stats().flush_bytes;
        space.flush().unwrap();
        let (entries, bytes) = (space.stats().entries, store.stats().flush_bytes - before);
        match &snapshot {
            None => {
                assert_eq!(entries, 101);
                assert!(bytes < 30_000, "{bytes} bytes");
            }
            Some(snapshot) => {
                assert_eq!(entries, 1001);
                assert_eq!(snapshot.iter(&space).count(), 1000);
            }
        }
        assert_eq!(space.iter().count(), 101);
        drop(snapshot);
        space.merge().unwrap();
        assert_eq!((space.stats().entries, space.iter().count()), (101, 101));
        assert!(space.tree().range_deletes().is_empty(), "{}", space.tree());
    }
}
