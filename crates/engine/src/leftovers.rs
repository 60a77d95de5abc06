//! Old versions that merging threads drop in place of readers.
//!
//! Dropping the last reference to a version frees memtables, unmaps and removes the files of merged
//! tables, and punches holes into others. With large tables that takes tens of milliseconds, too
//! long for a reader. So a reader queues the version here, and a thread that merges drops it. If no
//! threads merge, the reader drops it.

use crate::threads::{self, Pool};
use lsmith_storage::sync::{Mutex, Process};
use std::fmt;
use std::sync::Arc;

/// Old versions that wait to be dropped.
pub(crate) struct Leftovers {
    /// The process that opened the store.
    process: Process,
    state: Mutex<LeftoversState>,
    /// Held while versions are dropped, so that callers can wait for it.
    dropping: Mutex<()>,
}

#[derive(Default)]
struct LeftoversState {
    /// The threads that merge. `None` before they join the store and after they leave it.
    pool: Option<Arc<Pool>>,
    queue: Vec<Box<dyn Send>>,
}

impl fmt::Debug for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leftovers").finish_non_exhaustive()
    }
}

impl Default for Leftovers {
    fn default() -> Leftovers {
        Leftovers { process: Process::here(), state: Mutex::default(), dropping: Mutex::default() }
    }
}

impl Leftovers {
    /// Returns false in a child of the process that opened the store.
    pub(crate) fn is_here(&self) -> bool {
        self.process.is_here()
    }

    /// Makes the threads of `pool` drop what other threads queue from now on.
    pub(crate) fn open(&self, pool: &Arc<Pool>) {
        self.state.lock().pool = Some(Arc::clone(pool));
    }

    /// Drops everything queued. From now on each thread drops its own versions.
    pub(crate) fn close(&self) {
        self.state.lock().pool = None;
        self.drop_all();
    }

    /// Queues `version` for the threads that merge. Drops it at once on such a thread, and if no
    /// threads merge.
    pub(crate) fn leave(&self, version: impl Send + 'static) {
        if threads::is_merging_thread() {
            return;
        }
        let mut state = self.state.lock();
        let Some(pool) = state.pool.clone() else { return };
        state.queue.push(Box::new(version));
        drop(state);
        pool.notify();
    }

    /// Drops everything queued, unless another thread is doing that.
    pub(crate) fn drop_unless_busy(&self) {
        if let Some(_dropping) = self.dropping.try_lock() {
            self.drop_queue();
        }
    }

    /// Drops everything queued so far, and waits for another thread that is doing that.
    pub(crate) fn drop_all(&self) {
        let _dropping = self.dropping.lock();
        self.drop_queue();
    }

    /// The lock of the state is free while the versions are dropped.
    fn drop_queue(&self) {
        let queue = std::mem::take(&mut self.state.lock().queue);
        drop(queue);
    }
}
