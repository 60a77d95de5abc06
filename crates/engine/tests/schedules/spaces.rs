//! Keyspaces that several threads make, change and read at once.
//!
//! Promised: a keyspace, in a group or not, is made once, whichever thread asks first. A policy and
//! a codec can be changed beside writes, merges and reads of the state. Threads that wait for rest
//! get there.

use crate::dice::Dice;
use crate::runner::{POLICIES, builder, in_any_order};
use lsmith::env::MemEnv;
use lsmith::{Keyspace, KeyspaceOptions, Store};
use shuttle::thread;

const NAMES: [&str; 3] = ["one", "two", "three"];
const PUTS: usize = 4;

/// The policies that the keyspaces of a group can have.
const GROUP_POLICIES: [&str; 2] = ["minlatency(k=2)", "tiered(ratio=2)"];

/// Returns a keyspace. If `in_group` is true, the last two share a group.
fn space(store: &Store, number: usize, in_group: bool) -> Keyspace {
    let group = (in_group && number > 0).then(|| "both".to_string());
    let options = KeyspaceOptions { group, ..KeyspaceOptions::default() };
    store.keyspace_with(NAMES[number], &options).unwrap()
}

fn change(store: &Store, thread: usize, in_group: bool, dice: &mut Dice) {
    for put in 0..PUTS {
        let space = space(store, put % NAMES.len(), in_group);
        space.put(format!("{thread}/{put}"), [1; 50]).unwrap();
        match dice.below(9) {
            0 if in_group => space.set_merge_policy(*dice.pick(&GROUP_POLICIES)).unwrap(),
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
    let in_group = dice.chance(40);
    let mut builder = builder(&env, dice);
    if in_group {
        builder = builder.policy(GROUP_POLICIES[0]);
    }
    let store = builder.clone().open().unwrap();
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let store = store.clone();
            let mut dice = Dice::new(dice.number());
            thread::spawn(move || change(&store, thread, in_group, &mut dice))
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
