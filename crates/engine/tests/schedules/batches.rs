//! Writers of batches, readers and merges.
//!
//! Promised: readers see a batch over several keyspaces completely or not at all. The view of a
//! snapshot never changes. No reader sees time go back. Acknowledged writes are visible.

use crate::dice::Dice;
use crate::runner::{POLICIES, builder, in_any_order};
use lsmith::env::MemEnv;
use lsmith::{Batch, Keyspace, PersistMode, Snapshot, Store};
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const WRITERS: usize = 2;
const KEYS: usize = 2;
const BATCHES: u64 = 6;

fn spaces(store: &Store) -> [Keyspace; 2] {
    ["left", "right"].map(|name| store.keyspace(name).unwrap())
}

fn write(store: &Store, writer: usize, acked: &AtomicU64, dice: &mut Dice) {
    let spaces = spaces(store);
    for counter in 1..=BATCHES {
        let mut batch = Batch::new();
        for space in &spaces {
            for index in 0..KEYS {
                batch.put(space, format!("{writer}/{index}"), format!("{counter:020}"));
            }
        }
        let mode = *dice.pick(&[PersistMode::Buffer, PersistMode::Buffer, PersistMode::SyncData]);
        store.write(batch, mode).unwrap();
        acked.store(counter, SeqCst);
    }
}

/// Returns the counter in all keys of `writer` in `snapshot`; 0 if there is none.
fn counter_in(snapshot: &Snapshot, spaces: &[Keyspace; 2], writer: usize, walks: bool) -> u64 {
    let read = |value: &[u8]| std::str::from_utf8(value).unwrap().parse::<u64>().unwrap();
    let mut counters = Vec::new();
    for space in spaces {
        if walks {
            let range = format!("{writer}/")..format!("{writer}0");
            let found: Vec<u64> =
                snapshot.range(space, range).map(|entry| read(&entry.unwrap().1)).collect();
            assert!([0, KEYS].contains(&found.len()), "a batch is torn: {found:?}");
            counters.extend(if found.is_empty() { vec![0] } else { found });
        } else {
            for index in 0..KEYS {
                let found = snapshot.get(space, format!("{writer}/{index}")).unwrap();
                counters.push(found.map_or(0, |value| read(&value)));
            }
        }
    }
    assert!(counters.iter().all(|one| *one == counters[0]), "a batch is torn: {counters:?}");
    counters[0]
}

fn read(store: &Store, acked: &[AtomicU64; WRITERS], dice: &mut Dice) {
    let spaces = spaces(store);
    let mut seen = [0; WRITERS];
    for _ in 0..5 {
        let writer = dice.below(WRITERS);
        let before = acked[writer].load(SeqCst);
        let snapshot = store.snapshot();
        let counter = counter_in(&snapshot, &spaces, writer, dice.chance(50));
        assert!(counter >= seen[writer] && counter >= before, "time went back");
        seen[writer] = counter;
        let now = dice.pick(&spaces).get(format!("{writer}/0")).unwrap();
        let now = now.map_or(0, |value| std::str::from_utf8(&value).unwrap().parse().unwrap());
        assert!(counter <= now, "a get is older than a snapshot taken before it");
        thread::yield_now();
        assert_eq!(counter_in(&snapshot, &spaces, writer, dice.chance(50)), counter);
    }
}

fn program(dice: &mut Dice) {
    let env = MemEnv::new();
    let builder = builder(&env, dice);
    let store = builder.clone().open().unwrap();
    spaces(&store);
    let acked: Arc<[AtomicU64; WRITERS]> = Arc::default();
    let mut threads = Vec::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        let acked = acked.clone();
        let mut dice = Dice::new(dice.number());
        threads.push(thread::spawn(move || write(&store, writer, &acked[writer], &mut dice)));
    }
    let reader = store.clone();
    let its = acked.clone();
    let mut thrown = Dice::new(dice.number());
    threads.push(thread::spawn(move || read(&reader, &its, &mut thrown)));
    for _ in 0..3 {
        let space = dice.pick(&spaces(&store)).clone();
        match dice.below(5) {
            0 => store.flush().unwrap(),
            1 => space.merge().unwrap(),
            2 => space.set_merge_policy(*dice.pick(&POLICIES)).unwrap(),
            3 => store.persist(PersistMode::SyncAll).unwrap(),
            _ => thread::yield_now(),
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    if dice.chance(50) {
        store.settle().unwrap();
    }
    drop(store);
    let store = builder.open().unwrap();
    for writer in 0..WRITERS {
        assert_eq!(counter_in(&store.snapshot(), &spaces(&store), writer, true), BATCHES);
    }
    assert!(store.verify().unwrap().is_empty());
}

/// One writer and one reader, all in one memtable: few steps, so that rare orders occur.
fn pair(dice: &mut Dice) {
    let env = MemEnv::new();
    let store = builder(&env, dice).memtable_bytes(1 << 20).threads(1).open().unwrap();
    spaces(&store);
    let acked: Arc<[AtomicU64; WRITERS]> = Arc::default();
    let writer = store.clone();
    let its = acked.clone();
    let mut thrown = Dice::new(dice.number());
    let writer = thread::spawn(move || write(&writer, 0, &its[0], &mut thrown));
    read(&store, &acked, dice);
    writer.join().unwrap();
}

#[test]
fn snapshots_keep_what_they_see_in_any_order_of_events() {
    in_any_order(300, pair);
}

#[test]
fn batches_are_seen_as_a_whole_in_any_order_of_events() {
    in_any_order(150, program);
}
