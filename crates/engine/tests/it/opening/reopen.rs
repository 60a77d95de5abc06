//! Closing and opening.
//!
//! Promised: trees, flush counts, memos and policies survive. A policy that is not registered is
//! named by an `Unsupported` error. Opening for reading only shows everything, also entries that
//! are only in the log, and changes nothing in the directory. Keyspaces share nothing but the log.

use crate::frame::small::small;
use crate::hostile::any_plan;
use lsmith::env::{Env, MemEnv};
use lsmith::{Builder, ErrorKind, KeyspaceOptions, PersistMode, Store};
use lsmith_policy::Registry;
use std::path::Path;

fn key(number: usize) -> String {
    format!("{:05}", number * 7919 % 100_000)
}

/// Returns the builder of a store that flushes and merges after a few writes.
fn builder(env: &(impl Env + Clone)) -> Builder {
    small(env).memtable_bytes(1000).block_bytes(100)
}

/// Returns names and contents of all files of the store.
fn files(env: &MemEnv) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new("/store");
    let mut names = env.list(dir).unwrap();
    // A reader leaves this folder empty.
    names.retain(|name| name != "readers" || env.list(&dir.join(name)).unwrap() != [""; 0]);
    let read = |name: String| {
        let file = env.open(&dir.join(&name)).unwrap();
        let mut bytes = vec![0; file.bytes().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

#[test]
fn trees_counts_and_notes_survive() {
    // Round robin keeps in the memo where it is.
    for policy in ["leveled(ratio=2, l0=1, pick=round_robin, table=500B)", "binomial(k=3)"] {
        let env = MemEnv::new();
        let store = builder(&env).policy(policy).open().unwrap();
        let space = store.keyspace("a").unwrap();
        for number in 0..400 {
            space.put(key(number), [1; 20]).unwrap();
        }
        space.flush().unwrap();
        let before = space.view();
        assert!(before.tree.flushes() > 10 && before.tree.disk_run_count() > 1);
        assert_eq!(before.tree.memo().iter().next().is_some(), policy.contains("round_robin"));
        drop((store, space));
        let store = builder(&env).policy("none").open().unwrap();
        let space = store.keyspace("a").unwrap();
        assert_eq!(space.view().tree, before.tree);
        assert_eq!(space.view().memtable_bytes, before.memtable_bytes);
        assert_eq!(
            Registry::builtin().build(policy).unwrap().spec().to_string(),
            space.merge_policy()
        );
    }
}

#[test]
fn a_chosen_policy_survives_and_one_that_is_not_registered_is_named() {
    let env = MemEnv::new();
    let store = builder(&env).policy("tiered(ratio=3)").open().unwrap();
    let [one, two] = ["one", "two"].map(|name| store.keyspace(name).unwrap());
    one.set_merge_policy("binomial(k=7)").unwrap();
    let refused = one.set_merge_policy("binomal").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("binomial"), "{refused}");
    drop((store, one, two));

    let store = builder(&env).open().unwrap();
    assert_eq!(store.keyspace("one").unwrap().merge_policy(), "binomial(k=7)");
    assert_eq!(store.keyspace("two").unwrap().merge_policy(), "tiered(ratio=3)");
    drop(store);

    let registry = any_plan::registry();
    let store = builder(&env).registry(registry).open().unwrap();
    store.keyspace("one").unwrap().set_merge_policy("rogue(seed=3)").unwrap();
    drop(store);
    let error = builder(&env).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let told = error.to_string();
    assert!(told.contains("`rogue`") && told.contains("keyspace one"), "{told}");
    let store = builder(&env).registry(any_plan::registry()).open().unwrap();
    assert_eq!(store.keyspaces(), ["one", "two"], "nothing was lost");
}

#[test]
fn opening_for_reading_shows_everything_and_changes_nothing() {
    let env = MemEnv::new();
    let store = builder(&env).open().unwrap();
    let [one, two] = ["one", "two"].map(|name| store.keyspace(name).unwrap());
    for number in 0..100 {
        one.put(key(number), [1; 20]).unwrap();
    }
    two.put("only in the log", "x").unwrap();
    assert_eq!(two.tree().flushes(), 0);
    drop((store, one, two));
    let before = files(&env);

    let store = builder(&env).read_only(true).open().unwrap();
    let [one, two] = ["one", "two"].map(|name| store.existing_keyspace(name).unwrap());
    assert_eq!(one.iter().count(), 100);
    assert_eq!(two.get("only in the log").unwrap().as_deref(), Some(&b"x"[..]));
    assert!(store.verify().unwrap().is_empty());
    let snapshot = store.snapshot();
    assert_eq!(snapshot.range::<&str>(&two, ..).count(), 1);
    for refused in [
        one.put("a", "b"),
        one.delete("a"),
        one.flush(),
        one.merge(),
        one.set_merge_policy("none"),
        store.flush(),
        store.persist(PersistMode::SyncAll),
        store.keyspace("three").map(drop),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
    }
    drop((store, one, two, snapshot));
    assert!(files(&env) == before, "the directory has changed");
}

#[test]
fn where_there_is_no_store_none_is_found_and_other_files_are_left_alone() {
    let env = MemEnv::new();
    for builder in [builder(&env).read_only(true), builder(&env).create_if_missing(false)] {
        assert_eq!(builder.open().unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(env.list(Path::new("/")).unwrap(), [""; 0]);
    env.create_dir_all(Path::new("/store")).unwrap();
    for stranger in ["letter.txt", "000001.table", "000001.wal"] {
        let path = Path::new("/store").join(stranger);
        drop(env.create(&path).unwrap());
        let error = builder(&env).open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(stranger), "{error}");
        env.remove_file(&path).unwrap();
    }
    builder(&env).open().unwrap();
}

#[test]
fn keyspaces_are_independent() {
    let env = MemEnv::new();
    let store = builder(&env).open().unwrap();
    let options = KeyspaceOptions {
        policy: Some("none".into()),
        memtable_bytes: Some(500),
        group: None,
        ..KeyspaceOptions::default()
    };
    let one = store.keyspace_with("one", &options).unwrap();
    let two = store.keyspace("two").unwrap();
    for number in 0..100 {
        one.put(key(number), "of one").unwrap();
    }
    two.put(key(1), "of two").unwrap();
    one.delete(key(2)).unwrap();
    two.flush().unwrap();
    two.merge().unwrap();
    let check = |store: &Store| {
        let [one, two] = ["one", "two"].map(|name| store.existing_keyspace(name).unwrap());
        assert_eq!(one.get(key(1)).unwrap().as_deref(), Some(&b"of one"[..]));
        assert_eq!(two.get(key(1)).unwrap().as_deref(), Some(&b"of two"[..]));
        assert_eq!((one.iter().count(), two.iter().count()), (99, 1));
        assert_eq!(
            (one.merge_policy(), two.merge_policy()),
            ("none".into(), lsmith::DEFAULT_POLICY.into())
        );
        assert_eq!((one.stats().memtable_bytes, two.stats().memtable_bytes), (500, 1000));
        assert!(one.tree().flushes() >= 3 && two.tree().flushes() == 1);
    };
    check(&store);
    drop((store, one, two));
    let store = builder(&env).open().unwrap();
    check(&store);

    let other = MemEnv::new();
    let stranger = builder(&other).open().unwrap().keyspace("one").unwrap();
    let mut batch = lsmith::Batch::new();
    batch.put(&stranger, "a", "b");
    let error = store.write(batch, PersistMode::Buffer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let options = KeyspaceOptions { memtable_bytes: Some(0), ..KeyspaceOptions::default() };
    for refused in [
        store.keyspace("no spaces").map(drop),
        store.keyspace("").map(drop),
        store.keyspace_with("three", &options).map(drop),
        store.existing_keyspace("three").map(drop).map_err(|error| {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            lsmith::Error::new(ErrorKind::InvalidArgument, "")
        }),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

/// A quiet keyspace keeps the first log alive, and so all later logs, even if nothing in them is
/// needed: a row of logs with a gap looks like one that has lost its middle.
#[test]
fn logs_between_needed_ones_stay() {
    let env = MemEnv::new();
    let open = || {
        let store = builder(&env).open().unwrap();
        let large = KeyspaceOptions { memtable_bytes: Some(1 << 20), ..KeyspaceOptions::default() };
        let quiet = store.keyspace_with("quiet", &large).unwrap();
        let busy = store.keyspace("busy").unwrap();
        (store, quiet, busy)
    };
    let (store, quiet, busy) = open();
    quiet.put("a", "1").unwrap();
    for number in 0..180 {
        busy.put(key(number), vec![7; 1000]).unwrap();
    }
    busy.flush().unwrap();
    let logs = |env: &MemEnv| {
        let names = env.list(Path::new("/store")).unwrap();
        names.into_iter().filter(|name| name.ends_with(".wal")).count()
    };
    assert_eq!(logs(&env), 3);
    drop((store, quiet, busy));
    for round in 2..5 {
        let (_store, quiet, busy) = open();
        quiet.put("a", round.to_string()).unwrap();
        busy.put("b", round.to_string()).unwrap();
    }
    let (store, quiet, busy) = open();
    assert_eq!(quiet.get("a").unwrap().as_deref(), Some(&b"4"[..]));
    assert_eq!(busy.iter().count(), 181);
    store.flush().unwrap();
    assert_eq!(logs(&env), 1);
}

/// The next owner of a store frees the space of blocks that no slice needs. An iterator may still
/// read them, so the store stays open as long as the iterator lives.
#[test]
fn an_iterator_keeps_its_store_open() {
    let env = MemEnv::new();
    let store = builder(&env).open().unwrap();
    let space = store.keyspace("a").unwrap();
    for number in 0..100 {
        space.put(key(number), [1; 20]).unwrap();
    }
    let mut iter = space.iter();
    drop((store, space));
    assert_eq!(builder(&env).open().unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(iter.by_ref().map(Result::unwrap).count(), 100);
    drop(iter);
    builder(&env).open().unwrap();
}

/// A plan took inserts out of memory, and the log still has them. A later remove must meet their
/// copies in tables, and not cancel with those in the log when the log is read again.
#[test]
fn what_a_plan_took_does_not_come_back_from_the_log_to_cancel() {
    for policy in ["choose_best(ratio=3, rate=0.2)", "mixed(ratio=3, rate=0.2)", "rr(ratio=2)"] {
        let env = MemEnv::new();
        let open = |env: &MemEnv| {
            let store = builder(env).policy(policy).memtable_bytes(4000).log_bytes(1 << 20);
            let store = store.open().unwrap();
            let space = store.keyspace("a").unwrap();
            (store, space)
        };
        let (store, space) = open(&env);
        for number in 0..300 {
            space.put_new_unchecked(key(number), [1; 20]).unwrap();
        }
        let tree = space.tree();
        let in_memory = |key: &str| {
            let slices = tree.memory().runs().iter().flat_map(|run| run.slices());
            slices.into_iter().any(|slice| slice.range().contains(key.as_bytes()))
        };
        assert!(!tree.memory().runs().is_empty(), "{policy}: all of memory was taken");
        let below: Vec<String> = (0..250).map(key).filter(|key| !in_memory(key)).take(5).collect();
        assert_eq!(below.len(), 5, "{policy}: nothing was taken");
        below.iter().for_each(|key| space.delete_single_unchecked(key).unwrap());
        let logs = env.list(Path::new("/store")).unwrap();
        assert_eq!(logs.iter().filter(|name| name.ends_with(".wal")).count(), 1, "{logs:?}");
        // The death of the process, then an orderly end: the log is read twice.
        let env = env.process_crash_clone();
        drop((store, space));
        for _ in 0..2 {
            let (_store, space) = open(&env);
            for key in &below {
                assert_eq!(space.get(key).unwrap(), None, "{policy}: {key} is back");
            }
            assert_eq!(space.iter().count(), 295, "{policy}");
        }
    }
}
