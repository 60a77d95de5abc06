//! Random writes, reads and openings, against a map.

use crate::dice::{Dice, with_new_seeds};
use crate::frame::batches::{POLICIES, mapped_or_not};
use crate::frame::contents::{Map, contents, names, seen, write};
use crate::frame::small::{DIR, open, plain, small};
use lsmith::env::MemEnv;
use lsmith::{Builder, Keyspace, Snapshot, Store, Verdict};

/// Returns other options than the last life had.
fn options(builder: Builder, policy: &'static str, dice: &mut Dice) -> Builder {
    let from_bytes: Option<u64> = *dice.pick(&[None, Some(1), Some(40), Some(100)]);
    let builder = builder.policy(policy).lockstep(dice.chance(60)).large_values(from_bytes);
    let builder = builder.value_space(*dice.pick(&[1.05, 1.3, 2.0, 100.0]));
    builder.memtable_bytes(3000).block_bytes(200).log_bytes(64 << 10).cache_bytes(10_000)
}

fn any_write(space: &Keyspace, map: &mut Map, dice: &mut Dice) {
    let key = format!("{:03}", dice.below(150)).into_bytes();
    match dice.below(20) {
        0..12 => {
            let length = dice.below(150);
            let mut value = dice.bytes(length);
            if dice.chance(50) {
                value.fill(length as u8);
            }
            write(space, map, key, Some(value));
        }
        12 | 13 => write(space, map, key, None),
        14 => {
            let end = format!("{:03}", dice.below(150)).into_bytes();
            if key < end {
                space.delete_range(key.clone()..end.clone()).unwrap();
                map.retain(|other, _| *other < key || *other >= end);
            }
        }
        // Keys of their own, which are inserted once.
        _ => {
            let key = [b"once", &key[..]].concat();
            if map.remove(&key).is_some() {
                space.delete_single_unchecked(&key).unwrap();
            } else {
                let value = dice.bytes(60);
                space.put_new_unchecked(&key, &value).unwrap();
                map.insert(key, value);
            }
        }
    }
}

/// Compares `space` and the snapshots with the maps, forward and backward.
fn compare(space: &Keyspace, map: &Map, held: &[(Snapshot, Map)]) {
    assert_eq!(&contents(space), map);
    let backward: Map = space.iter().rev().map(crate::frame::contents::pair).collect();
    assert_eq!(&backward, map);
    for (key, value) in map {
        assert_eq!(space.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    for (snapshot, then) in held {
        assert_eq!(&seen(snapshot, space), then);
    }
}

/// Writes, and does what moves values. Iterators from before go on through it.
fn live(store: &Store, space: &Keyspace, map: &mut Map, dice: &mut Dice) {
    let mut held: Vec<(Snapshot, Map)> = Vec::new();
    let mut begun = None;
    for _ in 0..dice.below(400) {
        any_write(space, map, dice);
        match dice.below(60) {
            0 => held.push((store.snapshot(), map.clone())),
            1 if !held.is_empty() => drop(held.remove(dice.below(held.len()))),
            2 => space.flush().unwrap(),
            3 => space.merge().unwrap(),
            4 => compare(space, map, &held),
            5 => begun = Some((space.iter(), map.clone())),
            6 if begun.is_some() => {
                let (entries, then) = begun.take().unwrap();
                let found: Map = entries.map(crate::frame::contents::pair).collect();
                assert_eq!(found, then, "an iterator from before");
            }
            _ => {}
        }
    }
    compare(space, map, &held);
    assert_eq!(store.verify().unwrap().iter().map(|e| e.to_string()).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn contents_are_the_same_wherever_values_lie() {
    with_new_seeds(12, |seed| {
        let mut dice = Dice::new(seed);
        let mut env = MemEnv::new();
        let mut map = Map::new();
        let policy = POLICIES[seed as usize % POLICIES.len()];
        for _ in 0..6 {
            let used = mapped_or_not(&env, &mut dice);
            let (store, space) = open(options(plain(&used), policy, &mut dice));
            compare(&space, &map, &[]);
            space.set_compression(dice.pick::<&str>(&["none", "lz4", "none,zstd"])).unwrap();
            live(&store, &space, &mut map, &mut dice);
            if dice.chance(30) {
                space.set_merge_policy(*dice.pick::<&str>(&POLICIES)).unwrap();
                live(&store, &space, &mut map, &mut dice);
                space.set_merge_policy(policy).unwrap();
            }
            drop((store, space));
            env = env.process_crash_clone();
        }
        let (store, space) = open(small(&env).policy(policy));
        compare(&space, &map, &[]);
        space.merge().unwrap();
        store.settle().unwrap();
        compare(&space, &map, &[]);
        let left = names(&env, DIR, ".values");
        assert!(left.is_empty(), "{policy}: values that stay in tables have no {left:?}");
    });
}

/// Filters see the values themselves, also of keyspaces that got their values before.
#[test]
fn filters_see_values_in_files() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).policy("tiered(ratio=2)").large_values(100));
    super::put(&space, 0..40, 1);
    space.flush().unwrap();
    assert!(space.stats().value_files > 0);
    drop((store, space));
    let drop_odd = |key: &[u8], value: &[u8]| {
        assert_eq!(value.len(), 1008, "{key:?}");
        if value[3] % 2 == 1 { Verdict::Drop } else { Verdict::Keep }
    };
    let builder = small(&env).policy("tiered(ratio=2)").large_values(100);
    let (_store, space) = open(builder.merge_filter("default", drop_odd));
    space.merge().unwrap();
    assert_eq!(space.iter().count(), 20);
    super::check(&space, (0..40).step_by(2), 1);
}

/// Append tables have all values themselves.
#[test]
fn append_tables_take_values_out_of_files() {
    let env = MemEnv::new();
    let leveled = "leveled(ratio=2, l0=1, table=8kB)";
    let (_store, space) = open(small(&env).policy(leveled).large_values(100));
    super::put(&space, 0..60, 1);
    space.merge().unwrap();
    assert!(space.stats().value_files > 0);
    space.set_merge_policy("jungle(c=2, ratio=2, table=8kB)").unwrap();
    for round in 2..8 {
        super::put(&space, 0..60, round);
        space.flush().unwrap();
    }
    super::check(&space, 0..60, 7);
    space.merge().unwrap();
    super::check(&space, 0..60, 7);
    assert_eq!(space.stats().value_files, 0, "{}", space.tree());
}
