//! A queue in a keyspace: tasks are appended at one end and deleted as ranges at the other.
//!
//! `cargo bench -p lsmith --bench queue -- [TASKS]`. Prints how long the search for the first task
//! takes now and then, by a new iterator, and what is on storage.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "benches time the store")]
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use lsmith::{DEFAULT_KEYSPACE, Keyspace, Result, Store};
use std::time::{Duration, Instant};

/// Tasks if nothing else is said.
const TASKS: u64 = 10_000_000;

/// The tasks that wait in the queue.
const WAITING: u64 = 1000;

/// The tasks that are taken out together.
const TAKEN: u64 = 100;

/// Returns the times of many searches for the first task, sorted.
fn search(queue: &Keyspace, first: u64) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..1000 {
        let begin = Instant::now();
        let found = queue.iter().next().expect("tasks wait")?;
        times.push(begin.elapsed());
        assert_eq!(found.0, first.to_be_bytes()[..]);
    }
    times.sort_unstable();
    Ok(times)
}

fn main() -> Result<()> {
    let tasks = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(TASKS);
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::builder(dir.path()).open()?;
    let queue = store.keyspace(DEFAULT_KEYSPACE)?;
    println!("     tasks  first: median   p99   max (us)  erase: mean (us)  parts  on storage");
    let mut hiding = Duration::ZERO;
    for task in 1..=tasks {
        queue.put(task.to_be_bytes(), [b'x'; 100])?;
        if task % TAKEN == 0 && task > WAITING {
            let begin = Instant::now();
            queue.delete_range(..(task - WAITING).to_be_bytes())?;
            hiding += begin.elapsed();
        }
        if task % (tasks / 10) == 0 {
            let times = search(&queue, task - WAITING)?;
            let us = |share: usize| times[(times.len() - 1) * share / 100].as_nanos() as f64 / 1e3;
            let mean = hiding.as_nanos() as f64 / 1e3 / (task / TAKEN) as f64;
            let (tree, parts) = (queue.tree(), queue.tree().range_deletes().len());
            println!(
                "{task:>10} {:>14.1} {:>5.1} {:>5.1} {mean:>21.1} {parts:>6} {:>8} kB",
                us(50),
                us(99),
                us(100),
                tree.disk_bytes() / 1000
            );
        }
    }
    Ok(())
}
