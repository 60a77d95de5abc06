//! Snapshots beside bulk loads.
//!
//! Promised: a snapshot, or an iterator, sees all of a load for ever or nothing of it for ever. A
//! thread that has seen a load takes no later snapshot without it.
//!
//! What broke: readers got the version with the load before its number became visible. In between,
//! a get saw the load and a later snapshot did not. A merge that had read the live snapshots before
//! could drop entries that this snapshot needed, or give the entries of the load the number that
//! every reader sees.

use crate::dice::{Dice, with_seeds};
use crate::frame::gate::{Gate, Step};
use crate::frame::small::{open, small};
use crate::frame::watchdog::Watchdog;
use lsmith::env::MemEnv;
use lsmith::{DEFAULT_KEYSPACE, Keyspace, Snapshot, Store};
use lsmith_policy::{Load, MergePolicy, PolicyInfo, Registry, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

const KEYS: usize = 40;

fn key(number: usize) -> String {
    format!("{number:05}")
}

/// Loads all keys with the value `round`.
fn load(space: &Keyspace, round: u32) {
    let mut load = space.bulk_load().unwrap();
    for number in 0..KEYS {
        load.put(key(number), round.to_be_bytes()).unwrap();
    }
    assert_eq!(load.finish().unwrap().entries, KEYS as u64);
}

fn round_of(value: &[u8]) -> u32 {
    u32::from_be_bytes(value.try_into().unwrap())
}

/// Returns the one round of all entries; 0 if there are none.
fn only_round(rounds: &[u32]) -> u32 {
    assert!([0, KEYS].contains(&rounds.len()), "{} of {KEYS} keys", rounds.len());
    assert!(rounds.iter().all(|round| *round == rounds[0]), "a part of a load: {rounds:?}");
    rounds.first().copied().unwrap_or(0)
}

fn round_now(space: &Keyspace) -> u32 {
    only_round(&space.iter().map(|entry| round_of(&entry.unwrap().1)).collect::<Vec<_>>())
}

/// Returns the round that `snapshot` sees, by every way of reading.
fn round_in(snapshot: &Snapshot, space: &Keyspace) -> u32 {
    let entries = snapshot.range::<&[u8]>(space, ..);
    let walked = only_round(&entries.map(|entry| round_of(&entry.unwrap().1)).collect::<Vec<_>>());
    for number in [0, KEYS / 2, KEYS - 1] {
        let got = snapshot.get(space, key(number)).unwrap();
        assert_eq!(got.map_or(0, |value| round_of(&value)), walked);
    }
    walked
}

type Hook = Box<dyn Fn(&TreeView)>;

thread_local! {
    /// Runs when this thread asks the policy for its pressure: a load does that as soon as it is
    /// published.
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Merges nothing, and calls the hook.
#[derive(Debug)]
struct Hooked;

const HOOKED: PolicyInfo = PolicyInfo {
    name: "hooked",
    source: "this test",
    summary: "merges nothing",
    params: &[],
    build: |_| Ok(Arc::new(Hooked)),
};

impl MergePolicy for Hooked {
    fn spec(&self) -> Spec {
        Spec::bare("hooked")
    }

    fn choose_merge(&self, _: &TreeView) -> Option<MergePlan> {
        None
    }

    fn pressure(&self, view: &TreeView, _: &Load) -> f64 {
        HOOK.with_borrow(|hook| hook.iter().for_each(|hook| hook(view)));
        0.0
    }

    fn shape(&self) -> Shape {
        Shape::Unmerged
    }
}

#[test]
fn a_snapshot_sees_a_load_that_a_get_before_it_has_seen() {
    let mut registry = Registry::builtin();
    registry.register(HOOKED);
    let builder =
        small(&MemEnv::new()).lockstep(false).threads(2).registry(registry).policy("hooked");
    let (store, space) = open(builder.lockstep(true));
    load(&space, 1);
    let looks = std::rc::Rc::new(RefCell::new(Vec::new()));
    let hook = {
        let store = store.clone();
        let space = space.clone();
        let looks = looks.clone();
        move |view: &TreeView| {
            let got = round_of(&space.get(key(7)).unwrap().unwrap());
            let snapshot = store.snapshot();
            assert_eq!(round_in(&snapshot, &space), got, "a snapshot taken after the get");
            assert_eq!(round_now(&space), got, "an iterator begun after the get");
            looks.borrow_mut().push((view.tree.disk_run_count(), got, snapshot));
        }
    };
    HOOK.set(Some(Box::new(hook)));
    load(&space, 2);
    HOOK.set(None);
    assert!(looks.borrow().iter().any(|(runs, round, _)| (*runs, *round) == (2, 2)));
    space.merge().unwrap();
    for (_, round, snapshot) in &*looks.borrow() {
        assert_eq!(round_in(snapshot, &space), *round, "for ever");
    }
}

#[test]
fn a_snapshot_taken_while_a_load_is_written_down_never_sees_it() {
    let _watchdog = Watchdog::new("a load does not end");
    let env = Gate::over(MemEnv::new());
    let (store, space) = open(small(&env).lockstep(false).threads(2).policy("constant(k=1)"));
    load(&space, 1);
    store.settle().unwrap();
    env.hold_at(Step::ManifestSync, 1);
    let (snapshot, mut iter) = thread::scope(|scope| {
        scope.spawn(|| load(&space, 2));
        env.wait_until_held();
        let taken = (store.snapshot(), space.iter());
        assert_eq!(round_in(&taken.0, &space), 1);
        env.release();
        taken
    });
    assert_eq!(round_now(&space), 2);
    store.settle().unwrap();
    assert_eq!(round_in(&snapshot, &space), 1);
    space.merge().unwrap();
    assert_eq!(round_in(&snapshot, &space), 1);
    assert!(iter.all(|entry| round_of(&entry.unwrap().1) == 1));
}

/// Takes snapshots until `done`, and reads each again and again while loads are merged.
fn watch(store: &Store, seed: u64, done: &AtomicBool) {
    let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
    let mut dice = Dice::new(seed);
    let mut held: Vec<(Snapshot, u32)> = Vec::new();
    while !done.load(SeqCst) {
        let got = space.get(key(dice.below(KEYS))).unwrap().map_or(0, |value| round_of(&value));
        let snapshot = store.snapshot();
        let round = round_in(&snapshot, &space);
        assert!(round >= got, "a get saw load {got}, the snapshot after it load {round}");
        let now = round_now(&space);
        assert!(now >= round, "a snapshot saw load {round}, the iterator after it load {now}");
        held.push((snapshot, round));
        if held.len() > 8 {
            let (snapshot, round) = held.swap_remove(dice.below(held.len()));
            assert_eq!(round_in(&snapshot, &space), round, "a snapshot has changed");
        }
    }
    for (snapshot, round) in held {
        assert_eq!(round_in(&snapshot, &space), round, "a snapshot has changed");
    }
}

#[test]
fn snapshots_beside_loads_and_merges_stay_as_they_are() {
    let _watchdog = Watchdog::new("loads do not end");
    let policies = ["constant(k=1)", "tiered(ratio=2)", "choose_best(ratio=2, rate=0.3)"];
    with_seeds(3, |seed| {
        let (store, space) = open(
            small(&MemEnv::new()).lockstep(false).threads(2).policy(policies[seed as usize % 3]),
        );
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for watcher in 0..2 {
                let store = &store;
                let done = &done;
                scope.spawn(move || watch(store, 10 * seed + watcher, done));
            }
            scope.spawn(|| {
                (1..=200).for_each(|round| load(&space, round));
                done.store(true, SeqCst);
            });
        });
        store.settle().unwrap();
        assert_eq!(round_now(&space), 200);
        assert!(store.verify().unwrap().is_empty());
    });
}
