//! Bulk loads beside writes, snapshots and merges.
//!
//! Promised: readers see a load completely or not at all. A snapshot sees it for ever or never. A
//! thread that has seen it takes no later snapshot without it. A write after a load is newer, and a
//! load loses no write.

use crate::dice::Dice;
use crate::runner::{builder, in_any_order};
use lsmith::env::MemEnv;
use lsmith::{Keyspace, Snapshot};
use shuttle::thread;

const KEYS: usize = 5;
const ROUNDS: u8 = 3;
const PUTS: u8 = 5;

fn load(space: &Keyspace) {
    for round in 1..=ROUNDS {
        let mut load = space.bulk_load().unwrap();
        for number in 0..KEYS {
            load.put(format!("k{number}"), [round; 30]).unwrap();
        }
        load.finish().unwrap();
        assert!(round_in(&space.store().snapshot(), space, false) >= round);
    }
}

/// Returns the round of all loaded keys in `snapshot`.
fn round_in(snapshot: &Snapshot, space: &Keyspace, walks: bool) -> u8 {
    let mut rounds = Vec::new();
    if walks {
        rounds.extend(snapshot.range(space, "k".."l").map(|entry| entry.unwrap().1[0]));
        rounds.resize(KEYS, 0);
    } else {
        for number in 0..KEYS {
            let found = snapshot.get(space, format!("k{number}")).unwrap();
            rounds.push(found.map_or(0, |value| value[0]));
        }
    }
    assert!(rounds.iter().all(|round| *round == rounds[0]), "a part of a load: {rounds:?}");
    rounds[0]
}

/// Reads `times` while other threads load, and checks the answers.
fn look(space: &Keyspace, times: usize, mut meanwhile: impl FnMut()) {
    let mut seen = 0;
    for _ in 0..times {
        let got = space.get("k1").unwrap().map_or(0, |value| value[0]);
        let snapshot = space.store().snapshot();
        // The key of the putter lies among them.
        let round = round_in(&snapshot, space, false);
        assert!(round >= seen && round >= got, "time went back");
        seen = round;
        thread::yield_now();
        assert_eq!(round_in(&snapshot, space, false), round);
        meanwhile();
    }
}

/// One loader and one reader: few steps, so that rare orders occur.
fn pair(dice: &mut Dice) {
    let env = MemEnv::new();
    let store = builder(&env, dice).policy("none").threads(1).open().unwrap();
    let space = store.keyspace("default").unwrap();
    let loading = space.clone();
    let loader = thread::spawn(move || load(&loading));
    look(&space, 8, || ());
    loader.join().unwrap();
}

fn program(dice: &mut Dice) {
    let env = MemEnv::new();
    let builder = builder(&env, dice);
    let store = builder.clone().open().unwrap();
    let space = store.keyspace("default").unwrap();
    let loading = space.clone();
    let loader = thread::spawn(move || load(&loading));
    let putting = space.clone();
    // Between the keys of the load, so that memory has to be flushed for it.
    let putter = thread::spawn(move || {
        for put in 1..=PUTS {
            putting.put("k2a", [put; 30]).unwrap();
            assert_eq!(putting.get("k2a").unwrap().unwrap()[0], put);
        }
    });
    look(&space, 4, || {
        if dice.chance(30) {
            space.flush().unwrap();
        }
    });
    loader.join().unwrap();
    putter.join().unwrap();
    drop((space, store));
    let store = builder.open().unwrap();
    let space = store.keyspace("default").unwrap();
    assert_eq!(round_in(&store.snapshot(), &space, false), ROUNDS);
    assert_eq!(space.get("k2a").unwrap().unwrap()[0], PUTS);
    space.delete("k2a").unwrap();
    assert_eq!(round_in(&store.snapshot(), &space, true), ROUNDS);
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn snapshots_see_loads_in_any_order_of_events() {
    in_any_order(300, pair);
}

#[test]
fn loads_are_seen_as_a_whole_in_any_order_of_events() {
    in_any_order(150, program);
}
