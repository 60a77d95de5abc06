//! A checkpoint that is stopped at every operation on the disk.
//!
//! Promised: the directory of the checkpoint holds a whole store or none, whatever happens and
//! however it ends. A store there has all that a checkpoint promises. Otherwise a second attempt
//! works. The store that the checkpoint is made of loses nothing.

use crate::dice::{Dice, any_seed, full};
use crate::frame::batches::{Batches, Progress};
use lsmith::env::{Effect, Env, Fault, FaultEnv, Lasting, Loss, MemEnv};
use lsmith::{Builder, ErrorKind, PersistMode, Store};
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "/store";
const COPY: &str = "/copies/one";
const BATCHES: Batches =
    Batches { seed: 7, keys: 80, key_bytes: 8, value_bytes: 200, in_group: false, ranges: true };
const WRITTEN: u64 = 60;

/// The number of stop points in a short test.
const SAMPLE: usize = 60;

fn builder(env: impl Env, dir: &str, policy: &str) -> Builder {
    let builder = Store::builder(dir).env(Arc::new(env)).lockstep(true).policy(policy);
    builder.memtable_bytes(10_000).block_bytes(200).log_bytes(64 << 10).log_bytes_max(64 << 10)
}

/// Returns a disk with a store that has tables, logs and perhaps a spill.
fn start(policy: &str) -> MemEnv {
    let disk = MemEnv::new();
    let store = builder(disk.clone(), DIR, policy).open().unwrap();
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
    let store = builder(env.clone(), DIR, policy).open().unwrap();
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
    let opened = builder(disk.clone(), COPY, policy).create_if_missing(false).open();
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
    let store = builder(disk.clone(), DIR, policy).open().unwrap();
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
    let copy = builder(disk.clone(), second, policy).open().unwrap();
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
        let stops: Vec<u64> = match full() {
            true => (0..operations).collect(),
            false => (0..SAMPLE / 3).map(|_| dice.below(operations as usize) as u64).collect(),
        };
        for after in stops {
            let lasting = *dice.pick(&[Lasting::Once, Lasting::Forever]);
            let effect = *dice.pick(&[Effect::Nothing, Effect::Partly, Effect::Wholly]);
            let fault = Fault { class: None, after, lasting, kind: std::io::ErrorKind::Other };
            let (left, _, made) = run(&start, policy, Some((fault, effect)));
            let loss = *dice.pick(&Loss::ALL);
            println!("seed {seed}, {policy}, {after}, {lasting:?}, effect {effect:?}, {loss:?}");
            examine(&left.process_crash_clone(), policy, made);
            examine(&left.power_loss(seed, loss), policy, made);
        }
    }
}
