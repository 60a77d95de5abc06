//! The change feed.
//!
//! Promised: a feed returns every batch from its number on, once, whole and in order, until the
//! logs do not hold one of them any more. Then it says so, and never leaves one out. It goes on
//! from a number in another life of the store.

use crate::dice::{Dice, with_new_seeds};
use crate::frame::batches::{Batches, POLICIES, Progress, restless};
use crate::frame::small::{DIR, plain, small};
use lsmith::env::{Env, Loss, MemEnv};
use lsmith::{
    Builder, Change, ChangeBatch, Changes, ErrorKind, KeyspaceOptions, PersistMode, SeqNo, Store,
};
use std::path::Path;
use std::time::Duration;

/// The keyspace of a range delete, its start and its end.
pub(crate) type Range = (usize, Vec<u8>, Vec<u8>);

/// The keyspace of a write, its key, and its value unless it deletes.
pub(crate) type Write = (usize, Vec<u8>, Option<Vec<u8>>);

/// Returns the range delete of a batch of the feed, as [`Batches::range`] has it, and the other
/// writes, as [`Batches::ops`] has them.
pub(crate) fn ops(batch: &ChangeBatch) -> (Option<Range>, Vec<Write>) {
    let space = |name: &str| ["left", "right"].iter().position(|space| *space == name).unwrap();
    let change = |change: &Change| match change {
        Change::Put { keyspace, key, value } => {
            (space(keyspace), key.to_vec(), Some(value.to_vec()))
        }
        Change::Delete { keyspace, key } => (space(keyspace), key.to_vec(), None),
        other => panic!("{other:?}"),
    };
    match &batch.changes[..] {
        [Change::DeleteRange { keyspace, start, end }, others @ ..] => {
            let end = end.as_ref().expect("ranges of batches have an end").to_vec();
            let range = (space(keyspace), start.to_vec(), end);
            (Some(range), others.iter().map(change).collect())
        }
        others => (None, others.iter().map(change).collect()),
    }
}

/// Reads what is there. Asserts that these are the batches behind number `last`, without a gap.
/// Returns the number of the last.
pub(crate) fn read(feed: &mut Changes, batches: &Batches, mut last: u64) -> u64 {
    while let Some(batch) = feed.next_batch().unwrap() {
        last += 1;
        assert_eq!(ops(&batch), (batches.range(last), batches.ops(last)), "batch {last}");
        assert_eq!(batch.last.0 - batch.first.0 + 1, batch.changes.len() as u64);
        assert_eq!(feed.next_seq(), SeqNo(batch.last.0 + 1));
    }
    last
}

pub(crate) fn write(store: &Store, batches: &Batches, progress: &mut Progress, count: u64) {
    for _ in 0..count {
        batches.go_on(store, progress, PersistMode::Buffer).unwrap();
    }
}

#[test]
fn a_feed_returns_each_batch_once_while_it_is_written() {
    for in_group in [false, true] {
        let env = MemEnv::new();
        let batches = Batches { value_bytes: 1500, in_group, ..Batches::new(1) };
        let builder = small(&env).policy("tiered(ratio=2)").changes_bytes(64 << 20);
        let store = builder.open().unwrap();
        let mut progress = Progress::default();
        let mut feed = store.changes(SeqNo(0)).unwrap();
        let mut last = 0;
        for count in [1, 0, 7, 100, 3] {
            write(&store, &batches, &mut progress, count);
            last = read(&mut feed, &batches, last);
            assert_eq!(last, progress.acknowledged);
        }
        assert_eq!(feed.next_seq(), store.next_seq());
    }
}

#[test]
fn a_feed_that_fell_behind_its_bound_says_so() {
    let env = MemEnv::new();
    let batches = Batches { value_bytes: 1500, ..Batches::new(1) };
    let logs = || {
        let names = env.list(Path::new(DIR)).unwrap();
        names.iter().filter(|name| name.ends_with(".wal")).count()
    };
    let store = small(&env).policy("tiered(ratio=2)").changes_bytes(256 << 10).open().unwrap();
    let mut progress = Progress::default();
    let mut slow = store.changes(SeqNo(1)).unwrap();
    let mut quick = store.changes(SeqNo(1)).unwrap();
    assert!(slow.next_batch().unwrap().is_none());
    let mut last = 0;
    for _ in 0..40 {
        write(&store, &batches, &mut progress, 10);
        last = read(&mut quick, &batches, last);
        assert_eq!(last, progress.acknowledged, "the bound is far away");
    }
    assert!((5..10).contains(&logs()), "{} logs", logs());
    // It has its first log open. Behind that something is gone.
    let mut behind = 0;
    let error = loop {
        match slow.next_batch() {
            Ok(Some(batch)) => {
                behind += 1;
                assert_eq!(ops(&batch), (batches.range(behind), batches.ops(behind)));
            }
            Ok(None) => panic!("batches {behind} to {last} were left out"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Gone, "{error}");
    assert_eq!(slow.next_batch().unwrap_err().kind(), ErrorKind::Gone);
    assert_eq!(store.changes(slow.next_seq()).unwrap_err().kind(), ErrorKind::Gone);
    let oldest = store.oldest_change().unwrap();
    assert!(oldest > slow.next_seq());
    let feed = store.changes(oldest).unwrap();
    assert_eq!(feed.next_seq(), oldest);
    let beyond = SeqNo(store.next_seq().0 + 1);
    assert_eq!(store.changes(beyond).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_feed_begins_with_the_batch_that_has_its_number() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let batches = Batches::new(2);
    let mut progress = Progress::default();
    write(&store, &batches, &mut progress, 5);
    let mut all = store.changes(SeqNo(1)).unwrap();
    let mut number = 0;
    while let Some(batch) = all.next_batch().unwrap() {
        number += 1;
        for from in batch.first.0..=batch.last.0 {
            let mut feed = store.changes(SeqNo(from)).unwrap();
            assert_eq!(feed.next_batch().unwrap().as_ref(), Some(&batch));
            assert_eq!(read(&mut feed, &batches, number), 5);
        }
    }
    let mut feed = store.changes(store.next_seq()).unwrap();
    assert!(feed.next_batch().unwrap().is_none());
    write(&store, &batches, &mut progress, 1);
    assert_eq!(read(&mut feed, &batches, 5), 6);
}

#[test]
fn loads_are_told_and_their_entries_are_not() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let space = store.keyspace("left").unwrap();
    space.put("a", "1").unwrap();
    let mut load = space.bulk_load().unwrap();
    load.put("b", "2").unwrap();
    load.finish().unwrap();
    space.delete("a").unwrap();
    let mut feed = store.changes(SeqNo(1)).unwrap();
    let mut next = || feed.next_batch().unwrap().unwrap();
    assert!(!next().is_load);
    let load = next();
    assert!(load.is_load && load.changes.is_empty());
    assert_eq!((load.first, load.last), (SeqNo(2), SeqNo(2)));
    assert!(matches!(&next().changes[..], [Change::Delete { key, .. }] if key == "a"));
}

#[test]
fn a_feed_of_a_store_that_is_only_read_is_refused() {
    let env = MemEnv::new();
    drop(small(&env).open().unwrap());
    let store = small(&env).read_only(true).open().unwrap();
    assert_eq!(store.changes(SeqNo(1)).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(store.oldest_change().unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn one_who_waits_is_woken_by_a_write() {
    let env = MemEnv::new();
    let store = small(&env).lockstep(false).open().unwrap();
    let batches = Batches::new(4);
    let mut feed = store.changes(SeqNo(1)).unwrap();
    assert!(feed.wait(Duration::from_millis(1)).unwrap().is_none());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=300 {
                // Far longer than the test may take: only a write ends the wait.
                let batch = feed.wait(Duration::from_secs(600)).unwrap().unwrap();
                assert_eq!(ops(&batch), (batches.range(number), batches.ops(number)));
            }
        });
        write(&store, &batches, &mut Progress::default(), 300);
    });
}

/// The lives of a store with a reader of its changes, who notes how far it has come. It loses
/// nothing of what it syncs.
#[test]
fn a_reader_resumes_in_each_life() {
    with_new_seeds(15, |seed| {
        let mut dice = Dice::new(seed);
        let mut env = MemEnv::new();
        let batches = Batches { in_group: dice.chance(30), ..Batches::new(seed) };
        let mut progress = Progress::default();
        let (mut last, mut next) = (0, SeqNo(1));
        for _ in 0..8 {
            let options = |builder: Builder, dice: &mut Dice| match batches.in_group {
                true => restless(builder, dice).policy("tiered(ratio=2)"),
                false => restless(builder, dice),
            };
            let builder = plain(&env).lockstep(dice.chance(50));
            let store = options(builder, &mut dice).changes_bytes(64 << 20).open().unwrap();
            let found = batches.check(&store);
            assert!(found >= last, "batch {last} was synced, found {found}");
            progress = Progress { tried: found, acknowledged: found, synced: found };
            let feed = store.changes(next).and_then(|mut feed| {
                while let Some(batch) = feed.next_batch()? {
                    last += 1;
                    assert_eq!(
                        ops(&batch),
                        (batches.range(last), batches.ops(last)),
                        "batch {last}"
                    );
                }
                Ok(feed)
            });
            let mut feed = feed.unwrap_or_else(|error| {
                // One tree is flushed without a sync of the log. Power loss may take from the log
                // what is in tables.
                assert!(batches.in_group && error.kind() == ErrorKind::Gone, "{error}");
                last = found;
                store.changes(store.next_seq()).unwrap()
            });
            assert_eq!(last, found);
            store.persist(PersistMode::SyncData).unwrap();
            let mut synced = (last, feed.next_seq());
            for _ in 0..dice.below(80) {
                batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
                if dice.chance(10) {
                    store.persist(PersistMode::SyncData).unwrap();
                    last = read(&mut feed, &batches, last);
                    assert_eq!(last, progress.acknowledged);
                    synced = (last, feed.next_seq());
                }
                if dice.chance(3) {
                    store.flush().unwrap();
                }
            }
            drop(feed);
            let left = env.process_crash_clone();
            drop(store);
            env = match dice.below(3) {
                0 => left,
                1 => env,
                _ => left.power_loss(dice.number(), *dice.pick(&Loss::ALL)),
            };
            // What was read and not synced may be gone. A reader who is careful goes back.
            (last, next) = synced;
        }
        assert!(progress.tried > 0);
    });
}

/// Without a bound of its own, a feed has what memory needs, and an opening removes the rest.
#[test]
fn logs_are_kept_as_far_as_the_bound_says() {
    for policy in POLICIES {
        let env = MemEnv::new();
        let batches = Batches { value_bytes: 1500, ..Batches::new(1) };
        let mut progress = Progress::default();
        let open = |bytes: u64| small(&env).policy(policy).changes_bytes(bytes).open().unwrap();
        let store = open(64 << 20);
        write(&store, &batches, &mut progress, 100);
        store.flush().unwrap();
        drop(store);
        let store = open(64 << 20);
        assert_eq!(store.oldest_change().unwrap(), SeqNo(1), "{policy}");
        assert_eq!(read(&mut store.changes(SeqNo(1)).unwrap(), &batches, 0), 100, "{policy}");
        assert!(store.verify().unwrap().is_empty());
        assert!(store.left_out().unwrap().is_empty());
        drop(store);
        let store = open(128 << 10);
        let held = store.oldest_change().unwrap();
        assert!(held > SeqNo(1), "{policy}: from {held}");
        assert_eq!(store.changes(SeqNo(1)).unwrap_err().kind(), ErrorKind::Gone);
        drop(store);
        // Kept logs are not needed: a store opens without them.
        assert_eq!(batches.check(&open(0)), 100);
    }
}

#[test]
fn changes_of_a_keyspace_with_options_are_named() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let grouped = KeyspaceOptions { group: Some("both".into()), ..KeyspaceOptions::default() };
    store.keyspace_with("by_date", &grouped).unwrap().put("1", "x").unwrap();
    store.keyspace_with("rows", &grouped).unwrap().put("2", "y").unwrap();
    let mut feed = store.changes(SeqNo(1)).unwrap();
    for (name, key) in [("by_date", "1"), ("rows", "2")] {
        let batch = feed.next_batch().unwrap().unwrap();
        let [Change::Put { keyspace, key: found, .. }] = &batch.changes[..] else { panic!() };
        assert_eq!((&**keyspace, &found[..]), (name, key.as_bytes()));
    }
}

/// What broke: a feed that had met a keyspace returned its changes after it was dropped, under a
/// name that a new one had.
#[test]
fn what_was_written_to_a_dropped_keyspace_is_left_out() {
    for has_met in [false, true] {
        let env = MemEnv::new();
        let store = small(&env).changes_bytes(1 << 20).open().unwrap();
        let mut feed = store.changes(store.next_seq()).unwrap();
        let put = |space: &lsmith::Keyspace, key: &str| space.put(key, "value").unwrap();
        let (old, stays) = (store.keyspace("a").unwrap(), store.keyspace("stays").unwrap());
        put(&old, "first");
        if has_met {
            assert_eq!(feed.next_batch().unwrap().unwrap().changes.len(), 1);
        }
        let mut batch = lsmith::Batch::new();
        batch.put(&old, "second", "value");
        batch.put(&stays, "third", "value");
        batch.delete_range(&old, "a".."b");
        store.write(batch, PersistMode::Buffer).unwrap();
        store.drop_keyspace("a").unwrap();
        put(&store.keyspace("a").unwrap(), "fourth");
        store.rename_keyspace("stays", "stayed").unwrap();
        let mut found = Vec::new();
        while let Some(batch) = feed.next_batch().unwrap() {
            for change in batch.changes {
                let Change::Put { keyspace, key, .. } = change else { panic!("{change:?}") };
                found.push((keyspace.to_string(), String::from_utf8(key.to_vec()).unwrap()));
            }
        }
        let expected = [("stayed", "third"), ("a", "fourth")];
        let expected = expected.map(|(space, key)| (space.to_string(), key.to_string()));
        assert_eq!(found, expected, "had met the keyspace: {has_met}");
    }
}
