//! Four threads that ingest at once, with readers beside them.
//!
//! Promised: level 0 stays bounded, because an ingest waits where writers wait. Merges never stop
//! for want of a wake-up: when nobody writes, the tree comes to rest by itself. Readers see the
//! newest table of each key. `LSMITH_SOAK=600 cargo test --release -p lsmith --test it ingest::load
//! -- --nocapture` works for ten minutes with each number of threads, and prints what it took.

use crate::ingest::files::key;
use lsmith::env::MemEnv;
use lsmith::{
    IngestOptions, Keyspace, KeyspaceOptions, SeqNo, Store, TableWriter, TableWriterOptions,
};
use lsmith_tree::LevelId;
use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const WRITERS: u64 = 4;
const KEYS: usize = 40_000;
const ENTRIES: usize = 300;
/// The runs of level 0 at which `triangular` stops writers: 7 and as many again, and 4 more.
const LEVEL0_STOPS: u64 = 18;
/// Pauses in which the tree must come to rest.
const PAUSES: u32 = 3;
/// Far longer than any merge here takes: a tree that is not at rest then has lost a wake-up.
const LONG: Duration = Duration::from_secs(60);

/// The longest that anything took, in microseconds, and the most runs of level 0.
#[derive(Debug, Default)]
struct Worst {
    ingest: AtomicU64,
    get: AtomicU64,
    level0: AtomicU64,
}

fn note(most: &AtomicU64, since: Instant) {
    most.fetch_max(since.elapsed().as_micros() as u64, Ordering::Relaxed);
}

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

/// Ingests tables until `stop`. Threads take numbers from `next`, so their numbers interleave.
fn write(env: &MemEnv, space: &Keyspace, next: &AtomicU64, stop: &AtomicBool, worst: &Worst) {
    let numbered = space.name() == "numbered";
    while !stop.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let file = [write_table(env, number, numbered)];
        let start = Instant::now();
        space.store().ingest(space, &file, &IngestOptions::default().link(true)).unwrap();
        note(&worst.ingest, start);
        lsmith::env::Env::remove_file(env, &file[0]).unwrap();
        let runs = space.tree().runs_at(LevelId::Disk(0)).len() as u64;
        worst.level0.fetch_max(runs, Ordering::Relaxed);
    }
}

/// Reads until `stop`. A key never goes back to an older table.
fn read(space: &Keyspace, stop: &AtomicBool, worst: &Worst) {
    let mut seen = vec![0_u64; KEYS];
    let ordered = space.name() == "numbered";
    let mut at = 7_usize;
    while !stop.load(Ordering::Relaxed) {
        at = (at * 7919 + 13) % KEYS;
        let start = Instant::now();
        let value = space.get(key(at)).unwrap();
        note(&worst.get, start);
        if let Some(value) = value {
            let number = u64::from_le_bytes(value[..8].try_into().unwrap());
            assert!(!ordered || number >= seen[at], "key {at}: {number} after {}", seen[at]);
            seen[at] = number;
        }
    }
}

/// Waits until the policy has no more plan, without waking anybody.
fn wait_for_rest(space: &Keyspace) {
    let start = Instant::now();
    while space.explain().plan.is_some() {
        assert!(start.elapsed() < LONG, "not at rest: {}", space.tree());
        thread::sleep(Duration::from_millis(1));
    }
}

fn work(name: &str, threads: usize, length: Duration) {
    let disk = MemEnv::new();
    let store = Store::builder("/store").env(Arc::new(disk.clone())).threads(threads);
    let store = store.policy("triangular").memtable_bytes(64 << 10).open().unwrap();
    let keep_numbers = Some(name == "numbered");
    let options = KeyspaceOptions { keep_numbers, ..KeyspaceOptions::default() };
    let space = store.keyspace_with(name, &options).unwrap();
    let worst = Worst::default();
    let next = AtomicU64::new(1);
    for _ in 0..PAUSES {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| write(&disk, &space, &next, &stop, &worst));
            }
            scope.spawn(|| read(&space, &stop, &worst));
            thread::sleep(length / PAUSES);
            stop.store(true, Ordering::Relaxed);
        });
        wait_for_rest(&space);
    }
    let tables = next.into_inner() - 1;
    let level0 = worst.level0.load(Ordering::Relaxed);
    // Each writer that was let in may add one.
    assert!(level0 < LEVEL0_STOPS + WRITERS, "{level0} runs in level 0");
    assert!(tables > u64::from(PAUSES) * WRITERS, "{tables}");
    assert!(store.verify().unwrap().is_empty());
    assert_eq!(store.stats().plans_refused, 0);
    eprintln!("{name}, {threads} threads: {tables} tables, at worst (in us) {worst:?}");
}

#[test]
fn four_threads_ingest_at_full_speed() {
    let seconds = env::var("LSMITH_SOAK").ok().map(|text| text.parse::<u64>().unwrap());
    let length = seconds.map_or(Duration::from_millis(600), Duration::from_secs);
    for threads in [1, 2, 4] {
        for name in ["plain", "numbered"] {
            work(name, threads, length);
        }
    }
}
