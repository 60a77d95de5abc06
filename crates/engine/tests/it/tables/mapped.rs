//! Tables mapped into memory.
//!
//! Promised: reads return what they return if tables are read by system calls. Values and iterators
//! keep their content however often merges replace their tables and punch holes in them. A changed
//! byte is found when its block is first read.

use crate::dice::{Dice, with_seeds};
use crate::frame::contents::{self, Map, contents};
use crate::frame::small::{open, small_at, small_on_disk};
use bytes::Bytes;
use lsmith::env::RealEnv;
use lsmith::{Builder, ErrorKind, Keyspace, Store};
use std::fs;
use std::path::Path;

/// Returns the builder of a store in `dir`. Each flush waits for the device, so there are not many.
fn builder(dir: &Path) -> Builder {
    small_on_disk(dir).memtable_bytes(20_000).block_bytes(500)
}

fn key(number: usize) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

/// Makes random writes for a while.
fn write(space: &Keyspace, expected: &mut Map, dice: &mut Dice, writes: usize) {
    for _ in 0..writes {
        let key = key(dice.below(3000));
        let value = vec![dice.below(256) as u8; 100];
        contents::write(space, expected, key, Some(value));
    }
}

/// Makes a store under one of four policies.
fn open_under_any(dir: &Path, dice: &mut Dice) -> (Store, &'static str) {
    let policies =
        ["minlatency(k=3)", "choose_best(ratio=4)", "leveled(ratio=3)", "jungle(c=2, ratio=3)"];
    let policy = *dice.pick(&policies);
    (builder(dir).policy(policy).open().unwrap(), policy)
}

#[test]
fn what_a_reader_holds_outlives_the_tables_it_came_from() {
    with_seeds(4, |seed| {
        let mut dice = Dice::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let (store, policy) = open_under_any(dir.path(), &mut dice);
        let space = store.keyspace("default").unwrap();
        let mut expected = Map::new();
        write(&space, &mut expected, &mut dice, 6000);
        let get = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            (space.get(key).unwrap().expect("was written"), value.clone())
        };
        let held: Vec<(Bytes, Vec<u8>)> = expected.iter().map(get).collect();
        let then = expected.clone();
        let mut entries = space.iter();
        let first = entries.next().unwrap().unwrap();
        assert_eq!(first.1[..], then.values().next().unwrap()[..]);
        write(&space, &mut expected, &mut dice, 12_000);
        assert!(held.iter().all(|(value, wanted)| value[..] == wanted[..]), "{policy}");
        let rest: Map =
            entries.map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
        assert!(rest.iter().eq(then.iter().skip(1)), "{policy}");
        // Without readers of the past its space goes.
        write(&space, &mut expected, &mut dice, 6000);
        assert!(held.iter().all(|(value, wanted)| value[..] == wanted[..]), "{policy}");
        assert_eq!(contents(&space), expected, "{policy}");
        assert!(store.verify().unwrap().is_empty());
    });
}

/// While `look` sees a value, merges and the holes that they punch cannot touch it.
#[test]
fn what_is_lent_stays_while_its_table_is_merged_away() {
    with_seeds(4, |seed| {
        let mut dice = Dice::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let (store, policy) = open_under_any(dir.path(), &mut dice);
        let space = store.keyspace("default").unwrap();
        let mut expected = Map::new();
        write(&space, &mut expected, &mut dice, 6000);
        space.flush().unwrap();
        for _ in 0..3 {
            let snapshot = store.snapshot();
            let then = expected.clone();
            let (key, wanted) = then.iter().nth(dice.below(then.len())).unwrap();
            let seen = space.get_with(key, |value| {
                write(&space, &mut expected, &mut dice, 6000);
                space.merge().unwrap();
                value == wanted
            });
            assert_eq!(seen.unwrap(), Some(true), "{policy}");
            let past = snapshot.get_with(&space, key, |value| value == wanted);
            assert_eq!(past.unwrap(), Some(true), "{policy}");
        }
        assert_eq!(contents(&space), expected, "{policy}");
    });
}

#[test]
fn maps_and_calls_read_the_same() {
    ["minlatency(k=3)", "jungle(c=3, ratio=3, table=60kB)"].into_iter().for_each(read_both_ways);
}

/// Reads a store under `policy` in both ways, and in all directions.
fn read_both_ways(policy: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Map::new();
    {
        let (_store, space) = open(builder(dir.path()).policy(policy));
        write(&space, &mut expected, &mut Dice::new(1), 8000);
    }
    for env in [RealEnv::new(), RealEnv::new().unmapped(), RealEnv::new().direct()] {
        let store = small_at(dir.path(), &env).read_only(true).open().unwrap();
        let space = store.existing_keyspace("default").unwrap();
        assert_eq!(contents(&space), expected);
        let mut back: Vec<_> = space.iter().rev().map(|entry| entry.unwrap()).collect();
        back.reverse();
        assert!(back.iter().map(|(key, _)| &key[..]).eq(expected.keys().map(|key| &key[..])));
        for (key, value) in &expected {
            assert_eq!(space.get(key).unwrap().as_deref(), Some(&value[..]));
            assert_eq!(space.get([key, &b"x"[..]].concat()).unwrap(), None);
        }
    }
}

#[test]
fn a_changed_byte_is_found_when_its_block_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Map::new();
    {
        let (_store, space) = open(builder(dir.path()));
        write(&space, &mut expected, &mut Dice::new(2), 3000);
        space.merge().unwrap();
    }
    let tables = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let table = tables.max_by_key(|path| match path.extension() {
        Some(extension) if extension == "table" => fs::metadata(path).unwrap().len(),
        _ => 0,
    });
    let table = table.unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[700] ^= 1;
    fs::write(&table, &bytes).unwrap();
    let store = builder(dir.path()).open().unwrap();
    let space = store.existing_keyspace("default").unwrap();
    let mut damaged = 0;
    for (key, value) in &expected {
        match space.get(key) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&value[..])),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption);
                assert_eq!(error.path(), Some(table.as_path()));
                assert!(error.offset().is_some_and(|offset| offset <= 700));
                damaged += 1;
            }
        }
    }
    assert!((1..20).contains(&damaged), "{damaged} keys");
    assert_eq!(store.verify().unwrap()[0].kind(), ErrorKind::Corruption);
}
