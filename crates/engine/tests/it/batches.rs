//! Batches that are used again, cloned, built without a store, and turned into bytes.

use crate::dice::{Dice, with_seeds};
use lsmith::env::MemEnv;
use lsmith::{Batch, DetachedBatch, ErrorKind, KeyspaceOptions, PersistMode, Store};
use std::sync::Arc;

fn store() -> Store {
    let store = Store::builder("/store").env(Arc::new(MemEnv::new())).lockstep(true);
    let store = store.open().unwrap();
    for (name, group) in [("alone", None), ("first", Some("g")), ("second", Some("g"))] {
        let group = group.map(str::to_string);
        store.keyspace_with(name, &KeyspaceOptions { group, ..Default::default() }).unwrap();
    }
    store
}

fn content(store: &Store) -> Vec<(String, Vec<(bytes::Bytes, bytes::Bytes)>)> {
    let entries = |name: &String| {
        let space = store.existing_keyspace(name).unwrap();
        space.iter().map(Result::unwrap).collect::<Vec<_>>()
    };
    store.keyspaces().into_iter().map(|name| (name.clone(), entries(&name))).collect()
}

#[test]
fn a_batch_is_cleared_and_cloned() {
    let store = store();
    let space = store.keyspace("alone").unwrap();
    let mut batch = Batch::new();
    batch.put(&space, "", "refused");
    batch.clear();
    assert!(batch.is_empty());
    batch.put(&space, "a", "1");
    let again = batch.clone();
    batch.put(&space, "b", "2");
    assert_eq!((again.len(), batch.len()), (1, 2));
    store.write(batch, PersistMode::Buffer).unwrap();
    space.delete("a").unwrap();
    store.write(again, PersistMode::Buffer).unwrap();
    let keys: Vec<_> = space.iter().map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, ["a", "b"]);
}

#[test]
fn detached_batches_do_what_batches_do() {
    with_seeds(40, |seed| {
        let mut dice = Dice::new(seed);
        let [left, right] = [store(), store()];
        for _ in 0..5 {
            let mut bound = Batch::new();
            let mut detached = DetachedBatch::new();
            for _ in 0..dice.below(20) {
                let name = *dice.pick(&["alone", "first", "second"]);
                let space = left.existing_keyspace(name).unwrap();
                let key = [b'k', dice.below(9) as u8];
                let length = dice.below(50);
                let value = dice.bytes(length);
                if dice.chance(30) {
                    bound.delete(&space, key);
                    detached.delete(name, key);
                } else {
                    bound.put(&space, key, &value);
                    detached.put(name, key, &value);
                }
            }
            assert_eq!(bound.detach().unwrap(), detached);
            let bytes = detached.to_bytes();
            let again = DetachedBatch::from_bytes(&bytes).unwrap();
            assert_eq!((again.len(), &again), (bound.len(), &detached));
            left.write(bound, PersistMode::Buffer).unwrap();
            right.write(right.bind(&again).unwrap(), PersistMode::Buffer).unwrap();
            assert_eq!(content(&left), content(&right));
        }
    });
}

#[test]
fn every_kind_of_write_survives_being_bytes() {
    let store = store();
    let space = store.keyspace("first").unwrap();
    let mut batch = DetachedBatch::new();
    batch.insert_new("first", "once", "1");
    batch.put("first", "b", "2");
    store.write(store.bind(&batch).unwrap(), PersistMode::Buffer).unwrap();
    let mut batch = DetachedBatch::from_bytes(&batch.to_bytes()).unwrap();
    batch.clear();
    assert!(batch.is_empty());
    batch.remove_single("first", "once");
    let batch = DetachedBatch::from_bytes(&batch.to_bytes()).unwrap();
    store.write(store.bind(&batch).unwrap(), PersistMode::Buffer).unwrap();
    let keys: Vec<_> = space.iter().map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, ["b"]);
}

#[test]
fn bytes_that_are_changed_or_cut_are_refused() {
    let mut batch = DetachedBatch::new();
    batch.put("users", "7", "ada");
    batch.delete("names", "bob");
    let bytes = batch.to_bytes();
    for at in 0..bytes.len() {
        let error = DetachedBatch::from_bytes(&bytes[..at]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let error = DetachedBatch::from_bytes(&changed).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }
    let mut newer = bytes[..bytes.len() - 8].to_vec();
    newer[0] = 2;
    let checksum = xxhash_rust::xxh3::xxh3_64(&newer);
    newer.extend_from_slice(&checksum.to_le_bytes());
    let error = DetachedBatch::from_bytes(&newer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let store = store();
    let error = store.bind(&batch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let mut broken = Batch::new();
    broken.put(&store.keyspace("alone").unwrap(), "", "v");
    assert_eq!(broken.detach().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// Right checksums over any bytes: no panic, and memory in proportion.
#[test]
fn bytes_with_right_checksums_may_hold_anything() {
    with_seeds(2000, |seed| {
        let mut dice = Dice::new(seed);
        let mut batch = DetachedBatch::new();
        batch.put("users", "7", "ada");
        batch.delete("names", "bob");
        let mut bytes = batch.to_bytes();
        bytes.truncate(bytes.len() - 8);
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(bytes.len() - 1) + 1;
            match dice.below(3) {
                0 => bytes[at] = dice.below(256) as u8,
                1 => bytes.insert(at, dice.below(256) as u8),
                _ => drop(bytes.remove(at)),
            }
        }
        let checksum = xxhash_rust::xxh3::xxh3_64(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        match DetachedBatch::from_bytes(&bytes) {
            Ok(read) => assert_eq!(DetachedBatch::from_bytes(&read.to_bytes()).unwrap(), read),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{error}"),
        }
    });
}
