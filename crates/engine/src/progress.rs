//! Wakes waiting callers and the threads that merge.

use crate::threads::Pool;
use lsmith_storage::sync::{Condvar, Mutex, OnceLock};
use std::sync::Arc;
use std::time::Duration;

/// Counts events that may give work to a merging thread, or end the wait of a caller.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The number of events so far.
    turn: Mutex<u64>,
    changed: Condvar,
    /// The threads that merge. Empty if writers merge themselves.
    pool: OnceLock<Arc<Pool>>,
}

impl Progress {
    /// Makes later events wake the threads of `pool` too. Only the first call counts.
    pub(crate) fn set_pool(&self, pool: &Arc<Pool>) {
        self.pool.get_or_init(|| Arc::clone(pool));
    }

    /// Returns what tells the threads that merge apart from others, if there are any.
    pub(crate) fn pool_address(&self) -> Option<usize> {
        self.pool.get().map(|pool| Arc::as_ptr(pool).addr())
    }

    /// Returns true if threads merge, not writers.
    pub(crate) fn has_threads(&self) -> bool {
        self.pool.get().is_some()
    }

    /// Counts an event, and wakes all waiting callers and the threads that merge.
    pub(crate) fn notify(&self) {
        *self.turn.lock() += 1;
        self.changed.notify_all();
        if let Some(pool) = self.pool.get() {
            pool.notify();
        }
    }

    /// Returns the number of the last event. A caller reads this first, then checks whether to
    /// wait. [`wait_beyond`](Progress::wait_beyond) then misses no event after the check.
    pub(crate) fn turn(&self) -> u64 {
        *self.turn.lock()
    }

    /// Waits until an event has followed event `turn`, for at most `longest`.
    pub(crate) fn wait_beyond(&self, turn: u64, longest: Duration) {
        let mut last = self.turn.lock();
        if *last == turn {
            self.changed.wait_for(&mut last, longest);
        }
    }

    /// Waits for the next event, for at most `longest`.
    pub(crate) fn wait(&self, longest: Duration) {
        let mut last = self.turn.lock();
        self.changed.wait_for(&mut last, longest);
    }
}
