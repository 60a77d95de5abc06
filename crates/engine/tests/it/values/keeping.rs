//! What keeps value files from going.

use super::{bytes_on_disk, check, put, value};
use crate::frame::contents::pair;
use crate::frame::small::{open, plain_at, small, threaded};
use lsmith::env::MemEnv;
use lsmith::{Backups, Keyspace};

const KEYS: std::ops::Range<u32> = 0..60;

/// Overwrites everything, several times, and merges it.
fn overwrite(space: &Keyspace) {
    for round in 1..6 {
        put(space, KEYS, round);
    }
    space.merge().unwrap();
}

#[test]
fn iterator_reads_on_in_files_that_are_garbage() {
    let env = MemEnv::new();
    for (name, builder) in [("lockstep", small(&env)), ("threads", threaded(&env))] {
        let store = builder.large_values(500).value_space(1.05).open().unwrap();
        let space = store.keyspace(name).unwrap();
        put(&space, KEYS, 0);
        space.flush().unwrap();
        let mut entries = space.iter();
        let first = pair(entries.next().unwrap());
        assert!(first == (0_u32.to_be_bytes().to_vec(), value(0, 0)));
        let mut backward = space.iter().rev();
        overwrite(&space);
        store.settle().unwrap();
        let both = 2 * 1020 * u64::from(KEYS.end);
        assert!(bytes_on_disk(&env) >= both, "{} bytes", bytes_on_disk(&env));
        for key in 1..KEYS.end {
            let found = pair(entries.next().unwrap());
            assert!(found == (key.to_be_bytes().to_vec(), value(key, 0)), "key {key}");
        }
        for key in KEYS.rev() {
            let found = pair(backward.next().unwrap());
            assert!(found == (key.to_be_bytes().to_vec(), value(key, 0)), "key {key}");
        }
        drop((entries, backward));
        space.merge().unwrap();
        store.settle().unwrap();
        assert_eq!(bytes_on_disk(&env), space.stats().value_bytes);
        check(&space, KEYS, 5);
        store.drop_keyspace(name).unwrap();
    }
}

#[test]
fn snapshot_keeps_its_values_through_cleaning() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).large_values(500).value_space(1.05));
    put(&space, KEYS, 0);
    let snapshot = store.snapshot();
    overwrite(&space);
    store.settle().unwrap();
    for key in KEYS {
        let found = snapshot.get(&space, key.to_be_bytes()).unwrap();
        assert!(found.as_deref() == Some(&value(key, 0)[..]), "key {key}");
    }
    let held = bytes_on_disk(&env);
    drop(snapshot);
    space.merge().unwrap();
    store.settle().unwrap();
    assert!(bytes_on_disk(&env) < held * 6 / 10, "{} of {held}", bytes_on_disk(&env));
    check(&space, KEYS, 5);
}

#[test]
fn checkpoint_and_backup_have_their_values() {
    for codec in ["none", "lz4"] {
        copies_have_their_values(codec);
    }
}

fn copies_have_their_values(codec: &str) {
    let env = MemEnv::new();
    let builder = small(&env).compression(codec);
    let (store, space) = open(builder.large_values(500).value_space(1.05));
    put(&space, KEYS, 0);
    space.flush().unwrap();
    store.checkpoint("/copy").unwrap();
    let backups = Backups::with_env("/backups", std::sync::Arc::new(env.clone()));
    store.backup(&backups).unwrap();
    put(&space, KEYS.step_by(2), 1);
    space.flush().unwrap();
    let second = store.backup(&backups).unwrap();
    overwrite(&space);
    store.settle().unwrap();
    backups.restore(second.id, "/restored").unwrap();
    assert_eq!(backups.verify().unwrap().len(), 0);
    check(&space, KEYS, 5);
    drop((store, space));
    let (copy, space) = open(plain_at("/copy", &env));
    check(&space, KEYS, 0);
    assert_eq!(copy.verify().unwrap().len(), 0);
    overwrite(&space);
    let (restored, space) = open(plain_at("/restored", &env));
    check(&space, KEYS.step_by(2), 1);
    check(&space, (1..KEYS.end).step_by(2), 0);
    assert_eq!(restored.verify().unwrap().len(), 0);
    let (_store, space) = open(small(&env));
    check(&space, KEYS, 5);
}

/// A reader beside the writer keeps what it reads.
#[test]
fn reader_in_another_process_keeps_its_values() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).large_values(500).value_space(1.05));
    put(&space, KEYS, 0);
    space.flush().unwrap();
    let (reader, read) = open_reader(&env);
    overwrite(&space);
    store.settle().unwrap();
    check(&read, KEYS, 0);
    reader.refresh().unwrap();
    check(&read, KEYS, 5);
    drop((reader, read));
    put(&space, KEYS, 6);
    space.merge().unwrap();
    store.settle().unwrap();
    assert_eq!(bytes_on_disk(&env), space.stats().value_bytes);
}

fn open_reader(env: &MemEnv) -> (lsmith::Store, Keyspace) {
    let store = crate::frame::small::reader(env).open().unwrap();
    let space = store.existing_keyspace("default").unwrap();
    (store, space)
}
