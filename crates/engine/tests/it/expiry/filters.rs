//! Filters of merges, beside combine operators, expiry and each other.
//!
//! Promised: a filter decides on values, never on operands or times that the store keeps with them.
//! What it drops is gone, and what it changes keeps its time, under every policy. A filter that
//! drops everything leaves a store that works.

use crate::frame::contents::get;
use crate::frame::operators::Append;
use crate::frame::small::{reader, small};
use crate::store::model::policies;
use lsmith::env::MemEnv;
use lsmith::{Clock, Expiry, Keyspace, KeyspaceOptions, Verdict};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Operands begin with `+`, and values with `=`.
#[test]
fn a_filter_sees_what_operands_make_and_no_operand() {
    let (mut asked, mut dropped) = (0, 0);
    for policy in policies() {
        let env = MemEnv::new();
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let filter = {
            let seen = Arc::clone(&seen);
            move |key: &[u8], value: &[u8]| {
                if key.ends_with(b"7") {
                    return Verdict::Drop;
                }
                seen.lock().unwrap().insert(value.to_vec());
                Verdict::Keep
            }
        };
        let builder = small(&env).policy(&*policy).operator(Append);
        let store = builder.merge_filter("notes", filter).open().unwrap();
        let options =
            KeyspaceOptions { operator: Some("append".into()), ..KeyspaceOptions::default() };
        let space = store.keyspace_with("notes", &options).unwrap();
        let keys = || (0..100).map(|number| format!("key {number:02}"));
        keys().for_each(|key| space.put(key, "=").unwrap());
        for round in 0..8 {
            keys().for_each(|key| space.combine(key, format!("+{round}")).unwrap());
        }
        store.flush().unwrap();
        space.merge().unwrap();
        let seen = seen.lock().unwrap();
        assert!(seen.iter().all(|value| value[0] == b'='), "{policy}: {seen:?}");
        asked += seen.len();
        for key in keys() {
            let found = get(&space, &key);
            let whole = "=+0+1+2+3+4+5+6+7";
            let is_whole = found.as_deref() == Some(whole);
            if !key.ends_with('7') {
                assert!(is_whole, "{policy}: {key} {found:?}");
                continue;
            }
            dropped += u32::from(!is_whole);
            // A filter may drop a value before its last operands are merged with it, and a merge
            // does not show what it has just made of operands.
            let is_end = found.as_ref().is_none_or(|value| whole.ends_with(value));
            assert!(is_end, "{policy}: {key} {found:?}");
        }
    }
    assert!(asked > 0 && dropped > 0, "{asked} {dropped}");
}

#[test]
fn a_filter_sees_values_without_their_times_and_leaves_the_times() {
    for policy in policies() {
        let env = MemEnv::new();
        let now = Arc::new(AtomicU64::new(1));
        let clock = Arc::clone(&now);
        let filter = |_: &[u8], value: &[u8]| match value {
            b"value" => Verdict::Change(b"changed".to_vec()),
            b"changed" | b"lasting" => Verdict::Keep,
            b"goes" => Verdict::Drop,
            other => panic!("{other:?}"),
        };
        let builder = small(&env)
            .policy(&*policy)
            .clock(Clock::new("test", move || clock.load(Ordering::SeqCst)));
        let store = builder.merge_filter("space", filter).open().unwrap();
        let options =
            KeyspaceOptions { expiry: Some(Expiry::default()), ..KeyspaceOptions::default() };
        let space = store.keyspace_with("space", &options).unwrap();
        for number in 0..100 {
            space.put_until(format!("expires {number}"), "value", 10).unwrap();
            space.put(format!("stays {number}"), "lasting").unwrap();
            space.put_until(format!("vanishes {number}"), "goes", 10).unwrap();
        }
        store.flush().unwrap();
        space.merge().unwrap();
        let keys = ["expires 50", "stays 50", "vanishes 50"];
        let found = |space: &Keyspace| {
            let found = space.multi_get(keys).unwrap().into_iter();
            found.map(|value| value.map(|value| value.to_vec())).collect::<Vec<_>>()
        };
        let texts = |all: [Option<&str>; 3]| all.map(|text| text.map(|text| text.into())).to_vec();
        let policy_merges = !policy.starts_with("fifo") && !policy.starts_with("none");
        if policy_merges {
            assert_eq!(found(&space), texts([Some("changed"), Some("lasting"), None]), "{policy}");
        }
        now.store(10, Ordering::SeqCst);
        assert_eq!(found(&space), texts([None, Some("lasting"), None]), "{policy}");
        assert_eq!(space.iter().count(), 100, "{policy}");
        assert_eq!(space.multi_get::<&str>([]).unwrap(), Vec::<Option<_>>::new());
        // A store that is opened for reading only has a clock of its own.
        drop((space, store));
        for (time, expected) in [(9, policy_merges.then_some("changed")), (10, None)] {
            let store = reader(&env).clock(Clock::new("test", move || time)).open().unwrap();
            let space = store.existing_keyspace("space").unwrap();
            if policy_merges || time == 10 {
                assert_eq!(get(&space, "expires 50").as_deref(), expected, "{policy}");
            }
            assert_eq!(get(&space, "stays 50").as_deref(), Some("lasting"), "{policy}");
        }
    }
}

#[test]
fn a_filter_that_drops_everything_leaves_a_store_that_works() {
    for policy in policies() {
        let env = MemEnv::new();
        let drops = |_: &[u8], _: &[u8]| Verdict::Drop;
        let store = small(&env).policy(&*policy).merge_filter("space", drops).open().unwrap();
        let space = store.keyspace("space").unwrap();
        for life in 0..2 {
            for number in 0..300 {
                space.put(format!("key {number:03}"), format!("life {life}")).unwrap();
            }
            space.merge().unwrap();
        }
        let left = space.iter().count();
        assert!(left == 0 || policy.starts_with("fifo") || policy.starts_with("none"), "{policy}");
        drop((space, store));
        let store = small(&env).policy(&*policy).open().unwrap();
        let space = store.keyspace("space").unwrap();
        assert_eq!(space.iter().count(), left, "{policy}");
        space.put("key", "stays without the filter").unwrap();
        space.merge().unwrap();
        assert_eq!(get(&space, "key").as_deref(), Some("stays without the filter"), "{policy}");
        assert!(store.verify().unwrap().is_empty(), "{policy}");
    }
}
