//! Runs measurements on all cores.

use crate::progress::Progress;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Progress that several threads can report.
pub type SharedProgress = dyn Progress + Sync;

/// One measurement of many.
pub trait Job: Sync {
    /// The result.
    type Output: Send;

    /// Returns the approximate units of work, for the progress.
    fn work(&self) -> u64;

    /// Measures, and reports every finished unit of work to `ticker`.
    ///
    /// # Errors
    /// Fails if the measurement fails.
    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Self::Output>;
}

/// Counts the finished units of all jobs together.
pub struct Ticker<'a> {
    progress: &'a SharedProgress,
    done: &'a AtomicU64,
}

impl Ticker<'_> {
    /// Adds finished units.
    pub fn tick(&self, units: u64) {
        let done = self.done.fetch_add(units, Ordering::Relaxed) + units;
        self.progress.advance(done);
    }
}

/// Runs `jobs` one after the other. Use it for measurements of time.
///
/// # Errors
/// Returns the first error of a job; later jobs do not start.
pub fn measure_in_turn<J: Job>(
    step: &str,
    jobs: &[J],
    progress: &SharedProgress,
) -> anyhow::Result<Vec<J::Output>> {
    progress.begin(step, jobs.iter().map(Job::work).sum());
    let done = AtomicU64::new(0);
    let ticker = Ticker { progress, done: &done };
    jobs.iter().map(|job| job.measure(&ticker)).collect()
}

/// Runs `jobs` on all cores, the longest first, and returns the results in the order of the jobs.
/// The result of a job must not depend on other jobs. Use [`measure_in_turn`] to measure time.
///
/// # Errors
/// Returns the first error of a job; jobs that have not started by then do not start.
pub fn measure_all<J: Job>(
    step: &str,
    jobs: &[J],
    progress: &SharedProgress,
) -> anyhow::Result<Vec<J::Output>> {
    progress.begin(step, jobs.iter().map(Job::work).sum());
    let mut queue: Vec<usize> = (0..jobs.len()).collect();
    queue.sort_by_key(|&job| std::cmp::Reverse(jobs[job].work()));
    let next = AtomicUsize::new(0);
    let done = AtomicU64::new(0);
    let found: Vec<Mutex<Option<anyhow::Result<J::Output>>>> =
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
    // If a job did not start, another job returned an error.
    let found = found.into_iter().filter_map(|slot| slot.into_inner().ok().flatten());
    let (found, errors): (Vec<_>, Vec<_>) = found.partition(|result| result.is_ok());
    match errors.into_iter().next() {
        Some(Err(error)) => Err(error),
        _ => found.into_iter().collect(),
    }
}
