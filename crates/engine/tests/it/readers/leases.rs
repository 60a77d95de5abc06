//! Files that readers beside a writer still need, and leases, which say so.
//!
//! Promised: what a reader can see stays until it has gone or has read on, and no longer. The
//! writer does no more for its writes because of a reader.

use crate::frame::batches::POLICIES;
use crate::frame::small::{DIR, fill, reader, small};
use crate::readers::contents::{all, files, leases};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{Batch, PersistMode};
use std::io;
use std::path::Path;

/// Returns the bytes that all files take on the device.
fn held_bytes(env: &MemEnv) -> u64 {
    let held = |name: &String| env.held_bytes(&Path::new(DIR).join(name)).unwrap_or(0);
    files(env).iter().map(held).sum()
}

#[test]
fn what_goes_waits_for_a_reader_and_not_longer() {
    for policy in POLICIES {
        let env = MemEnv::new();
        let store = small(&env).policy(policy).open().unwrap();
        let space = store.keyspace("a").unwrap();
        fill(&space, 0..400, [1; 50]);
        space.flush().unwrap();
        space.merge().unwrap();
        let reader = reader(&env).open().unwrap();
        let read = reader.existing_keyspace("a").unwrap();
        let before = files(&env);
        let is_there = |name: &String| files(&env).contains(name);
        let rewrite = || {
            fill(&space, 0..400, [2; 50]);
            space.flush().unwrap();
            space.merge().unwrap();
        };
        rewrite();
        assert!(before.iter().all(is_there), "{policy}: {before:?}, {:?}", files(&env));
        assert!(all(read.iter()).iter().all(|(_, value)| *value == [1; 50]), "{policy}");
        let waiting = held_bytes(&env);
        reader.refresh().unwrap();
        store.settle().unwrap();
        let freed = held_bytes(&env);
        assert!(freed < waiting, "{policy}: {freed} bytes of {waiting}");
        assert!(all(read.iter()).iter().all(|(_, value)| *value == [2; 50]), "{policy}");
        rewrite();
        drop((reader, read));
        store.settle().unwrap();
        let left = files(&env);
        drop((store, space));
        // The next opening removes what nobody names. There is nothing.
        let store = small(&env).policy(policy).open().unwrap();
        let tables = |files: &[String]| -> Vec<String> {
            files.iter().filter(|name| name.ends_with("table")).cloned().collect()
        };
        assert_eq!(tables(&files(&env)), tables(&left), "{policy}");
        drop(store);
    }
}

/// A snapshot of a reader keeps the files that it reads, and no file that came later: no file that
/// the writer has made and merged away since, and none that the reader saw in between.
#[test]
fn an_old_snapshot_of_a_reader_keeps_what_it_reads_and_no_more() {
    for policy in POLICIES {
        let env = MemEnv::new();
        let store = small(&env).policy(policy).open().unwrap();
        let space = store.keyspace("a").unwrap();
        fill(&space, 0..400, [0; 50]);
        space.flush().unwrap();
        store.settle().unwrap();
        let follower = reader(&env).open().unwrap();
        let read = follower.existing_keyspace("a").unwrap();
        let snapshot = follower.snapshot();
        let before = all(snapshot.iter(&read));
        // A log or a manifest of some size may be kept for a moment.
        let held = || (held_bytes(&env), files(&env).len());
        let mut most = (0, 0);
        for round in 1..30 {
            fill(&space, 0..400, [round; 50]);
            space.flush().unwrap();
            space.merge().unwrap();
            store.settle().unwrap();
            follower.refresh().unwrap();
            store.settle().unwrap();
            if round <= 6 {
                most = (most.0.max(held().0), most.1.max(held().1));
            }
        }
        let (bytes, count) = held();
        assert!(bytes <= most.0 + (600 << 10), "{policy}: {bytes} of {most:?}");
        assert!(count <= most.1 + 4, "{policy}: {count} of {most:?}");
        assert!(all(snapshot.iter(&read)) == before, "{policy}");
        assert_eq!(leases(&env).len(), 2, "{policy}");
    }
}

#[test]
fn readers_that_died_hold_nothing() {
    let env = MemEnv::new();
    let store = small(&env).policy("constant(k=1)").open().unwrap();
    let space = store.keyspace("a").unwrap();
    fill(&space, 0..400, [1; 50]);
    space.flush().unwrap();
    let path = Path::new(DIR).join("readers/000001.32.0");
    env.create_dir_all(path.parent().unwrap()).unwrap();
    env.create(&path).unwrap();
    let before = files(&env);
    fill(&space, 0..400, [2; 50]);
    space.flush().unwrap();
    assert!(before.iter().any(|name| !files(&env).contains(name)), "an old table went");
    assert_eq!(leases(&env), [""; 0]);
}

/// A folder that cannot be read may have a lease in it.
#[test]
fn nothing_goes_while_nobody_knows_who_reads() {
    let env = FaultEnv::over(MemEnv::new());
    let store = small(&env).policy("constant(k=1)").open().unwrap();
    let space = store.keyspace("a").unwrap();
    fill(&space, 0..400, [1; 50]);
    space.flush().unwrap();
    let before = files(&env);
    let kind = io::ErrorKind::PermissionDenied;
    let class = Some(OpClass::List);
    env.set(Fault { class, after: 0, lasting: Lasting::Forever, kind });
    fill(&space, 0..400, [2; 50]);
    space.flush().unwrap();
    env.clear();
    assert!(before.iter().all(|name| files(&env).contains(name)));
    store.settle().unwrap();
    assert!(before.iter().any(|name| !files(&env).contains(name)));
}

#[test]
fn no_write_does_more_because_of_a_reader() {
    let count = |reads: bool| {
        let disk = MemEnv::new();
        let env = FaultEnv::over(disk.clone());
        let store = small(&env).policy("tiered(ratio=4)").memtable_bytes(1 << 20);
        let store = store.log_bytes(1 << 20).open().unwrap();
        let space = store.keyspace("a").unwrap();
        let reader = reads.then(|| reader(&disk).open().unwrap());
        let before = env.count_all();
        for number in 0..1000_u32 {
            space.put(number.to_be_bytes(), [1; 50]).unwrap();
        }
        let puts = env.count_all() - before;
        for number in 0..100_u32 {
            let mut batch = Batch::new();
            batch.put(&space, number.to_be_bytes(), [2; 50]);
            store.write(batch, PersistMode::SyncData).unwrap();
        }
        let synced = env.count_all() - before - puts;
        drop(reader);
        (puts, synced)
    };
    let alone = count(false);
    // An append each, and an append and a sync.
    assert_eq!(alone, (1000, 200));
    assert_eq!(count(true), alone);
}
