//! Writes and reads while a plan is being written to the manifest.
//!
//! Promised: neither writers nor callers that read the state of a keyspace wait for the manifest.
//! Memtables that are sealed meanwhile stay above the output of the plan, whether the manifest
//! accepts the plan or not: for readers, for snapshots and after a crash.
//!
//! What broke: the lock of the keyspace was held while the device synced the manifest.

use crate::dice::Dice;
use crate::frame::contents::{Map, contents, write};
use crate::frame::gate::{Gate, GateEnv, Step};
use crate::frame::small::{DIR, open, threaded};
use crate::frame::watchdog::Watchdog;
use crate::store::model::policies;
use lsmith::env::{Env, MemEnv};
use lsmith::{Builder, DEFAULT_KEYSPACE, ErrorKind, Keyspace, Snapshot, Store};
use std::path::Path;
use std::thread;

/// The most runs in memory at which no writer is stopped.
const MEMORY_RUNS: usize = 3;

/// The highest pressure at which this test writes. The pressure of what the tree owes stays below
/// it with three memtables: it slows writers, and stops none.
const PRESSURE_MAX: f64 = 0.995;

fn builder(env: &(impl Env + Clone)) -> Builder {
    threaded(env).memtable_bytes(1000).threads(2)
}

/// A store on a disk that can block, the writes so far, and snapshots.
struct Run {
    env: GateEnv,
    store: Store,
    space: Keyspace,
    dice: Dice,
    map: Map,
    /// The bytes by which keys are padded.
    key_bytes: usize,
    held: Vec<(Snapshot, Map)>,
}

impl Run {
    fn new(disk: MemEnv, policy: &str) -> Run {
        let env = Gate::over(disk);
        let (store, space) = open(builder(&env).policy(policy));
        let dice = Dice::new(1);
        let map = Map::new();
        let held = Vec::new();
        Run { env, store, space, dice, map, key_bytes: 5, held }
    }

    fn write(&mut self) {
        let key = format!("{:0width$}", self.dice.below(300), width = self.key_bytes).into_bytes();
        let value = (!self.dice.chance(20)).then(|| self.dice.bytes(40));
        write(&self.space, &mut self.map, key, value);
    }

    /// Writes until a thread is blocked at `step`.
    fn write_until_held(&mut self, step: Step) {
        self.env.hold_at(step, 1);
        while !self.env.holds() {
            if self.may_write() {
                self.write();
            } else {
                thread::yield_now();
            }
        }
    }

    /// Returns true if a write returns, also while a thread is blocked.
    fn may_write(&self) -> bool {
        let memory_runs = self.space.tree().memory().runs().len();
        memory_runs < MEMORY_RUNS && self.space.stats().pressure < PRESSURE_MAX
    }

    /// Writes enough to seal a memtable, unless writers would be stopped. Returns true if one was
    /// sealed.
    fn seal_one(&mut self) -> bool {
        let next_run = self.space.tree().next_run();
        while self.space.tree().next_run() == next_run {
            if !self.may_write() {
                return false;
            }
            self.write();
        }
        true
    }

    fn hold_snapshot(&mut self) {
        self.held.push((self.store.snapshot(), self.map.clone()));
    }

    fn check(&self) {
        assert!(contents(&self.space) == self.map);
        for (snapshot, map) in &self.held {
            let seen = snapshot.range::<&[u8]>(&self.space, ..).map(|entry| entry.unwrap());
            let seen: Map = seen.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            assert!(seen == *map, "a snapshot has changed");
        }
    }
}

impl Drop for Run {
    /// Unblocks the thread: a failing test would wait for it.
    fn drop(&mut self) {
        self.env.release();
    }
}

#[test]
fn a_slow_manifest_holds_up_no_writer_and_nobody_who_looks() {
    let _watchdog = Watchdog::new("somebody waits for the manifest");
    let mut run = Run::new(MemEnv::new(), "none");
    run.env.hold_at(Step::ManifestSync, 1);
    assert!(run.seal_one());
    run.env.wait_until_held();
    let before = run.space.stats();
    assert_eq!(before.runs, 0);
    assert!(run.seal_one() && run.seal_one(), "a writer seals without the manifest");
    assert!(run.space.stats().memory_bytes > before.memory_bytes);
    assert_eq!(run.space.view().reservations.len(), 1, "the plan keeps its place");
    assert_eq!(run.space.merge_policy(), "none");
    run.check();
    run.env.release();
    run.store.flush().unwrap();
    assert!(run.space.stats().runs >= 3);
    run.check();
}

#[test]
fn what_is_sealed_while_a_plan_commits_keeps_its_place() {
    let _watchdog = Watchdog::new("somebody waits for the manifest");
    let mut sealed = 0;
    for policy in policies() {
        let disk = MemEnv::new();
        let mut run = Run::new(disk.clone(), &policy);
        for round in 0..6 {
            run.write_until_held(Step::ManifestSync);
            run.hold_snapshot();
            sealed += u32::from(run.seal_one());
            run.hold_snapshot();
            sealed += u32::from(run.seal_one());
            run.check();
            let cut = disk.process_crash_clone();
            run.env.release();
            run.check();
            let after = builder(&cut).lockstep(true).open().unwrap();
            assert!(contents(&after.keyspace(DEFAULT_KEYSPACE).unwrap()) == run.map, "{policy}");
            assert!(after.verify().unwrap().is_empty());
            if round % 2 == 0 {
                run.store.settle().unwrap();
                run.check();
                run.held.clear();
            }
        }
        run.store.flush().unwrap();
        run.check();
        assert!(run.store.verify().unwrap().is_empty());
        assert_eq!(run.store.stats().plans_refused, 0);
        let map = std::mem::take(&mut run.map);
        let whole = builder(&disk);
        drop(run);
        let store = whole.policy(policy).open().unwrap();
        assert!(contents(&store.keyspace(DEFAULT_KEYSPACE).unwrap()) == map);
    }
    assert!(sealed > 100, "{sealed} memtables were sealed while plans were committed");
}

/// A full manifest is followed by a new one. If that cannot be made, the plan has no effect, and
/// memtables that were sealed meanwhile are there.
#[test]
fn a_plan_that_the_manifest_does_not_take_leaves_what_was_sealed_meanwhile() {
    let _watchdog = Watchdog::new("somebody waits for the manifest");
    for policy in ["none", "tiered(ratio=2)", "leveled(ratio=2, l0=1, table=2kB)"] {
        let disk = MemEnv::new();
        let mut run = Run::new(disk.clone(), policy);
        // Each record of the manifest names keys.
        run.key_bytes = 3000;
        for _ in 0..2 {
            run.write_until_held(Step::ManifestMade);
            run.hold_snapshot();
            run.seal_one();
            run.env.release_to_fail();
            assert_eq!(run.store.settle().unwrap_err().kind(), ErrorKind::Io);
            run.check();
            run.store.retry();
            run.store.settle().unwrap();
            run.check();
            run.held.clear();
        }
        run.store.flush().unwrap();
        run.check();
        let map = run.map.clone();
        let tables = run.space.stats().tables;
        drop(run);
        let store = builder(&disk).lockstep(true).open().unwrap();
        assert!(contents(&store.keyspace(DEFAULT_KEYSPACE).unwrap()) == map);
        assert!(store.verify().unwrap().is_empty());
        let names = disk.list(Path::new(DIR)).unwrap();
        let found = names.iter().filter(|name| name.ends_with(".table")).count();
        assert_eq!(found as u64, tables, "tables of plans that have not happened are gone");
    }
}

/// The manifest may or may not have the plan, so its tables stay; the logs have all the rest.
#[test]
fn a_manifest_that_fails_loses_nothing_that_was_sealed_meanwhile() {
    let _watchdog = Watchdog::new("somebody waits for the manifest");
    for policy in ["none", "tiered(ratio=2)", "choose_best(ratio=2, rate=0.2)"] {
        let disk = MemEnv::new();
        let mut run = Run::new(disk.clone(), policy);
        run.write_until_held(Step::ManifestSync);
        run.hold_snapshot();
        run.seal_one();
        run.env.release_to_fail();
        // First the error itself may be told.
        while run.store.settle().unwrap_err().kind() != ErrorKind::Poisoned {}
        run.check();
        let map = std::mem::take(&mut run.map);
        for cut in [disk.process_crash_clone(), {
            drop(run);
            disk
        }] {
            let store = builder(&cut).lockstep(true).open().unwrap();
            assert!(contents(&store.keyspace(DEFAULT_KEYSPACE).unwrap()) == map, "{policy}");
            assert!(store.verify().unwrap().is_empty());
        }
    }
}
