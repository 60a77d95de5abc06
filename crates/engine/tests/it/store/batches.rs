//! Batches that are used again, cloned, built without a store, and turned into bytes.

use crate::dice::{Dice, with_seeds};
use crate::frame::contents::maps;
use crate::frame::small::plain;
use lsmith::env::MemEnv;
use lsmith::{
    Batch, Change, Clock, DetachedBatch, ErrorKind, Expiry, Keyspace, KeyspaceOptions, PersistMode,
    Store,
};
use std::sync::Arc;

fn store() -> Store {
    let store = plain(&MemEnv::new()).lockstep(true);
    let store = store.open().unwrap();
    for (name, group) in [("alone", None), ("first", Some("g")), ("second", Some("g"))] {
        let group = group.map(str::to_string);
        store.keyspace_with(name, &KeyspaceOptions { group, ..Default::default() }).unwrap();
    }
    store
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
            assert_eq!(maps(&left), maps(&right));
        }
    });
}

#[test]
fn every_kind_of_write_survives_being_bytes() {
    let store = store();
    let space = store.keyspace("first").unwrap();
    let mut batch = DetachedBatch::new();
    batch.put_new_unchecked("first", "once", "1");
    batch.put("first", "b", "2");
    store.write(store.bind(&batch).unwrap(), PersistMode::Buffer).unwrap();
    let mut batch = DetachedBatch::from_bytes(&batch.to_bytes()).unwrap();
    batch.clear();
    assert!(batch.is_empty());
    batch.delete_single_unchecked("first", "once");
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
    newer[0] = 3;
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
        batch.combine("users", "8", "+1");
        batch.put_until("names", "eve", "x", 7);
        if dice.chance(50) {
            batch.delete_range("users", "a".."b");
        }
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

/// A store whose keyspaces, alone and in a group, take every kind of write together: the first has
/// an operator, and entries of the second expire.
fn store_of_all_kinds() -> (MemEnv, Store, [Keyspace; 2]) {
    let env = MemEnv::new();
    let store = plain(&env).clock(Clock::new("test", || 10)).open().unwrap();
    let operator = Some("counter".into());
    let alone = KeyspaceOptions { operator, ..Default::default() };
    let (group, expiry) = (Some("g".to_string()), Some(Expiry::default()));
    let first = KeyspaceOptions { group, expiry, ..Default::default() };
    let spaces = [("alone", alone), ("first", first)];
    let spaces = spaces.map(|(name, options)| store.keyspace_with(name, &options).unwrap());
    (env, store, spaces)
}

const ONE: [u8; 8] = 1_i64.to_le_bytes();

/// Adds a write of every kind to `batch`.
fn add_all_kinds(batch: &mut Batch, space: &Keyspace) {
    batch.put(space, "a", "1");
    match space.name() {
        "alone" => batch.combine(space, "b", ONE),
        _ => batch.put_until(space, "b", "2", 12),
    }
    batch.put_new_unchecked(space, "c", "3");
    batch.delete(space, "e");
    batch.delete_single_unchecked(space, "f");
    batch.delete_range(space, "g"..="h");
    batch.delete_range(space, "x"..);
    batch.delete_range(space, ..&b"\x01"[..]);
}

fn all_kinds(name: &str) -> Vec<Change> {
    let mut detached = DetachedBatch::new();
    detached.put(name, "a", "1");
    match name {
        "alone" => detached.combine(name, "b", ONE),
        _ => detached.put_until(name, "b", "2", 12),
    }
    detached.put_new_unchecked(name, "c", "3");
    detached.delete(name, "e");
    detached.delete_single_unchecked(name, "f");
    detached.delete_range(name, "g"..="h");
    detached.delete_range(name, "x"..);
    detached.delete_range(name, ..&b"\x01"[..]);
    detached.iter().cloned().collect()
}

#[test]
fn a_batch_can_be_read() {
    let (_env, store, spaces) = store_of_all_kinds();
    let mut batch = Batch::new();
    spaces.iter().for_each(|space| add_all_kinds(&mut batch, space));
    let detached = batch.detach().unwrap();
    let read: Vec<Change> = detached.iter().cloned().collect();
    assert_eq!(read, [all_kinds("alone"), all_kinds("first")].concat());
    let (keyspace, key, value) = (Arc::from("first"), "b".into(), "2".into());
    assert_eq!(read[9], Change::PutUntil { keyspace, key, value, time: 12 });
    let ranges: [(&str, Option<&[u8]>); 3] =
        [("g", Some(b"h\0")), ("x", None), ("", Some(b"\x01"))];
    for (change, (from, to)) in read[13..].iter().zip(ranges) {
        let Change::DeleteRange { keyspace, start, end } = change else { panic!("{change:?}") };
        assert_eq!((&**keyspace, &start[..], end.as_deref()), ("first", from.as_bytes(), to));
    }
    // Keys, values, ends of ranges; the operand or the value that expires.
    let bytes = 5 + 2 + (3 + 1 + 1);
    assert_eq!((detached.len(), detached.bytes()), (16, 2 * bytes + 8 + 1));
    let more_in_group = 5 + 6 + 8;
    assert_eq!((batch.len(), batch.bytes()), (16, detached.bytes() + more_in_group));
    batch.put(&spaces[0], vec![b'k'; lsmith::KEY_BYTES_MAX + 1], "too long");
    assert_eq!((batch.len(), batch.bytes()), (17, 0), "it has dropped its writes");
    let again = DetachedBatch::from_bytes(&detached.to_bytes()).unwrap();
    assert_eq!(again, detached);
    store.write(store.bind(&again).unwrap(), PersistMode::Buffer).unwrap();
}

/// What the feed of a store returns is written to another one, as bytes, and the other has the same
/// content then, also in its next life.
#[test]
fn batches_of_a_feed_make_a_copy() {
    let (_env, left, spaces) = store_of_all_kinds();
    let (env, right, _) = store_of_all_kinds();
    let mut feed = left.changes(left.next_seq()).unwrap();
    for space in &spaces {
        for key in ["a", "b", "f", "g", "h", "hh", "x", "y"] {
            space.put(key, ONE).unwrap();
        }
        let mut batch = Batch::new();
        add_all_kinds(&mut batch, space);
        left.write(batch, PersistMode::Buffer).unwrap();
    }
    while let Some(batch) = feed.next_batch().unwrap() {
        let sent = DetachedBatch::from_iter(batch.changes).to_bytes();
        let received = DetachedBatch::from_bytes(&sent).unwrap();
        right.write(right.bind(&received).unwrap(), PersistMode::SyncData).unwrap();
    }
    let expected = maps(&left);
    assert!(expected.iter().all(|(_, entries)| entries.len() == 4), "{expected:?}");
    assert_eq!(maps(&right), expected);
    drop(right);
    let env = env.crash_clone(1, 0.0);
    let right = Store::builder("/store")
        .env(Arc::new(env))
        .clock(Clock::new("test", || 10))
        .open()
        .unwrap();
    assert_eq!(maps(&right), expected);
}

/// A batch that was bound took operands for keyspaces without an operator. No merge could combine
/// them then.
#[test]
fn bound_batches_keep_the_rules_of_the_keyspace() {
    let (_env, _store, [operands, expiring]) = store_of_all_kinds();
    let other = store();
    let mut batches = [Batch::new(), Batch::new()];
    batches[0].combine(&operands, "d", ONE);
    batches[1].put_until(&expiring, "d", "1", 12);
    for batch in batches {
        let bound = other.bind(&batch.detach().unwrap()).unwrap();
        let error = other.write(bound, PersistMode::Buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    let mut turned = DetachedBatch::new();
    turned.delete_range("alone", "b".."a");
    let error = other.write(other.bind(&turned).unwrap(), PersistMode::Buffer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

/// A batch without range deletes has the bytes of version 1, which older programs read.
#[test]
fn bytes_of_batches_stay_as_they_are() {
    let mut batch = DetachedBatch::new();
    batch.put("users", "7", "ada");
    batch.delete("names", "bob");
    let mut bytes = b"\x01\x02\x05users\x05names\x02\x00\x00\x017\x03ada\x01\x01\x03bob".to_vec();
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    assert_eq!(batch.to_bytes(), bytes);
    batch.delete_range("users", "a".."b");
    assert_eq!(batch.to_bytes()[0], 2);
}
