//! Range deletes in transactions.
//!
//! Promised: a transaction sees none of the keys in a range that it has deleted, however it reads,
//! except for keys that it has written since. Its commit deletes what it has seen, and conflicts
//! as its other writes do. Savepoints take range deletes back.

use crate::frame::contents::get;
use crate::frame::operators::Append;
use crate::frame::small::small;
use crate::transactions::commits::{Pairs, conflicts, pairs};
use lsmith::env::MemEnv;
use lsmith::{
    Change, Clock, ErrorKind, Expiry, Isolation, Keyspace, KeyspaceOptions, PersistMode, SeqNo,
    Store, Transaction,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns a store whose keyspace `a` has the keys from `a` to `j`, in tables and in the memtable.
fn made(env: &MemEnv) -> (Store, Keyspace) {
    let store = small(env).operator(Append).open().unwrap();
    let operator = Some("append".into());
    let options = KeyspaceOptions { operator, ..KeyspaceOptions::default() };
    let space = store.keyspace_with("a", &options).unwrap();
    for keys in [["a", "d", "g", "j"], ["b", "e", "h", "d"]] {
        for key in keys {
            space.put(key, "old").unwrap();
        }
        store.flush().unwrap();
    }
    for key in ["c", "f", "i", "g"] {
        space.put(key, "old").unwrap();
    }
    (store, space)
}

fn keys(pairs: &Pairs) -> String {
    pairs.iter().map(|(key, _)| key.as_str()).collect()
}

/// Checks that `one` sees `expected` keys in `space`, from both ends and by key.
fn check(one: &mut Transaction, space: &Keyspace, expected: &str) {
    assert_eq!(keys(&pairs(one.iter(space))), expected);
    let backwards: String = expected.chars().rev().collect();
    assert_eq!(keys(&pairs(one.iter(space).rev())), backwards);
    let mut both = one.iter(space);
    let mut left: std::collections::VecDeque<char> = expected.chars().collect();
    for at in 0..=expected.len() {
        let (found, wanted) = match at % 3 {
            1 => (both.next_back(), left.pop_back()),
            _ => (both.next(), left.pop_front()),
        };
        let found = found.map(|entry| char::from(entry.unwrap().0[0]));
        assert_eq!(found, wanted, "step {at} of {expected}");
    }
    let all: Vec<String> = ('a'..='k').map(String::from).collect();
    let values = one.multi_get(space, &all).unwrap();
    for (key, value) in all.iter().zip(values) {
        let is_there = expected.contains(key.as_str());
        assert_eq!(value.is_some(), is_there, "{key}");
        assert_eq!(one.contains(space, key).unwrap(), is_there, "{key}");
        assert_eq!(one.prefix(space, key).count(), usize::from(is_there), "{key}");
        let from = expected.chars().filter(|other| other.to_string() >= *key).count();
        assert_eq!(one.range(space, key.as_str()..).count(), from, "{key}");
        let up_to = expected.chars().rev().find(|other| other.to_string() <= *key);
        let last = one.range(space, ..=key.as_str()).next_back().map(Result::unwrap);
        assert_eq!(last.map(|(key, _)| char::from(key[0])), up_to, "{key}");
    }
}

#[test]
fn what_a_range_delete_hides_is_seen_by_no_read() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let env = MemEnv::new();
        let (store, space) = made(&env);
        let mut one = store.transaction(isolation);
        one.put(&space, "d", "hidden").unwrap();
        let mut before = one.range(&space, "a"..="c");
        one.delete_range(&space, "b".."e").unwrap();
        check(&mut one, &space, "aefghij");
        one.put(&space, "c", "new").unwrap();
        check(&mut one, &space, "acefghij");
        // It overlaps the first one, and hides what was written since.
        one.delete_range(&space, "c"..="f").unwrap();
        check(&mut one, &space, "aghij");
        one.delete_range(&space, "i"..).unwrap();
        one.put_new_unchecked(&space, "d", "new").unwrap();
        one.delete_range(&space, "x".."x").unwrap();
        check(&mut one, &space, "adgh");
        one.put(&space, "k", "new").unwrap();
        one.delete(&space, "g").unwrap();
        check(&mut one, &space, "adhk");
        assert_eq!(keys(&pairs(&mut before)), "abc", "an iterator stays as it was");
        // Two ranges and three keys.
        assert_eq!(one.len(), 5);
        assert_eq!(space.iter().count(), 10, "nobody else sees it");
        let snapshot = store.snapshot();
        one.commit(PersistMode::SyncData).unwrap();
        let expected = [("a", "old"), ("d", "new"), ("h", "old"), ("k", "new")];
        let expected = expected.map(|(key, value)| (key.to_string(), value.to_string()));
        assert_eq!(pairs(space.iter()), expected);
        assert_eq!(pairs(space.iter().rev()).len(), 4);
        assert_eq!(snapshot.iter(&space).count(), 10);
        space.merge().unwrap();
        assert_eq!(pairs(space.iter()), expected);
        let lost = env.crash_clone(7, 0.0);
        let store = small(&lost).operator(Append).open().unwrap();
        assert_eq!(pairs(store.existing_keyspace("a").unwrap().iter()), expected);
    }
}

/// All of it, whatever the range.
#[test]
fn a_transaction_can_delete_all() {
    let env = MemEnv::new();
    let (store, space) = made(&env);
    let mut one = store.transaction(Isolation::Serializable);
    one.delete_range::<&str>(&space, ..).unwrap();
    check(&mut one, &space, "");
    one.put(&space, "e", "new").unwrap();
    check(&mut one, &space, "e");
    one.commit(PersistMode::Buffer).unwrap();
    assert_eq!(keys(&pairs(space.iter())), "e");
}

#[test]
fn a_range_delete_conflicts_as_other_writes_do() {
    let begin = |isolation| {
        let env = MemEnv::new();
        let (store, space) = made(&env);
        let mut one = store.transaction(isolation);
        one.delete_range(&space, "b".."e").unwrap();
        (store, space, one)
    };
    for flush in [false, true] {
        for key in ["b", "cc", "d"] {
            let (store, space, one) = begin(Isolation::Snapshot);
            space.put(key, "another").unwrap();
            if flush {
                store.flush().unwrap();
            }
            conflicts(one.commit(PersistMode::Buffer), key);
            assert_eq!(space.iter().count(), 10 + usize::from(key == "cc"));
            // The last one has the last word.
            let (store, space, one) = begin(Isolation::Serializable);
            space.put(key, "another").unwrap();
            if flush {
                store.flush().unwrap();
            }
            one.commit(PersistMode::Buffer).unwrap();
            assert_eq!(keys(&pairs(space.iter())), "aefghij");
        }
        for key in ["a", "e"] {
            let (store, space, one) = begin(Isolation::Snapshot);
            space.put(key, "another").unwrap();
            if flush {
                store.flush().unwrap();
            }
            one.commit(PersistMode::Buffer).unwrap();
        }
    }
    // Two range deletes that overlap.
    let (store, space, one) = begin(Isolation::Snapshot);
    let mut two = store.transaction(Isolation::Snapshot);
    two.delete_range(&space, "d".."z").unwrap();
    one.commit(PersistMode::Buffer).unwrap();
    conflicts(two.commit(PersistMode::Buffer), "d");
}

#[test]
fn a_range_delete_conflicts_with_reads_of_others() {
    let env = MemEnv::new();
    let (store, space) = made(&env);
    let mut readers = [(); 4].map(|()| store.transaction(Isolation::Serializable));
    readers[0].get(&space, "c").unwrap();
    readers[1].range(&space, "d".."f").for_each(drop);
    readers[2].get(&space, "e").unwrap();
    readers[3].get_for_update(&space, "cc").unwrap();
    let mut one = store.transaction(Isolation::Serializable);
    one.delete_range(&space, "b".."e").unwrap();
    // What it has deleted itself and looks at again is no read.
    assert_eq!(one.get(&space, "c").unwrap(), None);
    space.put("c", "another").unwrap();
    one.commit(PersistMode::Buffer).unwrap();
    let committed = readers.map(|mut reader| {
        reader.put(&space, "other", "x").unwrap();
        reader.commit(PersistMode::Buffer).map_err(|error| error.kind()).map(drop)
    });
    let conflict = Err(ErrorKind::Conflict);
    assert_eq!(committed, [conflict, conflict, Ok(()), conflict]);
}

#[test]
fn savepoints_take_range_deletes_back() {
    let env = MemEnv::new();
    let (store, space) = made(&env);
    let mut one = store.transaction(Isolation::Snapshot);
    one.put(&space, "c", "1").unwrap();
    one.combine(&space, "d", "+").unwrap();
    one.set_savepoint();
    one.delete_range(&space, "b".."e").unwrap();
    one.put(&space, "d", "2").unwrap();
    one.set_savepoint();
    one.delete_range(&space, "a".."h").unwrap();
    one.combine(&space, "b", "+").unwrap();
    check(&mut one, &space, "bhij");
    one.rollback_to_savepoint().unwrap();
    check(&mut one, &space, "adefghij");
    one.rollback_to_savepoint().unwrap();
    check(&mut one, &space, "abcdefghij");
    assert_eq!(one.get(&space, "c").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(one.get(&space, "d").unwrap().as_deref(), Some(&b"old+"[..]));
    // What was taken back is in nobody's way.
    space.put("b", "another").unwrap();
    one.commit(PersistMode::Buffer).unwrap();
    assert_eq!(get(&space, "b").as_deref(), Some("another"));
    assert_eq!(get(&space, "c").as_deref(), Some("1"));
}

/// An iterator of a transaction seeks over what the transaction has deleted, in either direction.
/// A walk would read all its blocks.
#[test]
fn what_a_transaction_has_deleted_costs_few_blocks() {
    let store = small(&MemEnv::new()).open().unwrap();
    let space = store.keyspace("a").unwrap();
    let key = |number: u32| number.to_be_bytes();
    for number in 0..3000 {
        space.put(key(number), "twenty bytes of task").unwrap();
    }
    store.flush().unwrap();
    let mut one = store.transaction(Isolation::Serializable);
    one.delete_range(&space, key(10)..key(1500)).unwrap();
    one.put(&space, key(1000), "kept").unwrap();
    one.delete_range(&space, key(1501)..key(2990)).unwrap();
    let blocks = |one: &mut Transaction, is_back: bool| {
        let before = store.stats().scan_blocks;
        let entries = one.iter(&space);
        let count = if is_back { entries.rev().count() } else { entries.count() };
        assert_eq!(count, 10 + 1 + 1 + 10);
        store.stats().scan_blocks - before
    };
    for is_back in [false, true] {
        let blocks = blocks(&mut one, is_back);
        assert!(blocks <= 40, "{blocks} blocks, backwards: {is_back}");
    }
    drop(one);
    let before = store.stats().scan_blocks;
    assert_eq!(space.iter().count(), 3000);
    assert!(store.stats().scan_blocks - before > 400, "blocks are small");
}

#[test]
fn operands_over_a_range_delete_begin_from_nothing() {
    let env = MemEnv::new();
    let (store, space) = made(&env);
    let mut one = store.transaction(Isolation::Snapshot);
    one.combine(&space, "b", "lost").unwrap();
    one.delete_range(&space, "b".."e").unwrap();
    one.combine(&space, "b", "1").unwrap();
    one.combine(&space, "b", "2").unwrap();
    one.combine(&space, "e", "+").unwrap();
    check(&mut one, &space, "abefghij");
    let own = [("b".to_string(), "12".to_string()), ("e".to_string(), "old+".to_string())];
    assert_eq!(one.get(&space, "b").unwrap().as_deref(), Some(&b"12"[..]));
    assert_eq!(pairs(one.range(&space, "b".."f")), own);
    let mut backwards = pairs(one.range(&space, "b".."f").rev());
    backwards.reverse();
    assert_eq!(backwards, own);
    one.commit(PersistMode::Buffer).unwrap();
    assert_eq!(pairs(space.range("b".."f")), own);
    space.merge().unwrap();
    assert_eq!(pairs(space.range("b".."f")), own);
}

#[test]
fn values_that_expire_are_deleted_and_written_again() {
    let hands = Arc::new(AtomicU64::new(100));
    let shown = Arc::clone(&hands);
    let clock = Clock::new("hands", move || shown.load(Ordering::SeqCst));
    let store = small(&MemEnv::new()).clock(clock).open().unwrap();
    let expiry = Some(Expiry::after(50));
    let options = KeyspaceOptions { expiry, ..KeyspaceOptions::default() };
    let space = store.keyspace_with("a", &options).unwrap();
    for key in ["a", "b", "c"] {
        space.put(key, "old").unwrap();
    }
    let mut one = store.transaction(Isolation::Snapshot);
    one.put_until(&space, "b", "gone", 500).unwrap();
    one.delete_range(&space, "b"..).unwrap();
    one.put_until(&space, "c", "new", 110).unwrap();
    assert_eq!(keys(&pairs(one.iter(&space))), "ac");
    hands.store(110, Ordering::SeqCst);
    assert_eq!(keys(&pairs(one.iter(&space))), "a");
    assert_eq!(one.get(&space, "c").unwrap(), None);
    one.commit(PersistMode::Buffer).unwrap();
    assert_eq!(keys(&pairs(space.iter())), "a");
}

/// Ranges of neighbours in a group touch each other in the tree.
#[test]
fn ranges_of_a_group_stay_with_their_keyspaces() {
    let store = small(&MemEnv::new()).open().unwrap();
    let options = KeyspaceOptions { group: Some("g".into()), ..KeyspaceOptions::default() };
    let spaces = ["a", "b", "c"].map(|name| store.keyspace_with(name, &options).unwrap());
    for space in &spaces {
        for key in ["1", "2"] {
            space.put(key, "old").unwrap();
        }
    }
    let mut feed = store.changes(SeqNo(store.snapshot().seq().0 + 1)).unwrap();
    let mut one = store.transaction(Isolation::Serializable);
    one.delete_range::<&str>(&spaces[0], ..).unwrap();
    one.delete_range::<&str>(&spaces[1], ..).unwrap();
    one.put(&spaces[1], "2", "new").unwrap();
    let counts = spaces.each_ref().map(|space| one.iter(space).count());
    assert_eq!(counts, [0, 1, 2]);
    one.commit(PersistMode::Buffer).unwrap();
    assert_eq!(spaces.each_ref().map(|space| space.iter().count()), counts);
    let batch = feed.next_batch().unwrap().unwrap();
    let of: Vec<(&str, bool)> = batch
        .changes
        .iter()
        .map(|change| (change.keyspace(), matches!(change, Change::DeleteRange { .. })))
        .collect();
    assert_eq!(of, [("a", true), ("b", true), ("b", false)]);
}
