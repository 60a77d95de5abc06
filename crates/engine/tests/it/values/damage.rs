//! Damage in value files.

use super::{bytes_on_disk, check, put, value};
use crate::frame::contents::{names, read_file, write_file};
use crate::frame::small::{DIR, open, small};
use lsmith::env::{Env, MemEnv};
use lsmith::{Error, ErrorKind, Keyspace};
use std::path::{Path, PathBuf};

const KEYS: std::ops::Range<u32> = 0..60;

/// Returns a store whose value of key 17 has changed on the disk, and the file and the offset.
fn damaged() -> (MemEnv, PathBuf, u64) {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).memtable_bytes(1 << 20).large_values(500));
    put(&space, KEYS, 0);
    space.flush().unwrap();
    drop((store, space));
    // So that no log has the values too.
    drop(small(&env).open().unwrap());
    let path = Path::new(DIR).join(&names(&env, DIR, ".values")[0]);
    let bytes = read_file(&env, &path);
    let wanted = value(17, 0);
    let at = bytes.windows(wanted.len()).position(|window| window == wanted).unwrap();
    env.flip(&path, at as u64 + 500, 4).unwrap();
    // The record begins with a length and a checksum.
    (env, path, at as u64 - 12)
}

fn assert_names(error: &Error, path: &Path, offset: u64) {
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert_eq!((error.path(), error.offset()), (Some(path), Some(offset)), "{error}");
}

fn check_others(space: &Keyspace) {
    check(space, KEYS.filter(|key| *key != 17), 0);
}

#[test]
fn only_the_damaged_value_cannot_be_read() {
    let (env, path, offset) = damaged();
    only_17_is_damaged(&env, &path, offset);
    let (env, path, offset) = damaged();
    only_17_is_damaged(&env.unmapped(), &path, offset);
}

fn only_17_is_damaged(env: &MemEnv, path: &Path, offset: u64) {
    let (store, space) = open(small(env));
    let error = space.get(17_u32.to_be_bytes()).unwrap_err();
    assert_names(&error, path, offset);
    assert_eq!(error.key(), Some(&17_u32.to_be_bytes()[..]));
    check_others(&space);
    let forward: Vec<_> = space.iter().collect();
    let backward: Vec<_> = space.iter().rev().collect();
    for entries in [&forward, &backward] {
        assert_eq!(entries.len(), 60, "iterators go on behind the key");
        let errors: Vec<&Error> = entries.iter().filter_map(|it| it.as_ref().err()).collect();
        assert_eq!(errors.len(), 1);
        assert_names(errors[0], path, offset);
    }
    let damage = store.verify().unwrap();
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_names(&damage[0], path, offset);
    let damage = lsmith::inspect::damage(env, Path::new(DIR)).unwrap();
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_names(&damage[0], path, offset);
    // A new value ends the damage.
    put(&space, [17], 1);
    check(&space, [17], 1);
    space.merge().unwrap();
    assert_eq!(store.verify().unwrap().len(), 0);
}

/// Cleaning moves all values but the damaged one, and does not try that for ever.
#[test]
fn damaged_value_stays_where_it_is_and_holds_nothing_up() {
    for from_bytes in [Some(500), None] {
        let (env, path, offset) = damaged();
        let builder = small(&env).large_values(from_bytes).value_space(1.05);
        let (store, space) = open(builder.policy("tiered(ratio=2)"));
        for round in 1..4 {
            put(&space, 30..60, round);
            space.flush().unwrap();
        }
        space.merge().unwrap();
        store.settle().unwrap();
        assert_eq!(space.stats().failures, Vec::<String>::new());
        check(&space, (0..30).filter(|key| *key != 17), 0);
        check(&space, 30..60, 3);
        let error = space.get(17_u32.to_be_bytes()).unwrap_err();
        assert_names(&error, &path, offset);
        put(&space, [17], 9);
        space.merge().unwrap();
        store.settle().unwrap();
        assert!(!names(&env, DIR, ".values").iter().any(|name| path.ends_with(name)));
        assert_eq!(bytes_on_disk(&env), space.stats().value_bytes);
    }
}

/// Several short records, or one long one and short ones, share a part of a map.
#[test]
fn damage_is_of_one_key_among_short_and_long_values() {
    let value = |key: u32| vec![key as u8; [100, 200, 3000, 900][key as usize % 4]];
    for damaged in 20..28 {
        let env = MemEnv::new();
        let (store, space) = open(small(&env).memtable_bytes(1 << 20).large_values(50));
        KEYS.for_each(|key| space.put(key.to_be_bytes(), value(key)).unwrap());
        space.flush().unwrap();
        drop((store, space));
        drop(small(&env).open().unwrap());
        let path = Path::new(DIR).join(&names(&env, DIR, ".values")[0]);
        let wanted = value(damaged);
        let bytes = read_file(&env, &path);
        let at = bytes.windows(wanted.len()).position(|window| window == wanted).unwrap();
        env.flip(&path, at as u64 + 50, 4).unwrap();
        let (_store, space) = open(small(&env));
        for key in KEYS.chain(KEYS.rev()) {
            let found = space.get(key.to_be_bytes());
            if key == damaged {
                assert_names(&found.unwrap_err(), &path, at as u64 - 12);
            } else {
                assert!(found.unwrap().as_deref() == Some(&value(key)[..]), "key {key}");
            }
        }
    }
}

/// A map is checked once for readers. What is written anew, or verified, is read and checked again.
#[test]
fn damage_after_a_look_is_found_and_not_copied() {
    let env = MemEnv::new();
    let builder = || small(&env).policy("tiered(ratio=2)").value_space(1.05);
    let (store, space) = open(builder().memtable_bytes(1 << 20).large_values(500));
    put(&space, KEYS, 0);
    space.flush().unwrap();
    check(&space, KEYS, 0);
    let path = Path::new(DIR).join(&names(&env, DIR, ".values")[0]);
    let bytes = read_file(&env, &path);
    let wanted = value(17, 0);
    let at = bytes.windows(wanted.len()).position(|window| window == wanted).unwrap();
    env.flip(&path, at as u64 + 500, 4).unwrap();
    let damage = store.verify().unwrap();
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_names(&damage[0], &path, at as u64 - 12);
    for round in 1..4 {
        put(&space, 30..60, round);
        space.flush().unwrap();
    }
    space.merge().unwrap();
    store.settle().unwrap();
    drop((store, space));
    for from_bytes in [Some(500), None] {
        let (store, space) = open(builder().large_values(from_bytes));
        space.merge().unwrap();
        check(&space, (0..30).filter(|key| *key != 17), 0);
        check(&space, 30..60, 3);
        let error = space.get(17_u32.to_be_bytes()).unwrap_err();
        assert_names(&error, &path, at as u64 - 12);
        assert_eq!(store.verify().unwrap().len(), 1);
    }
}

#[test]
fn file_that_is_gone_or_another_is_told() {
    let (env, path, _) = damaged();
    let bytes = read_file(&env, &path);
    env.rename(&path, Path::new("/aside")).unwrap();
    let error = small(&env).open().unwrap_err();
    assert_eq!(error.path(), Some(&*path), "{error}");
    env.rename(Path::new("/aside"), &path).unwrap();
    let mut other = bytes.clone();
    other[16] ^= 1;
    write_file(&env, &path, &other);
    let error = small(&env).open().unwrap_err();
    assert_names(&error, &path, 0);
    // Cut off behind some values: these are there.
    write_file(&env, &path, &bytes[..bytes.len() / 2]);
    let (store, space) = open(small(&env));
    let lost = KEYS.filter(|key| space.get(key.to_be_bytes()).is_err()).count();
    assert!((28..=32).contains(&lost), "{lost} values");
    assert_eq!(store.verify().unwrap().len(), lost);
}

#[test]
fn repair_saves_all_values_but_the_damaged_one() {
    let (env, path, offset) = damaged();
    let options = lsmith::RepairOptions {
        env: std::sync::Arc::new(env.clone()),
        ..lsmith::RepairOptions::default()
    };
    let report = lsmith::repair(&options, DIR, "/repaired").unwrap();
    let named = |finding: &&lsmith::Finding| finding.path == path;
    let findings: Vec<_> = report.findings.iter().filter(named).collect();
    assert_eq!(findings.len(), 1, "{:?}", report.findings);
    assert_eq!(findings[0].offset, Some(offset));
    let (store, space) = open(crate::frame::small::plain_at("/repaired", &env));
    check_others(&space);
    assert_eq!(space.get(17_u32.to_be_bytes()).unwrap(), None);
    assert_eq!(store.verify().unwrap().len(), 0);
}
