//! Basic operations, one test each.

use crate::frame::small::{open, small};
use lsmith::env::MemEnv;
use lsmith::{Batch, ErrorKind, PersistMode, Store};

fn key(number: u32) -> String {
    format!("key{number:05}")
}

#[test]
fn what_is_written_is_read_before_and_after_reopening() {
    for policy in
        ["none", "bigtable(k=3)", "tiered(ratio=2)", "leveled(ratio=2)", "minlatency(k=2)"]
    {
        let env = MemEnv::new();
        let (store, keyspace) = open(small(&env).memtable_bytes(2000).policy(policy));
        for number in 0..500 {
            keyspace.put(key(number * 7 % 500), format!("value{number}")).unwrap();
        }
        for number in (0..500).step_by(3) {
            keyspace.delete(key(number)).unwrap();
        }
        let check = |store: &Store| {
            let keyspace = store.keyspace("default").unwrap();
            for number in 0..500 {
                let found = keyspace.get(key(number)).unwrap();
                assert_eq!(found.is_some(), number % 3 != 0, "{policy} {number}");
            }
            let forward: Vec<_> = keyspace.iter().map(|entry| entry.unwrap().0).collect();
            let mut backward: Vec<_> =
                keyspace.iter().rev().map(|entry| entry.unwrap().0).collect();
            backward.reverse();
            assert_eq!(forward.len(), 333, "{policy}");
            assert_eq!(forward, backward);
            assert_eq!(keyspace.prefix("key0000").count(), 6);
            assert!(store.verify().unwrap().is_empty());
        };
        check(&store);
        let flushes = keyspace.tree().flushes();
        assert!(flushes > 5, "{policy}: {}", keyspace.tree());
        drop((store, keyspace));
        let store = small(&env).open().unwrap();
        check(&store);
        assert_eq!(store.keyspace("default").unwrap().tree().flushes(), flushes);
    }
}

#[test]
fn snapshots_see_their_moment_and_merges_keep_it() {
    let env = MemEnv::new();
    let (store, keyspace) = open(small(&env).policy("constant(k=2)"));
    keyspace.put("a", "1").unwrap();
    let before = store.snapshot();
    for round in 0..300 {
        keyspace.put("a", format!("round{round}")).unwrap();
        keyspace.put(key(round), "x".repeat(30)).unwrap();
    }
    keyspace.delete("a").unwrap();
    keyspace.merge().unwrap();
    assert_eq!(before.get(&keyspace, "a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(before.range::<&str>(&keyspace, ..).count(), 1);
    assert_eq!(keyspace.get("a").unwrap(), None);
    drop(before);
    keyspace.merge().unwrap();
    assert_eq!(keyspace.stats().tombstones, 0);
}

#[test]
fn a_second_opener_is_told_who_is_in_the_way() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let error = small(&env).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    drop(store);
    small(&env).open().unwrap();
}

#[test]
fn limits_are_enforced() {
    let env = MemEnv::new();
    let (_store, keyspace) = open(small(&env));
    let refused = |result: lsmith::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidArgument);
    };
    refused(keyspace.put("", "x"));
    refused(keyspace.put(vec![0; lsmith::KEY_BYTES_MAX + 1], "x"));
    refused(keyspace.put("x", vec![0; lsmith::VALUE_BYTES_MAX + 1]));
    keyspace.put(vec![7; lsmith::KEY_BYTES_MAX], "x").unwrap();
    assert_eq!(keyspace.iter().count(), 1);
}

#[test]
fn a_batch_reaches_several_keyspaces() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let left = store.keyspace("left").unwrap();
    let right = store.keyspace("right").unwrap();
    for round in 0..200u32 {
        let mut batch = Batch::new();
        batch.put(&left, key(round), round.to_le_bytes());
        batch.put(&right, key(round), round.to_be_bytes());
        batch.delete(&left, key(round.saturating_sub(10)));
        store.write(batch, PersistMode::SyncData).unwrap();
    }
    assert_eq!(left.iter().count(), 10);
    assert_eq!(right.iter().count(), 200);
    drop((store, left, right));
    let store = small(&env).open().unwrap();
    assert_eq!(store.keyspaces(), ["left", "right"]);
    assert_eq!(store.keyspace("right").unwrap().iter().count(), 200);
}

#[test]
fn threads_come_to_the_same_contents() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Store::builder(dir.path()).memtable_bytes(20_000).policy("leveled(ratio=3)");
    let store = open().open().unwrap();
    let keyspace = store.keyspace("default").unwrap();
    for number in 0..20_000u32 {
        keyspace.put(key(number * 7919 % 20_000), format!("value{number}")).unwrap();
    }
    store.flush().unwrap();
    assert_eq!(keyspace.iter().count(), 20_000);
    assert!(store.verify().unwrap().is_empty());
    drop((store, keyspace));
    let store = open().read_only(true).open().unwrap();
    let keyspace = store.keyspace("default").unwrap();
    assert_eq!(keyspace.iter().rev().count(), 20_000);
    assert_eq!(keyspace.put("a", "b").unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_value_is_lent_from_where_it_lies() {
    let (store, keyspace) = open(small(&MemEnv::new().unmapped()));
    for (key, value) in [("a", "short"), ("b", "gone")] {
        keyspace.put(key, value).unwrap();
    }
    keyspace.delete("b").unwrap();
    let look = |key| keyspace.get_with(key, <[u8]>::to_vec).unwrap();
    let expected = [Some(b"short".to_vec()), None, None];
    assert_eq!(["a", "b", "c"].map(look), expected);
    keyspace.flush().unwrap();
    assert_eq!(["a", "b", "c"].map(look), expected);
    let block = keyspace.get("a").unwrap().unwrap();
    let place = |value: &[u8]| value.as_ptr() as usize;
    assert_eq!(keyspace.get_with("a", place).unwrap(), Some(block.as_ptr() as usize));
    // Whoever looks may write, to what he looks at too.
    let before = store.snapshot();
    keyspace.put("a", "new").unwrap();
    let written = keyspace.get_with("a", |value| keyspace.put("a", [value, b"er"].concat()));
    written.unwrap().unwrap().unwrap();
    assert_eq!(look("a").unwrap(), b"newer");
    assert_eq!(before.get_with(&keyspace, "a", <[u8]>::to_vec).unwrap().unwrap(), b"short");
}
