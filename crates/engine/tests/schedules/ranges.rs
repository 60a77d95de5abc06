//! Merges of key ranges by callers, beside writes and the merges of a policy.
//!
//! Promised: a caller whose merge has ended leaves nobody waiting, and no write is lost.

use crate::dice::Dice;
use crate::runner::{builder, in_any_order};
use lsmith::Keyspace;
use lsmith::env::MemEnv;
use shuttle::thread;

const KEYS: u8 = 16;
const ROUNDS: u8 = 3;

fn write(space: &Keyspace) {
    for round in 1..=ROUNDS {
        for key in 0..KEYS {
            space.put([b'k', key * 7 % KEYS], [round; 30]).unwrap();
        }
    }
}

fn program(dice: &mut Dice) {
    let env = MemEnv::new();
    let store = builder(&env, dice).policy("minlatency(k=2)").memtable_bytes(150).open().unwrap();
    let space = store.keyspace("default").unwrap();
    let writing = space.clone();
    let writer = thread::spawn(move || write(&writing));
    for _ in 0..2 {
        let from = dice.below(KEYS.into()) as u8;
        space.merge_range([b'k', from]..[b'k', from + 6]).unwrap();
    }
    writer.join().unwrap();
    store.settle().unwrap();
    for key in 0..KEYS {
        assert_eq!(space.get([b'k', key]).unwrap().unwrap()[0], ROUNDS);
    }
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn ranges_are_merged_beside_writes_in_any_order_of_events() {
    in_any_order(900, program);
}
