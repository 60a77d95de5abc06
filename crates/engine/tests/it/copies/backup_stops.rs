//! A backup, a restore and the removal of a backup that are stopped at every operation on the disk.
//!
//! Promised: half a backup is never taken for a whole one, and neither is half a restored store.
//! What was there before stays. A second attempt works, and leaves no file that nothing names.

use crate::dice::{Dice, any_seed};
use crate::frame::batches::{Batches, Progress};
use crate::frame::faults::{any_fault, stops};
use crate::frame::small::{small, small_at};
use lsmith::env::{Effect, Env, Fault, FaultEnv, Loss, MemEnv};
use lsmith::{Backups, PersistMode};
use std::path::Path;
use std::sync::Arc;

const KEPT: &str = "/backups";
const TO: &str = "/restored/here";
const BATCHES: Batches =
    Batches { seed: 8, keys: 80, key_bytes: 8, value_bytes: 200, in_group: false, ranges: true };

/// The batches in the backups 1 and 2, and the batches that are written then.
const HELD: [u64; 3] = [0, 30, 45];
const WRITTEN: u64 = 60;

/// The number of stop points of each piece of work in a short test.
const SAMPLE: usize = 25;

fn backups(env: impl Env) -> Backups {
    Backups::with_env(KEPT, Arc::new(env))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    Backup,
    Remove,
    Restore,
}

/// Returns a disk with a store and two backups of it.
fn start() -> MemEnv {
    let disk = MemEnv::new();
    let store = small(&disk).open().unwrap();
    let mut progress = Progress::default();
    while progress.acknowledged < WRITTEN {
        if HELD[1..].contains(&progress.acknowledged) {
            store.backup(&backups(disk.clone())).unwrap();
        }
        BATCHES.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
    }
    drop(store);
    disk
}

/// Does `work` on a copy of `start`. Returns the disk, the number of operations, and whether the
/// call succeeded.
fn run(start: &MemEnv, work: Work, fault: Option<(Fault, Effect)>) -> (MemEnv, u64, bool) {
    let disk = start.process_crash_clone();
    let env = FaultEnv::over(disk.clone());
    let store = small(&env).open().unwrap();
    let before = env.count_all();
    if let Some((fault, effect)) = fault {
        env.set_with(fault, effect);
    }
    let done = match work {
        Work::Backup => store.backup(&backups(env.clone())).is_ok(),
        Work::Remove => backups(env.clone()).remove(1).is_ok(),
        Work::Restore => backups(env.clone()).restore(2, TO).is_ok(),
    };
    let left = disk.process_crash_clone();
    let operations = env.count_all() - before;
    env.clear();
    (left, operations, done)
}

/// Asserts that backup `number` restores to `last` batches.
fn check(disk: &MemEnv, number: u64, last: u64) {
    let disk = disk.process_crash_clone();
    backups(disk.clone()).restore(number, "/somewhere").unwrap();
    let store = small_at("/somewhere", &disk).open().unwrap();
    assert_eq!(BATCHES.check(&store), last, "backup {number}");
}

/// Asserts that `disk` has what must be there after `work`, which succeeded or not, and that the
/// work can be done again.
fn examine(disk: &MemEnv, work: Work, done: bool) {
    let kept = backups(disk.clone());
    let damage = kept.verify().unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    let numbers: Vec<u64> = kept.list().unwrap().iter().map(|backup| backup.id).collect();
    let is_there = |number| numbers.contains(&number);
    assert!(is_there(2) && (is_there(1) || work == Work::Remove), "{numbers:?}");
    assert!(!done || work != Work::Backup || numbers.len() == 3, "the backup is gone");
    assert!(!done || work != Work::Remove || !is_there(1), "the removed backup is there");
    for &number in &numbers {
        check(disk, number, *HELD.get(number as usize).unwrap_or(&WRITTEN));
    }
    if work == Work::Restore {
        let opened = small_at(TO, disk).create_if_missing(false).open();
        let is_whole = opened.is_ok();
        assert!(is_whole || !done, "the restored store is gone");
        match opened {
            Ok(store) => assert_eq!(BATCHES.check(&store), HELD[2]),
            Err(_) => drop(kept.restore(2, TO).unwrap()),
        }
        let store = small_at(TO, disk).open().unwrap();
        assert_eq!(BATCHES.check(&store), HELD[2]);
    }
    let store = small(disk).open().unwrap();
    assert_eq!(BATCHES.check(&store), WRITTEN);
    let again = store.backup(&kept).unwrap();
    check(disk, again.id, WRITTEN);
    kept.keep(1).unwrap();
    check(disk, again.id, WRITTEN);
    let names = disk.list(Path::new(KEPT)).unwrap();
    // All files, the list, `BACKUPS` and `LOCK`.
    assert_eq!(names.len(), again.files + 3, "{names:?}");
}

#[test]
fn a_backup_or_restore_stopped_anywhere_is_whole_or_none() {
    let seed = any_seed();
    let mut dice = Dice::new(seed);
    let start = start();
    for work in [Work::Backup, Work::Remove, Work::Restore] {
        let (whole, operations, done) = run(&start, work, None);
        assert!(done && operations > 5, "{work:?}: {operations} operations");
        examine(&whole, work, true);
        for after in stops(&mut dice, operations, SAMPLE) {
            let (fault, effect) = any_fault(&mut dice, after);
            let (left, _, done) = run(&start, work, Some((fault, effect)));
            let loss = *dice.pick(&Loss::ALL);
            println!("seed {seed}, {work:?}, {fault:?}, {effect:?}, {loss:?}");
            examine(&left.process_crash_clone(), work, done);
            examine(&left.power_loss(seed, loss), work, done);
        }
    }
}
