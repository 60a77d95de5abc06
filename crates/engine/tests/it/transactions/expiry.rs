//! Transactions whose values expire, and their reads of many keys.
//!
//! Promised: a transaction writes and reads values that expire as a keyspace does, by the clock of
//! the store, before and after its commit.

use crate::frame::contents::get;
use crate::frame::small::small;
use crate::transactions::commits::{conflicts, pairs};
use lsmith::env::MemEnv;
use lsmith::{
    Clock, ErrorKind, Expiry, Isolation, Keyspace, KeyspaceOptions, Life, PersistMode, Store,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Returns a store, a keyspace whose values may expire, and the hands of its clock, whose ticks are
/// seconds.
fn made(env: &MemEnv, after: Option<u64>) -> (Store, Keyspace, Arc<AtomicU64>) {
    let hands = Arc::new(AtomicU64::new(100));
    let shown = Arc::clone(&hands);
    let clock = Clock::new("hands", move || shown.load(Ordering::SeqCst));
    let store = small(env).clock(clock.with_tick(Duration::from_secs(1))).open().unwrap();
    let expiry = Some(Expiry { after: after.map(Life::Ticks) });
    let options = KeyspaceOptions { expiry, ..KeyspaceOptions::default() };
    let space = store.keyspace_with("a", &options).unwrap();
    (store, space, hands)
}

#[test]
fn values_expire_within_a_transaction_and_after_its_commit() {
    let env = MemEnv::new();
    let (store, space, hands) = made(&env, None);
    space.put("c", "old").unwrap();
    let mut one = store.transaction(Isolation::Serializable);
    one.put_until(&space, "a", "1", 110).unwrap();
    one.put_with_ttl(&space, "b", "2", Duration::from_secs(20)).unwrap();
    one.put_until(&space, "c", "3", 130).unwrap();
    assert_eq!(one.get(&space, "b").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(pairs(one.iter(&space)).len(), 3);
    hands.store(110, Ordering::SeqCst);
    assert!(!one.contains(&space, "a").unwrap() && one.contains(&space, "b").unwrap());
    let left = [("b".to_string(), "2".to_string()), ("c".to_string(), "3".to_string())];
    assert_eq!(pairs(one.range::<&str>(&space, ..)), left);
    assert_eq!(pairs(one.range::<&str>(&space, ..).rev()).len(), 2);
    one.commit(PersistMode::SyncData).unwrap();

    // The time to live counts from the call.
    hands.store(119, Ordering::SeqCst);
    assert_eq!((get(&space, "a"), get(&space, "b").as_deref()), (None, Some("2")));
    hands.store(120, Ordering::SeqCst);
    assert_eq!((get(&space, "b"), get(&space, "c").as_deref()), (None, Some("3")));
    hands.store(130, Ordering::SeqCst);
    // What lay below a value that has expired does not come back.
    assert_eq!(get(&space, "c"), None);
    drop((space, store));
    let (_store, space, hands) = made(&env, None);
    hands.store(119, Ordering::SeqCst);
    assert_eq!(pairs(space.iter()).len(), 2);
}

#[test]
fn a_time_of_its_own_goes_before_the_one_of_the_keyspace() {
    let env = MemEnv::new();
    let (store, space, hands) = made(&env, Some(5));
    let mut one = store.transaction(Isolation::Snapshot);
    one.put(&space, "usual", "1").unwrap();
    one.put_until(&space, "own", "2", 1000).unwrap();
    one.put_until(&space, "usual again", "3", 1000).unwrap();
    one.put(&space, "usual again", "4").unwrap();
    one.commit(PersistMode::Buffer).unwrap();
    let there = |time| {
        hands.store(time, Ordering::SeqCst);
        ["usual", "own", "usual again"].map(|key| space.contains(key).unwrap())
    };
    assert_eq!(there(104), [true; 3]);
    assert_eq!(there(105), [false, true, false]);
    assert_eq!(there(1000), [false; 3]);
}

#[test]
fn savepoints_and_inserts_meet_values_that_expire() {
    let env = MemEnv::new();
    let (store, space, hands) = made(&env, None);
    let mut one = store.transaction(Isolation::Snapshot);
    one.put_until(&space, "a", "1", 110).unwrap();
    one.set_savepoint();
    one.put_until(&space, "a", "2", 200).unwrap();
    one.put_new_unchecked(&space, "b", "1").unwrap();
    one.put_until(&space, "b", "2", 110).unwrap();
    assert_eq!(one.get(&space, "b").unwrap().as_deref(), Some(&b"2"[..]));
    one.rollback_to_savepoint().unwrap();
    assert_eq!(one.len(), 1);
    one.put_new_unchecked(&space, "c", "1").unwrap();
    one.put_until(&space, "c", "2", 110).unwrap();
    one.commit(PersistMode::Buffer).unwrap();
    store.flush().unwrap();
    space.merge().unwrap();
    assert_eq!(pairs(space.iter()).len(), 2);
    hands.store(110, Ordering::SeqCst);
    assert_eq!(pairs(space.iter()).len(), 0);
}

#[test]
fn keyspace_without_expiry_and_time_of_another_clock_are_refused() {
    let env = MemEnv::new();
    let (store, space, _hands) = made(&env, None);
    let other = store.keyspace("other").unwrap();
    let mut one = store.transaction(Isolation::Snapshot);
    let error = one.put_until(&other, "a", "1", 200).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let hour = Duration::from_secs(3600);
    assert_eq!(
        one.put_with_ttl(&other, "a", "1", hour).unwrap_err().to_string(),
        error.to_string()
    );
    assert!(one.is_empty());
    drop((one, space, other, store));
}

#[test]
fn many_keys_are_read_at_once() {
    let env = MemEnv::new();
    let (store, space, _hands) = made(&env, None);
    space.put("a", "1").unwrap();
    space.put("b", "2").unwrap();
    let mut one = store.transaction(Isolation::Serializable);
    one.put(&space, "b", "own").unwrap();
    one.delete(&space, "d").unwrap();
    let found = one.multi_get(&space, ["a", "b", "c", "d"]).unwrap();
    let found: Vec<_> = found.iter().map(|value| value.as_deref()).collect();
    assert_eq!(found, [Some(&b"1"[..]), Some(b"own"), None, None]);
    // Each of them counts as read, the absent one too.
    space.put("c", "3").unwrap();
    conflicts(one.commit(PersistMode::Buffer), "c");

    let mut two = store.transaction(Isolation::Serializable);
    assert!(!two.contains(&space, "x").unwrap());
    two.put(&space, "y", "1").unwrap();
    space.put("x", "1").unwrap();
    conflicts(two.commit(PersistMode::Buffer), "x");
}
