//! Value files that are only partly in memory.
//!
//! Promised: while reads of values wait for a device, a value is asked for as a whole before it is
//! looked at, and a range read asks for several values at a time, none of them twice. While reads
//! are as fast as memory, nothing is asked for. Answers are the same.

use super::{check, put, value};
use crate::frame::contents::pair;
use crate::frame::small::plain_at;
use crate::frame::watched::{Look, Watch, Watched, announces};
use lsmith::env::RealEnv;
use lsmith::{DEFAULT_KEYSPACE, Keyspace};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

const KEYS: Range<u32> = 0..200;

/// The bytes of a record: a head, and the value.
const RECORD_BYTES: u64 = 12 + 1008;

/// Makes a store with two runs, whose keys alternate.
fn open(dir: &Path, env: &Watched) -> Keyspace {
    open_packed(dir, env, "none")
}

/// The same with a codec.
fn open_packed(dir: &Path, env: &Watched, codec: &str) -> Keyspace {
    let builder = plain_at(dir, env).policy("none").lockstep(true).large_values(500);
    let builder = builder.compression(codec);
    let store = builder.log_bytes(1 << 20).memtable_bytes(1 << 20).open().unwrap();
    let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
    for run in 0..2 {
        put(&space, (run..KEYS.end).step_by(2), 0);
        space.flush().unwrap();
    }
    assert_eq!((space.tree().disk_run_count(), space.stats().value_files), (2, 2));
    space
}

/// Returns the calls that have to do with value files.
fn of_values(calls: Vec<Look>) -> Vec<Look> {
    let is_of_values = |call: &Look| match call {
        Look::Announce(path, _) => path.extension().is_some_and(|kind| kind == "values"),
        Look::Clock => true,
    };
    calls.into_iter().filter(is_of_values).collect()
}

#[test]
fn a_value_is_asked_for_as_a_whole_before_it_is_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let env = Watch::new();
    let space = open(dir.path(), &env);
    env.all_takes(Duration::from_micros(2));
    assert_eq!(announces(&env.calls(|| check(&space, KEYS, 0))), 0, "reads are fast");
    env.all_takes(Duration::from_millis(1));
    check(&space, KEYS, 0);
    for key in KEYS {
        let calls = of_values(env.calls(|| check(&space, [key], 0)));
        let value = calls.iter().position(|call| matches!(call, Look::Announce(..))).unwrap();
        let [Look::Announce(_, place), Look::Clock, Look::Clock] = &calls[value..] else {
            panic!("{calls:?}");
        };
        assert_eq!(place.end - place.start, RECORD_BYTES);
    }
    // The first value that is not in memory is asked for once that is known.
    env.all_takes(Duration::ZERO);
    check(&space, KEYS, 0);
    env.all_takes(Duration::from_millis(1));
    let calls = of_values(env.calls(|| check(&space, [7], 0)));
    assert!(matches!(&calls[..], [.., Look::Clock, Look::Clock, Look::Announce(..)]), "{calls:?}");
    env.all_takes(Duration::ZERO);
    check(&space, KEYS, 0);
    assert_eq!(announces(&env.calls(|| check(&space, KEYS, 0))), 0, "reads are fast again");
}

/// Returns how many values were asked for at a time, in `calls` of a range read.
fn windows(calls: Vec<Look>) -> Vec<usize> {
    let calls = of_values(calls);
    let mut asked = BTreeSet::new();
    for call in &calls {
        let Look::Announce(path, place) = call else { continue };
        assert!(asked.insert((path.clone(), place.start)), "asked for twice: {path:?} {place:?}");
        assert_eq!(place.end - place.start, RECORD_BYTES);
    }
    let at_once = calls.split(|call| *call == Look::Clock).map(<[Look]>::len);
    at_once.filter(|values| *values > 0).collect()
}

#[test]
fn a_range_read_asks_for_several_values_at_a_time() {
    for env in [Watch::new(), Watch::over(RealEnv::new().unmapped())] {
        let dir = tempfile::tempdir().unwrap();
        let space = open(dir.path(), &env);
        let seen = |key: u32| (key.to_be_bytes().to_vec(), value(key, 0));
        let all = || assert!(space.iter().map(pair).eq(KEYS.map(seen)));
        let back = || assert!(space.iter().rev().map(pair).eq(KEYS.rev().map(seen)));
        env.all_takes(Duration::ZERO);
        all();
        for read in [&all as &dyn Fn(), &back] {
            assert_eq!(windows(env.calls(read)), [0; 0], "reads are fast");
        }
        env.all_takes(Duration::from_millis(1));
        check(&space, KEYS, 0);
        for read in [&all as &dyn Fn(), &back] {
            // Nobody knows how far a read goes, so it begins with few.
            let windows = windows(env.calls(read));
            let single = windows.iter().take_while(|values| **values == 1).count();
            assert_eq!(windows[single..single + 4], [2, 4, 8, 16], "{windows:?}");
            assert!(windows[single + 4..].iter().rev().skip(1).all(|values| *values == 32));
            assert!((198..=200).contains(&windows.iter().sum::<usize>()), "{windows:?}");
        }
        // A read of few keys asks for few that it does not use, and for none beyond its end.
        let few = || assert_eq!(space.iter().take(5).count(), 5);
        assert!(windows(env.calls(few)).iter().sum::<usize>() <= 8);
        let short =
            || assert_eq!(space.range(10_u32.to_be_bytes()..15_u32.to_be_bytes()).count(), 5);
        assert!(windows(env.calls(short)).iter().sum::<usize>() <= 5);
        let short = || {
            let range = space.range(10_u32.to_be_bytes()..15_u32.to_be_bytes());
            assert_eq!(range.rev().count(), 5);
        };
        assert!(windows(env.calls(short)).iter().sum::<usize>() <= 5);
    }
}

#[test]
fn a_read_of_many_keys_asks_for_the_values_of_16_before_it_looks_at_one() {
    let dir = tempfile::tempdir().unwrap();
    let env = Watch::new();
    let space = open(dir.path(), &env);
    let keys: Vec<u32> = KEYS.map(|key| key * 77 % KEYS.end).collect();
    let read = || {
        let values = space.multi_get(keys.iter().map(|key| key.to_be_bytes())).unwrap();
        for (key, found) in keys.iter().zip(values) {
            assert_eq!(found.as_deref(), Some(&value(*key, 0)[..]));
        }
    };
    env.all_takes(Duration::from_micros(2));
    assert_eq!(announces(&env.calls(read)), 0, "reads are fast");
    env.all_takes(Duration::from_millis(1));
    check(&space, KEYS, 0);
    // A look at a value asks for it too. So the first that is asked for twice is looked at.
    let mut asked = BTreeSet::new();
    let mut together = Vec::new();
    for call in of_values(env.calls(read)) {
        let Look::Announce(path, place) = call else { continue };
        if !asked.insert((path, place.start)) && asked.len() > together.iter().sum() {
            together.push(asked.len() - together.iter().sum::<usize>());
        }
    }
    let mut expected = vec![16; keys.len() / 16];
    expected.push(keys.len() % 16);
    assert_eq!(together, expected);
}

/// Returns the places of all records of the value file at `path`.
fn records(path: &Path) -> BTreeSet<(u64, u64)> {
    let bytes = std::fs::read(path).unwrap();
    let mut records = BTreeSet::new();
    let mut at = 32;
    while at < bytes.len() {
        let head = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let end = at + 12 + (head & ((1 << 30) - 1)) as usize;
        records.insert((at as u64, end as u64));
        at = end;
    }
    records
}

#[test]
fn compressed_values_are_asked_for_as_they_are_stored() {
    for env in [Watch::new(), Watch::over(RealEnv::new().unmapped())] {
        let dir = tempfile::tempdir().unwrap();
        let space = open_packed(dir.path(), &env, "lz4");
        env.all_takes(Duration::from_millis(1));
        check(&space, KEYS, 0);
        let forward = || assert_eq!(space.iter().map(pair).count(), KEYS.len());
        let backward = || assert_eq!(space.iter().rev().map(pair).count(), KEYS.len());
        for read in [&forward as &dyn Fn(), &backward] {
            let mut asked = 0;
            for call in of_values(env.calls(read)) {
                let Look::Announce(path, place) = call else { continue };
                assert!(place.end - place.start < RECORD_BYTES / 2, "{place:?}");
                let found = records(&path).contains(&(place.start, place.end));
                assert!(found, "no record lies at {place:?}");
                asked += 1;
            }
            assert!((198..=200).contains(&asked), "{asked} values");
        }
    }
}

/// An iterator that looks ahead shows what one shows that does not.
#[test]
fn turns_versions_and_deletions_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let env = Watch::new();
    let space = open(dir.path(), &env);
    env.all_takes(Duration::from_millis(1));
    put(&space, (0..KEYS.end).step_by(3), 1);
    let snapshot = space.store().snapshot();
    let before: Vec<_> = space.iter().map(pair).collect();
    put(&space, (0..KEYS.end).step_by(5), 2);
    space.flush().unwrap();
    space.delete_range(50_u32.to_be_bytes()..90_u32.to_be_bytes()).unwrap();
    for key in 100..110_u32 {
        space.delete(key.to_be_bytes()).unwrap();
    }
    let newest = |key: u32| match key {
        50..90 | 100..110 => None,
        _ if key.is_multiple_of(5) => Some(2),
        _ if key.is_multiple_of(3) => Some(1),
        _ => Some(0),
    };
    let seen = |key: u32| newest(key).map(|round| (key.to_be_bytes().to_vec(), value(key, round)));
    let expected: Vec<_> = KEYS.filter_map(seen).collect();
    assert!(space.iter().map(pair).eq(expected.iter().cloned()));
    assert!(space.iter().rev().map(pair).eq(expected.iter().rev().cloned()));
    assert!(snapshot.iter(&space).map(pair).eq(before.iter().cloned()));
    assert!(snapshot.iter(&space).rev().map(pair).eq(before.iter().rev().cloned()));
    // From both ends in turns, some steps at a time.
    for steps in [1, 2, 5, 11] {
        let mut left = &expected[..];
        let mut entries = space.iter();
        while !left.is_empty() {
            let front = steps.min(left.len());
            let found: Vec<_> = entries.by_ref().take(front).map(pair).collect();
            assert!(found == left[..front]);
            left = &left[front..];
            let back = steps.min(left.len());
            let found: Vec<_> = entries.by_ref().rev().take(back).map(pair).collect();
            assert!(found.iter().eq(left.iter().rev().take(back)));
            left = &left[..left.len() - back];
        }
        assert!(entries.next().is_none());
    }
}
