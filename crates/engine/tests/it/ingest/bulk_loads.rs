//! Bulk loads.
//!
//! Promised: the entries of a load are newer than all earlier writes and older than all later ones,
//! under every policy. They appear at once or not at all, for readers, for snapshots, and after a
//! crash at any moment. When the call has returned they survive power loss. Keys out of order are
//! refused, and a load that is dropped leaves nothing behind.

use crate::dice::Dice;
use crate::frame::contents::{Map, contents, names};
use crate::frame::small::{DIR, open, small};
use crate::ingest::mixed::{mix, under_every_policy};
use lsmith::env::{Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{ErrorKind, Keyspace, PersistMode};
use std::io;
use std::sync::Arc;

fn key(number: usize) -> Vec<u8> {
    format!("{number:05}").into_bytes()
}

fn load(space: &Keyspace, entries: &Map) -> lsmith::Result<lsmith::Loaded> {
    let mut load = space.bulk_load()?;
    entries.iter().try_for_each(|(key, value)| load.put(key, value))?;
    load.finish()
}

fn numbered(numbers: impl IntoIterator<Item = usize>, value: &str) -> Map {
    numbers.into_iter().map(|number| (key(number), value.as_bytes().to_vec())).collect()
}

#[test]
fn a_load_is_newer_than_what_was_and_older_than_what_comes() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env));
    let mut expected = numbered(0..300, "first");
    for (key, value) in &expected {
        space.put(key, value).unwrap();
    }
    let before = store.snapshot();
    let entries = numbered((0..1000).step_by(2), "loaded");
    let loaded = load(&space, &entries).unwrap();
    assert_eq!((loaded.entries, loaded.logical_bytes), (500, 500 * (5 + 6 + 8)));
    assert!(loaded.tables > 1 && loaded.table_bytes > 0);
    assert_eq!(store.stats().load_bytes, loaded.table_bytes);
    for number in [0, 2] {
        assert_eq!(before.get(&space, key(number)).unwrap().unwrap(), "first");
        assert_eq!(space.get(key(number)).unwrap().unwrap(), "loaded");
    }
    assert_eq!(before.range::<&[u8]>(&space, ..).count(), 300);
    drop(before);
    expected.extend(entries);
    assert_eq!(contents(&space), expected);
    space.put(key(4), "last").unwrap();
    space.delete(key(6)).unwrap();
    expected.insert(key(4), b"last".to_vec());
    expected.remove(&key(6));
    assert_eq!(contents(&space), expected);
    store.flush().unwrap();
    assert!(store.verify().unwrap().is_empty());
    drop((space, store));
    let (store, space) = open(small(&env).lockstep(false));
    assert_eq!(contents(&space), expected);
    assert!(store.verify().unwrap().is_empty());
    space.merge().unwrap();
    assert_eq!(contents(&space), expected);
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn keys_out_of_order_are_refused() {
    let env = MemEnv::new();
    let (_store, space) = open(small(&env).lockstep(false));
    let mut load = space.bulk_load().unwrap();
    load.put("b", "1").unwrap();
    for wrong in ["a", "b", ""] {
        let error = load.put(wrong, "2").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(wrong.is_empty() || error.to_string().contains("after `b`"), "{error}");
    }
    load.put("c", "3").unwrap();
    assert_eq!(load.finish().unwrap().entries, 2);
    assert_eq!(contents(&space).len(), 2);
}

#[test]
fn a_load_that_is_dropped_leaves_nothing() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).lockstep(false));
    let mut load = space.bulk_load().unwrap();
    for number in 0..1000 {
        load.put(key(number), "value").unwrap();
    }
    assert!(names(&env, DIR, ".table").len() > 1);
    drop(load);
    assert_eq!(names(&env, DIR, ".table").len(), 0);
    assert!(contents(&space).is_empty());
    assert_eq!(space.bulk_load().unwrap().finish().unwrap(), lsmith::Loaded::default());
    drop((space, store));
    let store = small(&env).read_only(true).open().unwrap();
    let error = store.keyspace("default").unwrap().bulk_load().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_load_whose_file_could_not_be_written_does_not_take_effect() {
    let disk = MemEnv::new();
    let env = FaultEnv::new(Arc::new(disk.clone()));
    let (_store, space) = open(small(&env).lockstep(false));
    let mut load = space.bulk_load().unwrap();
    load.put(key(0), "value").unwrap();
    let class = OpClass::Write.into();
    let kind = io::ErrorKind::Other;
    env.set(Fault { class, after: 0, lasting: Lasting::Once, kind });
    let failed = (1..1000).find(|number| load.put(key(*number), "value").is_err()).unwrap();
    assert_eq!(load.put(key(failed + 1), "value").unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(load.finish().unwrap_err().kind(), ErrorKind::Io);
    assert!(contents(&space).is_empty());
    assert_eq!(names(&disk, DIR, ".table").len(), 0);
}

/// Makes a store with entries in tables and in the log alone, and with a second keyspace.
fn before_the_load(env: &MemEnv, lockstep: bool) -> Map {
    let (store, space) = open(small(env).memtable_bytes(2000).lockstep(lockstep));
    let other = store.keyspace("other").unwrap();
    let old = numbered(0..150, "before");
    for (key, value) in &old {
        other.put(key, "other").unwrap();
        space.put(key, value).unwrap();
    }
    store.persist(PersistMode::SyncAll).unwrap();
    old
}

#[test]
fn a_load_cut_short_by_a_crash_is_there_or_not() {
    for (lockstep, power) in [(true, true), (true, false), (false, true)] {
        let entries = numbered((100..400).step_by(3), "loaded");
        let mut outcomes = [0, 0];
        let mut operations = 0;
        loop {
            let disk = MemEnv::new();
            let old = before_the_load(&disk, lockstep);
            let mut new = old.clone();
            new.extend(entries.clone());
            let env = FaultEnv::new(Arc::new(disk.clone()));
            let (_store, space) = open(small(&env).lockstep(lockstep));
            let lasting = Lasting::Forever;
            let kind = io::ErrorKind::Other;
            env.set(Fault { class: None, after: operations, lasting, kind });
            let result = load(&space, &entries);
            let copy =
                if power { disk.crash_clone(operations, 0.3) } else { disk.process_crash_clone() };
            env.clear();
            if result.is_err() {
                let found = contents(&space);
                assert!(found == old || found == new);
            }
            let store = small(&copy).lockstep(lockstep).open().unwrap();
            let found = contents(&store.keyspace("default").unwrap());
            let done = found == new;
            assert!(done || found == old, "torn by a crash after {operations} operations");
            assert!(done || result.is_err(), "lost");
            outcomes[usize::from(done)] += 1;
            assert_eq!(contents(&store.keyspace("other").unwrap()).len(), 150);
            store.flush().unwrap();
            assert!(store.verify().unwrap().is_empty());
            if result.is_ok() {
                break;
            }
            operations += 1;
        }
        assert!(outcomes[0] > 5 && outcomes[1] > 0, "{outcomes:?}");
    }
}

#[test]
fn random_loads_between_random_writes() {
    under_every_policy(|dice, policy, lockstep| mix(dice, (policy, lockstep), load_some));
}

/// Loads a few entries.
fn load_some(dice: &mut Dice, _: &MemEnv, (space, map): (&Keyspace, &mut Map), value: &str) {
    let from = dice.below(300);
    let upto = from + 1 + dice.below(400);
    let entries = numbered((from..upto).step_by(1 + dice.below(9)), value);
    load(space, &entries).unwrap();
    map.extend(entries);
}

#[test]
fn others_write_while_a_load_takes_effect() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).lockstep(false));
    let entries = numbered((0..4000).step_by(2), "loaded");
    std::thread::scope(|scope| {
        // Within the hull, but other keys; the last round has the whole range for itself.
        scope.spawn(|| {
            for number in (1..400).step_by(2) {
                space.put(key(number), "written").unwrap();
            }
        });
        let loaded = scope.spawn(|| {
            loop {
                match load(&space, &entries) {
                    Err(error) if error.to_string().contains("keep writing") => {}
                    result => return result.unwrap(),
                }
            }
        });
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while seen == 0 {
                seen = space.iter().filter(|e| e.as_ref().unwrap().1 == "loaded").count();
                assert!([0, 2000].contains(&seen), "{seen} of 2000");
            }
        });
        assert_eq!(loaded.join().unwrap().entries, 2000);
        reader.join().unwrap();
    });
    assert_eq!(contents(&space).len(), 2000 + 200);
    assert!(store.verify().unwrap().is_empty());
}
