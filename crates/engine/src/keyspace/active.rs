//! The active memtable of a keyspace.

use crate::context::Context;
use lsmith_policy::is_memtable_full;
use lsmith_storage::memtable::Memtable;
use lsmith_storage::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The log id of an empty memtable.
const NO_LOG: u64 = u64::MAX;

/// The active memtable of a keyspace, and the log that holds its oldest entry. Both are used
/// without a lock, so that a writer never waits for a merge that commits.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) memtable: Arc<Memtable>,
    log: AtomicU64,
}

impl Active {
    /// Returns an empty memtable.
    pub(crate) fn new(context: &Context) -> Arc<Active> {
        Arc::new(Active { memtable: context.new_memtable(), log: AtomicU64::new(NO_LOG) })
    }

    /// Returns the file id of the log that holds the oldest entry, or `None` if there is none.
    pub(crate) fn log(&self) -> Option<u64> {
        Some(self.log.load(Ordering::Acquire)).filter(|log| *log != NO_LOG)
    }

    /// Returns true if the memtable should be sealed, given the policy's `seal_bytes`.
    pub(crate) fn is_full(&self, seal_bytes: u64) -> bool {
        let fill = self.memtable.fill();
        fill.is_out_of_room || is_memtable_full(seal_bytes, fill.live_bytes, fill.written_bytes)
    }

    /// Records that the next entry is in `log`, if it is the first entry. Only the thread that
    /// holds the lock of the log's writer may call this.
    pub(crate) fn note_log(&self, log: u64) {
        if self.log.load(Ordering::Relaxed) == NO_LOG {
            self.log.store(log, Ordering::Release);
        }
    }
}
