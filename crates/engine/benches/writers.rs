//! Threads that put keys in random order into one store, alone and together.
//!
//! `cargo bench -p lsmith --bench writers -- [KEYS [VALUE_BYTES [MEMTABLE_MIB [ROUNDS]]]]`. For 1,
//! 2, 4 and 16 threads in turn, a new store gets `KEYS` keys, divided among the threads. Prints
//! medians of all rounds: the rate of puts, how many times the rate of one thread that is, the CPU
//! time of a put (of the whole process, until the last put returned), and the longest of
//! the timed puts, one in 16.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "benches time the store")]
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

#[path = "shared/keys.rs"]
mod keys;

use keys::key;
use lsmith::{DEFAULT_KEYSPACE, Result, Store};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Keys if nothing else is said.
const KEYS: u64 = 2_000_000;

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Rounds if nothing else is said.
const ROUNDS: u64 = 5;

/// Returns the seconds, the CPU seconds and the longest put of a fill by `threads` threads.
fn fill(threads: u64, keys: u64, value: &[u8], mib: Option<u64>) -> Result<(f64, f64, Duration)> {
    let dir = tempfile::tempdir().expect("a directory");
    let builder = Store::builder(dir.path());
    let store = match mib {
        Some(mib) => builder.memtable_bytes(mib << 20).open()?,
        None => builder.open()?,
    };
    let space = store.keyspace(DEFAULT_KEYSPACE)?;
    let before = cpu();
    let begin = Instant::now();
    let put = |thread: u64| -> Result<Duration> {
        let mut longest = Duration::ZERO;
        for number in (thread..keys).step_by(threads as usize) {
            let begin = (number / threads).is_multiple_of(16).then(Instant::now);
            space.put(key(number), value)?;
            longest = begin.map_or(longest, |begin| longest.max(begin.elapsed()));
        }
        Ok(longest)
    };
    let longest = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || put(thread))).collect();
        let ends = threads.into_iter().map(|thread| thread.join().expect("puts do not panic"));
        ends.collect::<Result<Vec<_>>>()
    })?;
    let took = begin.elapsed().as_secs_f64();
    let longest = longest.into_iter().max().expect("there is a thread");
    Ok((took, cpu() - before, longest))
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let keys = numbers.next().unwrap_or(KEYS);
    let value = vec![b'v'; numbers.next().unwrap_or(100) as usize];
    let mib = numbers.next().filter(|mib| *mib > 0);
    let counts = [1, 2, 4, 16];
    let mut rounds: [Vec<(f64, f64, Duration)>; 4] = Default::default();
    for _ in 0..numbers.next().unwrap_or(ROUNDS) {
        for (threads, fills) in counts.into_iter().zip(&mut rounds) {
            fills.push(fill(threads, keys, &value, mib)?);
        }
    }
    println!("threads    puts/s   times  CPU, us  longest, ms");
    let median = |fills: &[(f64, f64, Duration)], figure: fn(&(f64, f64, Duration)) -> f64| {
        let mut all: Vec<f64> = fills.iter().map(figure).collect();
        all.sort_unstable_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let alone = median(&rounds[0], |fill| fill.0);
    for (threads, fills) in counts.into_iter().zip(&rounds) {
        let took = median(fills, |fill| fill.0);
        println!(
            "{threads:>7} {:>9.0} {:>7.2} {:>8.2} {:>12.1}",
            keys as f64 / took,
            alone / took,
            median(fills, |fill| fill.1) / keys as f64 * 1e6,
            median(fills, |fill| fill.2.as_secs_f64()) * 1e3
        );
    }
    Ok(())
}
