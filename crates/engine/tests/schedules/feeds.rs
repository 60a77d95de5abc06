//! Readers of change feeds beside writers, merges and new log files.
//!
//! Promised: a feed returns each batch once, as a whole and in order, and no batch before readers
//! see it. A reader who waits is woken by the next write. A second feed goes on where the first one
//! ended.

use crate::dice::Dice;
use crate::runner::{builder, in_any_order};
use lsmith::env::MemEnv;
use lsmith::{Batch, Change, PersistMode, SeqNo, Store};
use shuttle::thread;
use std::time::Duration;

const WRITERS: u8 = 2;
const BATCHES: u8 = 5;

/// Writes batches of two puts with the number of the writer and of the batch.
fn write(store: &Store, writer: u8, dice: &mut Dice) {
    let space = store.keyspace("default").unwrap();
    for number in 1..=BATCHES {
        let mut batch = Batch::new();
        // Some batches fill a log file.
        let padding = if dice.chance(20) { 30_000 } else { 20 };
        batch.put(&space, [writer, 0], vec![number; padding]);
        batch.put(&space, [writer, number], [number]);
        store.write(batch, PersistMode::Buffer).unwrap();
        if dice.chance(20) {
            space.flush().unwrap();
        }
    }
}

/// Follows the store until it has seen all batches.
fn follow(store: &Store, dice: &mut Dice) {
    let space = store.keyspace("default").unwrap();
    let mut changes = store.changes(SeqNo(1)).unwrap();
    let mut seen = [0; WRITERS as usize];
    while seen != [BATCHES; WRITERS as usize] {
        if dice.chance(20) {
            changes = store.changes(changes.next_seq()).unwrap();
        }
        let found = match dice.chance(50) {
            true => changes.next_batch().unwrap(),
            false => changes.wait(Duration::from_secs(3600)).unwrap(),
        };
        let Some(batch) = found else {
            thread::yield_now();
            continue;
        };
        let keys: Vec<&[u8]> = batch
            .changes
            .iter()
            .map(|change| match change {
                Change::Put { key, .. } => &key[..],
                other => panic!("{other:?}"),
            })
            .collect();
        let [[writer, 0], [same, number]] = keys[..] else { panic!("a torn batch: {keys:?}") };
        assert_eq!((same, *number), (writer, seen[usize::from(*writer)] + 1), "{seen:?}");
        seen[usize::from(*writer)] = *number;
        let is_seen = space.get([*writer, *number]).unwrap().is_some();
        assert!(is_seen, "the feed is ahead of readers");
    }
    assert!(changes.next_batch().unwrap().is_none());
}

fn program(dice: &mut Dice) {
    let builder = builder(&MemEnv::new(), dice).changes_bytes(1 << 30);
    let store = builder.clone().open().unwrap();
    store.keyspace("default").unwrap();
    let mut threads = Vec::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        let mut dice = Dice::new(dice.number());
        threads.push(thread::spawn(move || write(&store, writer, &mut dice)));
    }
    follow(&store, dice);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop(store);
    // Everything is there for a feed in the next life.
    follow(&builder.open().unwrap(), dice);
}

#[test]
fn feeds_return_each_batch_once_in_any_order_of_events() {
    in_any_order(80, program);
}
