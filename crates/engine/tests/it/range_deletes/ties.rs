//! Entries that arrive with the very sequence number of a range delete over their key.
//!
//! Promised: a range delete hides entries with smaller numbers, and no others. So such an entry is
//! there for every kind of read, whatever else its table has, at once, after merges and after
//! reopening, under every policy.
//!
//! What broke: reads and merges passed over tables whose greatest number was the number of the
//! range delete. So it was there if its table had a newer entry, and for some reads.

use crate::frame::batches::POLICIES;
use crate::ingest::numbered::{Numbered, appending, keeping, write_table};
use lsmith::env::MemEnv;
use lsmith::{
    ErrorKind, IngestOptions, Keyspace, KeyspaceOptions, Store, TableWriter, TableWriterOptions,
};
use std::sync::Arc;

/// Where the range delete is when the table arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Active,
    Flushed,
    Merged,
}

fn key(number: usize) -> Vec<u8> {
    format!("{number:03}").into_bytes()
}

fn value(text: &str) -> Option<Vec<u8>> {
    Some(text.as_bytes().to_vec())
}

/// Asserts that every kind of read finds `expected` in keys 20 to 29, which a range delete covers.
fn check(space: &Keyspace, expected: &[(usize, &str)], what: &str) {
    let expected: Vec<(Vec<u8>, Vec<u8>)> =
        expected.iter().map(|(number, value)| (key(*number), value.as_bytes().to_vec())).collect();
    let snapshot = space.store().snapshot();
    let pair = |entry: lsmith::Result<(bytes::Bytes, bytes::Bytes)>| {
        entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()
    };
    let range = || space.range(key(20)..key(30));
    assert_eq!(range().map(pair).collect::<Vec<_>>(), expected, "{what}: a scan");
    let mut back: Vec<_> = range().rev().map(pair).collect();
    back.reverse();
    assert_eq!(back, expected, "{what}: a scan backwards");
    let gets = |get: &dyn Fn(Vec<u8>) -> Option<bytes::Bytes>| {
        let found = (20..30).filter_map(|n| Some((key(n), get(key(n))?.to_vec())));
        found.collect::<Vec<_>>()
    };
    assert_eq!(gets(&|key| space.get(key).unwrap()), expected, "{what}: gets");
    let at = gets(&|key| snapshot.get(space, key).unwrap());
    assert_eq!(at, expected, "{what}: gets of a snapshot");
}

/// Makes a store in which a range delete over keys 20 to 29 has the number `.2`.
fn made(env: &MemEnv, policy: &str, place: Place, operator: bool) -> (Store, Keyspace, u64) {
    let store = appending(env, policy).open().unwrap();
    let operator = operator.then(|| "append".to_string());
    let options = KeyspaceOptions { operator, ..keeping() };
    let space = store.keyspace_with("a", &options).unwrap();
    for number in 0..40 {
        space.put(key(number), "before").unwrap();
    }
    if place != Place::Active {
        store.flush().unwrap();
    }
    space.delete_range(key(20)..key(30)).unwrap();
    let range_deletes = store.snapshot().seq().0;
    match place {
        Place::Active => {}
        Place::Flushed => store.flush().unwrap(),
        Place::Merged => space.merge().unwrap(),
    }
    (store, space, range_deletes)
}

#[test]
fn an_entry_with_the_number_of_a_range_delete_is_there_for_every_read() {
    let mut ingested = 0;
    for policy in POLICIES {
        for place in [Place::Active, Place::Flushed, Place::Merged] {
            for (has_older, has_newer) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                let env = MemEnv::new();
                let (store, space, range_deletes) = made(&env, policy, place, false);
                let what = format!("{policy}, {place:?}, older {has_older}, newer {has_newer}");
                let before = store.snapshot();
                let mut table: Numbered = [(key(24), (range_deletes, value("tie")))].into();
                let mut expected = vec![(24, "tie")];
                // Refused if a merge has dropped something for the range delete: that could come
                // back.
                if has_older {
                    table.insert(key(22), (range_deletes - 1, value("older")));
                }
                if has_newer {
                    table.insert(key(26), (range_deletes + 100, value("newer")));
                    expected.push((26, "newer"));
                }
                let file = write_table(&env, "/made.table", &table);
                if let Err(error) = store.ingest(&space, &[file], &IngestOptions::default()) {
                    assert!(has_older && error.kind() == ErrorKind::InvalidArgument, "{error}");
                    continue;
                }
                ingested += 1;
                check(&space, &expected, &what);
                assert_eq!(before.range(&space, key(20)..key(30)).count(), 0, "{what}");
                let env_of = Arc::new(env.clone());
                let options = TableWriterOptions { env: env_of, ..TableWriterOptions::default() };
                let mut writer = TableWriter::create_with("/copy.table", &options).unwrap();
                let within = key(20)..key(30);
                let exported = store.snapshot().export(&space, within, &mut writer).unwrap();
                assert!(exported >= expected.len() as u64, "{what}: {exported} exported");
                drop(before);
                store.flush().unwrap();
                check(&space, &expected, &format!("{what}, flushed"));
                drop((store, space));
                let store = appending(&env, policy).open().unwrap();
                let space = store.existing_keyspace("a").unwrap();
                check(&space, &expected, &format!("{what}, reopened"));
                // Merges with what they meet there.
                for number in 0..40 {
                    if !(20..30).contains(&number) {
                        space.put(key(number), "after").unwrap();
                    }
                }
                space.merge().unwrap();
                check(&space, &expected, &format!("{what}, merged"));
                drop((store, space));
                let store = appending(&env, policy).open().unwrap();
                let space = store.existing_keyspace("a").unwrap();
                check(&space, &expected, &format!("{what}, reopened again"));
            }
        }
    }
    assert!(ingested > 3 * 2 * POLICIES.len(), "{ingested}");
}

/// An operand with the number applies to nothing beneath.
#[test]
fn an_operand_with_the_number_of_a_range_delete_begins_from_nothing() {
    for policy in POLICIES {
        for place in [Place::Active, Place::Flushed] {
            for has_newer in [false, true] {
                let env = MemEnv::new();
                let (store, space, range_deletes) = made(&env, policy, place, true);
                let what = format!("{policy}, {place:?}, newer {has_newer}");
                let mut table: Numbered = [(key(24), (range_deletes, value("+tie")))].into();
                let mut expected = vec![(24, "+tie")];
                if has_newer {
                    table.insert(key(26), (range_deletes + 100, value("+newer")));
                    expected.push((26, "+newer"));
                }
                let file = write_table(&env, "/made.table", &table);
                store.ingest(&space, &[file], &IngestOptions::default()).unwrap();
                check(&space, &expected, &what);
                space.combine(key(24), "+more").unwrap();
                expected[0].1 = "+tie+more";
                check(&space, &expected, &what);
                space.merge().unwrap();
                check(&space, &expected, &format!("{what}, merged"));
                drop((store, space));
                let store = appending(&env, policy).open().unwrap();
                let space = store.existing_keyspace("a").unwrap();
                check(&space, &expected, &format!("{what}, reopened"));
            }
        }
    }
}
