//! Measurements on all cores.

use crate::progress::Progress;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Progress that several threads can tell.
pub type SharedProgress = dyn Progress + Sync;

/// One measurement of many.
pub trait Job: Sync {
    /// What it finds.
    type Found: Send;

    /// About how many units of work it takes, for the progress.
    fn work(&self) -> u64;

    /// Measures; tells `ticker` about every unit of work as it is done.
    ///
    /// # Errors
    /// Whatever keeps it from being measured.
    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Self::Found>;
}

/// Counts what all jobs together have done.
pub struct Ticker<'a> {
    progress: &'a SharedProgress,
    done: &'a AtomicU64,
}

impl Ticker<'_> {
    /// So many more units are done.
    pub fn tick(&self, units: u64) {
        let done = self.done.fetch_add(units, Ordering::Relaxed) + units;
        self.progress.advance(done);
    }
}

/// Measures all of `jobs`, one after the other: for what counts time.
///
/// # Errors
/// The first error of any job; those behind it never begin.
pub fn measure_in_turn<J: Job>(
    step: &str,
    jobs: &[J],
    progress: &SharedProgress,
) -> anyhow::Result<Vec<J::Found>> {
    progress.begin(step, jobs.iter().map(Job::work).sum());
    let done = AtomicU64::new(0);
    let ticker = Ticker { progress, done: &done };
    jobs.iter().map(|job| job.measure(&ticker)).collect()
}

/// Measures all of `jobs`, as many at a time as there are cores, the longest first, and returns
/// what they found in the order of the jobs. A job must find the same whatever runs beside it; what
/// counts time is for [`measure_in_turn`].
///
/// # Errors
/// The first error of any job; jobs that have not begun by then never do.
pub fn measure_all<J: Job>(
    step: &str,
    jobs: &[J],
    progress: &SharedProgress,
) -> anyhow::Result<Vec<J::Found>> {
    progress.begin(step, jobs.iter().map(Job::work).sum());
    let mut queue: Vec<usize> = (0..jobs.len()).collect();
    queue.sort_by_key(|&job| std::cmp::Reverse(jobs[job].work()));
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let found: Vec<Mutex<Option<anyhow::Result<J::Found>>>> =
        jobs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        let ticker = Ticker { progress, done: &done };
        loop {
            let Some(&job) = queue.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let result = jobs[job].measure(&ticker);
            if result.is_err() {
                next.store(jobs.len(), Ordering::Relaxed);
            }
            *found[job].lock().expect("no one panics while holding it") = Some(result);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| {
        for _ in 1..cores.min(jobs.len()) {
            scope.spawn(work);
        }
        work();
    });
    // A job that never began has an error before or behind it.
    let found = found.into_iter().filter_map(|slot| slot.into_inner().ok().flatten());
    let (found, errors): (Vec<_>, Vec<_>) = found.partition(|result| result.is_ok());
    match errors.into_iter().next() {
        Some(Err(error)) => Err(error),
        _ => found.into_iter().collect(),
    }
}
