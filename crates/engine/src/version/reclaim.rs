//! Frees the space of blocks that no slice shows any more.
//!
//! Reads in a slice go only to the blocks of its table that may hold keys of the slice. So a block
//! that no slice needs can be punched out of its file, once no older version has a slice that needs
//! it. Versions are numbered. Blocks that a version no longer needs wait until all versions before
//! it are dropped, and for readers in other processes that may need them.

use super::TableHandle;
use crate::leases::{Lease, Leases};
use crate::leftovers::Leftovers;
use lsmith_storage::panics;
use lsmith_storage::sync::Mutex;
use lsmith_storage::sync::atomic::{AtomicBool, Ordering};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The parts of a keyspace's tables that wait to be freed, and the versions that they wait for.
#[derive(Debug)]
pub(crate) struct Reclaim {
    state: Mutex<ReclaimQueue>,
    leftovers: Arc<Leftovers>,
    leases: Arc<Leases>,
    /// Set when the environment reports that it cannot punch holes.
    unable: Arc<AtomicBool>,
    /// What keeps the writer from freeing what these versions show, in a reader beside a writer.
    _lease: Option<Arc<Lease>>,
}

#[derive(Debug, Default)]
struct ReclaimQueue {
    /// The id of the next version.
    next: u64,
    /// The versions that are not dropped yet.
    live: BTreeSet<u64>,
    /// Oldest first.
    dead: VecDeque<DeadRanges>,
}

/// Parts of a table that no slice needs.
#[derive(Debug)]
struct DeadRanges {
    /// The first version whose slices do not need them.
    since: u64,
    table: Arc<TableHandle>,
    /// Byte ranges of the table's file.
    places: Vec<Range<u64>>,
}

/// Marks a version as live until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    reclaim: Arc<Reclaim>,
    version_id: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.reclaim.state.lock().live.remove(&self.version_id);
        self.reclaim.collect();
    }
}

impl Ticket {
    /// Returns the queue for versions that no reader uses.
    pub(super) fn leftovers(&self) -> Arc<Leftovers> {
        Arc::clone(&self.reclaim.leftovers)
    }
}

impl Reclaim {
    /// Returns an empty queue. Versions that no reader uses go to `leftovers`. What readers in
    /// other processes use waits for their `leases`. A reader's own `lease` lives as long as its
    /// versions.
    pub(crate) fn new(
        leftovers: &Arc<Leftovers>,
        leases: &Arc<Leases>,
        lease: Option<Arc<Lease>>,
    ) -> Arc<Reclaim> {
        Arc::new(Reclaim {
            state: Mutex::default(),
            leftovers: Arc::clone(leftovers),
            leases: Arc::clone(leases),
            unable: Arc::default(),
            _lease: lease,
        })
    }

    /// Returns the ticket of a new version.
    pub(crate) fn ticket(self: &Arc<Self>) -> Ticket {
        let mut state = self.state.lock();
        let version_id = state.next;
        state.next += 1;
        state.live.insert(version_id);
        Ticket { reclaim: Arc::clone(self), version_id }
    }

    /// Queues `places`, byte ranges of `table` that the newest version does not need, to be freed
    /// once all older versions are dropped. The caller calls [`collect`](Reclaim::collect) next.
    pub(crate) fn add(&self, table: &Arc<TableHandle>, places: Vec<Range<u64>>) {
        if places.is_empty() || self.is_unable() {
            return;
        }
        let mut state = self.state.lock();
        let since = state.next.saturating_sub(1);
        state.dead.push_back(DeadRanges { since, table: Arc::clone(table), places });
    }

    /// Returns true if the environment cannot punch holes.
    pub(crate) fn is_unable(&self) -> bool {
        self.unable.load(Ordering::Relaxed)
    }

    /// Frees the queued parts that no live version needs.
    pub(crate) fn collect(&self) {
        loop {
            let mut state = self.state.lock();
            let oldest = state.live.first().copied().unwrap_or(u64::MAX);
            if state.dead.front().is_none_or(|dead| oldest < dead.since) {
                return;
            }
            let dead = state.dead.pop_front();
            drop(state);
            let unable = Arc::clone(&self.unable);
            // A panic may be dropping the version. A second panic would end the process.
            panics::logged("the environment", || {
                let Some(dead) = dead else { return };
                self.leases.free(dead.table.file_id(), move || dead.punch(&unable));
            });
        }
    }
}

impl DeadRanges {
    /// Punches holes into the table. Sets `unable` if the environment cannot do that.
    fn punch(self, unable: &AtomicBool) {
        match self.table.punch(&self.places) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                unable.store(true, Ordering::Relaxed);
            }
            // The next opening of the store tries again to free this space.
            Err(error) => tracing::warn!(%error, "cannot punch a hole into a table"),
            Ok(()) => {}
        }
    }
}
