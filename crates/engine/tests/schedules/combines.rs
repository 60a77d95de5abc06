//! Threads that add to counters, readers and merges.
//!
//! Promised: no operand is lost or applied twice, in whatever parts merges fold operands. A
//! snapshot sees each batch as a whole, and its view does not change.

use crate::dice::Dice;
use crate::runner::{builder, in_any_order};
use lsmith::env::MemEnv;
use lsmith::{Batch, Keyspace, KeyspaceOptions, PersistMode, Snapshot, Store};
use shuttle::thread;

const WRITERS: usize = 2;
const BATCHES: i64 = 6;
const KEYS: [&str; 3] = ["a", "b", "c"];

fn spaces(store: &Store) -> [Keyspace; 2] {
    let options =
        KeyspaceOptions { operator: Some("counter".into()), ..KeyspaceOptions::default() };
    ["left", "right"].map(|name| store.keyspace_with(name, &options).unwrap())
}

/// Adds 1 to a counter of `left`, and takes 1 from the same counter of `right`.
fn write(store: &Store, dice: &mut Dice) {
    let [left, right] = spaces(store);
    for _ in 0..BATCHES {
        let key = *dice.pick(&KEYS);
        let mut batch = Batch::new();
        batch.combine(&left, key, 1_i64.to_le_bytes());
        batch.combine(&right, key, (-1_i64).to_le_bytes());
        store.write(batch, PersistMode::Buffer).unwrap();
        match dice.below(6) {
            0 => left.flush().unwrap(),
            1 => right.merge().unwrap(),
            _ => {}
        }
    }
}

fn number(value: &[u8]) -> i64 {
    i64::from_le_bytes(value.try_into().unwrap())
}

/// Returns the counters of `left`. Asserts that the counters of `right` are their opposites.
fn counters(snapshot: &Snapshot, [left, right]: &[Keyspace; 2], walks: bool) -> [i64; 3] {
    let of = |space: &Keyspace| {
        if walks {
            let mut found = [0; 3];
            for entry in snapshot.range::<&[u8]>(space, ..) {
                let (key, value) = entry.unwrap();
                found[usize::from(key[0] - b'a')] = number(&value);
            }
            return found;
        }
        KEYS.map(|key| snapshot.get(space, key).unwrap().map_or(0, |value| number(&value)))
    };
    let found = of(left);
    assert_eq!(of(right), found.map(|count| -count), "a batch is torn");
    found
}

fn read(store: &Store, dice: &mut Dice) {
    let spaces = spaces(store);
    let mut seen = [0; 3];
    for _ in 0..4 {
        let snapshot = store.snapshot();
        let found = counters(&snapshot, &spaces, dice.chance(50));
        assert!(found.iter().zip(seen).all(|(now, before)| before <= *now), "{seen:?} {found:?}");
        seen = found;
        thread::yield_now();
        assert_eq!(counters(&snapshot, &spaces, dice.chance(50)), found);
    }
}

fn program(dice: &mut Dice) {
    let builder = builder(&MemEnv::new(), dice);
    let store = builder.clone().open().unwrap();
    spaces(&store);
    let mut threads = Vec::new();
    for _ in 0..WRITERS {
        let store = store.clone();
        let mut dice = Dice::new(dice.number());
        threads.push(thread::spawn(move || write(&store, &mut dice)));
    }
    read(&store, dice);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let all = |store: &Store| counters(&store.snapshot(), &spaces(store), true);
    let before = all(&store);
    assert_eq!(before.iter().sum::<i64>(), WRITERS as i64 * BATCHES);
    drop(store);
    let store = builder.open().unwrap();
    assert_eq!(all(&store), before);
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn counters_count_in_any_order_of_events() {
    in_any_order(100, program);
}
