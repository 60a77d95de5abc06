//! Tables that are dropped unread: tables whose entries have all expired, and the oldest ones under
//! `fifo`.
//!
//! Promised: nothing that the entries hid comes back, a transaction still finds that its keys were
//! written, and no policy but one that says so drops data. Append tables are no exception.

use crate::frame::small::{DIR, plain};
use lsmith::env::{Env, MemEnv};
use lsmith::{
    Builder, Clock, ErrorKind, Expiry, Isolation, Keyspace, KeyspaceOptions, PersistMode, Store,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A policy that puts all entries into one append table.
const TREES: &str = "jungle(c=1000, ratio=2, table=100kB)";

/// Returns the builder of a store whose clock shows `time`.
fn builder(env: &MemEnv, time: &Arc<AtomicU64>) -> Builder {
    let time = Arc::clone(time);
    plain(env).lockstep(true).clock(Clock::new("test", move || time.load(Ordering::SeqCst)))
}

fn space(store: &Store) -> Keyspace {
    let expiry = Some(Expiry::default());
    store.keyspace_with("cache", &KeyspaceOptions { expiry, ..Default::default() }).unwrap()
}

/// Writes a table of two entries that expire at `time`.
fn table(store: &Store, keys: [&str; 2], time: u64) {
    for key in keys {
        space(store).put_until(key, time.to_string(), time).unwrap();
    }
    store.flush().unwrap();
    store.settle().unwrap();
}

fn tables(store: &Store) -> usize {
    space(store).tree().disk_runs().map(|run| run.slices().len()).sum()
}

fn table_files(env: &MemEnv) -> Vec<std::path::PathBuf> {
    let names = env.list(Path::new(DIR)).unwrap();
    let paths = names.into_iter().map(|name| Path::new(DIR).join(name));
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "table")).collect()
}

#[test]
fn expired_tables_are_dropped_unread_oldest_first() {
    let env = MemEnv::new();
    let time = Arc::new(AtomicU64::new(1));
    let store = builder(&env, &time).policy("none").open().unwrap();
    table(&store, ["a", "m"], 10);
    table(&store, ["a", "c"], 30);
    table(&store, ["b", "n"], 20);
    assert_eq!(tables(&store), 3);
    let read = store.stats().merge_bytes_read;
    time.store(20, Ordering::SeqCst);
    // The youngest lies over the others, and waits until the one of time 30 goes.
    table(&store, ["y", "z"], 100);
    assert_eq!(tables(&store), 3, "{}", space(&store).tree());
    assert_eq!(space(&store).get("a").unwrap().as_deref(), Some(&b"30"[..]));
    time.store(30, Ordering::SeqCst);
    table(&store, ["y", "z"], 101);
    assert_eq!(tables(&store), 2, "{}", space(&store).tree());
    assert_eq!(store.stats().merge_bytes_read, read);
    // Six entries: a key of a byte, the number of a time, that time and the entry's 8.
    assert_eq!(store.stats().bytes_dropped_unread, 6 * (1 + 2 + 8 + 8));
    assert_eq!(space(&store).iter().count(), 2);
    drop(store);
    let store = builder(&env, &time).policy("none").open().unwrap();
    assert_eq!(table_files(&env).len(), 2);
    // The table file says when it expires.
    time.store(101, Ordering::SeqCst);
    table(&store, ["k", "l"], 200);
    assert_eq!(tables(&store), 1, "{}", space(&store).tree());
    assert_eq!(store.verify().unwrap().len(), 0);
}

#[test]
fn table_with_an_entry_that_stays_is_not_dropped() {
    let env = MemEnv::new();
    let time = Arc::new(AtomicU64::new(1));
    let store = builder(&env, &time).policy("none").open().unwrap();
    let space = space(&store);
    space.put("b1", "for ever").unwrap();
    table(&store, ["a", "b"], 10);
    space.delete("gone").unwrap();
    table(&store, ["c", "d"], 10);
    time.store(10, Ordering::SeqCst);
    table(&store, ["x", "y"], 100);
    assert_eq!(tables(&store), 2, "{}", space.tree());
    assert_eq!(space.get("b1").unwrap().as_deref(), Some(&b"for ever"[..]));
}

#[test]
fn an_expired_entry_goes_on_hiding_older_ones() {
    let env = MemEnv::new();
    let time = Arc::new(AtomicU64::new(1));
    let store = builder(&env, &time).policy("none").open().unwrap();
    let space = space(&store);
    space.put("a", "old").unwrap();
    store.flush().unwrap();
    table(&store, ["a", "b"], 10);
    time.store(10, Ordering::SeqCst);
    table(&store, ["x", "y"], 100);
    assert_eq!((space.get("a").unwrap(), tables(&store)), (None, 3));
    space.merge().unwrap();
    assert_eq!(space.get("a").unwrap(), None);
}

#[test]
fn a_transaction_finds_that_its_key_was_written_and_has_expired() {
    let env = MemEnv::new();
    let time = Arc::new(AtomicU64::new(1));
    let store = builder(&env, &time).policy("none").open().unwrap();
    let mut transaction = store.transaction(Isolation::Serializable);
    assert_eq!(transaction.get(&space(&store), "a").unwrap(), None);
    transaction.put(&space(&store), "b", "mine").unwrap();
    table(&store, ["a", "b"], 10);
    time.store(10, Ordering::SeqCst);
    table(&store, ["x", "y"], 100);
    assert_eq!(tables(&store), 2);
    let error = transaction.commit(PersistMode::Buffer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    table(&store, ["x", "y"], 100);
    assert_eq!(tables(&store), 2, "{}", space(&store).tree());
}

/// Returns when each tree on storage expires. All tables there must be trees.
fn trees(store: &Store) -> Vec<u64> {
    let tree = space(store).tree();
    let slices = tree.disk_runs().flat_map(|run| run.slices());
    let expires = slices.map(|slice| {
        assert!(slice.table().root > 0, "{tree}");
        slice.table().expires
    });
    expires.collect()
}

/// Sets the clock and shows it to the store.
fn set(store: &Store, time: &AtomicU64, now: u64) {
    time.store(now, Ordering::SeqCst);
    space(store).iter().for_each(|entry| drop(entry.unwrap()));
}

#[test]
fn expired_trees_are_dropped_unread_when_their_last_entry_goes() {
    let env = MemEnv::new();
    let time = Arc::new(AtomicU64::new(1));
    let store = builder(&env, &time).policy(TREES).memtable_bytes(100).open().unwrap();
    table(&store, ["a", "m"], 30);
    assert_eq!(trees(&store), [30]);
    // Both are appended: an earlier time does not count, a later one does.
    table(&store, ["b", "n"], 20);
    assert_eq!(trees(&store), [30]);
    space(&store).delete("b").unwrap();
    table(&store, ["c", "n"], 40);
    assert_eq!(trees(&store), [40]);
    set(&store, &time, 39);
    table(&store, ["c", "m"], 40);
    assert_eq!((trees(&store), store.stats().bytes_dropped_unread), (vec![40], 0));
    drop(store);
    let store = builder(&env, &time).policy(TREES).memtable_bytes(100).open().unwrap();
    assert_eq!((trees(&store), table_files(&env).len()), (vec![40], 1));
    assert_eq!(space(&store).get("n").unwrap().as_deref(), Some(&b"40"[..]));
    let bytes: u64 = space(&store).tree().disk_runs().map(|run| run.bytes()).sum();
    set(&store, &time, 40);
    // The store looks for work when something is written, and for expired tables first.
    table(&store, ["a", "n"], 50);
    assert_eq!((trees(&store), table_files(&env).len()), (vec![50], 1));
    assert_eq!(store.stats().bytes_dropped_unread, bytes);
    assert_eq!(store.stats().merge_bytes_read, 0);
    let found: Vec<_> = space(&store).iter().map(|entry| entry.unwrap().0).collect();
    assert_eq!(found, ["a", "n"]);
    drop(store);
    let store = builder(&env, &time).policy(TREES).memtable_bytes(100).open().unwrap();
    assert_eq!((trees(&store), space(&store).iter().count()), (vec![50], 2));
    assert_eq!(store.verify().unwrap().len(), 0);
}

#[test]
fn tree_with_an_entry_that_stays_is_not_dropped() {
    let env = MemEnv::new();
    let time = Arc::new(AtomicU64::new(1));
    let store = builder(&env, &time).policy(TREES).memtable_bytes(100).open().unwrap();
    table(&store, ["a", "m"], 10);
    assert_eq!(trees(&store), [10]);
    space(&store).put("b", "for ever").unwrap();
    table(&store, ["c", "d"], 10);
    assert_eq!(trees(&store), [0]);
    // Nor does a later batch make it a tree that expires.
    table(&store, ["c", "e"], 20);
    assert_eq!(trees(&store), [0]);
    drop(store);
    let store = builder(&env, &time).policy(TREES).memtable_bytes(100).open().unwrap();
    set(&store, &time, 100);
    table(&store, ["c", "f"], 200);
    assert_eq!((trees(&store), store.stats().bytes_dropped_unread), (vec![0], 0));
    let found: Vec<_> = space(&store).iter().map(|entry| entry.unwrap().0).collect();
    assert_eq!(found, ["b", "c", "f"]);
    assert_eq!(space(&store).get("b").unwrap().as_deref(), Some(&b"for ever"[..]));
    assert_eq!(store.verify().unwrap().len(), 0);
}

#[test]
fn expired_tree_waits_for_transactions() {
    let env = MemEnv::new();
    let time = Arc::new(AtomicU64::new(1));
    let store = builder(&env, &time).policy(TREES).memtable_bytes(100).open().unwrap();
    table(&store, ["b", "m"], 10);
    let mut transaction = store.transaction(Isolation::Serializable);
    assert_eq!(transaction.get(&space(&store), "a").unwrap(), None);
    transaction.put(&space(&store), "x", "mine").unwrap();
    table(&store, ["a", "c"], 10);
    set(&store, &time, 10);
    table(&store, ["y", "z"], 10);
    assert_eq!((trees(&store), store.stats().bytes_dropped_unread), (vec![10], 0));
    let error = transaction.commit(PersistMode::Buffer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    table(&store, ["y", "z"], 100);
    assert_eq!(trees(&store), [100]);
    assert!(store.stats().bytes_dropped_unread > 0);
    assert_eq!(space(&store).iter().count(), 2);
}

#[test]
fn expired_tree_waits_for_an_older_snapshot() {
    let env = MemEnv::new();
    let time = Arc::new(AtomicU64::new(1));
    let store = builder(&env, &time).policy(TREES).memtable_bytes(100).open().unwrap();
    let snapshot = store.snapshot();
    table(&store, ["a", "m"], 10);
    set(&store, &time, 10);
    table(&store, ["a", "c"], 10);
    assert_eq!((trees(&store), store.stats().bytes_dropped_unread), (vec![10], 0));
    assert_eq!(snapshot.get(&space(&store), "a").unwrap(), None);
    drop(snapshot);
    table(&store, ["a", "c"], 100);
    assert_eq!(trees(&store), [100]);
    assert!(store.stats().bytes_dropped_unread > 0);
    assert_eq!(space(&store).get("a").unwrap().as_deref(), Some(&b"100"[..]));
}

/// Numbers keys from 0 on, each in a table of its own with a value of 1000 bytes.
fn fill(space: &Keyspace, store: &Store, numbers: std::ops::Range<u32>) {
    for number in numbers {
        space.put(number.to_be_bytes(), [b'v'; 1000]).unwrap();
        store.flush().unwrap();
        store.settle().unwrap();
    }
}

fn held(space: &Keyspace) -> Vec<u32> {
    let keys = space.iter().map(|entry| entry.unwrap().0);
    keys.map(|key| u32::from_be_bytes(key[..].try_into().unwrap())).collect()
}

#[test]
fn fifo_keeps_the_newest_tables() {
    let env = MemEnv::new();
    let open = || {
        let builder = plain(&env).lockstep(true);
        builder.policy("fifo(bytes=5100B)").open().unwrap()
    };
    let store = open();
    let space = store.keyspace("cache").unwrap();
    fill(&space, &store, 0..20);
    assert_eq!(held(&space), [15, 16, 17, 18, 19]);
    assert_eq!(store.stats().merge_bytes_read, 0);
    assert_eq!(table_files(&env).len(), 5);
    drop((space, store));
    let store = open();
    let space = store.keyspace("cache").unwrap();
    assert_eq!(held(&space), [15, 16, 17, 18, 19]);
    // What a key had before does not come back.
    space.put(15_u32.to_be_bytes(), [b'w'; 10]).unwrap();
    store.flush().unwrap();
    fill(&space, &store, 20..25);
    assert_eq!(held(&space), [15, 20, 21, 22, 23, 24]);
    fill(&space, &store, 25..26);
    assert_eq!(held(&space), [21, 22, 23, 24, 25]);
}

#[test]
fn fifo_drops_table_by_table_what_another_policy_has_merged() {
    let env = MemEnv::new();
    let builder = plain(&env).lockstep(true);
    let builder = builder.memtable_bytes(1500);
    let store = builder.policy("leveled(ratio=4, l0=1, table=2000B)").open().unwrap();
    let space = store.keyspace("cache").unwrap();
    fill(&space, &store, 0..40);
    assert_eq!(held(&space).len(), 40);
    space.set_merge_policy("fifo(bytes=20kB)").unwrap();
    fill(&space, &store, 40..42);
    let bytes: u64 = space.tree().disk_runs().map(|run| run.bytes()).sum();
    assert!((15_000..=20_000).contains(&bytes), "{bytes} bytes in {}", space.tree());
    let held = held(&space);
    assert!(held.ends_with(&[40, 41]), "{held:?}");
}
