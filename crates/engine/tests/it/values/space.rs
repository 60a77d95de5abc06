//! The space of value files, and what is written for it.

use super::{bytes_on_disk, check, put};
use crate::dice::{Dice, with_seeds};
use crate::frame::contents::names;
use crate::frame::small::{DIR, open, small};
use lsmith::env::{Env, MemEnv};
use std::path::Path;

const LEVELED: &str = "leveled(ratio=3, l0=2, table=20kB)";

/// Every second key is cold: it is in the same files as a hot one, and never written again.
#[test]
fn space_stays_within_its_bound_although_cold_keys_lie_everywhere() {
    for space_max in [1.1, 1.5, 3.0] {
        for policy in [LEVELED, "tiered(ratio=3)", "choose_best(ratio=3, rate=0.3)"] {
            let env = MemEnv::new();
            let builder = small(&env).memtable_bytes(20_000).policy(policy);
            let (store, space) = open(builder.large_values(500).value_space(space_max));
            put(&space, 0..200, 0);
            let mut dice = Dice::new(7);
            let mut rounds = vec![0; 100];
            for round in 1..600 {
                let hot = dice.below(100);
                put(&space, [2 * hot as u32], round);
                rounds[hot] = round;
                if round % 50 == 0 {
                    let stats = space.stats();
                    let live = stats.value_bytes - stats.value_garbage_bytes;
                    let bound = space_max * live as f64;
                    let message = format!("{policy} {space_max}: {stats:?}");
                    assert!(stats.value_bytes as f64 <= bound, "{message}");
                    assert_eq!(stats.value_bytes, bytes_on_disk(&env), "{message}");
                }
            }
            check(&space, (1..200).step_by(2), 0);
            for (hot, round) in rounds.iter().enumerate() {
                check(&space, [2 * hot as u32], *round);
            }
            // With everything merged, nothing is referred to but what is there.
            space.merge().unwrap();
            store.settle().unwrap();
            let bound = space_max * 200.0 * 1020.0 + 32.0 * space.stats().value_files as f64;
            assert!(bytes_on_disk(&env) as f64 <= bound, "{policy}: {:?}", space.stats());
        }
    }
}

#[test]
fn merges_write_no_value_again_that_has_no_garbage_beside_it() {
    let written = |from_bytes: Option<u64>| {
        let env = MemEnv::new();
        let builder = small(&env).memtable_bytes(20_000).policy(LEVELED);
        let builder = builder.keep_tables(false).large_values(from_bytes);
        let (store, space) = open(builder.value_space(1.05));
        let mut dice = Dice::new(3);
        let mut keys: Vec<u32> = (0..500).collect();
        while !keys.is_empty() {
            let key = keys.swap_remove(dice.below(keys.len()));
            put(&space, [key], 0);
        }
        space.flush().unwrap();
        check(&space, 0..500, 0);
        let stats = store.stats();
        (stats.flush_bytes + stats.merge_bytes_written) as f64 / stats.user_bytes as f64
    };
    let (in_tables, in_files) = (written(None), written(Some(500)));
    assert!(in_tables > 3.0, "{in_tables} bytes per byte");
    assert!(in_files < 1.6, "{in_files} bytes per byte");
}

#[test]
fn garbage_is_known_after_a_crash() {
    with_seeds(10, |seed| {
        let env = MemEnv::new();
        let mut dice = Dice::new(seed);
        let policy = *dice.pick(&[LEVELED, "tiered(ratio=3)", "choose_best(ratio=3, rate=0.3)"]);
        let builder = |env: &MemEnv| {
            let builder = small(env).memtable_bytes(20_000).policy(policy);
            builder.large_values(500).value_space(50.0)
        };
        let (_store, space) = open(builder(&env));
        put(&space, 0..100, 0);
        for round in 1..100 {
            put(&space, [dice.below(50) as u32], round);
        }
        space.flush().unwrap();
        let before = space.stats();
        let crashed = env.process_crash_clone();
        // A crash leaves what was written for a table that no tree has yet.
        let stray = Path::new(DIR).join("009999.values");
        crashed.create(&stray).unwrap().write_all(b"lsmvalue").unwrap();
        let (_store, again) = open(builder(&crashed));
        let after = again.stats();
        assert_eq!(after.value_bytes, bytes_on_disk(&crashed), "files of nobody are removed");
        let figures = |stats: &lsmith::KeyspaceStats| {
            (stats.value_files, stats.value_bytes, stats.value_garbage_bytes)
        };
        assert!(before.value_garbage_bytes > 0, "{before:?}");
        assert_eq!(figures(&after), figures(&before), "{policy}");
        // What was garbage then is cleaned now.
        let (store, space) = open(builder(&env.process_crash_clone()).value_space(1.05));
        space.flush().unwrap();
        store.settle().unwrap();
        let stats = space.stats();
        let live = stats.value_bytes - stats.value_garbage_bytes;
        assert!(stats.value_bytes as f64 <= 1.05 * live as f64, "{stats:?}");
    });
}

#[test]
fn files_go_with_their_keyspace_and_with_its_contents() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).large_values(500));
    let other = store.keyspace("other").unwrap();
    for space in [&space, &other] {
        put(space, 0..50, 0);
        space.flush().unwrap();
    }
    let (mine, theirs) = (space.stats().value_bytes, other.stats().value_bytes);
    assert_eq!(bytes_on_disk(&env), mine + theirs);
    store.drop_keyspace("other").unwrap();
    drop(other);
    store.settle().unwrap();
    assert_eq!(bytes_on_disk(&env), mine);
    check(&space, 0..50, 0);
    space.clear().unwrap();
    store.settle().unwrap();
    assert_eq!(names(&env, DIR, ".values").len(), 0);
}

#[test]
fn impossible_options_are_refused() {
    let env = MemEnv::new();
    for builder in [small(&env).large_values(0), small(&env).value_space(1.0)] {
        let error = builder.open().unwrap_err();
        assert_eq!(error.kind(), lsmith::ErrorKind::InvalidArgument, "{error}");
    }
    let error = small(&env).value_space(f64::NAN).open().unwrap_err();
    assert!(error.to_string().contains("expected at least 1.05"), "{error}");
}
