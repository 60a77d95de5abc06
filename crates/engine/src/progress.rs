//! Where waiting writers meet the threads that merge.

use crate::threads::Pool;
use lsmith_storage::sync::{Condvar, Mutex, OnceLock};
use std::sync::Arc;
use std::time::Duration;

/// Counts events that could give work to a thread that merges, or let somebody go on who waits.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    turn: Mutex<u64>,
    changed: Condvar,
    /// The threads that merge; empty where writers do.
    pool: OnceLock<Arc<Pool>>,
}

impl Progress {
    /// From now on the threads of `pool` merge.
    pub(crate) fn set_pool(&self, pool: &Arc<Pool>) {
        self.pool.get_or_init(|| Arc::clone(pool));
    }

    /// Returns true if there are threads that merge.
    pub(crate) fn has_threads(&self) -> bool {
        self.pool.get().is_some()
    }

    /// Wakes those who wait, and the threads that merge: something has changed.
    pub(crate) fn notify(&self) {
        *self.turn.lock() += 1;
        self.changed.notify_all();
        if let Some(pool) = self.pool.get() {
            pool.notify();
        }
    }

    /// Returns the number of the last event. Ask before you look whether to wait: what happens
    /// between the look and the wait is then not missed.
    pub(crate) fn turn(&self) -> u64 {
        *self.turn.lock()
    }

    /// Waits until something has happened since event `turn`, for at most `longest`.
    pub(crate) fn wait_beyond(&self, turn: u64, longest: Duration) {
        let mut now = self.turn.lock();
        if *now == turn {
            self.changed.wait_for(&mut now, longest);
        }
    }

    /// Waits for the next event, for at most `longest`.
    pub(crate) fn wait(&self, longest: Duration) {
        let mut now = self.turn.lock();
        self.changed.wait_for(&mut now, longest);
    }
}
