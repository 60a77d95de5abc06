//! The memtable that writers write to.

use lsmith_policy::is_memtable_full;
use lsmith_storage::memtable::Memtable;
use lsmith_storage::sync::atomic::{AtomicU64, Ordering};
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

    /// Returns true if the memtable should be sealed, given the policy's `seal_bytes`.
    pub(crate) fn is_full(&self, seal_bytes: u64) -> bool {
        let fill = self.memtable.fill();
        fill.is_out_of_room || is_memtable_full(seal_bytes, fill.live_bytes, fill.written_bytes)
    }

    /// Notes that the next entry is in `log`. Called by who may write, one at a time.
    pub(crate) fn note_log(&self, log: u64) {
        if self.log.load(Ordering::Relaxed) == NO_LOG {
            self.log.store(log, Ordering::Release);
        }
    }
}
