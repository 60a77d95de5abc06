//! Closing a store.
//!
//! Promised: after the last handle of a store is dropped, its lock is free, its files and observer
//! are released, and its own threads have ended. That holds for shared threads, for handles of
//! every kind, and for every thread that drops the handle. If an observer drops the last handle on
//! a merging thread, the drop does not wait: the store closes as soon as no thread works for it.

use crate::dice::{Dice, with_seeds};
use crate::frame::contents::default_keyspace;
use crate::frame::gate::{Gate, Step};
use crate::frame::small::{DIR, threaded};
use crate::frame::watchdog::{ends, wait_until};
use lsmith::env::{Env, MemEnv};
use lsmith::{Builder, Event, Iter, Keyspace, Observer, Snapshot, Store, Threads};
use parking_lot::Mutex;
use std::any::Any;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// Puts `numbers`. A memtable of 2,000 bytes holds fewer than thirty of these entries.
pub(crate) fn write(store: &Store, numbers: std::ops::Range<u64>) {
    let keyspace = default_keyspace(store);
    for number in numbers {
        keyspace.put(number.to_be_bytes(), [1; 50]).unwrap();
    }
}

/// Returns the builder of a store that flushes and merges after a few writes.
fn builder(env: &(impl Env + Clone)) -> Builder {
    threaded(env).memtable_bytes(2000).policy("tiered(ratio=2)")
}

/// Returns true if the store is not open.
fn is_free(disk: &MemEnv) -> bool {
    disk.lock(Path::new(DIR)).is_ok()
}

/// What broke: a thread took the stores that it shares all at once, and kept a closed one open
/// until it was done with the others.
#[test]
fn closed_store_is_free_while_its_threads_work_for_another() {
    ends(|| {
        let threads = Threads::new(1).unwrap();
        let left = Gate::over(MemEnv::new());
        let right = MemEnv::new();
        let on = |builder: Builder| builder.shared_threads(&threads).open().unwrap();
        let busy = on(builder(&left));
        let closed = on(builder(&right));
        left.hold_at(Step::Create, 1);
        write(&busy, 0..40);
        left.wait_until_held();
        drop(closed);
        assert!(is_free(&right), "the store is closed");
        builder(&right).open().unwrap();
        left.release();
        busy.flush().unwrap();
    });
}

thread_local! {
    /// Clones that threads hold until they end.
    static HELD: RefCell<Vec<Arc<()>>> = const { RefCell::new(Vec::new()) };
}

/// Gives every merging thread that calls it a clone to hold.
#[derive(Debug, Default)]
struct Roll {
    alive: Arc<()>,
}

impl Observer for Roll {
    fn on_event(&self, _: &str, _: &Event<'_>) {
        if !thread::current().name().is_some_and(|name| name.starts_with("lsmith-merge")) {
            return;
        }
        HELD.with_borrow_mut(|held| {
            if !held.iter().any(|alive| Arc::ptr_eq(alive, &self.alive)) {
                held.push(Arc::clone(&self.alive));
            }
        });
    }
}

/// Handles of each kind, which keep a store open.
fn handles(store: Store, dice: &mut Dice) -> Vec<Box<dyn Any + Send>> {
    let mut handles: Vec<Box<dyn Any + Send>> = Vec::new();
    let keyspace = default_keyspace(&store);
    for round in 0..dice.below(8) as u64 {
        write(&store, round * 40..round * 40 + 60);
        let snapshot: Snapshot = store.snapshot();
        let mut iter: Iter = snapshot.range::<&[u8]>(&keyspace, ..);
        assert!(iter.next().is_some_and(|entry| entry.is_ok()));
        let all: [Box<dyn Any + Send>; 4] = [
            Box::new(snapshot),
            Box::new(iter),
            Box::new(keyspace.iter()),
            Box::new(keyspace.bulk_load().unwrap()),
        ];
        handles.extend(all.into_iter().filter(|_| dice.chance(50)));
    }
    handles.push(Box::new(keyspace));
    handles.push(Box::new(store));
    handles
}

/// The store and its threads hold the environment and the observer, and neither outlives the last
/// handle.
#[test]
fn nothing_is_left_of_a_store_whatever_handle_goes_last() {
    ends(|| {
        with_seeds(30, |seed| {
            let mut dice = Dice::new(seed);
            let disk = MemEnv::new();
            let threads = Threads::new(2).unwrap();
            let env: Arc<dyn Env> = Arc::new(disk.clone());
            let roll = Arc::new(Roll::default());
            let builder = self::builder(&disk)
                .env(Arc::clone(&env))
                .observer(Arc::clone(&roll) as _)
                .threads(3);
            let shares = dice.chance(50);
            let lockstep = dice.chance(20);
            let builder = if shares { builder.shared_threads(&threads) } else { builder };
            let store = builder.lockstep(lockstep).open().unwrap();
            let mut left = handles(store, &mut dice);
            thread::scope(|scope| {
                while !left.is_empty() {
                    assert!(!is_free(&disk), "{} handles are left", left.len());
                    let handle = left.swap_remove(dice.below(left.len()));
                    if dice.chance(50) {
                        scope.spawn(move || drop(handle)).join().unwrap();
                    }
                }
            });
            assert!(is_free(&disk), "the last handle is gone");
            assert_eq!(Arc::strong_count(&env), 1, "nobody holds the environment");
            if shares {
                drop(threads);
            }
            assert_eq!(Arc::strong_count(&roll.alive), 1, "no thread is left");
            assert_eq!(Arc::strong_count(&roll), 1, "nobody holds the observer");
        });
    });
}

/// An observer that drops what it holds at a certain event on a merging thread.
#[derive(Debug)]
struct Dropper {
    at: &'static str,
    handle: Mutex<Option<Keyspace>>,
}

impl Dropper {
    fn new(at: &'static str) -> Arc<Dropper> {
        Arc::new(Dropper { at, handle: Mutex::default() })
    }
}

impl Observer for Dropper {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        let name = match event {
            Event::Planned { .. } => "planned",
            Event::Committed { .. } => "committed",
            Event::Rest { .. } => "rest",
            _ => return,
        };
        if name == self.at {
            let handle = self.handle.lock().take();
            drop(handle);
        }
    }
}

/// Gives the last handle of a store to its observer while its merges are blocked, and waits until
/// everything is released.
fn check_drop_by_observer(at: &'static str, threads: Option<&Threads>) {
    let disk = MemEnv::new();
    let gate = Gate::over(disk.clone());
    let env: Arc<dyn Env> = Arc::new(gate.clone());
    let dropper = Dropper::new(at);
    let builder = builder(&disk).env(Arc::clone(&env));
    let builder = builder.threads(3).observer(Arc::clone(&dropper) as _);
    let store = match threads {
        Some(threads) => builder.shared_threads(threads),
        None => builder,
    };
    let store = store.open().unwrap();
    gate.hold_at(Step::Create, 1);
    write(&store, 0..40);
    gate.wait_until_held();
    write(&store, 40..100);
    let mut handle = dropper.handle.lock();
    *handle = Some(default_keyspace(&store));
    drop(store);
    drop(handle);
    gate.release();
    wait_until(|| is_free(&disk));
    wait_until(|| Arc::strong_count(&env) == 1 && Arc::strong_count(&dropper) == 1);
    let store = self::builder(&disk).open().unwrap();
    assert_eq!(default_keyspace(&store).iter().count(), 100);
}

/// What broke: the drop waited for all threads to leave the store, its own among them.
#[test]
fn last_handle_may_be_dropped_by_an_observer() {
    ends(|| {
        for at in ["planned", "committed", "rest"] {
            check_drop_by_observer(at, None);
            let threads = Threads::new(2).unwrap();
            check_drop_by_observer(at, Some(&threads));
            // They work on for others.
            let store = builder(&MemEnv::new()).shared_threads(&threads).open().unwrap();
            write(&store, 0..500);
            store.flush().unwrap();
        }
    });
}

/// The observer of one store holds the last handle of another, and both share threads.
#[test]
fn last_handle_may_be_dropped_by_an_observer_of_another_store() {
    ends(|| {
        for count in 1..4 {
            let threads = Threads::new(count).unwrap();
            let left = MemEnv::new();
            let right = MemEnv::new();
            let dropper = Dropper::new("committed");
            let open = |env: &MemEnv| builder(env).shared_threads(&threads);
            let closed = open(&left).open().unwrap();
            let store = open(&right).observer(Arc::clone(&dropper) as _).open().unwrap();
            write(&closed, 0..100);
            *dropper.handle.lock() = Some(default_keyspace(&closed));
            drop(closed);
            write(&store, 0..500);
            store.flush().unwrap();
            wait_until(|| is_free(&left));
            let closed = open(&left).open().unwrap();
            assert_eq!(default_keyspace(&closed).iter().count(), 100);
        }
    });
}
