//! Carries out a phase: threads named after it, each with its part, and what they found.

use super::part::{Dataset, Part, Tally};
use super::phase::{Phase, Work};
use super::{hot, ladder, read, scan, sync, write, ycsb};
use anyhow::{Context, Result, anyhow, ensure};
use lsmith_workload::Rng;
use std::thread;
use std::time::{Duration, Instant};

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
        Work::GetHot { beside_writes } => hot::run(part_of, beside_writes),
        Work::Seek(nexts) => scan::seek(part_of, nexts),
        Work::Scan => scan::scan(part_of, false),
        Work::ScanReverse => scan::scan(part_of, true),
        Work::Reads(percent) => ladder::run(part_of, percent),
        Work::Ycsb(letter) => ycsb::run(part_of, letter),
        Work::Sync => sync::sync(part_of),
    }?;
    Ok((ops, part.tally))
}
