//! The state of one keyspace.

use super::{OpenRun, TableHandle, Version};
use crate::error::{Error, ErrorKind};
use crate::memtable::Memtable;
use arc_swap::ArcSwap;
use lsmith_policy::MergePolicy;
use lsmith_tree::{MergePlan, Reservation, ReservationState, RunId, SeqNo, TableId, TreeView};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// A keyspace: a tree of its own, with a policy of its own.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) memtable_bytes: u64,
    /// What readers take.
    pub(crate) version: ArcSwap<Version>,
    pub(crate) core: Mutex<Core>,
}

/// What changes under the lock of a keyspace. [`Core::publish`] shows it to readers.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) policy: Arc<dyn MergePolicy>,
    pub(crate) view: TreeView,
    pub(crate) active: Arc<Memtable>,
    /// The log that holds the oldest entry of the active memtable; `None` while it is empty.
    pub(crate) active_log: Option<u64>,
    /// Sealed memtables, newest first.
    pub(crate) sealed: Vec<Held>,
    pub(crate) tables: FxHashMap<TableId, Arc<TableHandle>>,
    /// Why each blocked reservation failed.
    pub(crate) failures: Vec<Failure>,
    /// How many plans have failed since the last one that succeeded.
    pub(crate) failed_in_row: u32,
    /// How hard writers are held back, as the policy last said.
    pub(crate) pressure: f64,
    /// Nanoseconds that writers have yet to sleep for under the present pressure.
    pub(crate) owed_nanos: f64,
    /// Whether a plan of all runs was asked for by hand.
    pub(crate) merge_all: bool,
}

/// A sealed memtable.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) run: RunId,
    pub(crate) memtable: Arc<Memtable>,
    /// The log that holds its oldest entry.
    pub(crate) log: u64,
}

/// A plan that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) plan: MergePlan,
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    /// Free bytes that are needed before it is worth trying again.
    pub(crate) needs_bytes: u64,
    /// Free bytes when it was begun.
    pub(crate) free_bytes: u64,
    /// When it is worth trying again although there is not more room than there was.
    pub(crate) retry_at: Duration,
}

impl Failure {
    /// The error that a writer gets who must wait for this plan.
    pub(crate) fn to_error(&self) -> Error {
        Error::new(
            self.kind,
            format!("writes are refused because a merge failed: {}", self.message),
        )
    }
}

impl Core {
    /// Puts `plan` among the reservations under way.
    pub(crate) fn reserve(&mut self, plan: MergePlan) {
        let state = ReservationState::UnderWay;
        self.view.reservations.push(Reservation { plan, state });
    }

    /// Takes `plan` out of the reservations under way.
    pub(crate) fn release(&mut self, plan: &MergePlan) {
        let found = self.view.reservations.iter().position(|reservation| {
            reservation.state == ReservationState::UnderWay && reservation.plan == *plan
        });
        if let Some(index) = found {
            self.view.reservations.remove(index);
        }
    }

    /// Keeps `failure`'s plan out of the way until its cause is gone.
    pub(crate) fn block(&mut self, failure: Failure) {
        let (plan, state) = (failure.plan.clone(), ReservationState::Blocked);
        self.view.reservations.push(Reservation { plan, state });
        self.failures.push(failure);
    }

    /// Lets the failed plans for which `holds` says false be tried again.
    pub(crate) fn unblock(&mut self, holds: impl Fn(&Failure) -> bool) {
        self.failures.retain(holds);
        let failures = &self.failures;
        self.view.reservations.retain(|reservation| {
            reservation.state == ReservationState::UnderWay
                || failures.iter().any(|failure| failure.plan == reservation.plan)
        });
    }

    /// Whether a plan is being carried out.
    pub(crate) fn is_busy(&self) -> bool {
        self.view.reservations.iter().any(|r| r.state == ReservationState::UnderWay)
    }

    /// The newest sequence number of the sealed memtable `run`.
    pub(crate) fn newest_seq(&self, run: RunId) -> Option<SeqNo> {
        let held = self.sealed.iter().find(|held| held.run == run)?;
        held.memtable.seq_range().map(|(_, newest)| newest)
    }

    /// The oldest log that a memtable still needs.
    pub(crate) fn oldest_log(&self) -> Option<u64> {
        self.sealed.iter().map(|held| held.log).chain(self.active_log).min()
    }

    /// A version of what is here now; runs that `before` has open stay open.
    pub(crate) fn version(&self, before: Option<&Version>) -> Version {
        let open = |run| {
            let known = before.into_iter().flat_map(|version| &version.runs);
            match known.into_iter().find(|known| Arc::ptr_eq(known.run(), run)) {
                Some(known) => Arc::clone(known),
                None => {
                    Arc::new(OpenRun::new(run, |slice| Arc::clone(&self.tables[&slice.table().id])))
                }
            }
        };
        let sealed = self.sealed.iter().map(|held| (held.run, Arc::clone(&held.memtable)));
        Version {
            active: Arc::clone(&self.active),
            sealed: sealed.collect(),
            runs: self.view.tree.disk_runs().map(open).collect(),
            tree: self.view.tree.clone(),
        }
    }
}

impl Space {
    /// Shows readers what `core`, the state of this keyspace, holds now.
    pub(crate) fn publish(&self, core: &Core) {
        let before = self.version.load();
        self.version.store(Arc::new(core.version(Some(&before))));
    }
}
