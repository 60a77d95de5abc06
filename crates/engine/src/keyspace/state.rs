//! The half of an open keyspace that changes under its lock.

mod blocked;
mod dropped;
mod failure;
mod sealed;
mod tables;
mod values;

pub(crate) use failure::Failure;
pub(crate) use sealed::{Replacement, SEALED_MAX, SealedRun, WriteSpan};

use super::{Active, Policy, Request, Requests};
use crate::compression::Compression;
use crate::manifest::Spill;
use crate::rules::Rules;
use crate::values::ValueFiles;
use crate::version::{MemoryRun, OpenRun, Reclaim, TableHandle, Version};
use lsmith_tree::{
    Causes, KeyRange, MergePlan, RangeDeletes, Reservation, ReservationState, Run, SeqNo, Slice,
    TableId, Tree, TreeView, check_plan,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The state of a keyspace, which changes under its lock. Readers see a change once
/// [`KeyspaceShared::publish`](super::KeyspaceShared::publish) is called.
#[derive(Debug)]
pub(crate) struct KeyspaceState {
    pub(crate) policy: Policy,
    pub(crate) compression: Compression,
    pub(crate) rules: Arc<Rules>,
    pub(crate) view: TreeView,
    /// The next tree: the tree of `view` after the edit that is being written to the manifest.
    pub(crate) coming: Option<Tree>,
    pub(crate) active: Arc<Active>,
    /// The entries of the runs in memory, newest run first.
    pub(crate) sealed: Vec<SealedRun>,
    /// Writes that cancelled each other when memory was folded, since the last plan that took
    /// memory.
    pub(crate) vanished: Option<WriteSpan>,
    /// The spill that replaces the start of the log.
    pub(crate) spill: Option<Spill>,
    pub(crate) tables: FxHashMap<TableId, Arc<TableHandle>>,
    /// Frees the space of blocks in `tables` that no slice shows.
    pub(crate) reclaim: Arc<Reclaim>,
    /// One failure for each blocked reservation.
    pub(crate) failures: Vec<Failure>,
    /// The number of plans that have failed since the last plan that succeeded.
    pub(crate) failed_in_row: u32,
    /// The number of guards and plans that keep the keyspace busy without a reservation, for
    /// example committed plans whose inputs are about to be dropped.
    pub(crate) leaving: usize,
    /// The number of ingests of tables with sequence numbers of their own.
    pub(crate) arrivals: u64,
    /// The value files of the store.
    pub(crate) values: Arc<ValueFiles>,
    /// Why merges have written what they wrote, if that is counted.
    pub(crate) causes: Option<Causes>,
    /// A key range in which no new plan takes runs on storage, because an ingest, or a caller who
    /// merges a range, waits to merge there.
    pub(crate) kept_range: Option<KeyRange>,
    /// The oldest snapshot when writers last waited for space in vain.
    pub(crate) kept_for: Option<SeqNo>,
    /// Open requests of callers and of the write-ahead log.
    pub(crate) requests: Requests,
    /// True if the scheduler has found nothing to do since the last change of this state.
    pub(crate) at_rest: bool,
    /// Logical bytes of the memtables that were sealed since the keyspace was last at rest, each at
    /// most a full memtable. `None` until it has been at rest with its policy. Also `None` once
    /// merges are due that no writes have caused, but an ingest or a caller.
    pub(crate) owed_bytes: Option<u64>,
    /// True if a plan was carried out since the observer last received [`Event::Rest`].
    ///
    /// [`Event::Rest`]: crate::Event::Rest
    pub(crate) has_worked: bool,
    /// True once the keyspace was dropped.
    pub(crate) is_dropped: bool,
}

impl KeyspaceState {
    /// Reserves `plan`, as under way.
    pub(crate) fn reserve(&mut self, plan: MergePlan) {
        let state = ReservationState::UnderWay;
        self.view.reservations.push(Reservation { plan, state });
    }

    /// Removes the reservation of `plan`, if it is under way.
    pub(crate) fn release(&mut self, plan: &MergePlan) {
        if let Some(index) = self.find_reserved(plan) {
            self.view.reservations.remove(index);
        }
        self.at_rest = false;
    }

    fn find_reserved(&self, plan: &MergePlan) -> Option<usize> {
        self.view.reservations.iter().position(|reservation| {
            reservation.state == ReservationState::UnderWay && reservation.plan == *plan
        })
    }

    /// Returns true if `plan` is legal now and clear of all reservations except `reserved`. `plan`
    /// is all or part of `reserved`.
    pub(crate) fn still_allows(&mut self, plan: &MergePlan, reserved: &MergePlan) -> bool {
        let index = self.find_reserved(reserved);
        let own = index.map(|index| (index, self.view.reservations.remove(index)));
        let allowed = check_plan(&self.view, plan).is_ok();
        if let Some((index, own)) = own {
            self.view.reservations.insert(index, own);
        }
        allowed
    }

    /// Returns true while a plan is carried out, or the inputs of a committed plan are dropped.
    pub(crate) fn is_busy(&self) -> bool {
        self.leaving > 0
            || self.view.reservations.iter().any(|r| r.state == ReservationState::UnderWay)
    }

    /// Returns true if an ingest or a caller waits for keys that `plan` takes on storage.
    pub(crate) fn keeps_range_of(&self, plan: &MergePlan) -> bool {
        let is_there = |range: &KeyRange| {
            let memory = self.view.tree.memory().runs();
            let mut inputs = plan.inputs.iter().filter(|input| input.range.overlaps(range));
            inputs.any(|input| memory.iter().all(|run| run.id() != input.run))
        };
        self.kept_range.as_ref().is_some_and(is_there)
    }

    /// Adds `request` for the scheduler.
    pub(crate) fn ask(&mut self, request: Request) {
        // The threads that merge already know of an open request, so the mark of rest stays.
        self.at_rest &= self.requests.has(request);
        if request == Request::Merge {
            self.owed_bytes = None;
        }
        self.requests.ask(request);
    }

    /// Marks the keyspace as at rest: the scheduler has found nothing to do. Returns false if the
    /// mark was set already.
    pub(crate) fn come_to_rest(&mut self) -> bool {
        self.owed_bytes = Some(0);
        !std::mem::replace(&mut self.at_rest, true)
    }

    /// Returns a version of this state. Reuses what is open in `before`, the latest version.
    pub(crate) fn version(&self, before: Option<&Version>) -> Version {
        let find = |slice: &Slice| Arc::clone(&self.tables[&slice.table().id]);
        let open = |run: &Arc<Run>| {
            let mut runs = before.into_iter().flat_map(|version| &version.runs);
            match runs.find(|known| known.run().id() == run.id()) {
                Some(known) if Arc::ptr_eq(known.run(), run) => Arc::clone(known),
                known => Arc::new(OpenRun::new(run, known.map(|known| &**known), find)),
            }
        };
        let memory = |run: &Arc<Run>| {
            let mut runs = before.into_iter().flat_map(|version| &version.memory);
            match runs.find(|known| Arc::ptr_eq(known.run(), run)) {
                Some(known) => Arc::clone(known),
                None => {
                    let sealed = self.sealed_run(run.id()).expect("memory agrees with the tree");
                    Arc::new(MemoryRun::new(run, sealed.sealed.clone()))
                }
            }
        };
        let lists = self.sealed.iter().map(|sealed| &sealed.range_deletes);
        let range_deletes =
            RangeDeletes::all(std::iter::once(self.view.tree.range_deletes()).chain(lists));
        Version {
            active: Arc::clone(&self.active.memtable),
            range_deletes: (!range_deletes.is_empty()).then(|| Box::new(range_deletes)),
            memory: self.view.tree.memory().runs().iter().map(memory).collect(),
            runs: self.view.tree.disk_runs().map(open).collect(),
            tree: self.view.tree.clone(),
            rules: Arc::clone(&self.rules),
            values: Some(Arc::clone(&self.values)),
            counted: self.policy.counted().cloned(),
            ticket: Some(self.reclaim.ticket()),
            is_dropped: self.is_dropped,
        }
    }
}
