//! Many keyspaces, and keyspaces that differ.
//!
//! Promised: keyspaces come and go in any number, and leave nothing. A log stays as long as the
//! memtable of some keyspace needs it, and no longer. Each keyspace has the runs that its own
//! policy makes. Logs that come back are not read a second time.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::any_mode;
use crate::frame::contents::{names, read_file};
use crate::frame::small::{DIR, small};
use lsmith::env::{Env, MemEnv};
use lsmith::{Batch, Keyspace, KeyspaceOptions, PersistMode, Store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;

fn held_bytes(env: &MemEnv) -> u64 {
    let held = |name: &String| env.held_bytes(&Path::new(DIR).join(name)).unwrap_or(0);
    names(env, DIR, "").iter().map(held).sum()
}

/// Asserts that `store` has these keyspaces, each with its own entries.
fn check_many(store: &Store, numbers: &[u32]) {
    let expected: Vec<String> = numbers.iter().map(|number| format!("space{number:04}")).collect();
    assert_eq!(store.keyspaces(), expected);
    for (name, number) in expected.iter().zip(numbers) {
        let space = store.existing_keyspace(name).unwrap();
        assert_eq!(space.get("key").unwrap().unwrap(), number.to_be_bytes()[..]);
        assert_eq!(space.iter().count(), 1 + *number as usize % 3);
    }
}

#[test]
fn a_thousand_keyspaces_come_and_go() {
    let mut dice = Dice::new(1);
    let mut env = MemEnv::new();
    let mut store = small(&env).open().unwrap();
    let (memory, bytes) = (store.memory().total(), held_bytes(&env));
    let mut last_id = None;
    for _ in 0..2 {
        let mut numbers: Vec<u32> = (0..1000).collect();
        for number in &numbers {
            let space = store.keyspace(&format!("space{number:04}")).unwrap();
            assert!(Some(space.id()) > last_id, "numbers are not taken anew");
            last_id = Some(space.id());
            space.put("key", number.to_be_bytes()).unwrap();
            (0..number % 3).for_each(|more| space.put(more.to_be_bytes(), "more").unwrap());
            if number % 5 == 0 {
                space.flush().unwrap();
            }
        }
        check_many(&store, &numbers);
        drop(store);
        env = env.process_crash_clone();
        store = small(&env).open().unwrap();
        check_many(&store, &numbers);
        for left in [500, 0] {
            while numbers.len() > left {
                let gone = numbers.remove(dice.below(numbers.len()));
                store.drop_keyspace(&format!("space{gone:04}")).unwrap();
            }
            check_many(&store, &numbers);
            store.settle().unwrap();
            // Now, not at the next opening.
            assert!(names(&env, DIR, ".table").len() <= left, "{left} keyspaces are left");
            drop(store);
            store = small(&env).open().unwrap();
            check_many(&store, &numbers);
        }
        let now = held_bytes(&env);
        assert!(now <= bytes + (128 << 10), "{now} bytes, there were {bytes}");
        assert_eq!(store.memory().total(), memory);
        assert!(store.left_out().unwrap().is_empty());
    }
}

fn large() -> KeyspaceOptions {
    KeyspaceOptions { memtable_bytes: Some(4 << 20), ..KeyspaceOptions::default() }
}

/// Three keyspaces begin in logs of their own. Whatever is flushed first, the logs from the first
/// that is needed on stay.
#[test]
fn logs_stay_as_long_as_a_keyspace_needs_them() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let env = MemEnv::new();
        let store = small(&env).log_bytes_max(64 << 20).open().unwrap();
        let spaces = ["a", "b", "c"].map(|name| store.keyspace_with(name, &large()).unwrap());
        // Beside them, one that is flushed all the time.
        let busy = store.keyspace("busy").unwrap();
        let mut first = Vec::new();
        for space in &spaces {
            space.put("first", "").unwrap();
            first.push(names(&env, DIR, ".wal").last().unwrap().clone());
            // More than a log, and less than what a quiet keyspace is flushed at.
            for number in 0..50_u32 {
                space.put(number.to_be_bytes(), [7; 1000]).unwrap();
                busy.put(number.to_be_bytes(), [7; 300]).unwrap();
            }
        }
        let all = names(&env, DIR, ".wal");
        assert!(busy.tree().flushes() > 10 && first[0] < first[1] && first[1] < first[2]);
        let check = |env: &MemEnv| {
            let store = small(env).open().unwrap();
            for name in ["a", "b", "c", "busy"] {
                let space = store.existing_keyspace(name).unwrap();
                let expected = if name == "busy" { 50 } else { 51 };
                assert_eq!(space.iter().count(), expected, "{order:?}");
            }
            assert!(store.left_out().unwrap().is_empty());
        };
        busy.flush().unwrap();
        for done in 0..3 {
            let waiting = &order[done..];
            let oldest = &first[*waiting.iter().min().unwrap()];
            let needed: Vec<_> = all.iter().filter(|name| *name >= oldest).cloned().collect();
            let mut found = names(&env, DIR, ".wal");
            found.retain(|name| all.contains(name));
            assert_eq!(found, needed, "{order:?}, {done} are flushed");
            check(&env.process_crash_clone());
            spaces[order[done]].flush().unwrap();
        }
        assert!(names(&env, DIR, ".wal").len() <= 2, "{:?}", names(&env, DIR, ".wal"));
        check(&env.process_crash_clone());
    }
}

/// Each has the runs that its own policy makes of ten flushes.
#[test]
fn each_keyspace_has_the_runs_of_its_own_policy() {
    let env = MemEnv::new();
    let policies = [
        ("all", "none", 10..=10),
        ("one", "constant(k=1)", 1..=1),
        ("three", "constant(k=3)", 1..=3),
        ("few", "tiered(ratio=3)", 2..=4),
    ];
    let open = || {
        let store = small(&env).memtable_bytes(1 << 20).open().unwrap();
        let make = |(name, policy, _): &(&str, &str, _)| {
            let policy = Some((*policy).into());
            let options = KeyspaceOptions { policy, ..KeyspaceOptions::default() };
            store.keyspace_with(name, &options).unwrap()
        };
        let spaces: Vec<Keyspace> = policies.iter().map(make).collect();
        (store, spaces)
    };
    let (store, spaces) = open();
    for round in 0..10_u32 {
        for space in &spaces {
            (0..20_u32).for_each(|key| space.put(key.to_be_bytes(), round.to_be_bytes()).unwrap());
            space.flush().unwrap();
        }
    }
    let check = |spaces: &[Keyspace]| {
        for (space, (name, policy, runs)) in spaces.iter().zip(&policies) {
            let found = space.tree().disk_run_count();
            assert!(runs.contains(&found), "{name}, {policy}: {found} runs");
            assert_eq!((space.tree().flushes(), space.merge_policy()), (10, policy.to_string()));
            assert!(space.iter().all(|entry| entry.unwrap().1 == 9_u32.to_be_bytes()[..]));
            assert_eq!(space.iter().count(), 20);
        }
    };
    check(&spaces);
    drop((store, spaces));
    let (store, spaces) = open();
    check(&spaces);
    let before: Vec<_> = spaces.iter().map(|space| space.tree().to_string()).collect();
    spaces[0].merge().unwrap();
    store.settle().unwrap();
    assert_eq!(spaces[0].tree().disk_run_count(), 1);
    let after: Vec<_> = spaces.iter().map(|space| space.tree().to_string()).collect();
    assert_eq!(after[1..], before[1..], "a merge is that of one keyspace");
}

/// Copies the logs that are there. Earlier copies stay as they were.
fn keep_logs(env: &MemEnv, kept: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for name in names(env, DIR, ".wal") {
        let path = Path::new(DIR).join(name);
        let bytes = read_file(env, &path);
        kept.insert(path, bytes);
    }
}

fn counters(store: &Store) -> [Keyspace; 2] {
    let operator = Some("counter".to_string());
    let slow = KeyspaceOptions { operator: operator.clone(), ..large() };
    let quick = KeyspaceOptions { operator, ..KeyspaceOptions::default() };
    [("slow", slow), ("quick", quick)]
        .map(|(name, options)| store.keyspace_with(name, &options).unwrap())
}

fn check_counters(store: &Store, expected: i64) {
    for space in counters(store) {
        for key in ["one", "two"] {
            let found = space.get(key).unwrap();
            let found = found.map_or(0, |value| i64::from_le_bytes(value[..].try_into().unwrap()));
            assert_eq!(found, expected, "{key} of {}", space.name());
        }
    }
}

/// Counters in the logs would count twice.
#[test]
fn logs_that_come_back_are_not_read_again() {
    with_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let mut env = MemEnv::new();
        let mut count = 0;
        let mut kept = BTreeMap::new();
        for life in 0..5 {
            let store = small(&env).open().unwrap();
            check_counters(&store, count);
            let spaces = counters(&store);
            for _ in 0..dice.below(60) {
                let mut batch = Batch::new();
                for space in &spaces {
                    batch.combine(space, "one", 1_i64.to_le_bytes());
                    batch.combine(space, "two", 1_i64.to_le_bytes());
                    batch.put(space, "long", vec![7; dice.below(3000)]);
                }
                store.write(batch, any_mode(&mut dice)).unwrap();
                count += 1;
                if dice.chance(3) {
                    spaces[dice.below(2)].flush().unwrap();
                }
                if dice.chance(20) {
                    keep_logs(&env, &mut kept);
                }
            }
            check_counters(&store, count);
            if dice.chance(30) {
                store.flush().unwrap();
            }
            if dice.chance(50) {
                env = env.process_crash_clone();
            }
            drop((store, spaces));
            keep_logs(&env, &mut kept);
            // One more opening makes the logs old.
            drop(small(&env).open().unwrap());
            for (path, bytes) in &kept {
                if env.file_bytes(path).is_err() && dice.chance(70) {
                    let mut file = env.create(path).unwrap();
                    file.write_all(bytes).unwrap();
                    file.sync().unwrap();
                }
            }
            env.sync_dir(Path::new(DIR)).unwrap();
            let store = small(&env).open().unwrap_or_else(|error| panic!("life {life}: {error}"));
            check_counters(&store, count);
            assert!(store.verify().unwrap().is_empty());
        }
    });
}

/// Four threads merge by hand, whole keyspaces and ranges, beside flushes and writes.
#[test]
fn keyspaces_are_merged_by_hand_in_many_threads() {
    for policy in ["none", "tiered(ratio=4)", "leveled(ratio=3, l0=2, table=2kB)"] {
        let env = MemEnv::new();
        let store = small(&env).lockstep(false).threads(2).policy(policy).open().unwrap();
        let spaces = ["a", "b"].map(|name| store.keyspace(name).unwrap());
        let write = |round: u32| {
            for key in 0..200_u32 {
                let mut batch = Batch::new();
                spaces.iter().for_each(|space| batch.put(space, key.to_be_bytes(), [7; 40]));
                batch.put(&spaces[0], "round", round.to_be_bytes());
                store.write(batch, PersistMode::Buffer).unwrap();
            }
        };
        write(0);
        thread::scope(|scope| {
            for thread in 0..4_u32 {
                let (spaces, store) = (&spaces, &store);
                scope.spawn(move || {
                    for round in 0..12_u32 {
                        let space = &spaces[(thread + round) as usize % 2];
                        let from = (thread * 40).to_be_bytes();
                        match (thread + round) % 4 {
                            0 | 1 => space.merge().unwrap(),
                            2 => space.merge_range(from..(thread * 40 + 60).to_be_bytes()).unwrap(),
                            _ => store.flush().unwrap(),
                        }
                        assert!(space.iter().count() >= 200);
                    }
                });
            }
            (1..8).for_each(write);
        });
        write(8);
        store.flush().unwrap();
        let runs = spaces[0].tree().disk_run_count();
        assert!(runs > 1 || policy != "none", "{runs} runs");
        // Each of these returns when there is one run.
        thread::scope(|scope| {
            for thread in 0..4 {
                let space = &spaces[thread % 2];
                scope.spawn(|| {
                    space.merge().unwrap();
                    assert_eq!(space.tree().disk_run_count(), 1, "{policy}: {}", space.tree());
                });
            }
        });
        for space in &spaces {
            let expected = if space.name() == "a" { 201 } else { 200 };
            assert_eq!(space.iter().map(Result::unwrap).count(), expected);
            assert_eq!(space.tree().disk_run_count(), 1, "{policy}: {}", space.tree());
        }
        assert_eq!(store.stats().plans_failed + store.stats().plans_refused, 0, "{policy}");
        assert!(store.verify().unwrap().is_empty());
        drop((store, spaces));
        let store = small(&env).open().unwrap();
        let round = store.existing_keyspace("a").unwrap().get("round").unwrap().unwrap();
        assert_eq!(round, 8_u32.to_be_bytes()[..]);
    }
}
