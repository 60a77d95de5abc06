//! Giving back the space of what no slice shows any more.
//!
//! Reads within a slice go to the blocks of its table that have keys of it, and to no others. So a
//! block that no slice needs can be punched out of its file, as soon as there is no older version
//! left whose slices need it. Versions are numbered; what died with one of them waits until all
//! that came before are gone.

use super::TableHandle;
use crate::leftovers::Leftovers;
use lsmith_storage::panics;
use lsmith_storage::sync::Mutex;
use lsmith_storage::sync::atomic::{AtomicBool, Ordering};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// What is to be given back of the tables of a keyspace, and who must not be disturbed by it.
#[derive(Debug)]
pub(crate) struct Reclaim {
    state: Mutex<ReclaimQueue>,
    leftovers: Arc<Leftovers>,
    /// Set when the environment has said that it cannot punch holes.
    unable: AtomicBool,
}

#[derive(Debug, Default)]
struct ReclaimQueue {
    /// The number of the next version.
    next: u64,
    /// Versions that somebody holds.
    live: BTreeSet<u64>,
    /// In the order in which it died.
    dead: VecDeque<DeadRanges>,
}

/// Parts of a table.
#[derive(Debug)]
struct DeadRanges {
    /// The first version without them.
    since: u64,
    table: Arc<TableHandle>,
    places: Vec<Range<u64>>,
}

/// Held by each version as long as it can be read.
#[derive(Debug)]
pub(crate) struct Ticket {
    reclaim: Arc<Reclaim>,
    number: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.reclaim.state.lock().live.remove(&self.number);
        self.reclaim.collect();
    }
}

impl Ticket {
    /// Where a version goes that nobody reads any more.
    pub(super) fn leftovers(&self) -> Arc<Leftovers> {
        Arc::clone(&self.reclaim.leftovers)
    }
}

impl Reclaim {
    /// Nothing is to be given back yet. Versions that nobody reads any more go to `leftovers`.
    pub(crate) fn new(leftovers: &Arc<Leftovers>) -> Arc<Reclaim> {
        let (state, unable) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Reclaim { state, leftovers: Arc::clone(leftovers), unable })
    }

    /// A ticket for a new version.
    pub(crate) fn ticket(self: &Arc<Self>) -> Ticket {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.live.insert(number);
        Ticket { reclaim: Arc::clone(self), number }
    }

    /// Gives back `places` of `table`, which the newest version does not need, as soon as all
    /// older ones are gone. Call [`collect`](Reclaim::collect) then.
    pub(crate) fn add(&self, table: &Arc<TableHandle>, places: Vec<Range<u64>>) {
        if places.is_empty() || self.is_unable() {
            return;
        }
        let mut state = self.state.lock();
        let since = state.next.saturating_sub(1);
        state.dead.push_back(DeadRanges { since, table: Arc::clone(table), places });
    }

    /// Whether the environment cannot punch holes.
    pub(crate) fn is_unable(&self) -> bool {
        self.unable.load(Ordering::Relaxed)
    }

    /// Gives back what can be.
    pub(crate) fn collect(&self) {
        loop {
            let mut state = self.state.lock();
            let oldest = state.live.first().copied().unwrap_or(u64::MAX);
            if state.dead.front().is_none_or(|dead| oldest < dead.since) {
                return;
            }
            let dead = state.dead.pop_front();
            drop(state);
            // A version may be going because of a panic: a second one would end the process.
            let punch = || dead.map_or(Ok(()), |dead| dead.table.punch(&dead.places));
            let panicked = |panic: panics::Panic| Err(io::Error::other(panic.to_string()));
            match panics::catch(punch).unwrap_or_else(panicked) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    self.unable.store(true, Ordering::Relaxed);
                }
                // Space that is not given back now is when the store is next opened.
                Err(error) => tracing::warn!(%error, "cannot punch a hole into a table"),
                Ok(()) => {}
            }
        }
    }
}
