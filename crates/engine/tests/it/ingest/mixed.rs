//! Ingests and loads among random writes, against a plain map.

use crate::dice::{Dice, with_seeds};
use crate::frame::contents::{Map, contents, seen, write};
use crate::frame::small::small;
use crate::ingest::files::key;
use crate::store::model::policies;
use lsmith::Keyspace;
use lsmith::env::MemEnv;

/// Calls `test` for every policy, in lockstep and with threads, under several seeds.
pub(crate) fn under_every_policy(test: impl Fn(&mut Dice, &str, bool)) {
    let policies = policies();
    with_seeds(3, |seed| {
        for (index, policy) in policies.iter().enumerate() {
            for lockstep in [true, false] {
                let mut dice = Dice::new(seed * 1000 + index as u64);
                test(&mut dice, policy, lockstep);
            }
        }
    });
}

/// Mixes what `arrive` does with writes, merges, new policies and new lives. `arrive` makes changes
/// with a value to the keyspace and to the map.
pub(crate) fn mix(
    dice: &mut Dice,
    (policy, lockstep): (&str, bool),
    arrive: impl Fn(&mut Dice, &MemEnv, (&Keyspace, &mut Map), &str),
) {
    let env = MemEnv::new();
    let open =
        || small(&env).memtable_bytes(2000).policy(policy).lockstep(lockstep).open().unwrap();
    let mut store = open();
    let mut map = Map::new();
    for step in 0..100 {
        let space = store.keyspace("default").unwrap();
        let value = step.to_string();
        match dice.below(20) {
            0..=2 => {
                let snapshot = store.snapshot();
                let was = map.clone();
                arrive(dice, &env, (&space, &mut map), &value);
                assert!(seen(&snapshot, &space) == was, "{policy}");
            }
            3 => space.merge().unwrap(),
            4 => space.flush().unwrap(),
            5 => space.set_merge_policy(dice.pick::<String>(&policies())).unwrap(),
            6 => {
                drop((space, store));
                store = open();
            }
            _ => {
                for _ in 0..dice.below(20) {
                    let key = key(dice.below(400));
                    let value = (!dice.chance(20)).then(|| value.clone().into_bytes());
                    write(&space, &mut map, key, value);
                }
            }
        }
        let probe = key(dice.below(700));
        let found = store.keyspace("default").unwrap().get(&probe).unwrap();
        assert_eq!(found.as_deref(), map.get(&probe).map(Vec::as_slice));
    }
    let space = store.keyspace("default").unwrap();
    assert!(contents(&space) == map, "{policy}");
    store.flush().unwrap();
    store.settle().unwrap();
    assert!(contents(&space) == map, "{policy}");
    assert!(store.verify().unwrap().is_empty());
    assert_eq!(store.stats().plans_refused, 0);
}
