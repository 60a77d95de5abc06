//! Runs measurements on all cores.

use crate::progress::Progress;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

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
    std::thread::scope(|scope| {
        for _ in 1..cores().min(jobs.len()) {
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

/// Returns the number of cores that the process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// Calls `act` with each number below `count`, for as many at once as `threads` says, in their
/// order. Passes the results to `take` in the order of the numbers, each as soon as the results
/// before it are there.
pub(crate) fn in_order<T: Send>(
    count: usize,
    threads: usize,
    act: &(impl Fn(usize) -> T + Sync),
    take: &mut dyn FnMut(T),
) {
    let threads = threads.min(count);
    if threads <= 1 {
        return (0..count).map(act).for_each(take);
    }
    let next = AtomicUsize::new(0);
    let numbers = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < count);
    let (results, finished) = channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let results = results.clone();
            scope.spawn(move || {
                let found = std::iter::from_fn(numbers).map(|number| (number, act(number)));
                // The receiver is gone only if `take` has panicked.
                let _gone = found.map(|found| results.send(found)).find(Result::is_err);
            });
        }
        drop(results);
        let mut waiting = BTreeMap::new();
        let mut due = 0;
        for (number, result) in finished {
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&due) {
                take(result);
                due += 1;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of two ends after the second, which it waits for.
    #[test]
    fn results_come_in_order_from_all_threads() {
        let (tell, told) = channel();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        let act = |number| {
            match number {
                0 => told.lock().unwrap().recv().unwrap(),
                1 => tell.lock().unwrap().send(()).unwrap(),
                _ => (),
            }
            number
        };
        let mut found = Vec::new();
        in_order(5, 2, &act, &mut |number| found.push(number));
        assert_eq!(found, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn one_thread_takes_each_result_before_it_goes_on() {
        let taken = AtomicUsize::new(0);
        let act = |number| assert_eq!(taken.load(Ordering::Relaxed), number);
        in_order(3, 1, &act, &mut |()| {
            taken.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(taken.into_inner(), 3);
    }
}
