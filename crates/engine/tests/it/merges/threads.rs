//! Threads that merge: side by side, together on one large merge, and for several stores.
//!
//! Promised: plans that do not meet are carried out side by side. A large merge is split among
//! threads. Its output has the same entries and the same logical bytes as with one thread, and
//! nothing is left of it if a part fails. Stores can share threads: no store has to wait for the
//! merges of another, and a store that closes disturbs no other.

use crate::dice::Dice;
use crate::frame::contents::default_keyspace;
use crate::frame::gate::{Gate, Step};
use crate::frame::small::{DIR, open, plain};
use crate::frame::watchdog::{Watchdog, wait_until};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{Event, Keyspace, Observer, Snapshot, Store, Threads};
use lsmith_policy::{Load, MergePolicy, PolicyInfo, Registry, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, Place, Reason, Run, TreeView};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Merges the newest two runs of four, and the oldest two.
#[derive(Debug)]
struct Pairs;

const PAIRS: PolicyInfo = PolicyInfo {
    name: "pairs",
    source: "this test",
    summary: "merges neighbours",
    params: &[],
    build: |_| Ok(Arc::new(Pairs)),
};

impl MergePolicy for Pairs {
    fn spec(&self) -> Spec {
        Spec::bare("pairs")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let runs: Vec<&Run> = view.tree.disk_runs().map(|run| &**run).collect();
        let pairs = if runs.len() == 4 { runs.chunks(2) } else { runs[..0].chunks(2) };
        let plan = |pair: &[&Run]| {
            let runs = pair.iter().map(|run| run.id());
            MergePlan::merge(runs, Place::Oldest, Reason::new("a pair", [0; 3]))
        };
        pairs.map(plan).find(|plan| lsmith_tree::check_plan(view, plan).is_ok())
    }

    fn pressure(&self, _: &TreeView, _: &Load) -> f64 {
        0.0
    }

    fn shape(&self) -> Shape {
        Shape::Unmerged
    }
}

/// Sends the number of runs that plans have left.
#[derive(Debug)]
struct Commits(Mutex<Sender<usize>>);

impl Observer for Commits {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        if let Event::Committed { tree, .. } = event {
            // Nobody listens at the end.
            let _ = self.0.lock().send(tree.disk_run_count());
        }
    }
}

#[test]
fn two_merges_run_side_by_side() {
    let env = Gate::over(MemEnv::new());
    let (sender, commits) = channel();
    let mut registry = Registry::builtin();
    registry.register(PAIRS);
    let builder = plain(&env).registry(registry);
    let observer = Arc::new(Commits(Mutex::new(sender)));
    let (store, keyspace) = open(builder.threads(3).policy("none").observer(observer));
    for number in 0..4 {
        keyspace.put("key", number.to_string()).unwrap();
        keyspace.flush().unwrap();
        assert_eq!(commits.recv().unwrap(), number + 1);
    }
    env.hold_at(Step::Create, 1);
    keyspace.set_merge_policy("pairs").unwrap();
    env.wait_until_held();
    let _watchdog = Watchdog::new("a merge waits for another one, which has not made its table");
    assert_eq!(commits.recv().unwrap(), 3);
    env.release();
    assert_eq!(commits.recv().unwrap(), 2);
    store.settle().unwrap();
    assert_eq!(keyspace.get("key").unwrap().as_deref(), Some(&b"3"[..]));
}

/// Makes four runs of puts and deletes that overlap, with a snapshot in the middle.
fn four_runs(store: &Store) -> (Keyspace, Snapshot) {
    let keyspace = default_keyspace(store);
    let mut dice = Dice::new(7);
    let mut snapshot = store.snapshot();
    for run in 0..4 {
        for _ in 0..3000 {
            let key = (dice.below(6000) as u64).to_be_bytes();
            if dice.chance(20) {
                keyspace.delete(key).unwrap();
            } else {
                keyspace.put(key, dice.bytes(100)).unwrap();
            }
        }
        keyspace.flush().unwrap();
        if run == 1 {
            snapshot = store.snapshot();
        }
    }
    (keyspace, snapshot)
}

#[test]
fn a_split_merge_writes_what_one_thread_writes() {
    let open = |threads, lockstep| {
        let builder = plain(&MemEnv::new()).policy("none");
        builder.threads(threads).lockstep(lockstep).split_bytes(100_000).open().unwrap()
    };
    let alone = open(1, true);
    let together = open(3, false);
    let (one, at_one) = four_runs(&alone);
    let (other, at_other) = four_runs(&together);
    for keyspace in [&one, &other] {
        keyspace.merge().unwrap();
    }
    let run = |keyspace: &Keyspace| keyspace.tree().disk_runs().next().unwrap().clone();
    assert_eq!((one.tree().disk_run_count(), other.tree().disk_run_count()), (1, 1));
    assert_eq!(run(&one).size(), run(&other).size());
    assert_eq!(run(&one).slices().len(), 1);
    assert!(run(&other).slices().len() > 4, "{}", other.tree());
    assert!(one.iter().map(Result::unwrap).eq(other.iter().map(Result::unwrap)));
    let at = |snapshot: &Snapshot, keyspace: &Keyspace| {
        snapshot.range::<&[u8]>(keyspace, ..).map(Result::unwrap).collect::<Vec<_>>()
    };
    assert_eq!(at(&at_one, &one), at(&at_other, &other));
    assert_eq!(together.verify().unwrap().len(), 0);
}

#[test]
fn two_threads_work_on_one_merge() {
    let disk = MemEnv::new();
    let env = Gate::over(disk.clone());
    let builder = plain(&env).policy("none");
    let store = builder.threads(2).split_bytes(100_000).open().unwrap();
    let (keyspace, _) = four_runs(&store);
    let tables = || {
        let names = disk.list(Path::new(DIR)).unwrap();
        names.iter().filter(|name| name.ends_with(".table")).count()
    };
    env.hold_at(Step::Create, 1);
    thread::scope(|scope| {
        scope.spawn(|| keyspace.merge().unwrap());
        env.wait_until_held();
        // There is one plan only, and the first thread stays where it is: it is another that
        // writes a table.
        wait_until(|| tables() != 4);
        env.release();
    });
    assert_eq!(keyspace.tree().disk_run_count(), 1);
}

#[test]
fn nothing_is_left_of_a_split_merge_that_failed() {
    let disk = MemEnv::new();
    let env = FaultEnv::new(Arc::new(disk.clone()));
    let builder = plain(&env).policy("none");
    let store = builder.threads(3).split_bytes(100_000).open().unwrap();
    let (keyspace, _) = four_runs(&store);
    let before: Vec<_> = keyspace.iter().map(Result::unwrap).collect();
    let tables = || {
        let names = disk.list(Path::new(DIR)).unwrap();
        names.into_iter().filter(|name| name.ends_with(".table")).collect::<Vec<_>>()
    };
    let whole = tables();
    assert_eq!(whole.len(), 4);
    // No part can be written.
    let class = Some(OpClass::Create);
    let lasting = Lasting::Forever;
    env.set(Fault { class, after: 0, lasting, kind: std::io::ErrorKind::Other });
    keyspace.merge().unwrap_err();
    assert_eq!(tables(), whole);
    env.clear();
    store.retry();
    keyspace.merge().unwrap();
    assert_eq!(keyspace.tree().disk_run_count(), 1);
    assert!(keyspace.iter().map(Result::unwrap).eq(before));
}

#[test]
fn stores_share_threads_and_close_apart() {
    let threads = Threads::new(3).unwrap();
    assert_eq!(threads.count(), 3);
    let held = Gate::over(MemEnv::new());
    let open = |env: Arc<dyn Env>| {
        let builder = Store::builder(DIR).env(env).policy("tiered(ratio=2)");
        builder.memtable_bytes(2000).shared_threads(&threads).open().unwrap()
    };
    let slow = open(Arc::new(held.clone()));
    let quick = open(Arc::new(MemEnv::new()));
    let write = |store: &Store, count: u64| {
        let keyspace = default_keyspace(store);
        for number in 0..count {
            keyspace.put(number.to_be_bytes(), [1; 50]).unwrap();
        }
    };
    held.hold_at(Step::Create, 1);
    write(&slow, 40);
    held.wait_until_held();
    // One thread is held up in the one store; the others work for the other, which then closes.
    write(&quick, 1000);
    quick.flush().unwrap();
    assert!(quick.stats().plans > 4);
    drop(quick);
    held.release();
    write(&slow, 1000);
    slow.flush().unwrap();
    assert!(slow.stats().plans > 4);
    // They outlive all stores.
    drop(slow);
    let third = open(Arc::new(MemEnv::new()));
    drop(threads);
    write(&third, 1000);
    third.flush().unwrap();
    assert_eq!(default_keyspace(&third).iter().count(), 1000);
}

/// One byte per second stops merges: writers can go on only because the limit is lifted.
#[test]
fn the_limit_on_merges_gives_way_to_writers() {
    let builder = plain(&MemEnv::new()).policy("tiered(ratio=2)");
    let builder = builder.memtable_bytes(500_000).merge_bytes_per_s(Some(1));
    let (store, keyspace) = open(builder);
    // Each fills a memtable, whatever the merging threads hold just then. The second is merged with
    // the first, for which nobody waits: this merge keeps the limit.
    keyspace.put("first", vec![1; 1_000_000]).unwrap();
    wait_until(|| store.stats().flush_bytes > 0);
    keyspace.put("second", vec![1; 1_000_000]).unwrap();
    wait_until(|| {
        let stats = store.stats();
        stats.paced_micros > 0 || stats.merge_bytes_written > 0
    });
    assert!(store.stats().paced_micros > 0);
    for number in 0..20_000u64 {
        keyspace.put(number.to_be_bytes(), [1; 1000]).unwrap();
    }
    let stats = store.stats();
    assert!(stats.held_back_micros > 0, "{stats:?}");
    assert!(stats.merge_bytes_written > 1 << 20, "{stats:?}");
    // What is still limited does not keep the store from closing.
    drop((keyspace, store));
}
