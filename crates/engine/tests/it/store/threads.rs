//! Many threads at once.
//!
//! Promised: readers see a batch completely or not at all, in any snapshot and by any iterator,
//! however many threads write, read and merge, and whichever policy is switched to. The view of a
//! snapshot or an iterator never changes. No reader sees time go back. Files of tables that nothing
//! needs are removed, and not before. A write that asked for a sync is durable when it returns,
//! whatever other threads do to the log meanwhile. Closing in the middle loses nothing.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::POLICIES;
use crate::frame::gate::{Gate, Step};
use crate::frame::small::{DIR, open, threaded};
use crate::frame::watchdog::wait_until;
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{Batch, Builder, ErrorKind, Keyspace, PersistMode, Snapshot, Store};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

const WRITERS: usize = 3;
const KEYS: usize = 6;
const ROUNDS: u64 = 1500;

fn builder(env: &(impl Env + Clone)) -> Builder {
    threaded(env).cache_bytes(20_000).threads(3)
}

fn spaces(store: &Store) -> [Keyspace; 2] {
    ["left", "right"].map(|name| store.keyspace(name).unwrap())
}

fn key(writer: usize, index: usize) -> String {
    format!("writer{writer}/key{index}")
}

/// Writes `counter` to all keys of `writer`.
fn write(
    spaces: &[Keyspace; 2],
    writer: usize,
    counter: u64,
    mode: PersistMode,
) -> lsmith::Result<()> {
    let mut batch = Batch::new();
    for space in spaces {
        for index in 0..KEYS {
            batch.put(space, key(writer, index), format!("{counter} {}", "x".repeat(index * 5)));
        }
    }
    spaces[0].store().write(batch, mode)
}

fn counter(value: &[u8]) -> u64 {
    let text = std::str::from_utf8(value).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Returns the counter in all keys of `writer` in `snapshot`; 0 if there is none.
fn counter_in(snapshot: &Snapshot, spaces: &[Keyspace; 2], writer: usize, dice: &mut Dice) -> u64 {
    let mut counters = Vec::new();
    for space in spaces {
        if dice.chance(50) {
            for index in 0..KEYS {
                let found = snapshot.get(space, key(writer, index)).unwrap();
                counters.push(found.map_or(0, |value| counter(&value)));
            }
        } else {
            let range = key(writer, 0)..key(writer, KEYS);
            let found = snapshot.range(space, range).map(|entry| counter(&entry.unwrap().1));
            let found: Vec<u64> = found.collect();
            assert!([0, KEYS].contains(&found.len()), "{found:?}");
            counters.extend(if found.is_empty() { vec![0] } else { found });
        }
    }
    assert!(counters.iter().all(|one| *one == counters[0]), "a batch is torn: {counters:?}");
    counters[0]
}

/// Reads until `done`.
fn read(store: &Store, seed: u64, done: &AtomicBool) {
    let spaces = spaces(store);
    let mut dice = Dice::new(seed);
    let mut seen = [0; WRITERS];
    let mut latest: BTreeMap<String, u64> = BTreeMap::new();
    let mut held: Vec<(Snapshot, usize, u64)> = Vec::new();
    while !done.load(SeqCst) {
        let writer = dice.below(WRITERS);
        let snapshot = store.snapshot();
        let counter_now = counter_in(&snapshot, &spaces, writer, &mut dice);
        assert!(counter_now >= seen[writer], "time went back");
        seen[writer] = counter_now;
        held.push((snapshot, writer, counter_now));
        if held.len() > 5 {
            let (snapshot, writer, before) = held.swap_remove(dice.below(held.len()));
            assert_eq!(counter_in(&snapshot, &spaces, writer, &mut dice), before);
        }
        let key = key(writer, dice.below(KEYS));
        let found = dice.pick(&spaces).get(&key).unwrap().map_or(0, |value| counter(&value));
        assert!(found >= counter_now, "a get is older than a snapshot taken before it");
        let before = latest.insert(key, found).unwrap_or(0);
        assert!(found >= before, "time went back");
        walk_slowly(&spaces[dice.below(2)]);
    }
}

/// An iterator that writers overtake still sees one moment.
fn walk_slowly(space: &Keyspace) {
    let mut counters: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    let mut iter = space.prefix("writer");
    loop {
        let Some(front) = iter.next() else { break };
        for (key, value) in [front].into_iter().chain(iter.next_back()).map(Result::unwrap) {
            counters.entry(key[..7].to_vec()).or_default().push(counter(&value));
        }
        thread::yield_now();
    }
    for found in counters.values() {
        assert_eq!(found.len(), KEYS);
        assert!(
            found.iter().all(|one| *one == found[0]),
            "an iterator saw half a batch: {found:?}"
        );
    }
}

#[test]
fn writers_readers_and_merges() {
    with_seeds(5, |seed| {
        let env = MemEnv::new();
        let store = builder(&env).open().unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for reader in 0..2 {
                let store = &store;
                let done = &done;
                scope.spawn(move || read(store, seed * 10 + reader, done));
            }
            let mut writers = Vec::new();
            for writer in 0..WRITERS {
                let spaces = spaces(&store);
                let mut dice = Dice::new(seed ^ writer as u64);
                writers.push(scope.spawn(move || {
                    for counter in 1..=ROUNDS {
                        let sync = dice.chance(5);
                        let mode = if sync { PersistMode::SyncData } else { PersistMode::Buffer };
                        write(&spaces, writer, counter, mode).unwrap();
                        if dice.chance(1) {
                            let policy = dice.pick(&POLICIES);
                            spaces[dice.below(2)].set_merge_policy(*policy).unwrap();
                        }
                        match dice.below(500) {
                            0 => spaces[0].merge().unwrap(),
                            1 => spaces[0].store().flush().unwrap(),
                            _ => {}
                        }
                    }
                }));
            }
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, SeqCst);
        });
        store.flush().unwrap();
        check_end(&env, &store);
        check_stats(&store);
        drop(store);
        check_end(&env, &builder(&env).open().unwrap());
    });
}

/// Asserts that everything is there, and no file too many.
fn check_end(env: &MemEnv, store: &Store) {
    let snapshot = store.snapshot();
    for writer in 0..WRITERS {
        assert_eq!(counter_in(&snapshot, &spaces(store), writer, &mut Dice::new(0)), ROUNDS);
    }
    assert_eq!(store.verify().unwrap().len(), 0);
    assert_eq!(tables_on(env), tables_of(store));
}

fn check_stats(store: &Store) {
    let batches = WRITERS as u64 * ROUNDS;
    let stats = store.stats();
    assert_eq!(stats.batches, batches);
    assert_eq!(stats.entries_written, batches * 2 * KEYS as u64);
    let user_bytes = stats.user_bytes;
    assert!(stats.wal_bytes > user_bytes && stats.wal_bytes < 3 * user_bytes, "{stats:?}");
    assert!(stats.manifest_bytes > 0 && stats.syncs > 0, "{stats:?}");
    assert!(stats.flush_bytes + stats.merge_bytes_written > 0 && stats.plans > 0, "{stats:?}");
    assert!(stats.gets >= stats.gets_found && stats.gets_found > 0, "{stats:?}");
    assert_eq!((stats.plans_refused, stats.plans_failed), (0, 0));
    assert!(store.cache_bytes() <= 40_000);
}

fn tables_on(env: &MemEnv) -> Vec<String> {
    let names = env.list(Path::new(DIR)).unwrap();
    names.into_iter().filter(|name| name.ends_with(".table")).collect()
}

fn tables_of(store: &Store) -> Vec<String> {
    let mut names = Vec::new();
    for name in store.keyspaces() {
        let tree = store.keyspace(&name).unwrap().tree();
        let tables = tree.disk_runs().flat_map(|run| run.slices().iter().map(|s| s.table().id.0));
        names.extend(tables.map(|number| format!("{number:06}.table")));
    }
    names.sort();
    names.dedup();
    names
}

#[test]
fn files_go_when_nobody_needs_them() {
    let env = MemEnv::new();
    let (store, space) = open(builder(&env).policy("none").memtable_bytes(1 << 20));
    for round in 0..4 {
        for index in 0..50 {
            space.put(format!("{index:03}"), round.to_string()).unwrap();
        }
        space.flush().unwrap();
    }
    assert_eq!(tables_on(&env).len(), 4);
    let before = tables_on(&env);
    let mut iter = space.iter();
    let first = iter.next().unwrap().unwrap();
    assert_eq!(&first.1[..], b"3");
    let snapshot = store.snapshot();
    space.merge().unwrap();
    assert_eq!(tables_of(&store).len(), 1);
    assert_eq!(tables_on(&env), [before, tables_of(&store)].concat(), "the iterator reads them");
    assert_eq!(iter.by_ref().count(), 49);
    assert_eq!(tables_on(&env).len(), 5);
    drop(iter);
    store.settle().unwrap();
    assert_eq!(tables_on(&env), tables_of(&store), "a snapshot holds no files");
    assert_eq!(snapshot.range::<&str>(&space, ..).count(), 50);
}

/// Otherwise a reader would wait as long as a file is large.
#[test]
fn the_last_reader_of_a_file_does_not_remove_it() {
    let disk = MemEnv::new();
    let env = Gate::over(disk.clone());
    let (store, space) = open(builder(&env).policy("none").memtable_bytes(1 << 20));
    for key in ["a", "b"] {
        space.put(key, "1").unwrap();
        space.flush().unwrap();
    }
    let iter = space.iter();
    space.merge().unwrap();
    store.settle().unwrap();
    env.hold_at(Step::Remove, 1);
    thread::scope(|scope| {
        let reader = scope.spawn(move || drop(iter)).thread().id();
        let remover = env.wait_until_held();
        env.release();
        assert_ne!(remover, reader);
    });
    store.settle().unwrap();
    assert_eq!(tables_on(&disk), tables_of(&store));
}

/// A manual merge is made, whichever thread looks first.
#[test]
fn a_merge_by_hand_is_not_forgotten() {
    for threads in 1..4 {
        let env = MemEnv::new();
        let (_store, space) = open(builder(&env).policy("none").threads(threads));
        for round in 0..100 {
            for _ in 0..2 {
                space.put(round.to_string(), "x").unwrap();
                space.flush().unwrap();
            }
            assert!(space.tree().disk_run_count() > 1);
            space.merge().unwrap();
            assert_eq!(space.tree().disk_run_count(), 1, "round {round} with {threads} threads");
        }
    }
}

/// Writes on several threads, with and without sync, until they are stopped or refused. `synced`
/// has how far each got with a sync.
fn write_with_sync(store: &Store, writer: usize, synced: &AtomicU64, stop: &AtomicBool) {
    let space = store.keyspace("default").unwrap();
    let mut dice = Dice::new(writer as u64);
    for number in 1_u64.. {
        if stop.load(SeqCst) {
            return;
        }
        let mut batch = Batch::new();
        batch.put(&space, writer.to_string(), number.to_string());
        batch.put(&space, format!("{writer} long"), dice.bytes(3000));
        let sync = dice.chance(30);
        let mode = if sync { PersistMode::SyncData } else { PersistMode::Buffer };
        match store.write(batch, mode) {
            Ok(()) if sync => synced.store(number, SeqCst),
            Ok(()) => {}
            Err(error) => {
                assert!([ErrorKind::Io, ErrorKind::Poisoned].contains(&error.kind()), "{error}");
                return;
            }
        }
    }
}

fn check_synced(disk: &MemEnv, expected: &[u64]) {
    let (_store, space) = open(builder(disk).lockstep(true));
    for (writer, expected) in expected.iter().enumerate() {
        let found = space.get(writer.to_string()).unwrap().map_or(0, |value| counter(&value));
        assert!(found >= *expected, "writer {writer} had synced {expected}, found {found}");
    }
}

/// A log that becomes full while its beginning is synced has an end that is not synced.
#[test]
fn a_log_that_fills_up_during_a_sync_is_synced_again() {
    let disk = MemEnv::new();
    let env = Gate::over(disk.clone());
    let (store, space) = open(builder(&env).memtable_bytes(1 << 30));
    let logs = || disk.list(Path::new(DIR)).unwrap().iter().filter(|n| n.ends_with(".wal")).count();
    let mut written = 0;
    let mut write = |mode| {
        let mut batch = Batch::new();
        batch.put(&space, written.to_string(), [1; 3000]);
        store.write(batch, mode).unwrap();
        written += 1;
    };
    let mut fill = |count| {
        while logs() < count {
            write(PersistMode::Buffer);
        }
    };
    fill(2);
    // Two logs to sync: held up when the second, not yet full, has been.
    env.hold_at(Step::LogSynced, 2);
    thread::scope(|scope| {
        scope.spawn(|| store.persist(PersistMode::SyncData).unwrap());
        env.wait_until_held();
        fill(3);
        env.release();
    });
    write(PersistMode::SyncData);
    let after = disk.crash_clone(0, 0.0);
    let found = builder(&after).open().unwrap().keyspace("default").unwrap().iter().count();
    assert_eq!(found, written);
}

#[test]
fn what_was_synced_is_there_whatever_others_write_meanwhile() {
    let env = MemEnv::new();
    // No flush comes to the help of the log.
    let store = builder(&env).memtable_bytes(1 << 30).open().unwrap();
    store.keyspace("default").unwrap();
    let synced: [AtomicU64; 4] = Default::default();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let store = &store;
        let stop = &stop;
        let spawn =
            |(writer, synced)| scope.spawn(move || write_with_sync(store, writer, synced, stop));
        let writers: Vec<_> = synced.iter().enumerate().map(spawn).collect();
        let mut copies = Vec::new();
        // One who has failed would be waited for without end.
        while copies.len() < 12 && writers.iter().all(|writer| !writer.is_finished()) {
            // Read first: what is synced later does not count.
            let before: Vec<u64> = synced.iter().map(|synced| synced.load(SeqCst)).collect();
            if before.iter().sum::<u64>() > 100 * copies.len() as u64 {
                copies.push((before, env.crash_clone(0, 0.0)));
            }
            thread::yield_now();
        }
        stop.store(true, SeqCst);
        assert_eq!(copies.len(), 12, "a writer has ended");
        copies.iter().for_each(|(before, disk)| check_synced(disk, before));
    });
}

/// When a sync fails, writes end. Writes that were synced before are there.
#[test]
fn what_was_synced_is_there_after_a_failed_sync_too() {
    for after in 0..30 {
        let disk = MemEnv::new();
        let env = FaultEnv::new(Arc::new(disk.clone()));
        let store = builder(&env).memtable_bytes(1 << 30).open().unwrap();
        store.keyspace("default").unwrap();
        let class = Some(OpClass::LogSync);
        let lasting = Lasting::Once;
        env.set(Fault { class, after, lasting, kind: std::io::ErrorKind::Other });
        let synced: [AtomicU64; 4] = Default::default();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for (writer, synced) in synced.iter().enumerate() {
                let store = &store;
                let stop = &stop;
                scope.spawn(move || write_with_sync(store, writer, synced, stop));
            }
        });
        let synced: Vec<u64> = synced.iter().map(|synced| synced.load(SeqCst)).collect();
        check_synced(&disk.crash_clone(after, 0.0), &synced);
    }
}

/// A failed merge is reported to writers only if nothing else can help them: not while a flush is
/// under way.
#[test]
fn writers_wait_for_a_flush_although_a_merge_has_failed() {
    let gate = Gate::over(MemEnv::new());
    let env = FaultEnv::new(Arc::new(gate.clone()));
    // Keys come in order: a merge that keeps tables would create none, and not fail.
    let (store, space) = open(builder(&env).policy("none").keep_tables(false));
    for number in 0..2 {
        space.put(number.to_string(), "x").unwrap();
        space.flush().unwrap();
    }
    let class = Some(OpClass::Create);
    let lasting = Lasting::Once;
    env.set(Fault { class, after: 0, lasting, kind: std::io::ErrorKind::Other });
    space.set_merge_policy("tiered(ratio=2)").unwrap();
    assert_eq!(store.settle().unwrap_err().kind(), ErrorKind::Io);
    gate.hold_at(Step::Create, 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Five full memtables. A sixth would be the eighth run of level 0, which the failed
            // merge blocks. The pressure of eight runs stops writers for good, and tells them why.
            for number in 0..200 {
                space.put(format!("{number:05}"), [1; 100]).unwrap();
            }
        });
        gate.wait_until_held();
        wait_until(|| space.view().tree.memory().runs().len() >= 4);
        gate.release();
    });
    store.retry();
    store.flush().unwrap();
    assert_eq!(space.iter().count(), 202);
}

#[test]
fn closing_in_the_middle_of_merges_loses_nothing() {
    with_seeds(10, |seed| {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let mut written = 0;
        for _ in 0..8 {
            let (_store, space) = open(builder(&env).policy(*dice.pick(&POLICIES)));
            assert_eq!(space.iter().count(), written);
            for _ in 0..dice.below(600) {
                space.put(format!("{:06}", written * 7919 % 1_000_003), [1; 50]).unwrap();
                written += 1;
            }
            assert_eq!(space.stats().failures, [""; 0]);
        }
        let store = builder(&env).open().unwrap();
        assert_eq!(store.keyspace("default").unwrap().iter().count(), written);
        store.flush().unwrap();
        assert_eq!(tables_on(&env), tables_of(&store));
    });
}
