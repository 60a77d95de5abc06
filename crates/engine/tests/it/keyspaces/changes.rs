//! Dropping, clearing, renaming and listing keyspaces.

use crate::frame::contents::names;
use crate::frame::small::{DIR, plain, small};
use crate::frame::watchdog::{Watchdog, wait_until};
use lsmith::env::{Env, Loss, MemEnv};
use lsmith::{
    Batch, ErrorKind, Expiry, IngestOptions, Keyspace, KeyspaceOptions, PersistMode, SeqNo, Store,
    TableWriter, TableWriterOptions,
};
use std::path::Path;
use std::sync::Arc;

fn fill(keyspace: &Keyspace, count: u32) {
    for number in 0..count {
        keyspace.put(format!("{:05}", number * 7919 % 100_000), [b'v'; 60]).unwrap();
    }
}

fn keys(keyspace: &Keyspace) -> Vec<String> {
    let key = |entry: lsmith::Result<(bytes::Bytes, bytes::Bytes)>| {
        String::from_utf8(entry.unwrap().0.to_vec()).unwrap()
    };
    keyspace.iter().map(key).collect()
}

fn in_group(group: &str) -> KeyspaceOptions {
    KeyspaceOptions { group: Some(group.into()), ..KeyspaceOptions::default() }
}

#[test]
fn dropped_keyspace_gives_its_space_back_at_once() {
    for lockstep in [true, false] {
        let env = MemEnv::new();
        let store = small(&env).lockstep(lockstep).open().unwrap();
        let kept = store.keyspace("kept").unwrap();
        let gone = store.keyspace("gone").unwrap();
        kept.put("a", "1").unwrap();
        kept.flush().unwrap();
        fill(&gone, 2000);
        let id = gone.id();
        assert!(names(&env, DIR, ".table").len() > 1);
        store.drop_keyspace("gone").unwrap();
        assert_eq!(
            (
                names(&env, DIR, ".table").len(),
                names(&env, DIR, ".wal").len(),
                names(&env, DIR, ".spill").len()
            ),
            (1, 1, 0)
        );
        assert_eq!(store.memory().memtables, kept.stats().memory_allocated_bytes);
        assert_eq!(store.keyspaces(), ["kept"]);
        let again = store.keyspace("gone").unwrap();
        assert!(again.id() > id && keys(&again).is_empty());
        assert!(store.verify().unwrap().is_empty());
    }
}

#[test]
fn handles_of_a_dropped_keyspace_fail_and_say_why() {
    for lockstep in [true, false] {
        let env = MemEnv::new();
        let store = small(&env).lockstep(lockstep).open().unwrap();
        let gone = store.keyspace("gone").unwrap();
        fill(&gone, 300);
        let snapshot = store.snapshot();
        let mut iter = gone.iter();
        let mut load = gone.bulk_load().unwrap();
        load.put("a", "1").unwrap();
        store.drop_keyspace("gone").unwrap();
        let mut batch = Batch::new();
        batch.put(&gone, "a", "1");
        let errors = [
            gone.get("00000").map(drop),
            gone.get("absent").map(drop),
            gone.get_with("00000", |_| ()).map(drop),
            snapshot.get(&gone, "00000").map(drop),
            gone.iter().next().unwrap().map(drop),
            snapshot.range::<&str>(&gone, ..).next().unwrap().map(drop),
            gone.put("a", "1"),
            gone.delete("a"),
            store.write(batch, PersistMode::Buffer),
            gone.flush(),
            gone.merge(),
            gone.clear(),
            gone.set_merge_policy("none"),
            gone.set_compression("lz4"),
            load.finish().map(drop),
            store.drop_keyspace("gone"),
            store.rename_keyspace("gone", "new"),
            store.existing_keyspace("gone").map(drop),
        ];
        for (number, error) in errors.into_iter().enumerate() {
            let error = error.expect_err(&format!("call {number} fails"));
            assert_eq!(error.kind(), ErrorKind::NotFound, "call {number}: {error}");
        }
        // An iterator under way goes on.
        assert_eq!(iter.next().unwrap().unwrap().0, "00000");
        assert_eq!(iter.count(), 299);
        store.settle().unwrap();
        assert_eq!(names(&env, DIR, ".table").len(), 0);
    }
}

/// Numbers of keyspaces were taken anew. The log then had writes to the keyspace before.
#[test]
fn writes_in_the_log_to_a_dropped_keyspace_are_not_those_of_the_next() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let kept = store.keyspace("kept").unwrap();
    kept.put("before", "").unwrap();
    for round in 0..3 {
        let gone = store.keyspace("gone").unwrap();
        gone.put(format!("old {round}"), "").unwrap();
        store.drop_keyspace("gone").unwrap();
    }
    store.keyspace("gone").unwrap().put("new", "").unwrap();
    kept.put("after", "").unwrap();
    store.persist(PersistMode::SyncData).unwrap();
    for crashed in [env.process_crash_clone(), env.power_loss(1, Loss::Everything)] {
        let store = small(&crashed).open().unwrap();
        assert_eq!(keys(&store.existing_keyspace("kept").unwrap()), ["after", "before"]);
        let gone = store.existing_keyspace("gone").unwrap();
        assert_eq!(keys(&gone), ["new"]);
        // The manifest of this opening has no record of the drops.
        store.drop_keyspace("gone").unwrap();
        let again = crashed.process_crash_clone();
        // Nor has the manifest that this opening writes.
        drop(small(&again).open().unwrap());
        let store = small(&again).open().unwrap();
        let next = store.keyspace("gone").unwrap();
        assert!(next.id() > gone.id() && keys(&next).is_empty());
        assert!(store.verify().unwrap().is_empty());
    }
}

/// A drop is durable when it returns. So is all that was written before.
#[test]
fn power_loss_behind_a_drop_takes_nothing_that_was_written_before() {
    for loss in Loss::ALL {
        let env = MemEnv::new();
        let store = small(&env).open().unwrap();
        store.keyspace("gone").unwrap().put("a", "").unwrap();
        store.persist(PersistMode::SyncData).unwrap();
        store.keyspace("kept").unwrap();
        store.persist(PersistMode::SyncData).unwrap();
        store.existing_keyspace("kept").unwrap().put("before", "").unwrap();
        store.drop_keyspace("gone").unwrap();
        let store = small(&env.power_loss(5, loss)).open().unwrap();
        assert_eq!(store.keyspaces(), ["kept"], "{loss:?}");
        assert_eq!(keys(&store.existing_keyspace("kept").unwrap()), ["before"], "{loss:?}");
    }
}

#[test]
fn last_keyspace_can_go_and_the_store_goes_on() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    fill(&store.keyspace("a").unwrap(), 500);
    store.drop_keyspace("a").unwrap();
    let crashed = env.power_loss(3, Loss::Everything);
    let store = small(&crashed).open().unwrap();
    assert!(store.keyspaces().is_empty());
    let next = store.keyspace("a").unwrap();
    next.put("k", "v").unwrap();
    store.persist(PersistMode::SyncData).unwrap();
    let crashed = crashed.power_loss(3, Loss::Everything);
    assert_eq!(keys(&small(&crashed).open().unwrap().existing_keyspace("a").unwrap()), ["k"]);
}

#[test]
fn clearing_happens_at_one_moment() {
    for lockstep in [true, false] {
        let env = MemEnv::new();
        let store = small(&env).lockstep(lockstep).open().unwrap();
        let other = store.keyspace("other").unwrap();
        let cleared = store.keyspace("cleared").unwrap();
        other.put("unsynced", "").unwrap();
        fill(&cleared, 1000);
        let before = store.snapshot();
        let iter = cleared.iter();
        cleared.put("late", "").unwrap();
        let late = store.snapshot();
        cleared.clear().unwrap();
        assert!(keys(&cleared).is_empty() && cleared.get("late").unwrap().is_none());
        assert!(store.snapshot().get(&cleared, "00000").unwrap().is_none());
        cleared.put("00000", "new").unwrap();
        cleared.flush().unwrap();
        assert_eq!(before.range::<&str>(&cleared, ..).count(), 1000);
        assert_eq!(late.range::<&str>(&cleared, ..).count(), 1001);
        assert_eq!(before.get(&cleared, "00000").unwrap().unwrap(), [b'v'; 60][..]);
        assert_eq!(iter.count(), 1000);
        drop((before, late));
        store.settle().unwrap();
        assert_eq!(names(&env, DIR, ".table").len(), 1, "the tables went with the snapshots");
        assert_eq!(keys(&cleared), ["00000"]);
        assert!(store.verify().unwrap().is_empty());
        for crashed in [env.process_crash_clone(), env.power_loss(2, Loss::Everything)] {
            let store = small(&crashed).lockstep(lockstep).open().unwrap();
            assert_eq!(keys(&store.existing_keyspace("cleared").unwrap()), ["00000"]);
            assert_eq!(keys(&store.existing_keyspace("other").unwrap()), ["unsynced"]);
        }
    }
}

#[test]
fn clearing_frees_tables_logs_and_copies_at_once() {
    for lockstep in [true, false] {
        let env = MemEnv::new();
        let store = small(&env).lockstep(lockstep).log_bytes(64 << 10).log_bytes_max(64 << 10);
        let store = store.policy("mixed(ratio=4)").memtable_bytes(50_000).open().unwrap();
        let cleared = store.keyspace("cleared").unwrap();
        fill(&cleared, 5000);
        cleared.clear().unwrap();
        assert_eq!((names(&env, DIR, ".table").len(), names(&env, DIR, ".spill").len()), (0, 0));
        assert!(names(&env, DIR, ".wal").len() <= 3);
        assert_eq!(cleared.tree().runs().count(), 0);
    }
}

/// The limit on what merges write makes this merge take half a minute.
#[test]
fn merges_under_way_are_given_up() {
    let env = MemEnv::new();
    let store = plain(&env).policy("none").threads(2);
    let store = store.memtable_bytes(1 << 20).merge_bytes_per_s(Some(400_000)).open().unwrap();
    for act in [
        |store: &Store| store.existing_keyspace("a").unwrap().clear().unwrap(),
        |store: &Store| store.drop_keyspace("a").unwrap(),
    ] {
        let keyspace = store.keyspace("a").unwrap();
        for number in 0..60_000_u32 {
            keyspace.put(number.to_be_bytes(), [7; 200]).unwrap();
        }
        let merging = std::thread::spawn({
            let keyspace = keyspace.clone();
            move || keyspace.merge()
        });
        while !keyspace.view().reservations.iter().any(|plan| plan.plan.inputs.len() > 3) {
            std::thread::yield_now();
        }
        act(&store);
        assert_eq!(names(&env, DIR, ".table").len(), 0);
        let _ = merging.join().unwrap();
        store.settle().unwrap();
        assert_eq!(store.stats().plans_failed, 0);
    }
}

#[test]
fn clearing_and_dropping_while_others_write() {
    let env = MemEnv::new();
    let store = small(&env).lockstep(false).open().unwrap();
    let stay = store.keyspace("stay").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..3000_u32 {
                    let stay = store.keyspace("stay").unwrap();
                    let key = format!("{thread} {number:05}");
                    stay.put(&key, [b'v'; 30]).unwrap();
                    let comes = store.keyspace("comes").unwrap();
                    match comes.put(&key, [b'v'; 30]) {
                        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
                        Ok(()) => drop(comes.get(&key)),
                    }
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..30 {
                stay.clear().unwrap();
                match store.drop_keyspace("comes") {
                    Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
                    Ok(()) => std::thread::yield_now(),
                }
            }
        });
    });
    stay.clear().unwrap();
    assert!(keys(&stay).is_empty());
    store.keyspace("comes").unwrap();
    store.drop_keyspace("comes").unwrap();
    store.settle().unwrap();
    assert_eq!(names(&env, DIR, ".table").len(), 0);
    let store = small(&env.process_crash_clone()).lockstep(false).open().unwrap();
    assert_eq!(store.keyspaces(), ["stay"]);
    assert!(keys(&store.existing_keyspace("stay").unwrap()).is_empty());
}

#[test]
fn keyspaces_of_a_group_are_cleared_alone_and_dropped_together() {
    for lockstep in [true, false] {
        let env = MemEnv::new();
        let store = small(&env).lockstep(lockstep).open().unwrap();
        let [rows, dates] =
            ["rows", "dates"].map(|name| store.keyspace_with(name, &in_group("orders")).unwrap());
        for number in 0..500 {
            let mut batch = Batch::new();
            batch.put(&rows, format!("{number:05}"), [b'v'; 60]);
            batch.put(&dates, format!("{number:05}"), "");
            store.write(batch, PersistMode::Buffer).unwrap();
        }
        let before = store.snapshot();
        rows.clear().unwrap();
        assert!(keys(&rows).is_empty());
        assert_eq!(keys(&dates).len(), 500);
        assert_eq!(before.range::<&str>(&rows, ..).count(), 500);
        rows.put("new", "").unwrap();
        let error = store.drop_keyspace("rows").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("drop `orders`"), "{error}");
        store.rename_keyspace("rows", "lines").unwrap();
        store.rename_keyspace("orders", "archive").unwrap();
        assert_eq!((rows.name(), rows.group()), ("lines", Some("archive")));
        let crashed = env.process_crash_clone();
        let again = small(&crashed).lockstep(lockstep).open().unwrap();
        assert_eq!(again.keyspaces(), ["dates", "lines"]);
        let lines = again.existing_keyspace("lines").unwrap();
        assert_eq!((keys(&lines), lines.group()), (vec!["new".to_string()], Some("archive")));
        assert_eq!(keys(&again.existing_keyspace("dates").unwrap()).len(), 500);
        drop(before);
        store.drop_keyspace("archive").unwrap();
        assert!(store.keyspaces().is_empty());
        assert_eq!(rows.get("new").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(names(&env, DIR, ".table").len(), 0);
        assert!(
            small(&env.process_crash_clone())
                .lockstep(lockstep)
                .open()
                .unwrap()
                .keyspaces()
                .is_empty()
        );
    }
}

#[test]
fn renamed_keyspace_keeps_its_handles_and_its_entries() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let old = store.keyspace("old").unwrap();
    store.keyspace("taken").unwrap();
    old.put("a", "1").unwrap();
    let name = old.name();
    store.rename_keyspace("old", "new").unwrap();
    assert_eq!((name, old.name()), ("old", "new"));
    let mut batch = Batch::new();
    batch.put(&old, "b", "2");
    store.write(batch, PersistMode::Buffer).unwrap();
    assert_eq!(store.existing_keyspace("old").unwrap_err().kind(), ErrorKind::NotFound);
    for (from, to) in [("new", "taken"), ("new", "new"), ("new", "no spaces"), ("new", "")] {
        let error = store.rename_keyspace(from, to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{from} {to}: {error}");
    }
    store.keyspace("old").unwrap().put("other", "").unwrap();
    store.rename_keyspace("new", "c").unwrap();
    store.rename_keyspace("old", "new").unwrap();
    let store = small(&env.process_crash_clone()).open().unwrap();
    assert_eq!(store.keyspaces(), ["c", "new", "taken"]);
    assert_eq!(keys(&store.existing_keyspace("c").unwrap()), ["a", "b"]);
    assert_eq!(keys(&store.existing_keyspace("new").unwrap()), ["other"]);
}

/// Entries with numbers of their own that are older than the clearing would come back.
#[test]
fn entries_from_outside_that_are_older_than_the_clearing_are_refused() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let options = KeyspaceOptions { keep_numbers: Some(true), ..KeyspaceOptions::default() };
    let numbered = store.keyspace_with("numbered", &options).unwrap();
    (0..10).for_each(|number| numbered.put(format!("{number}"), "").unwrap());
    numbered.clear().unwrap();
    let made = Path::new("/made.table");
    let shared: Arc<dyn Env> = Arc::new(env.clone());
    let options = TableWriterOptions { env: shared, ..TableWriterOptions::default() };
    let mut writer = TableWriter::create_with(made, &options).unwrap();
    writer.put_at("5", "old", SeqNo(4)).unwrap();
    writer.finish().unwrap();
    let error = store.ingest(&numbered, &[made], &IngestOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(keys(&numbered).is_empty());
}

#[test]
fn keyspaces_are_listed_without_opening_the_store() {
    let env = MemEnv::new();
    let list = || small(&env).list_keyspaces();
    assert_eq!(list().unwrap_err().kind(), ErrorKind::NotFound);
    let store = small(&env).open().unwrap();
    assert!(list().unwrap().is_empty());
    store.keyspace("b").unwrap();
    store.keyspace_with("a", &in_group("g")).unwrap();
    let options = KeyspaceOptions {
        policy: Some("none".into()),
        memtable_bytes: Some(777),
        keep_numbers: Some(true),
        ..KeyspaceOptions::default()
    };
    store.keyspace_with("c", &options).unwrap();
    let expiry = Some(Expiry::after(60));
    store.keyspace_with("e", &KeyspaceOptions { expiry, ..in_group("g") }).unwrap();
    let operator = Some("counter".to_string());
    store.keyspace_with("f", &KeyspaceOptions { operator, ..in_group("g") }).unwrap();
    store.drop_keyspace("b").unwrap();
    store.rename_keyspace("c", "d").unwrap();
    let found = list().unwrap();
    let names: Vec<_> = found.iter().map(|info| (&*info.name, info.group.as_deref())).collect();
    assert_eq!(names, [("a", Some("g")), ("d", None), ("e", Some("g")), ("f", Some("g"))]);
    let rules: Vec<_> = found.iter().map(|info| (info.expiry, info.operator.as_deref())).collect();
    assert_eq!(rules, [(None, None), (None, None), (expiry, None), (None, Some("counter"))]);
    let d = &found[1];
    assert_eq!((&*d.policy, d.memtable_bytes, d.keep_numbers, d.id), ("none", 777, true, 2));
    assert_eq!(store.keyspaces(), ["a", "d", "e", "f"], "the store is open all the while");
}

/// What broke: the log in use stayed, whatever its size.
#[test]
fn a_log_that_only_a_dropped_or_cleared_keyspace_needs_goes_with_it() {
    let held = |env: &MemEnv| {
        let names = env.list(Path::new(DIR)).unwrap();
        let held = |name: &String| env.held_bytes(&Path::new(DIR).join(name)).unwrap_or_default();
        names.iter().filter(|name| name.ends_with(".wal")).map(held).sum::<u64>() >> 20
    };
    // For a moment, two threads may make one log too many.
    let falls = |env: &MemEnv, lockstep: bool| {
        let _watchdog = Watchdog::new("logs that nothing needs stay");
        wait_until(|| lockstep || held(env) <= 25);
        assert!(held(env) <= 25, "{} MiB of logs are left", held(env));
    };
    for (lockstep, clears) in [(true, false), (true, true), (false, false), (false, true)] {
        let env = MemEnv::new();
        let builder = small(&env).lockstep(lockstep);
        let store = builder.clone().open().unwrap();
        let large =
            KeyspaceOptions { memtable_bytes: Some(64 << 20), ..KeyspaceOptions::default() };
        let (gone, kept) =
            (store.keyspace_with("gone", &large).unwrap(), store.keyspace("kept").unwrap());
        // Each record has a log of its own. Other logs have 8 MiB; two of them are made ahead.
        let fill = |number: u8| {
            let mut batch = Batch::new();
            batch.put(&gone, [number], vec![number; 28 << 20]);
            store.write(batch, PersistMode::Buffer).unwrap();
        };
        let end = || match clears {
            true => gone.clear().unwrap(),
            false => store.drop_keyspace("gone").unwrap(),
        };
        fill(1);
        assert!(held(&env) >= 28, "{} MiB of logs", held(&env));
        if clears {
            end();
            falls(&env, lockstep);
            // A small log is written on.
            let logs = names(&env, DIR, ".wal").len();
            gone.put("small", "").unwrap();
            end();
            assert!(!lockstep || names(&env, DIR, ".wal").len() == logs);
        }
        // Logs from the oldest on that another keyspace needs stay.
        kept.put("key", "value").unwrap();
        fill(2);
        if clears {
            end();
            assert!(held(&env) >= 28, "{} MiB of logs", held(&env));
            kept.flush().unwrap();
        } else {
            kept.flush().unwrap();
            end();
            falls(&env, lockstep);
        }
        kept.put("later", "value").unwrap();
        store.persist(PersistMode::SyncAll).unwrap();
        drop((gone, kept, store));
        let lost = env.crash_clone(3, 0.5);
        for env in [env, lost] {
            let store = builder.clone().env(Arc::new(env)).open().unwrap();
            let kept = store.existing_keyspace("kept").unwrap();
            assert_eq!(keys(&kept), ["key", "later"]);
            assert!(store.left_out().unwrap().is_empty());
        }
    }
}
