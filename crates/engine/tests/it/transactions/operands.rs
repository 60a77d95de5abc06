//! Operands in transactions.
//!
//! Promised: a transaction reads its operands over what it sees beneath, and its commit writes them
//! in their order. They conflict as puts do, and savepoints take them back one by one.

use crate::frame::contents::get;
use crate::frame::operators::{Append, Mood, Moody};
use crate::frame::small::small;
use crate::transactions::commits::{conflicts, pairs};
use lsmith::env::MemEnv;
use lsmith::{ErrorKind, Isolation, Keyspace, KeyspaceOptions, PersistMode, Store, Transaction};

fn notes(store: &Store) -> Keyspace {
    let operator = Some("append".into());
    store.keyspace_with("a", &KeyspaceOptions { operator, ..Default::default() }).unwrap()
}

#[test]
fn own_operands_are_read_over_whatever_lies_beneath() {
    let env = MemEnv::new();
    let store = small(&env).operator(Append).open().unwrap();
    let space = notes(&store);
    for key in ["cut", "kept", "put", "two"] {
        space.put(key, "old").unwrap();
        space.combine(key, "+").unwrap();
    }
    space.delete_range("cut".."d").unwrap();
    store.flush().unwrap();
    space.combine("two", "#").unwrap();
    let mut one = store.transaction(Isolation::Snapshot);
    // Nobody else sees these, and the transaction does not see those.
    for key in ["cut", "kept", "new", "put", "two"] {
        one.combine(&space, key, "a").unwrap();
    }
    one.put(&space, "put", "new").unwrap();
    one.combine(&space, "put", "a").unwrap();
    one.combine(&space, "put", "b").unwrap();
    one.delete(&space, "gone").unwrap();
    one.combine(&space, "gone", "a").unwrap();
    one.combine(&space, "two", "b").unwrap();
    space.combine("other", "unseen").unwrap();
    let seen = [
        ("cut", "a"),
        ("gone", "a"),
        ("kept", "old+a"),
        ("new", "a"),
        ("put", "newab"),
        ("two", "old+#ab"),
    ];
    let seen = seen.map(|(key, value)| (key.to_string(), value.to_string()));
    for (key, value) in &seen {
        let found = one.get(&space, key).unwrap();
        assert_eq!(found.as_deref(), Some(value.as_bytes()), "{key}");
    }
    let mut iterator = one.range::<&str>(&space, ..);
    one.combine(&space, "kept", "later").unwrap();
    let mut backwards = pairs(one.range(&space, "l"..).rev());
    backwards.reverse();
    assert_eq!(backwards, seen[3..]);
    let ends = [iterator.next_back(), iterator.next(), iterator.next_back(), iterator.next()];
    let ends = pairs(ends.into_iter().flatten());
    assert_eq!(ends, [5, 0, 4, 1].map(|at| seen[at].clone()));
    assert_eq!(pairs(iterator), seen[2..4]);
    assert_eq!((one.len(), get(&space, "kept").as_deref()), (6, Some("old+")));
    one.commit(PersistMode::SyncData).unwrap();
    let committed = |space: &Keyspace| {
        let value = |key| get(space, key).unwrap();
        assert_eq!(["cut", "gone", "new"].map(value), ["a", "a", "a"]);
        assert_eq!(["kept", "put", "two"].map(value), ["old+alater", "newab", "old+#ab"]);
    };
    committed(&space);
    space.merge().unwrap();
    committed(&space);
    let lost = env.crash_clone(7, 0.0);
    drop((space, store));
    for env in [env, lost] {
        let store = small(&env).operator(Append).open().unwrap();
        committed(&store.existing_keyspace("a").unwrap());
    }
}

/// Serializable transactions must have read what lies beneath.
#[test]
fn operands_conflict_as_puts_do() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        for flush in [false, true] {
            let store = small(&MemEnv::new()).operator(Append).open().unwrap();
            let space = notes(&store);
            let combine = |key: &str| {
                let mut one = store.transaction(isolation);
                one.combine(&space, key, "x").unwrap();
                if isolation == Isolation::Serializable {
                    one.get(&space, key).unwrap();
                }
                one
            };
            let [one, two, three] = ["key", "key", "other"].map(combine);
            one.commit(PersistMode::Buffer).unwrap();
            if flush {
                store.flush().unwrap();
            }
            conflicts(two.commit(PersistMode::Buffer), "key");
            space.combine("other", "y").unwrap();
            if flush {
                store.flush().unwrap();
            }
            conflicts(three.commit(PersistMode::Buffer), "other");
            assert_eq!(get(&space, "key").as_deref(), Some("x"));
            assert_eq!(get(&space, "other").as_deref(), Some("y"));
        }
    }
}

#[test]
fn operands_over_what_nobody_has_read_add_up_if_they_are_serializable() {
    let store = small(&MemEnv::new()).operator(Append).open().unwrap();
    let space = notes(&store);
    let combine = |operand: &str| {
        let mut one = store.transaction(Isolation::Serializable);
        one.combine(&space, "key", operand).unwrap();
        one
    };
    let [one, two] = ["x", "y"].map(combine);
    two.commit(PersistMode::Buffer).unwrap();
    one.commit(PersistMode::Buffer).unwrap();
    assert_eq!(get(&space, "key").as_deref(), Some("yx"));
}

/// What a read found beneath an operand still counts when the operand is taken back.
#[test]
fn savepoints_take_operands_back_one_by_one() {
    let store = small(&MemEnv::new()).operator(Append).open().unwrap();
    let space = notes(&store);
    space.put("a", "0").unwrap();
    let mut one = store.transaction(Isolation::Serializable);
    one.set_savepoint();
    one.combine(&space, "a", "1").unwrap();
    one.combine(&space, "b", "1").unwrap();
    one.set_savepoint();
    one.combine(&space, "a", "2").unwrap();
    one.combine(&space, "a", "3").unwrap();
    one.set_savepoint();
    one.delete(&space, "a").unwrap();
    one.combine(&space, "a", "4").unwrap();
    let seen = |one: &mut Transaction| {
        let value = |value: Option<bytes::Bytes>| {
            value.map_or("-".into(), |value| String::from_utf8(value.to_vec()).unwrap())
        };
        ["a", "b"].map(|key| value(one.get(&space, key).unwrap())).join(" ")
    };
    assert_eq!(seen(&mut one), "4 1");
    one.rollback_to_savepoint().unwrap();
    assert_eq!(seen(&mut one), "0123 1");
    one.rollback_to_savepoint().unwrap();
    assert_eq!(seen(&mut one), "01 1");
    one.rollback_to_savepoint().unwrap();
    assert!(one.is_empty());
    one.put(&space, "c", "").unwrap();
    space.put("a", "5").unwrap();
    conflicts(one.commit(PersistMode::Buffer), "a");
}

/// Before all writes there is no number for the writes of a transaction.
#[test]
fn operands_from_before_all_writes_are_read_over_nothing() {
    let store = small(&MemEnv::new()).operator(Append).open().unwrap();
    let space = notes(&store);
    let mut one = store.transaction(Isolation::Snapshot);
    one.combine(&space, "key", "a").unwrap();
    one.combine(&space, "key", "b").unwrap();
    space.put("key", "unseen").unwrap();
    let expected = vec![("key".to_string(), "ab".to_string())];
    assert_eq!(one.get(&space, "key").unwrap().as_deref(), Some(&b"ab"[..]));
    assert_eq!(pairs(one.range::<&str>(&space, ..)), expected);
    assert_eq!(pairs(one.range::<&str>(&space, ..).rev()), expected);
    conflicts(one.commit(PersistMode::Buffer), "key");
}

#[test]
fn operands_without_an_operator_and_operators_that_fail_are_told() {
    let moody = Moody::new(Mood::Good);
    let store = small(&MemEnv::new()).operator(moody.clone()).open().unwrap();
    let plain = store.keyspace("plain").unwrap();
    let operator = Some("moody".into());
    let options = KeyspaceOptions { operator, ..KeyspaceOptions::default() };
    let space = store.keyspace_with("a", &options).unwrap();
    let mut one = store.transaction(Isolation::Snapshot);
    let error = one.combine(&plain, "key", "x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("`plain` has no combine operator"), "{error}");
    let error = one.combine(&space, "", "x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(one.is_empty());
    one.combine(&space, "key", "x").unwrap();
    one.put(&space, "other", "y").unwrap();
    moody.set(Mood::Panics);
    assert_eq!(one.get(&space, "key").unwrap_err().kind(), ErrorKind::Callback);
    let first = one.range::<&str>(&space, ..).next().unwrap();
    assert_eq!(first.unwrap_err().kind(), ErrorKind::Callback);
    assert_eq!(one.get(&space, "other").unwrap().as_deref(), Some(&b"y"[..]));
    // Nothing is lost.
    one.commit(PersistMode::Buffer).unwrap();
    moody.set(Mood::Good);
    assert_eq!(get(&space, "key").as_deref(), Some("x"));
}
