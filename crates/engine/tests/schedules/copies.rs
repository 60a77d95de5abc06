//! Checkpoints beside writers and merges.
//!
//! Promised: a checkpoint is a store with all that was acknowledged before it began, and with
//! nothing that was written after it ended. Its batches are whole and in their order. The store and
//! its checkpoint then change independently.

use crate::dice::Dice;
use crate::runner::{builder, in_any_order};
use lsmith::env::MemEnv;
use lsmith::{Batch, PersistMode, Store};
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const BATCHES: u64 = 8;

/// Writes the number of each batch to two keyspaces, under a key of its own and under `last`.
fn write(store: &Store, [begun, acked]: &[AtomicU64; 2], dice: &mut Dice) {
    let spaces = ["left", "right"].map(|name| store.keyspace(name).unwrap());
    for number in 1..=BATCHES {
        let mut batch = Batch::new();
        for space in &spaces {
            batch.put(space, "last", number.to_be_bytes());
            batch.put(space, number.to_be_bytes(), [7; 60]);
        }
        begun.store(number, SeqCst);
        store.write(batch, PersistMode::Buffer).unwrap();
        acked.store(number, SeqCst);
        match dice.below(6) {
            0 => spaces[0].flush().unwrap(),
            1 => spaces[1].merge().unwrap(),
            _ => {}
        }
    }
}

/// Returns the number of the last batch in `store`. Asserts that it has all before, and no other.
fn last_in(store: &Store) -> u64 {
    let last = ["left", "right"].map(|name| {
        let space = store.existing_keyspace(name).unwrap();
        let last = space.get("last").unwrap();
        let last = last.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()));
        for number in 1..=BATCHES {
            let is_there = space.get(number.to_be_bytes()).unwrap().is_some();
            assert_eq!(is_there, number <= last, "{name}: not a prefix");
        }
        last
    });
    assert_eq!(last[0], last[1], "a batch is torn");
    last[0]
}

fn program(dice: &mut Dice) {
    let env = MemEnv::new();
    let builder = builder(&env, dice);
    let store = builder.clone().open().unwrap();
    let _ = ["left", "right"].map(|name| store.keyspace(name).unwrap());
    let progress = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let (its, writer) = (Arc::clone(&progress), store.clone());
    let mut other = Dice::new(dice.number());
    let writer = thread::spawn(move || write(&writer, &its, &mut other));
    let mut copies = Vec::new();
    for number in 0..2 {
        let before = progress[1].load(SeqCst);
        let dir = format!("/copy-{number}");
        store.checkpoint(&dir).unwrap();
        copies.push((dir, before, progress[0].load(SeqCst)));
        thread::yield_now();
    }
    writer.join().unwrap();
    assert_eq!(last_in(&store), BATCHES);
    let mut last = 0;
    for (dir, before, after) in copies {
        let copy = Store::builder(&dir).env(Arc::new(env.clone())).open().unwrap();
        let found = last_in(&copy);
        assert!(last <= found, "{dir}: {found}, and the checkpoint before has {last}");
        assert!((before..=after).contains(&found), "{dir}: {found}, not {before} to {after}");
        last = found;
        copy.keyspace("left").unwrap().clear().unwrap();
        assert!(copy.verify().unwrap().is_empty());
    }
    assert_eq!(last_in(&store), BATCHES);
    drop(store);
    assert_eq!(last_in(&builder.open().unwrap()), BATCHES);
}

#[test]
fn checkpoints_are_stores_in_any_order_of_events() {
    in_any_order(80, program);
}
