//! Compressed values in value files.
//!
//! Promised: values are stored with the last codec of their keyspace where that makes them shorter.
//! Nobody sees a difference but in space. Values that are stored in another way stay readable.

use super::{bytes_on_disk, check, put, value};
use crate::frame::contents::{names, pair, read_file};
use crate::frame::small::{DIR, open, plain_at, small};
use lsmith::cipher::{Keys, MasterKey};
use lsmith::env::MemEnv;
use lsmith::inspect::{self, Packing, TableFile, ValueReference};
use lsmith::{ErrorKind, IngestOptions, Keyspace, TableWriter, TableWriterOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KEYS: std::ops::Range<u32> = 0..60;

/// The bytes of the value of a key.
const VALUE_BYTES: u64 = 1008;

/// Returns the paths of the value files.
fn paths(env: &MemEnv) -> Vec<PathBuf> {
    names(env, DIR, ".values").iter().map(|name| Path::new(DIR).join(name)).collect()
}

/// Returns the features of a value file.
fn features(env: &MemEnv, path: &Path) -> u32 {
    u32::from_le_bytes(read_file(env, path)[12..16].try_into().unwrap())
}

/// Returns all references in tables of the store, by key.
fn references(env: &MemEnv) -> BTreeMap<Vec<u8>, ValueReference> {
    let mut found = BTreeMap::new();
    for name in names(env, DIR, ".table") {
        let table = TableFile::open(env, &Path::new(DIR).join(name)).unwrap();
        for index in 0..table.block_count() {
            let entries = table.block(index).unwrap().unwrap().entries.into_iter();
            found.extend(entries.filter_map(|it| Some((it.key.to_vec(), it.reference()?))));
        }
    }
    found
}

/// Returns how many values are stored in each way: as they are, with lz4, with zstd.
fn packings(env: &MemEnv) -> [usize; 3] {
    let all = references(env);
    let count = |packing| all.values().filter(|it| it.stored.packing == packing).count();
    [Packing::Plain, Packing::Lz4, Packing::Zstd].map(count)
}

/// Asserts by every way of reading that all keys have their value of `round`.
fn check_all(space: &Keyspace, round: u32) {
    check(space, KEYS, round);
    let seen = |key: u32| (key.to_be_bytes().to_vec(), value(key, round));
    assert!(space.iter().map(pair).eq(KEYS.map(seen)));
    assert!(space.iter().rev().map(pair).eq(KEYS.rev().map(seen)));
    let many = space.multi_get(KEYS.map(u32::to_be_bytes)).unwrap();
    for (key, found) in KEYS.zip(many) {
        assert!(found.as_deref() == Some(&value(key, round)[..]));
        let same = space.get_with(key.to_be_bytes(), |found| found == value(key, round)).unwrap();
        assert_eq!(same, Some(true));
    }
}

#[test]
fn compressed_values_take_less_and_are_read_in_every_way() {
    for codec in ["none", "lz4", "zstd", "none,none,lz4", "lz4,none"] {
        let env = MemEnv::new();
        let (store, space) = open(small(&env).compression(codec).large_values(500));
        put(&space, KEYS, 0);
        space.flush().unwrap();
        let logical = u64::from(KEYS.end) * (4 + VALUE_BYTES + 8);
        assert_eq!(
            space.tree().disk_runs().map(|run| run.size().bytes).sum::<u64>(),
            logical,
            "policies see the same tree"
        );
        let stats = space.stats();
        assert_eq!(stats.value_bytes, bytes_on_disk(&env));
        assert_eq!(stats.value_garbage_bytes, 0, "{stats:?}");
        let records = u64::from(KEYS.end) * (12 + VALUE_BYTES);
        let is_packed = !codec.ends_with("none");
        assert_eq!(stats.value_bytes < records / 2, is_packed, "{codec}: {stats:?}");
        check_all(&space, 0);
        assert_eq!(store.verify().unwrap().len(), 0);
        drop((store, space));
        assert_eq!(inspect::damage(&env, Path::new(DIR)).unwrap().len(), 0);
        let found = packings(&env);
        let expected = match codec {
            "none" | "lz4,none" => [60, 0, 0],
            "zstd" => [0, 0, 60],
            _ => [0, 60, 0],
        };
        assert_eq!(found, expected, "{codec}");
        for path in paths(&env) {
            assert_eq!(features(&env, &path), u32::from(is_packed), "{codec}");
        }
        let (_store, space) = open(small(&env.unmapped()).compression("none"));
        check_all(&space, 0);
    }
}

#[test]
fn values_that_do_not_shrink_are_stored_as_they_are() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).compression("zstd").large_values(1));
    let mut dice = crate::dice::Dice::new(5);
    let mut map = BTreeMap::new();
    for key in 0..400_u32 {
        let length = dice.below(if key % 2 == 0 { 20 } else { 3000 });
        let value = match key % 3 {
            // Nothing but the least to save an eighth: it would not pay.
            0 => [dice.bytes(length), vec![0; length / 20]].concat(),
            1 => dice.bytes(length),
            _ => vec![7; length],
        };
        space.put(key.to_be_bytes(), &value).unwrap();
        map.insert(key.to_be_bytes().to_vec(), value);
    }
    space.merge().unwrap();
    for (key, value) in &map {
        assert_eq!(space.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    assert!(space.iter().map(pair).eq(map.clone()));
    assert_eq!(store.verify().unwrap().len(), 0);
    drop((store, space));
    let all = references(&env);
    assert!(all.len() > 350 && all.values().any(|it| it.stored.packing == Packing::Zstd));
    for (key, reference) in all {
        let (value, stored) = (&map[&key], reference.stored);
        assert_eq!(reference.value_bytes as usize, value.len());
        if stored.packing == Packing::Plain {
            assert_eq!(stored.bytes, reference.value_bytes);
            assert!(value.len() < 40 || value[0] != value[20], "{} bytes stay", value.len());
        } else {
            assert!(stored.bytes as usize <= value.len() - value.len() / 8);
            assert_eq!(value[0], value[value.len() - 1]);
        }
    }
}

/// A store whose last life had no codec, another one, or keeps values in tables.
#[test]
fn values_of_other_lives_are_read_and_cleaned() {
    for (before, now, from_bytes) in [
        ("none", "lz4", Some(500)),
        ("none", "zstd(level=9)", Some(500)),
        ("lz4", "none", Some(500)),
        ("lz4", "zstd", Some(500)),
        ("zstd", "lz4", Some(500)),
        ("zstd", "zstd(level=1)", Some(500)),
        ("zstd", "zstd", Some(2000)),
        ("lz4", "none", None),
    ] {
        let what = format!("from {before} to {now}");
        let env = MemEnv::new();
        let builder = || small(&env).policy("tiered(ratio=2)").value_space(1.05);
        let (store, space) = open(builder().compression(before).large_values(500));
        put(&space, KEYS, 0);
        space.flush().unwrap();
        drop((store, space));
        let old: BTreeSet<u64> = references(&env).values().map(|it| it.file).collect();
        let features_before = u32::from(before != "none");
        assert!(paths(&env).iter().all(|path| features(&env, path) == features_before));
        let (store, space) = open(builder().large_values(from_bytes));
        check_all(&space, 0);
        space.set_compression(now).unwrap();
        check_all(&space, 0);
        // The other half of each file becomes garbage.
        put(&space, KEYS.step_by(2), 1);
        space.merge().unwrap();
        store.settle().unwrap();
        check(&space, KEYS.step_by(2), 1);
        check(&space, (1..KEYS.end).step_by(2), 0);
        assert_eq!(space.stats().failures, Vec::<String>::new());
        assert_eq!(store.verify().unwrap().len(), 0, "{what}");
        assert_eq!(space.stats().value_bytes, bytes_on_disk(&env));
        drop((store, space));
        let all = references(&env);
        assert_eq!(all.len(), if from_bytes == Some(500) { 60 } else { 0 }, "{what}");
        let mut moved = 0;
        for (key, reference) in &all {
            // A file with little garbage stays.
            let codec = if old.contains(&reference.file) { before } else { now };
            let packing = reference.stored.packing.name();
            assert!(codec.starts_with(packing), "{what}: {reference:?}");
            moved += u32::from(key[3] % 2 == 1 && !old.contains(&reference.file));
        }
        assert!(moved > 5 || all.is_empty(), "{what}: {moved} values were moved");
    }
}

/// What is garbage, and when files are cleaned, follows from the bytes on the device.
#[test]
fn space_counts_what_is_stored() {
    let env = MemEnv::new();
    let builder = small(&env).memtable_bytes(20_000).policy("tiered(ratio=3)");
    let (store, space) = open(builder.compression("lz4").large_values(500).value_space(1.3));
    let long = |key: u32, round: u32| match key % 2 {
        // Half of the keys do not shrink, so shares of keys are not shares of bytes.
        0 => crate::dice::Dice::new(u64::from(key * 1000 + round)).bytes(1000),
        _ => vec![round as u8; 3000],
    };
    let mut dice = crate::dice::Dice::new(7);
    let mut rounds = vec![0; 100];
    (0..100).for_each(|key| space.put(u32::to_be_bytes(key), long(key, 0)).unwrap());
    for round in 1..800 {
        let key = dice.below(100);
        rounds[key] = round;
        let key = key as u32;
        space.put(key.to_be_bytes(), long(key, round)).unwrap();
        if round % 50 == 0 {
            let stats = space.stats();
            let live = stats.value_bytes - stats.value_garbage_bytes;
            assert!(stats.value_bytes as f64 <= 1.3 * live as f64, "{stats:?}");
            assert_eq!(stats.value_bytes, bytes_on_disk(&env));
        }
    }
    for (key, round) in (0..).zip(rounds) {
        let found = space.get(u32::to_be_bytes(key)).unwrap();
        assert!(found.as_deref() == Some(&long(key, round)[..]), "key {key}");
    }
    space.merge().unwrap();
    store.settle().unwrap();
    let stats = space.stats();
    let live = stats.value_bytes - stats.value_garbage_bytes;
    drop((store, space));
    let records: u64 = references(&env).values().map(|it| 12 + u64::from(it.stored.bytes)).sum();
    let starts = 32 * stats.value_files;
    assert_eq!(live, records + starts, "{stats:?}");
    assert!(records < 100 * 700, "{records} bytes");
}

#[test]
fn damage_of_a_compressed_value_is_of_it_alone() {
    for (codec, is_mapped) in [("lz4", true), ("lz4", false), ("zstd", true), ("zstd", false)] {
        // The length and codec, the checksum, the length of the value, and what is compressed.
        for at in [0, 3, 7, 13, 40] {
            let env = MemEnv::new();
            let builder = small(&env).memtable_bytes(1 << 20).compression(codec);
            let (store, space) = open(builder.large_values(500));
            put(&space, KEYS, 0);
            space.flush().unwrap();
            drop((store, space));
            drop(small(&env).open().unwrap());
            let reference = references(&env)[&17_u32.to_be_bytes()[..]];
            let path = paths(&env).remove(0);
            let mask = if at == 3 { 0x40 } else { 4 };
            env.flip(&path, reference.offset + at, mask).unwrap();
            let used = if is_mapped { env.clone() } else { env.clone().unmapped() };
            let (store, space) = open(small(&used));
            let named = |error: &lsmith::Error| {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                let place = (error.path(), error.offset());
                assert_eq!(place, (Some(&*path), Some(reference.offset)), "{error}");
            };
            named(&space.get(17_u32.to_be_bytes()).unwrap_err());
            check(&space, KEYS.filter(|key| *key != 17), 0);
            let damage = store.verify().unwrap();
            assert_eq!(damage.len(), 1, "{damage:?}");
            named(&damage[0]);
            drop((store, space));
            // A file without its tables ends where a length is wrong.
            let damage = inspect::damage(&env, Path::new(DIR)).unwrap();
            assert!(!damage.is_empty() && (damage.len() == 1 || at == 0), "{damage:?}");
            named(&damage[0]);
            let options = lsmith::RepairOptions {
                env: Arc::new(env.clone()),
                ..lsmith::RepairOptions::default()
            };
            lsmith::repair(&options, DIR, "/repaired").unwrap();
            let (_store, space) = open(plain_at("/repaired", &env));
            check(&space, KEYS.filter(|key| *key != 17), 0);
            assert_eq!(space.get(17_u32.to_be_bytes()).unwrap(), None);
        }
    }
}

/// The file of another store, or of another time, does not pass for a file without compression.
#[test]
fn file_without_its_feature_bit_is_damaged() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).compression("lz4").large_values(500));
    put(&space, KEYS, 0);
    space.flush().unwrap();
    drop((store, space));
    env.flip(&paths(&env)[0], 12, 1).unwrap();
    let error = small(&env).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}

#[test]
fn encrypted_stores_compress_their_values_too() {
    let env = MemEnv::new();
    let builder = || small(&env).keys(Keys::new(MasterKey::aes_256_gcm([1; 32])));
    let (store, space) = open(builder().compression("lz4").large_values(500).value_space(1.05));
    for round in 0..3 {
        put(&space, KEYS, round);
        space.flush().unwrap();
        check_all(&space, round);
    }
    space.merge().unwrap();
    store.settle().unwrap();
    check_all(&space, 2);
    let bytes = space.stats().value_bytes;
    assert!(bytes < u64::from(KEYS.end) * VALUE_BYTES / 2, "{bytes} bytes");
    drop((store, space));
    let (store, space) = open(builder());
    check_all(&space, 2);
    assert_eq!(store.verify().unwrap().len(), 0);
}

/// Tables outside of the store know no value files.
#[test]
fn exports_and_merges_without_the_option_have_whole_values() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).compression("zstd").large_values(500));
    put(&space, KEYS, 0);
    space.flush().unwrap();
    let options = TableWriterOptions { env: Arc::new(env.clone()), ..Default::default() };
    let mut table = TableWriter::create_with("/exported", &options).unwrap();
    let exported = store.snapshot().export_newest::<&str>(&space, .., &mut table).unwrap();
    assert_eq!(exported, u64::from(KEYS.end));
    table.finish().unwrap();
    let other = store.keyspace("other").unwrap();
    store.ingest(&other, &["/exported"], &IngestOptions::default()).unwrap();
    check_all(&other, 0);
    drop((store, space, other));
    let (store, space) = open(small(&env));
    space.merge().unwrap();
    store.existing_keyspace("other").unwrap().merge().unwrap();
    store.settle().unwrap();
    assert_eq!((bytes_on_disk(&env), space.stats().value_files), (0, 0));
    check_all(&space, 0);
}
