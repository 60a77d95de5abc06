//! Compressed tables.
//!
//! Promised: compression changes no answer, no decision of a policy and no logical figure, only the
//! bytes on the device. Levels are compressed as the keyspace says, from the moment at which that
//! is set, also after reopening. A changed byte of a compressed block is found, with path and
//! offset.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{Batches, POLICIES, Progress, any_mode};
use crate::frame::small::{DIR, open, plain, small};
use lsmith::env::{Env, MemEnv};
use lsmith::{Builder, ErrorKind, KeyspaceStats, Store};
use std::path::Path;

const CODECS: [&str; 5] = ["lz4", "zstd", "none,lz4", "none,lz4,zstd(level=9)", "zstd,none"];

fn builder(env: &MemEnv, policy: &str) -> Builder {
    small(env).policy(policy).memtable_bytes(8000).block_bytes(1000).cache_bytes(10_000)
}

/// Returns text that repeats itself.
fn value(number: usize) -> String {
    format!("{number} was a number, {number} is a number; ").repeat(4)
}

fn fill(store: &Store) -> KeyspaceStats {
    let space = store.keyspace("default").unwrap();
    for number in 0..1500 {
        let key = number * 7919 % 1200;
        space.put(format!("{key:08}"), value(number)).unwrap();
    }
    store.flush().unwrap();
    space.stats()
}

fn check(store: &Store) {
    let space = store.keyspace("default").unwrap();
    let last = |key: usize| (0..1500).rev().find(|number| number * 7919 % 1200 == key).unwrap();
    let expected = (0..1200).map(|key| (format!("{key:08}"), value(last(key))));
    let found = space.iter().map(|entry| entry.unwrap());
    let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    assert!(found.map(|(key, value)| (text(key), text(value))).eq(expected));
    for key in (0..1200).step_by(7) {
        let found = space.get(format!("{key:08}")).unwrap().unwrap();
        assert_eq!(found, value(last(key)));
        assert_eq!(space.get(format!("{key:08}x")).unwrap(), None);
    }
    assert!(store.verify().unwrap().is_empty());
}

/// Returns the tree of `store` as text, without the roots of append tables, which are physical, and
/// without the numbers of the next run and table, which memtables take too.
fn tree(store: &Store) -> String {
    let text = store.keyspace("default").unwrap().tree().to_string();
    let (_, text) = text.split_once(" flushes ").unwrap();
    let mut parts = text.split(" root ");
    let first = parts.next().unwrap_or_default().to_string();
    let rest = parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.fold(first, |text, part| text + part)
}

#[test]
fn only_physical_bytes_change() {
    for policy in POLICIES {
        let plain = builder(&MemEnv::new(), policy).open().unwrap();
        let without = fill(&plain);
        let logical = tree(&plain);
        for codecs in CODECS {
            let env = MemEnv::new();
            let store = builder(&env, policy).compression(codecs).open().unwrap();
            let with = fill(&store);
            assert_eq!(tree(&store), logical);
            assert_eq!(with.logical_bytes, without.logical_bytes);
            assert!(with.table_bytes <= without.table_bytes);
            check(&store);
            drop(store);
            let store = builder(&env, policy).open().unwrap();
            assert_eq!(store.keyspace("default").unwrap().compression(), codecs);
            assert_eq!(tree(&store), logical);
            check(&store);
        }
    }
}

#[test]
fn each_level_has_its_codec() {
    let policy = "leveled(ratio=2, l0=1, table=8kB)";
    let bytes = |codecs: &str| {
        let store = builder(&MemEnv::new(), policy).compression(codecs).open().unwrap();
        fill(&store).table_bytes
    };
    let (none, first, all) = (bytes("none"), bytes("zstd,none"), bytes("zstd"));
    let below = bytes("none,zstd");
    assert!(all < below && below < none, "{all} {below} {none}");
    assert!(all < first && first <= none, "{all} {first} {none}");
    assert!(all * 2 < none, "{all} {none}");
}

#[test]
fn it_can_be_changed_and_survives_reopening() {
    let env = MemEnv::new();
    let policy = "tiered(ratio=4)";
    let store = builder(&env, policy).open().unwrap();
    let before = fill(&store);
    let space = store.keyspace("default").unwrap();
    assert_eq!(space.compression(), "none");
    let error = space.set_compression("lz5").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("did you mean `lz4`?"), "{error}");
    space.set_compression("lz4").unwrap();
    assert_eq!(space.stats().table_bytes, before.table_bytes, "nothing is written anew");
    drop((space, store));
    // Once from the record of the change, once from a new manifest.
    for _ in 0..2 {
        let store = builder(&env, policy).compression("zstd").open().unwrap();
        assert_eq!(store.keyspace("default").unwrap().compression(), "lz4");
        assert_eq!(store.keyspace("other").unwrap().compression(), "zstd");
        check(&store);
    }
    let (store, space) = open(builder(&env, policy));
    space.put("", "").unwrap_err();
    space.merge().unwrap();
    assert!(space.stats().table_bytes * 2 < before.table_bytes);
    space.set_compression("none").unwrap();
    drop((space, store));
    let store = builder(&env, policy).open().unwrap();
    assert_eq!(store.keyspace("default").unwrap().compression(), "none");
    check(&store);
}

#[test]
fn what_cannot_be_is_refused() {
    let env = MemEnv::new();
    let error = builder(&env, "none").compression("gzip").open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("`gzip`"), "{error}");
    assert!(env.list(Path::new(DIR)).is_err(), "nothing is made");
    builder(&env, "none").open().unwrap().keyspace("default").unwrap();
    let reader = builder(&env, "none").read_only(true).open().unwrap();
    let error = reader.keyspace("default").unwrap().set_compression("lz4").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_changed_byte_of_a_block_is_found() {
    for codecs in ["lz4", "zstd"] {
        let env = MemEnv::new();
        let store = builder(&env, "constant(k=1)").compression(codecs).open().unwrap();
        fill(&store);
        store.keyspace("default").unwrap().merge().unwrap();
        drop(store);
        let names = env.list(Path::new(DIR)).unwrap();
        let table = names.iter().find(|name| name.ends_with(".table")).unwrap();
        let path = Path::new(DIR).join(table);
        let whole = {
            let file = env.open(&path).unwrap();
            let mut bytes = vec![0; file.bytes().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let mut dice = Dice::new(5);
        for _ in 0..60 {
            // Most of the file is data blocks; the rest is looked at when it is opened.
            let at = dice.below(whole.len());
            let mut bytes = whole.clone();
            bytes[at] ^= 1 + dice.below(255) as u8;
            env.remove_file(&path).unwrap();
            let mut file = env.create(&path).unwrap();
            file.write_all(&bytes).unwrap();
            file.sync().unwrap();
            let found = builder(&env, "constant(k=1)").read_only(true).open();
            let errors = match found {
                Err(error) => vec![error],
                Ok(store) => {
                    let space = store.existing_keyspace("default").unwrap();
                    let read: Vec<_> = space.iter().filter_map(Result::err).collect();
                    assert!(!read.is_empty(), "a scan meets it");
                    store.verify().unwrap().into_iter().chain(read).collect()
                }
            };
            assert!(!errors.is_empty());
            for error in errors {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                assert_eq!(error.path(), Some(&*path));
                assert!(error.offset().is_some_and(|offset| offset <= whole.len() as u64));
            }
        }
    }
}

#[test]
fn random_batches_under_any_codec() {
    with_seeds(12, |seed| {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let batches = Batches::new(seed);
        let mut progress = Progress::default();
        for _ in 0..4 {
            let codecs = *dice.pick(&CODECS);
            let policy = *dice.pick(&POLICIES);
            let store = builder(&env, policy).memtable_bytes(3000).compression(codecs);
            let store = store.lockstep(dice.chance(50)).open().unwrap();
            for _ in 0..100 {
                batches.go_on(&store, &mut progress, any_mode(&mut dice)).unwrap();
                if dice.chance(3) {
                    let space = store.keyspace("left").unwrap();
                    space.set_compression(dice.pick::<&str>(&CODECS)).unwrap();
                    space.set_merge_policy(*dice.pick::<&str>(&POLICIES)).unwrap();
                }
            }
            assert_eq!(batches.check(&store), progress.acknowledged);
            store.flush().unwrap();
            assert_eq!(batches.check(&store), progress.acknowledged);
            assert!(store.verify().unwrap().is_empty());
        }
    });
}

/// A fence pointer can be longer than its whole block after compression.
#[test]
fn long_keys_that_compress_to_little_are_read_back() {
    for codec in ["lz4", "zstd"] {
        let env = MemEnv::new();
        let builder = || plain(&env).compression(codec);
        let key = |number: u32| format!("{}{number:04}", "k".repeat(3000));
        let (store, space) = open(builder());
        for number in 0..100 {
            space.put(key(number), "v").unwrap();
        }
        space.flush().unwrap();
        drop((space, store));
        let store = builder().open().unwrap();
        let space = store.existing_keyspace("default").unwrap();
        assert_eq!(space.iter().filter(|entry| entry.is_ok()).count(), 100, "{codec}");
        assert_eq!(store.verify().unwrap().len(), 0, "{codec}");
    }
}
