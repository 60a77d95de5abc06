//! Keyspaces that are cleared and dropped while others write and read them.
//!
//! Promised: a clearing takes effect at one moment, and a snapshot from before does not change. A
//! write to a keyspace that is dropped succeeds, or fails with `NotFound`. What is there at the end
//! is there after the next opening. Nobody waits for ever.

use crate::dice::Dice;
use crate::runner::{builder, in_any_order};
use lsmith::env::MemEnv;
use lsmith::{Batch, ErrorKind, KeyspaceOptions, PersistMode, Store};
use shuttle::thread;

const PUTS: usize = 6;

/// Writes each key to `left` and `right` at once, and to `gone`.
fn write(store: &Store, thread: usize, dice: &mut Dice) {
    let [left, right] = ["left", "right"].map(|name| store.existing_keyspace(name).unwrap());
    for put in 0..PUTS {
        let key = format!("{thread}/{put}");
        let mut batch = Batch::new();
        batch.put(&left, &key, [1; 40]);
        batch.put(&right, &key, [1; 40]);
        store.write(batch, PersistMode::Buffer).unwrap();
        if dice.chance(40) {
            let written = store.keyspace("gone").unwrap().put(&key, [1; 40]);
            if let Err(error) = written {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            }
        }
        match dice.below(4) {
            0 => left.flush().unwrap(),
            1 => right.merge().unwrap(),
            _ => {}
        }
    }
}

/// Clears `right` and drops `gone`, and looks at snapshots from before.
fn end(store: &Store, dice: &mut Dice) {
    let [left, right] = ["left", "right"].map(|name| store.existing_keyspace(name).unwrap());
    for _ in 0..2 {
        let snapshot = store.snapshot();
        let count = |space| snapshot.range::<&[u8]>(space, ..).map(Result::unwrap).count();
        let before = [count(&left), count(&right)];
        right.clear().unwrap();
        assert_eq!([count(&left), count(&right)], before);
        if dice.chance(60) {
            match store.drop_keyspace("gone") {
                Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
                Ok(()) => thread::yield_now(),
            }
        }
    }
}

fn program(dice: &mut Dice) {
    let env = MemEnv::new();
    let in_group = dice.chance(40);
    let builder = builder(&env, dice).policy("minlatency(k=2)");
    let store = builder.clone().open().unwrap();
    for name in ["left", "right"] {
        let group = in_group.then(|| "both".to_string());
        let options = KeyspaceOptions { group, ..KeyspaceOptions::default() };
        store.keyspace_with(name, &options).unwrap();
    }
    let mut threads: Vec<_> = (0..2)
        .map(|thread| {
            let store = store.clone();
            let mut dice = Dice::new(dice.number());
            thread::spawn(move || write(&store, thread, &mut dice))
        })
        .collect();
    let ending = store.clone();
    let mut other = Dice::new(dice.number());
    threads.push(thread::spawn(move || end(&ending, &mut other)));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let content = |store: &Store| {
        let names = store.keyspaces();
        let spaces = names.iter().map(|name| store.existing_keyspace(name).unwrap());
        let of = |space: lsmith::Keyspace| space.iter().map(Result::unwrap).collect::<Vec<_>>();
        (names.clone(), spaces.map(of).collect::<Vec<_>>())
    };
    let before = content(&store);
    let left = store.existing_keyspace("left").unwrap();
    assert_eq!(left.iter().count(), 2 * PUTS);
    drop((left, store));
    let store = builder.open().unwrap();
    assert_eq!(content(&store), before);
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn keyspaces_are_cleared_and_dropped_in_any_order_of_events() {
    in_any_order(150, program);
}
