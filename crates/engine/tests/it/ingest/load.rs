//! Four threads that ingest at once, with readers beside them.
//!
//! Promised: level 0 stays bounded, because an ingest waits where writers wait. Merges never stop
//! for want of a wake-up: when nobody writes, the tree comes to rest by itself. Readers see the
//! newest table of each key. `LSMITH_SOAK=600 cargo test --release -p lsmith --test it ingest::load
//! -- --nocapture` ingests 600 times as many tables, and prints the most runs of level 0.

use crate::frame::small::plain;
use crate::frame::watchdog::{Watchdog, wait_until};
use crate::ingest::files::key;
use lsmith::env::MemEnv;
use lsmith::{IngestOptions, Keyspace, KeyspaceOptions, SeqNo, TableWriter, TableWriterOptions};
use lsmith_tree::LevelId;
use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const WRITERS: usize = 4;
const KEYS: usize = 40_000;
const ENTRIES: usize = 300;
/// The runs of level 0 at which `triangular` stops writers: 7 and as many again, and 4 more.
const LEVEL0_STOPS: usize = 18;
/// Pauses in which the tree must come to rest.
const PAUSES: u64 = 3;
/// Tables that are ingested before each pause.
const TABLES: u64 = 60;

/// Writes a table of every `step`th key from `from` on. Each value is `number`. Tables with numbers
/// have `number` as sequence number too.
fn write_table(env: &MemEnv, number: u64, numbered: bool) -> PathBuf {
    let path = PathBuf::from(format!("/table-{number}"));
    let options =
        TableWriterOptions { env: Arc::new(env.clone()), ..TableWriterOptions::default() };
    let mut writer = TableWriter::create_with(&path, &options).unwrap();
    let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut keys: Vec<usize> = (0..ENTRIES)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % KEYS
        })
        .collect();
    keys.sort_unstable();
    keys.dedup();
    for number_of_key in keys {
        let mut value = number.to_le_bytes().to_vec();
        value.resize(100, 0);
        match numbered {
            true => writer.put_at(key(number_of_key), value, SeqNo(number)).unwrap(),
            false => writer.put(key(number_of_key), value).unwrap(),
        }
    }
    writer.finish().unwrap();
    path
}

/// Ingests tables up to number `last`. Threads take numbers from `next`, so their numbers
/// interleave. Returns the most runs of level 0.
fn write(env: &MemEnv, space: &Keyspace, next: &AtomicU64, last: u64) -> usize {
    let numbered = space.name() == "numbered";
    let mut level0 = 0;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number > last {
            return level0;
        }
        let file = [write_table(env, number, numbered)];
        space.store().ingest(space, &file, &IngestOptions::default().link(true)).unwrap();
        lsmith::env::Env::remove_file(env, &file[0]).unwrap();
        level0 = level0.max(space.tree().runs_at(LevelId::Disk(0)).len());
    }
}

/// Reads until `stop`. A key never goes back to an older table.
fn read(space: &Keyspace, stop: &AtomicBool) {
    let mut seen = vec![0_u64; KEYS];
    let ordered = space.name() == "numbered";
    let mut at = 7_usize;
    while !stop.load(Ordering::Relaxed) {
        at = (at * 7919 + 13) % KEYS;
        let value = space.get(key(at)).unwrap();
        if let Some(value) = value {
            let number = u64::from_le_bytes(value[..8].try_into().unwrap());
            assert!(!ordered || number >= seen[at], "key {at}: {number} after {}", seen[at]);
            seen[at] = number;
        }
    }
}

fn work(name: &str, threads: usize, tables: u64) {
    let disk = MemEnv::new();
    let store = plain(&disk).threads(threads);
    let store = store.policy("triangular").memtable_bytes(64 << 10).open().unwrap();
    let keep_numbers = Some(name == "numbered");
    let options = KeyspaceOptions { keep_numbers, ..KeyspaceOptions::default() };
    let space = store.keyspace_with(name, &options).unwrap();
    let mut level0 = 0;
    for pause in 0..PAUSES {
        let next = AtomicU64::new(pause * tables + 1);
        let stop = AtomicBool::new(false);
        let write = || write(&disk, &space, &next, (pause + 1) * tables);
        thread::scope(|scope| {
            scope.spawn(|| read(&space, &stop));
            let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
            let joined: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            stop.store(true, Ordering::Relaxed);
            level0 = joined.into_iter().map(|runs| runs.unwrap()).fold(level0, usize::max);
        });
        // The policy has no more plan, and nobody was woken for that.
        let _watchdog = Watchdog::new("the tree does not come to rest by itself");
        wait_until(|| space.explain().plan.is_none());
    }
    // Each writer that was let in may add one.
    assert!(level0 < LEVEL0_STOPS + WRITERS, "{level0} runs in level 0");
    assert!(store.verify().unwrap().is_empty());
    assert_eq!(store.stats().plans_refused, 0);
    eprintln!("{name}, {threads} threads: at most {level0} runs in level 0");
}

#[test]
fn four_threads_ingest_at_full_speed() {
    let times = env::var("LSMITH_SOAK").map_or(1, |text| text.parse().unwrap());
    for threads in [1, 2, 4] {
        for name in ["plain", "numbered"] {
            work(name, threads, TABLES * times);
        }
    }
}
