//! What changes under the lock of a keyspace.

mod failure;
mod sealed;
mod tables;

pub(crate) use failure::Failure;
pub(crate) use sealed::{Replacement, SEALED_MAX, SealedRun, WriteSpan};

use super::{Active, Policy, Request, Requests};
use crate::compression::Compression;
use crate::manifest::Spill;
use crate::version::{Change, MemoryRun, OpenRun, Reclaim, TableHandle, Version};
use lsmith_tree::{
    MergePlan, Reservation, ReservationState, Run, Slice, TableId, Tree, TreeView, check_plan,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What changes under the lock of a keyspace. [`KeyspaceState::publish`] shows it to readers.
#[derive(Debug)]
pub(crate) struct KeyspaceState {
    pub(crate) policy: Policy,
    pub(crate) compression: Compression,
    pub(crate) view: TreeView,
    /// The tree that is coming: what the one in `view` will be once the manifest knows of the
    /// change that is being written to it.
    pub(crate) coming: Option<Tree>,
    pub(crate) active: Arc<Active>,
    /// What the runs in memory are read from, newest first.
    pub(crate) sealed: Vec<SealedRun>,
    /// Writes that were folded away without leaving anything, since the last plan that took memory.
    pub(crate) vanished: Option<WriteSpan>,
    /// The copy of memory that stands in for the start of the log.
    pub(crate) spill: Option<Spill>,
    pub(crate) tables: FxHashMap<TableId, Arc<TableHandle>>,
    /// Gives back the space of what no slice of them shows.
    pub(crate) reclaim: Arc<Reclaim>,
    /// Why each blocked reservation failed.
    pub(crate) failures: Vec<Failure>,
    /// How many plans have failed since the last one that succeeded.
    pub(crate) failed_in_row: u32,
    /// Plans that are committed and whose inputs are about to go.
    pub(crate) leaving: usize,
    /// What callers, or other parts of the store, have asked for.
    pub(crate) requests: Requests,
    /// Whether the scheduler has found nothing to do since the last change of this state.
    pub(crate) at_rest: bool,
    /// Whether something was carried out since the observer last heard of rest.
    pub(crate) has_worked: bool,
}

impl KeyspaceState {
    /// Puts `plan` among the reservations under way.
    pub(crate) fn reserve(&mut self, plan: MergePlan) {
        let state = ReservationState::UnderWay;
        self.view.reservations.push(Reservation { plan, state });
    }

    /// Takes `plan` out of the reservations under way.
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

    /// Whether `plan`, all of what `reserved` keeps or a part of it, is legal now and clear of all
    /// other reservations.
    pub(crate) fn still_allows(&mut self, plan: &MergePlan, reserved: &MergePlan) -> bool {
        let own = self.find_reserved(reserved);
        let own = own.map(|index| (index, self.view.reservations.remove(index)));
        let allowed = check_plan(&self.view, plan).is_ok();
        if let Some((index, own)) = own {
            self.view.reservations.insert(index, own);
        }
        allowed
    }

    /// Whether a plan is being carried out, or what it took is about to go.
    pub(crate) fn is_busy(&self) -> bool {
        self.leaving > 0
            || self.view.reservations.iter().any(|r| r.state == ReservationState::UnderWay)
    }

    /// Asks the scheduler for `request`.
    pub(crate) fn ask(&mut self, request: Request) {
        // A request that is there already is no news: the threads that merge know of it.
        self.at_rest &= self.requests.has(request);
        self.requests.ask(request);
    }

    /// Notes that the scheduler has found nothing to do. Returns whether that is news.
    pub(crate) fn come_to_rest(&mut self) -> bool {
        !std::mem::replace(&mut self.at_rest, true)
    }

    /// A version of what is here now. What `before` has open stays open; `change` is what has
    /// happened since to runs on storage, if that is known.
    pub(crate) fn version(&self, before: Option<&Version>, change: Option<Change<'_>>) -> Version {
        let find = |slice: &Slice| Arc::clone(&self.tables[&slice.table().id]);
        let open = |run: &Arc<Run>| {
            let mut known = before.into_iter().flat_map(|version| &version.runs);
            let known = known.find(|known| known.run().id() == run.id());
            match (known, change) {
                (Some(known), _) if Arc::ptr_eq(known.run(), run) => Arc::clone(known),
                (Some(known), Some(change)) => Arc::new(match change.of(known.run()) {
                    Some(range) => OpenRun::changed(known, run, &range, find),
                    None => OpenRun::new(run, find),
                }),
                _ => Arc::new(OpenRun::new(run, find)),
            }
        };
        let memory = |run: &Arc<Run>| {
            let known = before.into_iter().flat_map(|version| &version.memory);
            match known.into_iter().find(|known| Arc::ptr_eq(known.run(), run)) {
                Some(known) => Arc::clone(known),
                None => {
                    let held = self.held(run.id()).expect("memory is what the tree says");
                    Arc::new(MemoryRun::new(run, held.sealed.clone()))
                }
            }
        };
        Version {
            active: Arc::clone(&self.active.memtable),
            memory: self.view.tree.memory().runs().iter().map(memory).collect(),
            runs: self.view.tree.disk_runs().map(open).collect(),
            tree: self.view.tree.clone(),
            ticket: Some(self.reclaim.ticket()),
        }
    }
}
