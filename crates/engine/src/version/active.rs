//! The memtable that writers write to.

use crate::memtable::Memtable;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// What stands for the number of no log.
const NO_LOG: u64 = u64::MAX;

/// The active memtable of a keyspace, and where in the log it begins. It takes no lock to write to
/// it or to ask where it begins, so that a writer never waits for a merge that commits.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) memtable: Arc<Memtable>,
    log: AtomicU64,
}

impl Active {
    /// One that is empty.
    pub(crate) fn new() -> Arc<Active> {
        Arc::new(Active { memtable: Arc::new(Memtable::new()), log: AtomicU64::new(NO_LOG) })
    }

    /// The log that holds its oldest entry; `None` while it is empty.
    pub(crate) fn log(&self) -> Option<u64> {
        Some(self.log.load(Ordering::Acquire)).filter(|log| *log != NO_LOG)
    }

    /// Notes that the next entry is in `log`. Called by who may write, one at a time.
    pub(crate) fn begin(&self, log: u64) {
        if self.log.load(Ordering::Relaxed) == NO_LOG {
            self.log.store(log, Ordering::Release);
        }
    }
}
