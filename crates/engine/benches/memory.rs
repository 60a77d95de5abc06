//! The memory of a process that fills a store, overwrites it and reads it.
//!
//! `cargo bench -p lsmith --bench memory -- [KEYS [MEMORY_BYTES [VALUE_BYTES]]]`. Prints for each
//! phase the CPU time, the most that the process held without pages of files (`RssAnon`), what it
//! holds at the end and a second later, and what the store counts.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "benches time the store")]
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

#[path = "shared/anon.rs"]
mod anon;
#[path = "shared/keys.rs"]
mod keys;

use anon::{Sampler, anon_bytes};
use keys::key;
use lsmith::{DEFAULT_KEYSPACE, Keyspace, Result, Store};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Keys if nothing else is said.
const KEYS: u64 = 3_000_000;

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn phase(store: &Store, name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let sampler = Sampler::start();
    let before = cpu();
    let begin = std::time::Instant::now();
    work()?;
    let took = begin.elapsed().as_secs_f64();
    let cpu = cpu() - before;
    let most = sampler.stop();
    let now = anon_bytes();
    std::thread::sleep(Duration::from_secs(1));
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let held = store.memory();
    println!(
        "{name:>10} {took:>7.2} {cpu:>7.2} {:>8.1} {:>8.1} {:>8.1} {:>8.1}   {held:?}",
        mb(most),
        mb(now),
        mb(anon_bytes()),
        mb(held.total()),
    );
    Ok(())
}

fn put_all(space: &Keyspace, keys: u64, first: u64, value: &[u8]) -> Result<()> {
    for number in 0..keys {
        space.put(key((number * 7 + first) % keys), value)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let keys = numbers.next().unwrap_or(KEYS);
    let limit = numbers.next().filter(|limit| *limit > 0);
    let value = vec![b'v'; numbers.next().unwrap_or(100) as usize];
    let dir = tempfile::tempdir().expect("a directory");
    let builder = Store::builder(dir.path());
    let store = match limit {
        Some(limit) => builder.memory_bytes(limit).open()?,
        None => builder.open()?,
    };
    let space = store.keyspace(DEFAULT_KEYSPACE)?;
    println!("     phase  time, s  CPU, s  most, MB   at end   1 s on  counted");
    phase(&store, "fill", || put_all(&space, keys, 0, &value))?;
    phase(&store, "overwrite", || put_all(&space, keys, 3, &value))?;
    phase(&store, "merge", || {
        space.merge_range::<&[u8]>(..)?;
        store.settle()
    })?;
    phase(&store, "get", || {
        (0..keys).try_for_each(|number| space.get(key(number * 13 % keys)).map(drop))
    })?;
    phase(&store, "scan", || space.iter().try_for_each(|entry| entry.map(drop)))
}
