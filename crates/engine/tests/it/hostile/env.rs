//! An environment that panics, as an environment of a user may.
//!
//! Promised: a panic on a merging thread fails a plan as an error does, whichever thread of a merge
//! panics: no thread waits for ever, and the plan leaves nothing behind. A panic in the middle of a
//! write of log or manifest poisons the store. Everything acknowledged is there when the store is
//! opened again.

use crate::dice::Dice;
use crate::frame::contents::names;
use crate::frame::scripted::{Call, Op, Script, Scripted, When};
use crate::frame::small::{DIR, open, threaded};
use crate::frame::watchdog::ends;
use lsmith::env::{Env, MemEnv};
use lsmith::{Builder, ErrorKind, Keyspace, PersistMode};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::thread;

/// The operations that can panic.
const OPS: [Op; 10] = [
    Op::Create,
    Op::Write,
    Op::Sync,
    Op::Open,
    Op::Read,
    Op::CreateLog,
    Op::Append,
    Op::LogSync,
    Op::Remove,
    Op::SyncDir,
];

/// Panics in one operation of some kind, on a merging thread or on any other.
#[derive(Debug)]
struct Fuse {
    op: Op,
    merging: bool,
    /// The number of operations until the panic; less than 0 after it, when none panics.
    left: AtomicI64,
}

/// With a fuse of this length, no operation panics.
const LONG: i64 = i64::MAX;

impl Fuse {
    /// Returns `disk`, which has no maps, so that every read is an operation.
    fn over(disk: &MemEnv, op: Op, merging: bool) -> Scripted<Fuse> {
        let left = AtomicI64::new(LONG);
        Scripted::new(disk.clone().unmapped(), Fuse { op, merging, left })
    }

    fn is_burnt(&self) -> bool {
        self.left.load(SeqCst) < 0
    }
}

impl Script for Fuse {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()> {
        let op = if call.op == Op::WriteOn { Op::Create } else { call.op };
        let name = thread::current().name().unwrap_or_default().to_string();
        let is_here = name.starts_with("lsmith-merge") == self.merging;
        if call.when == When::Before && op == self.op && is_here {
            let left = self.left.fetch_sub(1, SeqCst);
            assert!(left != 0, "{op:?} is hostile");
        }
        Ok(())
    }
}

fn builder(env: &(impl Env + Clone)) -> Builder {
    let builder = threaded(env).policy("tiered(ratio=2)").log_bytes(1 << 20);
    // Keys come in order: merges that keep tables would write and remove nothing.
    builder.memtable_bytes(20_000).cache_bytes(0).keep_tables(false)
}

/// The entries that the store acknowledged. A reopened store must have each.
fn write(keyspace: &Keyspace, acknowledged: &mut Vec<u64>, count: u64) {
    let first = acknowledged.last().map_or(0, |last| last + 1);
    for number in first..first + count {
        let put = || keyspace.put(number.to_be_bytes(), [1; 500]);
        if let Ok(Ok(())) = catch_unwind(AssertUnwindSafe(put)) {
            acknowledged.push(number);
        }
    }
}

fn check(disk: MemEnv, acknowledged: &[u64]) {
    let (store, keyspace) = open(builder(&disk));
    for number in acknowledged {
        assert!(keyspace.contains(number.to_be_bytes()).unwrap(), "{number} is lost");
    }
    assert_eq!(store.verify().unwrap().len(), 0);
    store.flush().unwrap();
}

/// The operation and the moment of the panic, and the kind of store.
#[derive(Clone, Copy, Debug)]
struct Case {
    op: Op,
    merging: bool,
    left: i64,
    split: bool,
    lockstep: bool,
}

/// Writes while one operation panics. Returns true if it did.
fn panic_once(case: Case) -> bool {
    let Case { op, merging, left, split, lockstep } = case;
    let disk = MemEnv::new();
    let fuse = Fuse::over(&disk, op, merging);
    let builder = builder(&fuse).threads(3).split_bytes(if split { 10_000 } else { 1 << 30 });
    let (store, keyspace) = open(builder.lockstep(lockstep));
    let mut acknowledged = Vec::new();
    fuse.left.store(left, SeqCst);
    write(&keyspace, &mut acknowledged, 600);
    // None of these may wait for ever; whether they tell of it depends on what it was.
    let _ = catch_unwind(AssertUnwindSafe(|| store.flush()));
    let _ = catch_unwind(AssertUnwindSafe(|| store.persist(PersistMode::SyncAll)));
    store.retry();
    write(&keyspace, &mut acknowledged, 100);
    let flushed = catch_unwind(AssertUnwindSafe(|| store.flush()));
    match flushed.expect("only one operation panics") {
        // What could not be removed stays until the store is opened again.
        Ok(()) if op == Op::Remove => {}
        Ok(()) => {
            assert_eq!(
                names(&disk, DIR, ".table").len(),
                keyspace.stats().tables as usize,
                "{case:?}"
            );
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}, {case:?}"),
    }
    let crashed = disk.process_crash_clone();
    drop((keyspace, store));
    check(crashed, &acknowledged);
    check(disk, &acknowledged);
    fuse.is_burnt()
}

#[test]
fn panics_of_the_environment_on_merging_threads_keep_nobody_waiting() {
    for op in OPS {
        ends(move || {
            let mut panics = 0;
            for left in 0..12 {
                let case = Case { op, merging: true, left, split: left % 2 == 1, lockstep: false };
                panics += u32::from(panic_once(case));
            }
            assert!(panics > 0 || op == Op::CreateLog, "{op:?} on a merging thread");
        });
    }
}

#[test]
fn panics_of_the_environment_on_other_threads_keep_nobody_waiting() {
    for op in OPS {
        ends(move || {
            for left in [0, 1, 2, 3, 5, 20, 300] {
                for lockstep in [false, true] {
                    panic_once(Case { op, merging: false, left, split: false, lockstep });
                }
            }
        });
    }
}

/// Makes four runs that overlap.
fn four_runs(keyspace: &Keyspace) {
    let mut dice = Dice::new(7);
    for _ in 0..4 {
        for _ in 0..1000 {
            keyspace.put((dice.below(2000) as u64).to_be_bytes(), dice.bytes(100)).unwrap();
        }
        keyspace.flush().unwrap();
    }
}

/// Whichever thread panics, the merge fails, the threads that help do not wait, and nothing is left
/// behind.
#[test]
fn panic_in_a_part_of_a_merge_fails_the_merge() {
    for left in 0..6 {
        ends(move || {
            let disk = MemEnv::new();
            let fuse = Fuse::over(&disk, Op::Create, true);
            let builder = builder(&fuse).policy("none").memtable_bytes(1 << 20).threads(3);
            let (store, keyspace) = open(builder.split_bytes(30_000));
            four_runs(&keyspace);
            let before: Vec<_> = keyspace.iter().map(Result::unwrap).collect();
            assert_eq!(
                (keyspace.tree().disk_run_count(), names(&disk, DIR, ".table").len()),
                (4, 4)
            );
            fuse.left.store(left, SeqCst);
            let error = keyspace.merge().unwrap_err();
            assert!(error.to_string().contains("Create is hostile"), "{error}");
            assert_eq!(store.settle().unwrap_err().to_string(), error.to_string());
            // Parts below may have been committed.
            assert_eq!(names(&disk, DIR, ".table").len(), keyspace.stats().tables as usize);
            assert!(keyspace.iter().map(Result::unwrap).eq(before.iter().cloned()));
            store.retry();
            keyspace.merge().unwrap();
            assert_eq!(keyspace.tree().disk_run_count(), 1);
            assert_eq!(names(&disk, DIR, ".table").len(), keyspace.stats().tables as usize);
            assert!(keyspace.iter().map(Result::unwrap).eq(before));
        });
    }
}
