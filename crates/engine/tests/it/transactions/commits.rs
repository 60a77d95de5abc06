//! Transactions.
//!
//! Promised: a transaction reads one moment and its own writes. It commits as a whole or not at
//! all. It commits only if nobody has written meanwhile what it read for update, and what it
//! writes; if it is serializable, what it read, and not what it only writes. That holds whatever
//! was flushed and merged meanwhile.

use crate::frame::contents::get;
use crate::frame::small::{open, small};
use lsmith::env::{Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{ErrorKind, Isolation, Keyspace, KeyspaceOptions, PersistMode, Transaction};
use std::sync::Arc;

pub(crate) type Pairs = Vec<(String, String)>;

pub(crate) fn pairs(
    entries: impl Iterator<Item = lsmith::Result<(bytes::Bytes, bytes::Bytes)>>,
) -> Pairs {
    let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    entries.map(|entry| entry.map(|(key, value)| (text(key), text(value))).unwrap()).collect()
}

pub(crate) fn conflicts(result: lsmith::Result<lsmith::SeqNo>, key: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let named = format!("key `{key}` of keyspace `");
    assert!(error.to_string().contains(&named), "{error}");
}

#[test]
fn own_writes_are_read_and_nobody_else_sees_them() {
    let (store, space) = open(small(&MemEnv::new()));
    for key in ["a", "c", "e", "g"] {
        space.put(key, "old").unwrap();
    }
    let mut one = store.transaction(Isolation::Snapshot);
    one.put(&space, "b", "new").unwrap();
    one.put(&space, "c", "new").unwrap();
    one.delete(&space, "e").unwrap();
    one.delete(&space, "nothing").unwrap();
    space.put("d", "unseen").unwrap();
    assert_eq!(one.get(&space, "c").unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(one.get(&space, "e").unwrap(), None);
    assert_eq!(one.get(&space, "d").unwrap(), None);
    let seen = [("a", "old"), ("b", "new"), ("c", "new"), ("g", "old")];
    let seen = seen.map(|(key, value)| (key.to_string(), value.to_string()));
    assert_eq!(pairs(one.range::<&str>(&space, ..)), seen);
    assert_eq!(pairs(one.range(&space, "b"..="c")), seen[1..3]);
    assert_eq!(pairs(one.prefix(&space, "c")), seen[2..3]);
    let mut backwards = pairs(one.range::<&str>(&space, ..).rev());
    backwards.reverse();
    assert_eq!(backwards, seen);
    // From both ends until they meet.
    let mut both = one.range::<&str>(&space, ..);
    one.put(&space, "f", "later").unwrap();
    let ends: Vec<_> = [both.next(), both.next_back(), both.next(), both.next_back(), both.next()]
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(pairs(ends.into_iter()).len(), 4);
    assert_eq!(get(&space, "b"), None);
    assert_eq!((one.len(), one.is_empty()), (5, false));
    let before = store.snapshot();
    let seq = one.commit(PersistMode::SyncData).unwrap();
    assert_eq!(seq, store.snapshot().seq());
    assert_eq!(get(&space, "b").as_deref(), Some("new"));
    assert_eq!(get(&space, "e"), None);
    assert_eq!(get(&space, "d").as_deref(), Some("unseen"));
    assert_eq!(before.get(&space, "b").unwrap(), None);
    let mut dropped = store.transaction(Isolation::Serializable);
    dropped.put(&space, "b", "never").unwrap();
    dropped.rollback();
    assert_eq!(get(&space, "b").as_deref(), Some("new"));
}

/// Serializable transactions must have read what they write.
#[test]
fn the_first_that_commits_wins() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let (store, space) = open(small(&MemEnv::new()));
        space.put("key", "0").unwrap();
        let mut transactions: Vec<Transaction> =
            (0..3).map(|_| store.transaction(isolation)).collect();
        for (number, transaction) in transactions.iter_mut().enumerate() {
            if isolation == Isolation::Serializable {
                assert!(transaction.get(&space, "key").unwrap().is_some());
            }
            transaction.put(&space, "key", number.to_string()).unwrap();
            transaction.put(&space, format!("own{number}"), "x").unwrap();
        }
        let [one, two, three] = <[Transaction; 3]>::try_from(transactions).unwrap();
        two.commit(PersistMode::Buffer).unwrap();
        conflicts(one.commit(PersistMode::Buffer), "key");
        // Wherever the newer write is now.
        store.flush().unwrap();
        space.merge().unwrap();
        conflicts(three.commit(PersistMode::Buffer), "key");
        assert_eq!(get(&space, "key").as_deref(), Some("1"));
        assert_eq!(get(&space, "own0"), None, "nothing of it is written");
    }
}

/// Their commits give their order: neither read what the other wrote.
#[test]
fn blind_writers_both_commit_if_they_are_serializable() {
    for flush in [false, true] {
        let (store, space) = open(small(&MemEnv::new()));
        let [mut one, mut two] = [(); 2].map(|()| store.transaction(Isolation::Serializable));
        one.put(&space, "key", "1").unwrap();
        two.put(&space, "key", "2").unwrap();
        two.delete(&space, "other").unwrap();
        // What a transaction has written itself is no read.
        assert_eq!(two.get(&space, "key").unwrap().as_deref(), Some(&b"2"[..]));
        space.put("other", "0").unwrap();
        let first = one.commit(PersistMode::Buffer).unwrap();
        if flush {
            store.flush().unwrap();
        }
        assert!(two.commit(PersistMode::Buffer).unwrap() > first);
        assert_eq!(pairs(space.iter()), [("key".to_string(), "2".to_string())]);
        // Under the other isolation the update of the first would be lost.
        let [mut one, mut two] = [(); 2].map(|()| store.transaction(Isolation::Snapshot));
        one.put(&space, "key", "3").unwrap();
        two.put(&space, "key", "4").unwrap();
        one.commit(PersistMode::Buffer).unwrap();
        conflicts(two.commit(PersistMode::Buffer), "key");
    }
}

/// As in RocksDB, a commit without writes fails too. What broke: it looked at nothing.
#[test]
fn a_key_read_for_update_is_looked_at_without_any_write() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        for flush in [false, true] {
            let (store, space) = open(small(&MemEnv::new()));
            space.put("key", "0").unwrap();
            let begin = |lock: bool| {
                let mut one = store.transaction(isolation);
                let read = if lock { Transaction::get_for_update } else { Transaction::get };
                assert!(read(&mut one, &space, "key").unwrap().is_some());
                assert!(read(&mut one, &space, "absent").unwrap().is_none());
                one
            };
            let (locked, unlocked) = (begin(true), begin(false));
            let began = locked.seq();
            space.put("another", "1").unwrap();
            assert_eq!(locked.commit(PersistMode::SyncData).unwrap(), began);
            let locked = [begin(true), begin(true)];
            space.put("absent", "1").unwrap();
            if flush {
                store.flush().unwrap();
            }
            for mut one in locked {
                one.set_savepoint();
                one.put(&space, "taken back", "1").unwrap();
                one.rollback_to_savepoint().unwrap();
                assert!(one.is_empty());
                conflicts(one.commit(PersistMode::Buffer), "absent");
            }
            unlocked.commit(PersistMode::Buffer).unwrap();
            store.drop_keyspace(space.name()).unwrap();
            let mut gone = store.transaction(isolation);
            let refused = gone.get_for_update(&space, "key").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::NotFound);
            let refused = gone.commit(PersistMode::Buffer).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::NotFound);
        }
    }
}

type ReadSomething = fn(&mut Transaction, &Keyspace);

#[test]
fn what_was_read_counts_as_the_isolation_says() {
    let commit = |isolation, read: ReadSomething, flush: bool| {
        let (store, space) = open(small(&MemEnv::new()));
        for key in ["b", "d", "f"] {
            space.put(key, "0").unwrap();
        }
        let mut transaction = store.transaction(isolation);
        read(&mut transaction, &space);
        transaction.put(&space, "other", "1").unwrap();
        space.put("d", "1").unwrap();
        space.delete("f").unwrap();
        if flush {
            store.flush().unwrap();
        }
        transaction.commit(PersistMode::Buffer)
    };
    let reads: [(ReadSomething, Option<&str>); 8] = [
        (|one, space| drop(one.get(space, "b").unwrap()), None),
        (|one, space| drop(one.get(space, "d").unwrap()), Some("d")),
        (|one, space| drop(one.get(space, "f").unwrap()), Some("f")),
        (|one, space| one.range(space, "a".."d").for_each(drop), None),
        (|one, space| one.range(space, "c".."d\0").for_each(drop), Some("d")),
        // Only what an iterator has returned counts, and what lies before it.
        (|one, space| drop(one.range::<&str>(space, ..).next()), None),
        (|one, space| drop(one.range(space, "e"..="f").next_back()), Some("f")),
        (|one, space| one.range(space, "g"..).for_each(drop), None),
    ];
    for flush in [false, true] {
        for (number, (read, conflict)) in reads.into_iter().enumerate() {
            commit(Isolation::Snapshot, read, flush).unwrap();
            match (commit(Isolation::Serializable, read, flush), conflict) {
                (Ok(_), None) => {}
                (Ok(_), Some(key)) => panic!("read {number}: expected a conflict about {key}"),
                (failed, Some(key)) => conflicts(failed, key),
                (Err(error), None) => panic!("read {number}: {error}"),
            }
        }
        for isolation in [Isolation::Snapshot, Isolation::Serializable] {
            let read = |one: &mut Transaction, space: &Keyspace| {
                assert!(one.get_for_update(space, "d").unwrap().is_some());
            };
            conflicts(commit(isolation, read, flush), "d");
        }
    }
}

/// A range that was empty is not when the transaction commits.
#[test]
fn phantoms_conflict() {
    let (store, space) = open(small(&MemEnv::new()));
    let mut transaction = store.transaction(Isolation::Serializable);
    assert_eq!(transaction.prefix(&space, "seat/").count(), 0);
    transaction.put(&space, "booked", "1").unwrap();
    space.put("seat/7", "taken").unwrap();
    conflicts(transaction.commit(PersistMode::Buffer), "seat/7");
}

/// Two that read both keys and write one each: neither order gives what both have read.
#[test]
fn write_skew_is_for_serializable_transactions_to_refuse() {
    let both = |isolation| {
        let (store, space) = open(small(&MemEnv::new()));
        space.put("ada", "on call").unwrap();
        space.put("bob", "on call").unwrap();
        let leave = |name: &str| {
            let mut transaction = store.transaction(isolation);
            let on_call = transaction.range::<&str>(&space, ..).count();
            assert_eq!(on_call, 2);
            transaction.delete(&space, name).unwrap();
            transaction
        };
        let (ada, bob) = (leave("ada"), leave("bob"));
        ada.commit(PersistMode::Buffer).unwrap();
        bob.commit(PersistMode::Buffer).map_err(|error| error.kind())
    };
    assert!(both(Isolation::Snapshot).is_ok());
    assert_eq!(both(Isolation::Serializable), Err(ErrorKind::Conflict));
}

#[test]
fn savepoints_nest() {
    let (store, space) = open(small(&MemEnv::new()));
    space.put("a", "0").unwrap();
    let mut one = store.transaction(Isolation::Snapshot);
    let told = one.rollback_to_savepoint().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::InvalidArgument);
    one.put(&space, "a", "1").unwrap();
    one.set_savepoint();
    one.put(&space, "a", "2").unwrap();
    one.put(&space, "b", "2").unwrap();
    one.set_savepoint();
    one.delete(&space, "a").unwrap();
    one.put(&space, "b", "3").unwrap();
    one.put(&space, "b", "4").unwrap();
    let entries = |one: &mut Transaction| {
        let pairs = pairs(one.range::<&str>(&space, ..));
        pairs.iter().map(|(key, value)| format!("{key}{value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(entries(&mut one), "b4");
    one.rollback_to_savepoint().unwrap();
    assert_eq!(entries(&mut one), "a2 b2");
    one.set_savepoint();
    one.put(&space, "c", "5").unwrap();
    one.release_savepoint().unwrap();
    assert_eq!(entries(&mut one), "a2 b2 c5");
    one.rollback_to_savepoint().unwrap();
    assert_eq!(entries(&mut one), "a1", "what a released savepoint kept goes with an older one");
    one.release_savepoint().unwrap_err();
    one.commit(PersistMode::Buffer).unwrap();
    assert_eq!(get(&space, "a").as_deref(), Some("1"));
    assert_eq!(get(&space, "b"), None);
}

#[test]
fn what_breaks_a_rule_is_told_at_once() {
    let (store, space) = open(small(&MemEnv::new()));
    let (_other_store, other) = open(small(&MemEnv::new()));
    let mut one = store.transaction(Isolation::Serializable);
    let told = |error: lsmith::Error| assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    told(one.put(&space, "", "x").unwrap_err());
    told(one.put(&space, vec![1; lsmith::KEY_BYTES_MAX + 1], "x").unwrap_err());
    told(one.put(&other, "key", "x").unwrap_err());
    told(one.get(&other, "key").unwrap_err());
    told(one.range::<&str>(&other, ..).next().unwrap().unwrap_err());
    told(one.delete_range(&other, "a"..).unwrap_err());
    told(one.delete_range(&space, "b".."a").unwrap_err());
    assert!(one.is_empty());
    assert_eq!(one.commit(PersistMode::SyncAll).unwrap(), store.snapshot().seq());
}

/// Bulk loads and tables with numbers of their own change keys too.
#[test]
fn loads_conflict() {
    let (store, space) = open(small(&MemEnv::new()));
    space.put("d", "0").unwrap();
    let mut one = store.transaction(Isolation::Snapshot);
    one.put(&space, "b", "1").unwrap();
    let mut two = store.transaction(Isolation::Serializable);
    assert_eq!(two.prefix(&space, "c").count(), 0);
    two.put(&space, "z", "1").unwrap();
    let mut three = store.transaction(Isolation::Serializable);
    assert_eq!(three.prefix(&space, "d").count(), 1);
    three.put(&space, "y", "1").unwrap();
    let mut load = space.bulk_load().unwrap();
    load.put("b", "loaded").unwrap();
    load.put("c", "loaded").unwrap();
    load.finish().unwrap();
    conflicts(one.commit(PersistMode::Buffer), "b");
    conflicts(two.commit(PersistMode::Buffer), "c");
    three.commit(PersistMode::Buffer).unwrap();
}

#[test]
fn keyspaces_of_a_group_are_told_apart() {
    let store = small(&MemEnv::new()).open().unwrap();
    let options = KeyspaceOptions { group: Some("g".into()), ..KeyspaceOptions::default() };
    let [a, b] = ["a", "b"].map(|name| store.keyspace_with(name, &options).unwrap());
    let begin = || {
        let mut one = store.transaction(Isolation::Serializable);
        assert_eq!(one.range::<&str>(&a, ..).count(), 0);
        one.put(&a, "mine", "1").unwrap();
        one
    };
    let one = begin();
    b.put("other", "2").unwrap();
    let mut two = begin();
    one.commit(PersistMode::Buffer).unwrap();
    assert_eq!(two.get(&b, "other").unwrap().as_deref(), Some(&b"2"[..]));
    conflicts(two.commit(PersistMode::Buffer), "mine");
    assert_eq!(pairs(a.iter()), [("mine".to_string(), "1".to_string())]);
}

#[test]
fn a_commit_that_fails_writes_nothing() {
    let disk = MemEnv::new();
    let env = FaultEnv::over(disk.clone());
    let store = small(&disk).env(Arc::new(env.clone())).open().unwrap();
    let space = store.keyspace("a").unwrap();
    space.put("before", "0").unwrap();
    let mut one = store.transaction(Isolation::Serializable);
    one.put(&space, "a", "1").unwrap();
    one.put(&space, "b", "1").unwrap();
    let kind = std::io::ErrorKind::Other;
    env.set(Fault { class: Some(OpClass::Append), after: 0, lasting: Lasting::Once, kind });
    assert_eq!(one.commit(PersistMode::Buffer).unwrap_err().kind(), ErrorKind::Io);
    let mut two = store.transaction(Isolation::Snapshot);
    two.put(&space, "c", "1").unwrap();
    assert_eq!(two.commit(PersistMode::Buffer).unwrap_err().kind(), ErrorKind::Poisoned);
    drop((store, space));
    let store = small(&disk).open().unwrap();
    let space = store.existing_keyspace("a").unwrap();
    assert_eq!(space.iter().count(), 1);
    let mut three = store.transaction(Isolation::Serializable);
    assert!(three.get(&space, "a").unwrap().is_none());
    three.put(&space, "a", "3").unwrap();
    three.commit(PersistMode::SyncData).unwrap();
    let lost = disk.crash_clone(7, 0.0);
    drop((store, space));
    for disk in [disk, lost] {
        let store = small(&disk).read_only(true).open().unwrap();
        let space = store.existing_keyspace("a").unwrap();
        assert_eq!(space.get("a").unwrap().as_deref(), Some(&b"3"[..]));
        let mut reads = store.transaction(Isolation::Serializable);
        assert!(reads.get(&space, "a").unwrap().is_some());
        reads.put(&space, "a", "4").unwrap();
        assert_eq!(reads.commit(PersistMode::Buffer).unwrap_err().kind(), ErrorKind::ReadOnly);
    }
}
