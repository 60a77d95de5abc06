//! A checkpoint that is stopped at every operation on the disk.
//!
//! Promised: the directory of the checkpoint holds a whole store or none, whatever happens and
//! however it ends. A store there has all that a checkpoint promises. Otherwise a second attempt
//! works. The store that the checkpoint is made of loses nothing.

use crate::dice::{Dice, any_seed};
use crate::frame::batches::{Batches, Progress};
use crate::frame::faults::{any_fault, stops};
use crate::frame::small::{small, small_at};
use lsmith::env::{Effect, Env, Fault, FaultEnv, Loss, MemEnv};
use lsmith::{ErrorKind, PersistMode};
use std::path::Path;

const COPY: &str = "/copies/one";
const BATCHES: Batches =
    Batches { seed: 7, keys: 80, key_bytes: 8, value_bytes: 200, in_group: false, ranges: true };
const WRITTEN: u64 = 60;

/// The number of stop points in a short test.
const SAMPLE: usize = 60;

/// Returns a disk with a store that has tables, logs and perhaps a spill.
fn start(policy: &str) -> MemEnv {
    let disk = MemEnv::new();
    let builder = small(&disk).policy(policy).log_bytes_max(64 << 10);
    let store = builder.open().unwrap();
    let mut progress = Progress::default();
    for _ in 0..WRITTEN {
        BATCHES.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
    }
    drop(store);
    disk
}

/// Makes a checkpoint on a copy of `start`, with a fault and its effect after it has begun. Returns
/// the disk, the number of operations, and whether the call succeeded.
fn run(start: &MemEnv, policy: &str, fault: Option<(Fault, Effect)>) -> (MemEnv, u64, bool) {
    let disk = start.process_crash_clone();
    let env = FaultEnv::over(disk.clone());
    let store = small(&env).policy(policy).open().unwrap();
    let before = env.count_all();
    if let Some((fault, effect)) = fault {
        env.set_with(fault, effect);
    }
    let made = store.checkpoint(COPY);
    let operations = env.count_all() - before;
    // The accident comes now.
    let left = disk.process_crash_clone();
    env.clear();
    drop(store);
    (left, operations, made.is_ok())
}

/// Asserts that `disk` has a whole checkpoint or none, and that another attempt works.
fn examine(disk: &MemEnv, policy: &str, returned: bool) {
    let opened = small_at(COPY, disk).policy(policy).create_if_missing(false).open();
    let is_whole = opened.is_ok();
    match opened {
        Ok(copy) => {
            assert_eq!(BATCHES.check(&copy), WRITTEN);
            assert_eq!(copy.verify().unwrap().len(), 0);
        }
        Err(error) => {
            assert!(!returned, "a checkpoint is gone: {error}");
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
    }
    let store = small(disk).policy(policy).open().unwrap();
    assert_eq!(BATCHES.check(&store), WRITTEN);
    assert_eq!(store.verify().unwrap().len(), 0);
    let mut progress = Progress { tried: WRITTEN, acknowledged: WRITTEN, synced: WRITTEN };
    (0..5).for_each(|_| BATCHES.go_on(&store, &mut progress, PersistMode::Buffer).unwrap());
    match store.checkpoint(COPY) {
        Ok(_) => assert!(!is_whole),
        Err(error) => {
            assert!(is_whole, "the second attempt failed: {error}");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            store.checkpoint("/copies/two").unwrap();
        }
    }
    let second = if is_whole { "/copies/two" } else { COPY };
    drop(store);
    let copy = small_at(second, disk).policy(policy).open().unwrap();
    assert_eq!(BATCHES.check(&copy), WRITTEN + 5);
    let names = disk.list(Path::new(second)).unwrap();
    assert!(!names.iter().any(|name| name.ends_with(".coming")), "{names:?}");
}

#[test]
fn a_checkpoint_stopped_anywhere_is_whole_or_none() {
    let seed = any_seed();
    let mut dice = Dice::new(seed);
    for policy in
        ["minlatency(k=2)", "choose_best(ratio=2, rate=0.2)", "jungle(c=2, ratio=2, table=2kB)"]
    {
        let start = start(policy);
        let (whole, operations, made) = run(&start, policy, None);
        assert!(made);
        examine(&whole, policy, true);
        assert!(operations > 20, "{operations} operations");
        for after in stops(&mut dice, operations, SAMPLE / 3) {
            let (fault, effect) = any_fault(&mut dice, after);
            let (left, _, made) = run(&start, policy, Some((fault, effect)));
            let loss = *dice.pick(&Loss::ALL);
            println!("seed {seed}, {policy}, {fault:?}, {effect:?}, {loss:?}");
            examine(&left.process_crash_clone(), policy, made);
            examine(&left.power_loss(seed, loss), policy, made);
        }
    }
}
