//! Calls that break a rule.
//!
//! Promised: they fail with an error of kind `InvalidArgument` that names the rule, change nothing,
//! and do not panic. A store never answers for the handles of another.

use crate::frame::small::{open, small};
use lsmith::env::MemEnv;
use lsmith::{
    BATCH_BYTES_MAX, Batch, ErrorKind, KEY_BYTES_MAX, KeyspaceOptions, PersistMode, SeqNo, Store,
    TableWriter, TableWriterOptions, VALUE_BYTES_MAX,
};
use std::ops::Bound;

/// Returns the message of the error in `refused`.
fn told<T>(refused: lsmith::Result<T>) -> String {
    let error = refused.map(drop).expect_err("it breaks a rule");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    error.to_string()
}

fn options(policy: Option<&str>, memtable_bytes: Option<u64>) -> KeyspaceOptions {
    let policy = policy.map(Into::into);
    KeyspaceOptions { policy, memtable_bytes, group: None, ..KeyspaceOptions::default() }
}

/// What broke: the number of a snapshot was looked up among the writes of another store.
#[test]
fn a_snapshot_refuses_keyspaces_of_other_stores() {
    let [(left, own), (_right, others)] =
        [open(small(&MemEnv::new())), open(small(&MemEnv::new()))];
    own.put("key", "own").unwrap();
    others.put("key", "others").unwrap();
    let snapshot = left.snapshot();
    assert_eq!(snapshot.get(&own, "key").unwrap().as_deref(), Some(&b"own"[..]));
    let said = told(snapshot.get(&others, "key"));
    assert!(said.contains("`default`") && said.contains("another store"), "{said}");
    told(snapshot.get_with(&others, "key", |_| panic!("nothing is shown")));
    let mut entries = snapshot.range::<&str>(&others, ..);
    assert_eq!(told(entries.next().unwrap()), said);
    assert!(entries.next().is_none() && entries.next_back().is_none());
    let mut entries = snapshot.range(&others, "a".."z");
    told(entries.next_back().unwrap());
    assert!(entries.next().is_none());
    let mut entries = snapshot.range(&others, "a".."z");
    told(entries.next_ref().unwrap().map(drop));
    assert!(entries.next_ref().is_none());
    let mut entries = snapshot.range(&others, "a".."z");
    told(entries.next_back_ref().unwrap().map(drop));
    assert!(entries.next_back_ref().is_none());
    assert_eq!(snapshot.range::<&str>(&own, ..).count(), 1);
}

#[test]
fn a_batch_over_keyspaces_of_several_stores_is_refused_whole() {
    let [(left, own), (right, others)] = [open(small(&MemEnv::new())), open(small(&MemEnv::new()))];
    for store in [&left, &right] {
        let mut batch = Batch::new();
        batch.put(&own, "key", "value");
        batch.put(&others, "key", "value");
        let said = told(store.write(batch, PersistMode::Buffer));
        assert!(said.contains("another store") && said.contains("`default`"), "{said}");
    }
    assert_eq!((own.iter().count(), others.iter().count()), (0, 0));
}

/// What broke: options of a keyspace that exists were not compared with it.
#[test]
fn a_keyspace_has_the_options_that_are_asked_for_or_is_refused() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let made = options(Some("tiered(ratio=3)"), Some(5000));
    store.keyspace_with("a", &made).unwrap();
    let check = |store: &Store| {
        store.keyspace_with("a", &made).unwrap();
        store.keyspace_with("a", &options(Some("tiered( ratio=3 )"), None)).unwrap();
        store.keyspace("a").unwrap();
        let said = told(store.keyspace_with("a", &options(Some("tierd"), None)));
        assert!(said.contains("did you mean `tiered`"), "{said}");
        told(store.keyspace_with("a", &options(None, Some(0))));
        told(store.keyspace_with("a", &options(None, Some(u64::MAX))));
        let said = told(store.keyspace_with("a", &options(Some("tiered(ratio=4)"), None)));
        for part in ["`a`", "tiered(ratio=3)", "tiered(ratio=4)", "set_merge_policy"] {
            assert!(said.contains(part), "{said}");
        }
        let said = told(store.keyspace_with("a", &options(None, Some(6000))));
        assert!(said.contains("5000") && said.contains("6000"), "{said}");
        assert_eq!(
            store.keyspace("a").unwrap().merge_policy(),
            made.policy.clone().unwrap().spec()
        );
    };
    check(&store);
    for refused in [options(Some("tierd"), None), options(None, Some(0))] {
        told(store.keyspace_with("b", &refused));
    }
    told(store.keyspace_with("b", &options(None, Some(u64::MAX))));
    assert_eq!(store.keyspaces(), ["a"]);
    drop(store);
    check(&small(&env).read_only(true).open().unwrap());
    let store = small(&env).open().unwrap();
    let keyspace = store.keyspace("a").unwrap();
    keyspace.set_merge_policy("none").unwrap();
    told(store.keyspace_with("a", &made));
    store.keyspace_with("a", &options(Some("none"), Some(5000))).unwrap();
}

#[test]
fn a_memtable_of_more_than_there_can_be_is_refused() {
    for bytes in [0, (1 << 40) + 1, u64::MAX] {
        told(small(&MemEnv::new()).memtable_bytes(bytes).open());
    }
    let store = small(&MemEnv::new()).memtable_bytes(1 << 40).log_bytes(u64::MAX).open();
    let keyspace = store.unwrap().keyspace("default").unwrap();
    keyspace.put("key", "value").unwrap();
}

#[test]
fn keys_and_values_beyond_the_limits_are_refused_by_every_call() {
    let (store, keyspace) = open(small(&MemEnv::new()));
    let long = vec![7; KEY_BYTES_MAX + 1];
    let longest = vec![7; KEY_BYTES_MAX];
    let large = vec![0; VALUE_BYTES_MAX + 1];
    for (key, said) in [(&[][..], "expected a key of"), (&long, "found 65536")] {
        for refused in [
            keyspace.put(key, "value"),
            keyspace.put_new_unchecked(key, "value"),
            keyspace.delete(key),
            keyspace.delete_single_unchecked(key),
            keyspace.bulk_load().unwrap().put(key, "value"),
        ] {
            assert!(told(refused).contains(said));
        }
        // No such key is there: that is an answer.
        assert_eq!(keyspace.get(key).unwrap(), None);
        assert!(!keyspace.contains(key).unwrap());
        assert_eq!(store.snapshot().get(&keyspace, key).unwrap(), None);
    }
    assert!(told(keyspace.put("key", &large)).contains("268435457"));
    told(keyspace.put_new_unchecked("key", &large));
    told(keyspace.bulk_load().unwrap().put("key", &large));
    assert_eq!(keyspace.iter().count(), 0);
    keyspace.put(&longest, "value").unwrap();
    for _ in 0..2 {
        assert_eq!(keyspace.get(&longest).unwrap().as_deref(), Some(&b"value"[..]));
        assert_eq!(keyspace.get(&long).unwrap(), None);
        assert_eq!(keyspace.get("").unwrap(), None);
        assert_eq!(keyspace.range(&longest[..]..&long[..]).count(), 1);
        assert_eq!(keyspace.range::<&[u8]>(..&[][..]).count(), 0);
        assert_eq!(keyspace.range::<&[u8]>(&[][..]..).count(), 1);
        assert_eq!(keyspace.prefix(&long).count(), 0);
        keyspace.flush().unwrap();
    }
}

/// What broke: a bulk load and a table writer spoke of keys that are too long.
#[test]
fn an_empty_key_is_refused_with_the_same_words_at_every_door() {
    let (store, alone) = open(small(&MemEnv::new()));
    let in_group = KeyspaceOptions { group: Some("g".into()), ..KeyspaceOptions::default() };
    let member = store.keyspace_with("member", &in_group).unwrap();
    let made = std::path::Path::new("/made.table");
    let options = TableWriterOptions { env: store.env().clone(), ..TableWriterOptions::default() };
    let mut writer = TableWriter::create_with(made, &options).unwrap();
    let mut refused = vec![
        writer.put("", "v"),
        writer.delete(""),
        writer.put_at("", "v", SeqNo(1)),
        writer.delete_at("", SeqNo(1)),
    ];
    for keyspace in [&alone, &member] {
        let mut batch = Batch::new();
        batch.put(keyspace, "good", "v");
        batch.put(keyspace, "", "v");
        refused.extend([
            keyspace.put("", "v"),
            keyspace.delete(""),
            keyspace.put_new_unchecked("", "v"),
            keyspace.delete_single_unchecked(""),
            keyspace.bulk_load().unwrap().put("", "v"),
            store.write(batch, PersistMode::Buffer),
        ]);
        assert_eq!(keyspace.iter().count(), 0);
    }
    for (door, refused) in refused.into_iter().enumerate() {
        let said = told(refused);
        let words = "expected a key of at least 1 byte, found an empty key";
        assert!(said.ends_with(words), "door {door}: {said}");
    }
}

/// What broke: a batch reported at the end that some key was empty, and not which.
#[test]
fn a_batch_says_which_of_its_writes_is_refused() {
    let (store, keyspace) = open(small(&MemEnv::new()));
    let long = vec![7; KEY_BYTES_MAX + 1];
    type Fill<'a> = Box<dyn Fn(&mut Batch) + 'a>;
    let fills: [(&str, Fill<'_>); 5] = [
        ("a put", Box::new(|batch| batch.put(&keyspace, "", "value"))),
        ("an insert", Box::new(|batch| batch.put_new_unchecked(&keyspace, &long, "value"))),
        ("a delete", Box::new(|batch| batch.delete(&keyspace, ""))),
        ("a remove", Box::new(|batch| batch.delete_single_unchecked(&keyspace, &long))),
        ("a put", Box::new(|batch| batch.put(&keyspace, "k", vec![0; VALUE_BYTES_MAX + 1]))),
    ];
    for (what, fill) in fills {
        let mut batch = Batch::new();
        batch.put(&keyspace, "a", "1");
        batch.put(&keyspace, "b", "2");
        fill(&mut batch);
        batch.put(&keyspace, "c", "3");
        batch.put(&keyspace, "", "also refused");
        assert_eq!(batch.len(), 5);
        let said = told(store.write(batch, PersistMode::Buffer));
        assert!(said.contains("write 3 of the batch") && said.contains(what), "{said}");
        assert!(said.contains("`default`"), "{said}");
        assert_eq!(keyspace.iter().count(), 0, "{what}");
    }
}

#[test]
fn a_batch_of_more_than_a_gigabyte_is_refused() {
    let (store, keyspace) = open(small(&MemEnv::new()));
    let value = vec![0; VALUE_BYTES_MAX];
    let mut batch = Batch::new();
    for number in 0..5_u8 {
        batch.put(&keyspace, [b'k', number], &value);
    }
    drop(value);
    batch.put(&keyspace, "key", "value");
    assert_eq!((batch.len(), batch.is_empty()), (6, false));
    let said = told(store.write(batch, PersistMode::Buffer));
    assert!(said.contains(&BATCH_BYTES_MAX.to_string()) && said.contains("write 4"), "{said}");
    assert_eq!(keyspace.iter().count(), 0);
    keyspace.put("key", "value").unwrap();
}

#[test]
fn a_range_that_ends_before_it_begins_is_empty() {
    let (_store, keyspace) = open(small(&MemEnv::new()));
    for key in ["a", "b", "c", "d"] {
        keyspace.put(key, "value").unwrap();
    }
    let count = |bounds: (Bound<&str>, Bound<&str>)| {
        let [mut front, mut back] = [(); 2].map(|()| keyspace.range::<&str>(bounds));
        let mut both = keyspace.range::<&str>(bounds);
        let counts = [front.by_ref().count(), back.by_ref().rev().count()];
        let first = both.next();
        let last = both.next_back();
        assert_eq!(first.is_none(), counts[0] == 0);
        assert_eq!(last.is_none(), counts[0] < 2);
        assert_eq!(counts[0], counts[1]);
        counts[0]
    };
    for _ in 0..2 {
        use Bound::{Excluded, Included, Unbounded};
        assert_eq!(count((Included("c"), Excluded("b"))), 0);
        assert_eq!(count((Excluded("d"), Included("a"))), 0);
        assert_eq!(count((Excluded("b"), Excluded("b"))), 0);
        assert_eq!(count((Included("b"), Excluded("b"))), 0);
        assert_eq!(count((Excluded("b"), Included("b"))), 0);
        assert_eq!(count((Included("b"), Included("b"))), 1);
        assert_eq!(count((Excluded("z"), Unbounded)), 0);
        assert_eq!(count((Unbounded, Excluded(""))), 0);
        keyspace.flush().unwrap();
    }
}
