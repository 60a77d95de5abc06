//! Carries out a phase: threads named after it, each with its part, and what they found.

use super::{Phase, Work, read, scan, sync, write, ycsb};
use crate::data::{Order, Values};
use crate::stores::Store;
use anyhow::{Context, Result, anyhow, ensure};
use hdrhistogram::Histogram;
use lsmith_workload::Rng;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time that is told apart, in nanoseconds: ten minutes.
const LATENCY_NS_MAX: u64 = 600_000_000_000;

/// An open store and what it holds.
pub(crate) struct Dataset {
    /// The store.
    pub(crate) store: Box<dyn Store>,
    /// The folder of its files.
    pub(crate) dir: PathBuf,
    /// How its keys lie.
    pub(crate) order: Order,
    /// What values are drawn from.
    pub(crate) values: Values,
    /// Keys 0 up to this have been given out.
    pub(crate) keys: AtomicU64,
}

impl Dataset {
    /// How many keys there are.
    pub(crate) fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }
}

/// The part of one thread.
pub(crate) struct Part<'a> {
    pub(crate) data: &'a Dataset,
    /// The first of its operations, counted over all threads.
    pub(crate) first: u64,
    /// How many operations are its own.
    pub(crate) ops: u64,
    pub(crate) rng: Rng,
    pub(crate) tally: Tally,
}

/// What a thread has counted.
pub(crate) struct Tally {
    /// Nanoseconds of operations.
    pub(crate) latencies: Histogram<u64>,
    /// Bytes of keys and values written, deleted keys included.
    pub(crate) user_bytes: u64,
    /// Bytes on the device, sampled over the last quarter of an overwrite.
    pub(crate) disk_samples: Vec<u64>,
}

impl Tally {
    fn new() -> Result<Tally> {
        let latencies = Histogram::new_with_max(LATENCY_NS_MAX, 3)?;
        Ok(Tally { latencies, user_bytes: 0, disk_samples: Vec::new() })
    }

    /// Notes that `count` operations took `time` each.
    pub(crate) fn note(&mut self, time: Duration, count: u64) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.latencies.saturating_record_n(nanos.clamp(1, LATENCY_NS_MAX), count);
    }

    fn add(&mut self, other: Tally) -> Result<()> {
        self.latencies.add(&other.latencies)?;
        self.user_bytes += other.user_bytes;
        self.disk_samples.extend(other.disk_samples);
        Ok(())
    }
}

/// Takes the time of operations that follow each other, with one look at the clock for each.
pub(crate) struct Laps {
    last: Instant,
}

impl Laps {
    /// Begins now.
    pub(crate) fn start() -> Laps {
        Laps { last: Instant::now() }
    }

    /// The time since the last lap or the start.
    pub(crate) fn lap(&mut self) -> Duration {
        let now = Instant::now();
        let time = now - self.last;
        self.last = now;
        time
    }
}

/// What a phase has done.
pub(crate) struct Worked {
    /// Operations.
    pub(crate) ops: u64,
    /// From the first to the last operation, on the clock.
    pub(crate) elapsed: Duration,
    /// What all threads have counted.
    pub(crate) tally: Tally,
}

/// Carries out `phase`. It returns when the last operation has, whatever goes on in the background.
pub(crate) fn run(phase: &Phase, data: &Dataset, ops: u64) -> Result<Worked> {
    let threads = phase.threads as u64;
    let begun = Instant::now();
    let done = thread::scope(|scope| {
        let mut running = Vec::new();
        for index in 0..threads {
            let first = ops * index / threads;
            let part = Part {
                data,
                first,
                ops: ops * (index + 1) / threads - first,
                rng: Rng::new(ops, 100 * phase.name.len() as u64 + index),
                tally: Tally::new()?,
            };
            let thread = thread::Builder::new().name(phase.name.clone());
            running.push(thread.spawn_scoped(scope, move || carry_out(phase.work, part))?);
        }
        let join = |thread: thread::ScopedJoinHandle<'_, Result<(u64, Tally)>>| {
            thread.join().map_err(|_| anyhow!("a thread panicked"))?
        };
        running.into_iter().map(join).collect::<Result<Vec<_>>>()
    });
    let elapsed = begun.elapsed();
    let mut worked = Worked { ops: 0, elapsed, tally: Tally::new()? };
    for (ops, tally) in done.with_context(|| phase.name.clone())? {
        worked.ops += ops;
        worked.tally.add(tally)?;
    }
    ensure!(worked.ops > 0, "{}: nothing was done", phase.name);
    Ok(worked)
}

/// Gives the store its first `keys` keys, unmeasured.
pub(crate) fn fill(data: &Dataset, keys: u64) -> Result<()> {
    let rng = Rng::new(keys, 0);
    write::fill(&mut Part { data, first: 0, ops: keys, rng, tally: Tally::new()? }).map(drop)
}

/// Does one thread's part; how many operations it did, and what it counted.
fn carry_out(work: Work, mut part: Part<'_>) -> Result<(u64, Tally)> {
    let part_of = &mut part;
    let ops = match work {
        Work::FillRandom | Work::FillSequential => write::fill(part_of),
        Work::FillBatch => write::fill_batch(part_of),
        Work::Overwrite => write::overwrite(part_of),
        Work::Delete => write::delete(part_of),
        Work::GetPresent => read::get_present(part_of),
        Work::GetAbsent => read::get_absent(part_of),
        Work::MultiGet => read::multi_get(part_of),
        Work::Seek(nexts) => scan::seek(part_of, nexts),
        Work::Scan => scan::scan(part_of, false),
        Work::ScanReverse => scan::scan(part_of, true),
        Work::Ycsb(letter) => ycsb::run(part_of, letter),
        Work::Sync => sync::sync(part_of),
    }?;
    Ok((ops, part.tally))
}
