//! The real store in lockstep, on files that are never synced: opened, checked and timed.

use crate::unsynced::Unsynced;
use anyhow::bail;
use lsmith::{Builder, Event, Keyspace, Observer, Store};
use lsmith_lab::thread_cpu_seconds;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Returns what opens a store in `dir` whose merges run on the thread that writes.
pub(crate) fn builder(dir: &Path, env: Unsynced) -> Builder {
    Store::builder(dir).env(Arc::new(env)).lockstep(true)
}

/// Fails if plans were refused or failed: another policy would have had these costs.
pub(crate) fn check_plans(keyspace: &Keyspace) -> anyhow::Result<()> {
    let (stats, policy) = (keyspace.store().stats(), keyspace.merge_policy());
    match (stats.plans_refused, stats.plans_failed) {
        (0, 0) => Ok(()),
        (refused, failed) => bail!("{refused} plans of {policy} were refused, {failed} failed"),
    }
}

/// A finished merge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merge {
    /// Physical bytes of its output tables.
    pub(crate) bytes_written: u64,
    /// Wall-clock seconds from plan to commit.
    pub(crate) seconds: f64,
    /// CPU seconds of the merging thread, user and system.
    pub(crate) cpu_seconds: f64,
}

/// Times every merge of a store in lockstep. The thread that reports plan and commit runs the merge
/// between the two.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    /// The number of sealed memtables.
    sealed: AtomicU64,
    times: Mutex<Times>,
}

#[derive(Debug, Default)]
pub(crate) struct Times {
    /// The start of the current plan, and the CPU seconds of its thread at the start.
    start: Option<(Instant, f64)>,
    /// The merges in order, without pure flushes and moves.
    pub(crate) merges: Vec<Merge>,
    /// CPU seconds from plan to commit so far, of flushes and moves too.
    pub(crate) cpu_seconds: f64,
    /// Physical bytes of tables written so far: by flushes, and by merges.
    flushed: u64,
    merged: u64,
    /// The write cost at rest after each flush.
    pub(crate) write_costs: Vec<f64>,
}

impl Times {
    /// Notes the costs at rest, if a flush came before.
    pub(crate) fn rest(&mut self) {
        if self.flushed > 0 {
            self.write_costs.push((self.flushed + self.merged) as f64 / self.flushed as f64);
        }
    }
}

impl Stopwatch {
    pub(crate) fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().expect("no observer panics")
    }

    /// Returns the number of memtables sealed so far.
    pub(crate) fn sealed(&self) -> u64 {
        self.sealed.load(Ordering::Relaxed)
    }
}

impl Observer for Stopwatch {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        match event {
            Event::Sealed { .. } => {
                self.sealed.fetch_add(1, Ordering::Relaxed);
                // All merges of the memtable before are done.
                self.times().rest();
            }
            Event::Planned { .. } => {
                self.times().start = Some((Instant::now(), thread_cpu_seconds()));
            }
            Event::Committed { edit, bytes_written, .. } => {
                let (end, cpu_end) = (Instant::now(), thread_cpu_seconds());
                let mut times = self.times();
                let Some((start, cpu_start)) = times.start.take() else { return };
                let (seconds, cpu_seconds) = ((end - start).as_secs_f64(), cpu_end - cpu_start);
                times.cpu_seconds += cpu_seconds;
                let bytes_written = *bytes_written;
                if edit.counters.iter().all(|(_, counters)| counters.merges == 0) {
                    times.flushed += bytes_written;
                } else if bytes_written > 0 {
                    times.merged += bytes_written;
                    times.merges.push(Merge { bytes_written, seconds, cpu_seconds });
                }
            }
            _ => {}
        }
    }
}
