//! Keyspaces that several threads make, change and read at once.
//!
//! Promised: a keyspace is made once, whichever thread asks first. A policy and a codec can be
//! changed beside writes, merges and reads of the state. Threads that wait for rest get there.

use crate::dice::Dice;
use crate::runner::{POLICIES, builder, in_any_order};
use lsmith::Store;
use lsmith::env::MemEnv;
use shuttle::thread;

const NAMES: [&str; 3] = ["one", "two", "three"];
const PUTS: usize = 4;

fn change(store: &Store, thread: usize, dice: &mut Dice) {
    for put in 0..PUTS {
        let space = store.keyspace(NAMES[put % NAMES.len()]).unwrap();
        space.put(format!("{thread}/{put}"), [1; 50]).unwrap();
        match dice.below(9) {
            0 => space.set_merge_policy(*dice.pick(&POLICIES)).unwrap(),
            1 => space.set_compression(*dice.pick(&["lz4", "none", "none,zstd"])).unwrap(),
            2 => space.flush().unwrap(),
            3 => space.merge().unwrap(),
            4 => assert!(store.verify().unwrap().is_empty()),
            5 => drop((store.stats(), store.memory(), space.stats(), space.explain())),
            6 => assert!(space.contains(format!("{thread}/{put}")).unwrap()),
            7 => store.settle().unwrap(),
            _ => thread::yield_now(),
        }
    }
}

fn program(dice: &mut Dice) {
    let env = MemEnv::new();
    let builder = builder(&env, dice);
    let store = builder.clone().open().unwrap();
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let store = store.clone();
            let mut dice = Dice::new(dice.number());
            thread::spawn(move || change(&store, thread, &mut dice))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    if dice.chance(50) {
        store.settle().unwrap();
    }
    let before = store.keyspaces();
    drop(store);
    let store = builder.open().unwrap();
    assert_eq!(store.keyspaces(), before);
    let count = |name| store.existing_keyspace(name).unwrap().iter().count();
    assert_eq!(NAMES.map(count).iter().sum::<usize>(), 3 * PUTS);
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn keyspaces_are_made_and_changed_in_any_order_of_events() {
    in_any_order(150, program);
}
