//! Checkpoints beside what else happens, and ingests that are refused.
//!
//! Promised: a checkpoint flushes nothing, and writes no table. It is whole although the store
//! replaces its manifest and merges meanwhile. An empty path is refused, and a keyspace that was
//! dropped takes no table; neither leaves a file.
//!
//! What broke: a checkpoint to an empty path left a lock in the current directory.

use crate::frame::batches::{Batches, Progress};
use crate::frame::contents::names;
use crate::frame::gate::{Gate, GateEnv, Step};
use crate::frame::small::{DIR, small, small_at};
use crate::frame::watchdog::Watchdog;
use crate::ingest::files::write_table;
use lsmith::env::{Env, MemEnv};
use lsmith::{ErrorKind, IngestOptions, Keyspace, KeyspaceOptions, PersistMode, Store};
use std::path::Path;
use std::thread;

const COPY: &str = "/copies/one";

fn write(store: &Store, batches: &Batches, progress: &mut Progress, count: u64) {
    for _ in 0..count {
        batches.go_on(store, progress, PersistMode::Buffer).unwrap();
    }
}

#[test]
fn a_checkpoint_flushes_nothing() {
    for in_group in [false, true] {
        let env = MemEnv::new();
        let batches = Batches { in_group, value_bytes: 60, ..Batches::new(1) };
        let open = |dir: &str| small_at(dir, &env).memtable_bytes(1 << 20).open().unwrap();
        let store = open(DIR);
        let mut progress = Progress::default();
        write(&store, &batches, &mut progress, 50);
        store.flush().unwrap();
        write(&store, &batches, &mut progress, 50);
        let spaces = ["left", "right"].map(|name| store.existing_keyspace(name).unwrap());
        let look = || {
            let of = |space: &Keyspace| {
                let tree = space.tree();
                (tree.to_string(), tree.flushes(), space.stats().memory_bytes)
            };
            let stats = store.stats();
            let written = (stats.flush_bytes, stats.merge_bytes_written, stats.spill_bytes);
            (spaces.each_ref().map(of), written, stats.plans, names(&env, DIR, ".table"))
        };
        let before = look();
        assert!(before.0[0].2 > 0, "memory has something to flush");
        store.checkpoint(COPY).unwrap();
        assert_eq!(look(), before);
        assert_eq!(names(&env, COPY, ".table"), before.3, "the tables of the store, and no more");
        write(&store, &batches, &mut progress, 10);
        let copy = open(COPY);
        assert_eq!(batches.check(&copy), 100);
        assert_eq!(batches.check(&store), 110);
        copy.flush().unwrap();
        assert_eq!(batches.check(&copy), 100);
    }
}

/// Opens the gate in any case: a thread that is held would never end.
struct Release<'a>(&'a GateEnv);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A checkpoint is held before each of its steps in turn. Meanwhile the store writes so much to its
/// manifest that a new one takes its place, merges, and removes old files.
#[test]
fn a_manifest_is_replaced_in_the_middle_of_a_checkpoint() {
    let _watchdog = Watchdog::new("a checkpoint that is held does not go on");
    let mut replaced = 0;
    for count in 1.. {
        let disk = MemEnv::new();
        let gate = Gate::over(disk.clone());
        let batches = Batches { key_bytes: 200, ..Batches::new(2) };
        let store = small(&gate).policy("tiered(ratio=2)");
        let store = store.threads(1).open().unwrap();
        let mut progress = Progress::default();
        write(&store, &batches, &mut progress, 100);
        store.settle().unwrap();
        let manifest = names(&disk, DIR, ".manifest");
        gate.hold_at(Step::Create, count);
        let is_held = thread::scope(|scope| {
            let _release = Release(&gate);
            let made = scope.spawn(|| store.checkpoint(COPY).unwrap());
            while !gate.holds() && !made.is_finished() {
                thread::yield_now();
            }
            let is_held = gate.holds();
            if is_held {
                write(&store, &batches, &mut progress, 100);
                store.settle().unwrap();
                // A manifest grows with each flush until it is written anew.
                for _ in 0..400 {
                    if names(&disk, DIR, ".manifest") != manifest {
                        break;
                    }
                    write(&store, &batches, &mut progress, 1);
                    store.flush().unwrap();
                }
                replaced += usize::from(names(&disk, DIR, ".manifest") != manifest);
            }
            is_held
        });
        for again in 0..2 {
            let copy = small_at(COPY, &disk).memtable_bytes(1 << 20).open().unwrap();
            assert_eq!(batches.check(&copy), 100, "step {count}, {again}");
            assert!(copy.verify().unwrap().is_empty());
        }
        assert_eq!(batches.check(&store), progress.acknowledged);
        drop(store);
        let store = small(&disk).memtable_bytes(1 << 20).open().unwrap();
        assert_eq!(batches.check(&store), progress.acknowledged);
        if !is_held {
            break;
        }
    }
    assert!(replaced > 0, "no manifest was replaced");
}

/// Returns all files of the disk that a call may leave something in.
fn listing(env: &MemEnv) -> Vec<Vec<String>> {
    ["/", DIR].map(|dir| env.list(Path::new(dir)).unwrap()).into()
}

#[test]
fn a_checkpoint_without_a_directory_is_refused() {
    let env = MemEnv::new();
    let store = small(&env).memtable_bytes(1 << 20).open().unwrap();
    store.keyspace("k").unwrap().put("key", "value").unwrap();
    let before = listing(&env);
    let opened = small_at("", &env).memtable_bytes(1 << 20).open();
    for refused in [store.checkpoint("").map(drop), opened.map(drop)] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("an empty one"), "{error}");
        assert_eq!(listing(&env), before);
    }
    store.checkpoint(COPY).unwrap();
    let copy = small_at(COPY, &env).memtable_bytes(1 << 20).open().unwrap();
    assert!(copy.existing_keyspace("k").unwrap().contains("key").unwrap());
}

#[test]
fn a_keyspace_that_was_dropped_takes_no_table() {
    let env = MemEnv::new();
    let table = write_table(&env, "/made", &[(b"key".to_vec(), Some(b"value".to_vec()))].into());
    for (link, comes_again) in [(false, false), (true, false), (false, true), (true, true)] {
        let store = small(&env).memtable_bytes(1 << 20).open().unwrap();
        let gone = store.keyspace("gone").unwrap();
        gone.put("before", "").unwrap();
        let files = [table.clone()];
        store.ingest(&gone, &files, &IngestOptions::default()).unwrap();
        assert_eq!(gone.iter().count(), 2);
        store.drop_keyspace("gone").unwrap();
        let again = comes_again.then(|| {
            let policy = Some("none".into());
            let options = KeyspaceOptions { policy, ..KeyspaceOptions::default() };
            store.keyspace_with("gone", &options).unwrap()
        });
        let before = listing(&env);
        let ingested = store.ingest(&gone, &files, &IngestOptions::default().link(link));
        assert_eq!(ingested.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(listing(&env), before, "link {link}");
        assert!(env.file_bytes(&table).is_ok());
        if let Some(again) = &again {
            assert!(again.is_empty().unwrap());
            store.ingest(again, &files, &IngestOptions::default()).unwrap();
            assert_eq!(again.get("key").unwrap().unwrap(), "value");
        }
        drop((store, gone, again));
        let store = small(&env).memtable_bytes(1 << 20).open().unwrap();
        assert_eq!(store.keyspaces().len(), usize::from(comes_again));
        assert!(store.left_out().unwrap().is_empty());
        if comes_again {
            store.drop_keyspace("gone").unwrap();
        }
    }
}
