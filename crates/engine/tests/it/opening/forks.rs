//! Processes that are forked while a store is open.
//!
//! Promised: the child can do nothing to the store, and says why. It neither hangs nor changes a
//! file, nor gives the parent's lock back. The parent goes on, and all its writes are there.
//!
//! A child process of the tests is this test binary, with its orders in environment variables. It
//! forks, and what it forks tells by its exit code whether it found what was promised.

#![allow(unsafe_code, reason = "forks")]

use crate::frame::small::{fill, small_on_disk};
use crate::frame::watchdog::{Watchdog, wait_until};
use lsmith::{Builder, ErrorKind, Keyspace, Memory, PersistMode, Store, TableWriter};
use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// The environment variable of a child: what it does.
const ROLE: &str = "LSMITH_FORKS_ROLE";

/// The exit code of a forked process that found what was promised.
const FINE: i32 = 7;

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(code: i32) -> !;
    fn alarm(seconds: u32) -> u32;
}

/// Runs `act` in a forked process, and ends it.
fn forked(act: impl FnOnce()) -> i32 {
    // SAFETY: The calls have no conditions. What runs in the child is what the test is about.
    unsafe {
        let child = fork();
        assert!(child >= 0);
        if child > 0 {
            return child;
        }
        // A process that hangs is ended by the signal.
        alarm(100);
        let fine = catch_unwind(AssertUnwindSafe(act)).is_ok();
        _exit(if fine { FINE } else { 1 })
    }
}

/// Waits for the forked process `child`, which must have found what was promised.
fn expect_fine(child: i32) {
    let mut status = 0;
    // SAFETY: `status` lives as long as the call.
    let waited = unsafe { waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, FINE << 8), "a signal, or an exit code in the high byte");
}

fn in_fork(act: impl FnOnce()) {
    expect_fine(forked(act));
}

/// Runs the child with `role` in a directory. Returns the directory.
fn run(role: &str) -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "opening::forks::child", "--nocapture"]).env(ROLE, role);
    let done = child.current_dir(root.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let dir = root.path().join("data");
    (root, dir)
}

#[test]
fn child() {
    match env::var(ROLE).as_deref() {
        Ok("calls") => every_call(),
        Ok("drops") => every_drop(false),
        Ok("drops_in_lockstep") => every_drop(true),
        Ok("daemon") => become_daemon(),
        Ok("reader") => fork_reader(),
        Ok("busy") => fork_while_busy(),
        _ => {}
    }
}

/// Returns the builder of a store that flushes and begins logs now and then: each waits for the
/// device.
fn builder() -> Builder {
    small_on_disk("data").memtable_bytes(64 << 10).log_bytes(256 << 10)
}

fn space(store: &Store) -> Keyspace {
    store.keyspace("default").unwrap()
}

/// Fails unless the store in `dir` has the numbers up to `count`, each of them once.
fn expect_numbers(dir: impl AsRef<Path>, count: u32) {
    let store = Store::builder(dir).open().unwrap();
    assert!(store.verify().unwrap().is_empty());
    let keys = space(&store).iter().map(|entry| entry.unwrap().0.to_vec());
    assert!(keys.eq((0..count).map(|number| number.to_be_bytes().to_vec())));
}

/// Fails unless `result` is the error of a child.
#[track_caller]
fn refused<T>(result: lsmith::Result<T>) {
    let error = result.err().expect("a child can do nothing to the store");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("after the fork"), "{error}");
}

fn every_call() {
    let store = builder().lockstep(false).open().unwrap();
    let space = space(&store);
    fill(&space, 0..1000, [7; 200]);
    let (memory, snapshot) = (Memory::new(16 << 20), store.snapshot());
    let (mut entries, mut unused) = (space.iter(), space.iter());
    entries.next().unwrap().unwrap();
    let mut transaction = store.transaction(lsmith::Isolation::Serializable);
    transaction.put(&space, "key", "value").unwrap();
    transaction.delete_range(&space, "a".."b").unwrap();
    let mut load = store.keyspace("loaded").unwrap().bulk_load().unwrap();
    load.put("a", "value").unwrap();
    let mut table = TableWriter::create("table").unwrap();
    table.put("a", "value").unwrap();
    let mut feed = store.changes(lsmith::SeqNo(900)).unwrap();
    for _ in 0..2 {
        in_fork(|| {
            refused(space.put("key", "value"));
            refused(space.put_with("key", "value", PersistMode::SyncAll));
            refused(space.delete_range("a".."b"));
            refused(space.get("key"));
            refused(space.multi_get(["key"]));
            refused(space.first());
            refused(space.last());
            refused(space.pop_first());
            refused(space.pop_last());
            refused(space.compare_and_swap("key", None, Some(b"value")));
            refused(space.is_empty());
            refused(space.flush());
            refused(space.merge());
            refused(space.clear());
            refused(space.bulk_load());
            refused(space.set_merge_policy("tiered(ratio=4)"));
            refused(space.set_compression("none"));
            refused(store.keyspace("new"));
            refused(store.existing_keyspace("default"));
            refused(store.drop_keyspace("default"));
            refused(store.rename_keyspace("default", "other"));
            refused(store.persist(PersistMode::SyncAll));
            refused(store.flush());
            refused(store.settle());
            refused(store.refresh());
            refused(store.verify());
            refused(store.left_out());
            refused(store.checkpoint("then"));
            refused(store.changes(lsmith::SeqNo(1)));
            refused(store.snapshot().get(&space, "key"));
            refused(snapshot.get(&space, "key"));
            refused(snapshot.iter(&space).next().unwrap());
            refused(space.iter().next().unwrap());
            refused(entries.next().unwrap());
            refused(unused.next().unwrap());
            refused(transaction.get(&space, "other"));
            refused(transaction.pop_first(&space));
            refused(transaction.pop_last(&space));
            refused(load.put("b", "value"));
            refused(table.put("b", "value"));
            refused(feed.next_batch());
            refused(Store::builder("then").memory(&memory).open());
            assert_eq!(Store::builder("data").open().unwrap_err().kind(), ErrorKind::Locked);
        });
        fill(&space, 1000..2000, [7; 200]);
        store.persist(PersistMode::SyncAll).unwrap();
    }
    in_fork(|| refused(transaction.commit(PersistMode::SyncAll)));
    assert_eq!(load.finish().unwrap().entries, 1);
    table.finish().unwrap();
    assert_eq!(snapshot.iter(&space).count(), 1000);
    assert_eq!(unused.count(), 1000);
}

/// What broke: the map of the log was shared, so what a child put went over the synced writes of
/// its parent, and `put` waited for threads that were not there.
#[test]
fn every_call_in_a_child_says_what_to_do() {
    let (_root, dir) = run("calls");
    assert!(!dir.with_file_name("then").exists());
    expect_numbers(dir, 2000);
}

fn every_drop(lockstep: bool) {
    let store = builder().lockstep(lockstep).open().unwrap();
    let space = space(&store);
    fill(&space, 0..300, [7; 200]);
    store.persist(PersistMode::SyncAll).unwrap();
    let held = || (store.snapshot(), space.iter(), space.clone(), store.clone());
    let mut entries = held().1;
    entries.next().unwrap().unwrap();
    let mut load = store.keyspace("loaded").unwrap().bulk_load().unwrap();
    load.put("a", "value").unwrap();
    let mut table = TableWriter::create("table").unwrap();
    table.put("a", "value").unwrap();
    let all = (held(), entries, load, table, space, store);
    // Each process has these, and drops its own.
    let mut all = Some(all);
    in_fork(|| drop(all.take()));
    let (held, entries, load, table, space, store) = all.take().unwrap();
    let second = Store::builder("data").open().unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Locked, "the child gave the lock back");
    fill(&space, 300..3000, [7; 200]);
    store.persist(PersistMode::SyncAll).unwrap();
    assert_eq!(load.finish().unwrap().entries, 1);
    table.finish().unwrap();
    assert_eq!(entries.count(), 299);
    drop((held, space, store));
    expect_numbers("data", 3000);
}

/// What broke: a child that dropped the store waited for threads that were not there. In lockstep
/// it gave the parent's lock back and cut the parent's log, whose next append ended the parent.
#[test]
fn dropping_a_store_in_a_child_does_nothing() {
    for role in ["drops", "drops_in_lockstep"] {
        let (_root, dir) = run(role);
        expect_numbers(dir, 3000);
    }
}

/// The parent of the daemon ends without closing the store, and the daemon opens it anew.
fn become_daemon() {
    let store = builder().lockstep(false).open().unwrap();
    fill(&space(&store), 0..300, [7; 200]);
    in_fork(|| {
        let store = Store::builder("other").open().unwrap();
        fill(&space(&store), 0..10, [7; 200]);
        // This process ends without closing the store, and what it forks goes on.
        std::mem::forget(store.clone());
        let daemon = forked(|| {
            refused(store.keyspace("default"));
            drop(store);
            let started = loop {
                match Store::builder("other").open() {
                    Ok(store) => break store,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Locked),
                }
                std::thread::yield_now();
            };
            fill(&space(&started), 10..20, [7; 200]);
            started.flush().unwrap();
            drop(started);
            fs::write("done", "").unwrap();
        });
        assert!(daemon > 0);
    });
    let _watchdog = Watchdog::new("the daemon waits");
    wait_until(|| Path::new("done").exists());
    expect_numbers("other", 20);
}

/// What broke: after the parent of a daemon had ended, `put` in the daemon waited for ever.
#[test]
fn a_daemon_opens_the_store_after_its_parent_has_ended() {
    let (_root, dir) = run("daemon");
    expect_numbers(dir, 300);
}

/// The processes that are forked while threads start, merge and write.
const CHILDREN: u32 = 100;

fn fork_while_busy() {
    // A child that fails leaves the other thread writing.
    let _watchdog = Watchdog::new("a child failed, or waits");
    let store = builder().lockstep(false).open().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let space = space(&store);
            while !done.load(Relaxed) {
                fill(&space, 0..1000, [7; 200]);
            }
        });
        for child in 0..CHILDREN {
            let dir = format!("child-{child}");
            let starts = Store::builder("starts").open().unwrap();
            in_fork(|| {
                let started = Store::builder(&dir).memtable_bytes(8 << 10).open().unwrap();
                fill(&space(&started), 0..100, [7; 200]);
                started.settle().unwrap();
            });
            drop(starts);
            expect_numbers(dir, 100);
        }
        done.store(true, Relaxed);
    });
}

/// What broke: the locks shared a table of waiting threads. A child had it as it was at the fork,
/// locked by a thread that was not there, and waited for ever when it opened a store of its own.
#[test]
fn children_of_a_busy_process_use_stores_of_their_own() {
    run("busy");
}

fn fork_reader() {
    let writer = builder().open().unwrap();
    fill(&space(&writer), 0..300, [7; 200]);
    let reader = Store::builder("data").read_only(true).open().unwrap();
    let read = reader.existing_keyspace("default").unwrap();
    let mut both = Some((read.clone(), reader.clone()));
    in_fork(|| {
        refused(read.get("key"));
        refused(reader.refresh());
        drop(both.take());
    });
    fill(&space(&writer), 300..600, [7; 200]);
    reader.refresh().unwrap();
    assert_eq!(read.iter().count(), 600);
    assert_eq!(fs::read_dir("data/readers").unwrap().count(), 1, "its lease is still there");
}

#[test]
fn a_reader_goes_on_after_a_fork() {
    let (_root, dir) = run("reader");
    expect_numbers(dir, 600);
}
