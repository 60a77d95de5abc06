//! The state of one keyspace.

use super::{Active, Change, MemoryRun, OpenRun, Policy, Reclaim, TableHandle, Version};
use crate::db::Compression;
use crate::manifest::{Mark, Spill};
use crate::write::Gate;
use lsmith_storage::error::{Error, ErrorKind};
use lsmith_storage::memtable::Sealed;
use lsmith_storage::sync::ArcSwap;
use lsmith_storage::sync::Mutex;
use lsmith_storage::sync::atomic::AtomicBool;
use lsmith_tree::{
    MergePlan, Reservation, ReservationState, Run, RunId, SeqNo, Slice, TableId, Tree, TreeEdit,
    TreeView, apply, check_plan,
};
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
    /// Held by who [commits](crate::commit): writes to the manifest about this keyspace and then
    /// changes the core.
    pub(crate) committing: Mutex<()>,
    pub(crate) core: Mutex<Core>,
    /// The active memtable of the core, for writers. Changed under the locks of the writer and of
    /// the core.
    pub(crate) active: ArcSwap<Active>,
    /// Whether a writer found the core locked when it was to see whether the active memtable is
    /// full. Changed under the lock of the writer.
    pub(crate) seal_due: AtomicBool,
    /// What holds writers back.
    pub(crate) gate: Gate,
    /// What the observer said when it panicked on a merging thread, until that is forgiven.
    pub(crate) observer_panic: Mutex<Option<String>>,
}

/// What changes under the lock of a keyspace. [`Core::publish`] shows it to readers.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) policy: Policy,
    pub(crate) compression: Compression,
    pub(crate) view: TreeView,
    /// The tree that is coming: what the one in `view` will be once the manifest knows of the
    /// change that is being written to it.
    pub(crate) coming: Option<Tree>,
    pub(crate) active: Arc<Active>,
    /// What the runs in memory are read from, newest first.
    pub(crate) sealed: Vec<Held>,
    /// Writes that were folded away without leaving anything, since the last plan that took memory.
    pub(crate) vanished: Option<Writes>,
    /// The copy of memory that stands in for the start of the log.
    pub(crate) spill: Option<Spill>,
    /// Whether memory is to be copied, because it holds on to too much of the log.
    pub(crate) spill_due: bool,
    pub(crate) tables: FxHashMap<TableId, Arc<TableHandle>>,
    /// Gives back the space of what no slice of them shows.
    pub(crate) reclaim: Arc<Reclaim>,
    /// Why each blocked reservation failed.
    pub(crate) failures: Vec<Failure>,
    /// How many plans have failed since the last one that succeeded.
    pub(crate) failed_in_row: u32,
    /// Plans that are committed and whose inputs are about to go.
    pub(crate) leaving: usize,
    /// Whether a plan of all runs was asked for by hand.
    pub(crate) merge_all: bool,
    /// Whether it was asked for by hand that memory be flushed, whatever the policy wants.
    pub(crate) flush_all: bool,
}

/// Sealed memtables that may be there whatever the policy says: memory is bounded.
pub(crate) const SEALED_MAX: usize = 4;

/// A run in memory.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) run: RunId,
    pub(crate) sealed: Sealed,
    pub(crate) writes: Writes,
}

/// A stretch of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Writes {
    /// The number of the first.
    pub(crate) oldest: SeqNo,
    /// The number of the last.
    pub(crate) newest: SeqNo,
    /// The log that holds the oldest of those that are in the log alone; `None` where a copy of
    /// memory has them all.
    pub(crate) log: Option<u64>,
}

impl Writes {
    /// Both stretches and what lies between them.
    pub(crate) fn with(self, other: Writes) -> Writes {
        Writes {
            oldest: self.oldest.min(other.oldest),
            newest: self.newest.max(other.newest),
            log: self.log.into_iter().chain(other.log).min(),
        }
    }
}

/// A plan that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) plan: MergePlan,
    /// Why.
    pub(crate) error: Error,
    /// Free bytes that are needed before it is worth trying again.
    pub(crate) needs_bytes: u64,
    /// Free bytes when it was begun.
    pub(crate) free_bytes: u64,
    /// When it is worth trying again although there is not more room than there was.
    pub(crate) retry_at: Duration,
}

impl Failure {
    /// The failure of `plan` that is not tried again before somebody asks for it.
    pub(crate) fn for_good(plan: MergePlan, error: Error) -> Failure {
        let (needs_bytes, free_bytes, retry_at) = (0, 0, Duration::ZERO);
        Failure { plan, error, needs_bytes, free_bytes, retry_at }
    }

    /// The error that a writer gets who must wait for this plan.
    pub(crate) fn to_error(&self) -> Error {
        self.error.said_again("writes are refused because a merge failed: ")
    }

    /// Whether there was no room.
    pub(crate) fn is_full(&self) -> bool {
        self.error.kind() == ErrorKind::Full
    }
}

impl Space {
    /// Whether the keyspace has the policy, in its shortest spelling, and the memtable size that
    /// somebody asks for.
    ///
    /// # Errors
    /// `InvalidArgument` with what it has.
    pub(crate) fn check_options(
        &self,
        policy: Option<String>,
        memtable_bytes: Option<u64>,
    ) -> crate::Result<()> {
        let refuse = |told: String| {
            let told = format!("the keyspace `{}` exists with {told}", self.name);
            Err(Error::new(ErrorKind::InvalidArgument, told))
        };
        if let Some(asked) = policy {
            let has = self.core.lock().policy.spec().to_string();
            if has != asked {
                return refuse(format!(
                    "the policy {has}, not {asked}: `Keyspace::set_merge_policy` changes it"
                ));
            }
        }
        let has = self.memtable_bytes;
        match memtable_bytes.filter(|&asked| asked != has) {
            Some(asked) => refuse(format!(
                "memtables of {has} bytes, not {asked}: their size is chosen when it is made"
            )),
            None => Ok(()),
        }
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
        if let Some(index) = self.find_reserved(plan) {
            self.view.reservations.remove(index);
        }
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

    /// Makes `memtable` the newest run in memory, of the tree that is coming too. Its name, which
    /// is none that the manifest is being told.
    pub(crate) fn add_to_memory(&mut self, memtable: Slice) -> RunId {
        let run = self.coming.as_ref().unwrap_or(&self.view.tree).next_run();
        let edit = TreeEdit::seal(run, memtable);
        for tree in std::iter::once(&mut self.view.tree).chain(&mut self.coming) {
            apply(tree, &edit).expect("a new run fits any tree");
        }
        run
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

    /// Whether a plan is being carried out, or what it took is about to go.
    pub(crate) fn is_busy(&self) -> bool {
        self.leaving > 0
            || self.view.reservations.iter().any(|r| r.state == ReservationState::UnderWay)
    }

    /// The run in memory called `run`.
    fn held(&self, run: RunId) -> Option<&Held> {
        self.sealed.iter().find(|held| held.run == run)
    }

    /// The writes of the newest run in memory that `plan` takes from.
    fn newest_taken(&self, plan: &MergePlan) -> Option<SeqNo> {
        let taken = plan.inputs.iter().filter_map(|input| self.held(input.run));
        taken.map(|held| held.writes.newest).max()
    }

    /// Whether memory keeps writes that are older than some that `plan` takes. What it takes must
    /// then not become durable before they are.
    pub(crate) fn keeps_older_than(&self, plan: &MergePlan) -> bool {
        let Some(newest) = self.newest_taken(plan) else { return false };
        let goes = |run: &Run| {
            let input = plan.inputs.iter().find(|input| input.run == run.id());
            input.is_some_and(|input| run.lies_within(&input.range))
        };
        let kept = self.view.tree.memory().runs().iter().filter(|run| !goes(run));
        let mut kept = kept.filter_map(|run| self.held(run.id()));
        kept.any(|held| held.writes.oldest < newest)
    }

    /// What the manifest must know of memory when `plan` has made the tree what is in `after`: up
    /// to which number all writes have left memory, and what else the plan took.
    pub(crate) fn taken_by(&self, plan: &MergePlan, after: &Tree) -> (SeqNo, Vec<Mark>) {
        let Some(newest) = self.newest_taken(plan) else { return (SeqNo(0), Vec::new()) };
        let left = self.sealed.iter().filter(|held| after.run(held.run).is_some());
        let oldest_left = left.map(|held| held.writes.oldest).min();
        let flushed_seq = match oldest_left {
            Some(oldest) if oldest <= newest => SeqNo(oldest.0.saturating_sub(1)),
            _ => newest,
        };
        let marks = plan.inputs.iter().filter_map(|input| {
            let upto = self.held(input.run)?.writes.newest;
            (upto > flushed_seq).then(|| Mark { range: input.range.clone(), upto })
        });
        (flushed_seq, marks.collect())
    }

    /// Forgets runs in memory that the tree does not have any more, after a plan that has taken
    /// from it, of which the manifest knows.
    pub(crate) fn forget_taken(&mut self, plan: &MergePlan, flushed_seq: SeqNo) {
        let newest = self.newest_taken(plan);
        self.vanished = self.vanished.filter(|writes| newest.is_none_or(|n| n < writes.newest));
        let tree = &self.view.tree;
        self.sealed.retain(|held| tree.run(held.run).is_some());
        self.flush_all &= !self.sealed.is_empty();
        self.spill = self.spill.filter(|spill| spill.upto > flushed_seq);
    }

    /// Bytes that the files of all tables take, parts that no slice shows included as long as they
    /// are not given back.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.tables.values().map(|table| table.held_bytes()).sum()
    }

    /// The oldest log that is still needed.
    pub(crate) fn oldest_log(&self) -> Option<u64> {
        let writes = self.sealed.iter().map(|held| &held.writes).chain(&self.vanished);
        writes.filter_map(|writes| writes.log).chain(self.active.log()).min()
    }

    /// Whether a plan, under way or failed, takes from memory.
    pub(crate) fn is_memory_reserved(&self) -> bool {
        self.view.reservations.iter().any(|reservation| {
            reservation.plan.inputs.iter().any(|input| self.held(input.run).is_some())
        })
    }

    /// Whether what waits in memory is flushed where the policy has no plan for it.
    pub(crate) fn flushes_memory(&self) -> bool {
        let memory_max = self.view.memtable_bytes.saturating_mul(SEALED_MAX as u64);
        !self.policy.wants_blocks()
            || self.flush_all
            || self.view.tree.memory().bytes() > memory_max
    }

    /// Runs in memory that wait to be taken, or under policies that leave memory where it is, to be
    /// folded.
    pub(crate) fn waiting_memtables(&self) -> usize {
        self.waiting().count()
    }

    /// Their logical bytes.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        let runs = self.waiting().filter_map(|held| self.view.tree.run(held.run));
        runs.map(|(_, run)| run.bytes()).sum()
    }

    fn waiting(&self) -> impl Iterator<Item = &Held> {
        let stays = |held: &&Held| self.policy.wants_blocks() && held.sealed.is_folded();
        self.sealed.iter().filter(move |held| !stays(held))
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

/// Keeps a keyspace from being taken for at rest.
pub(crate) struct Leaving<'a>(&'a Space);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.core.lock().leaving -= 1;
    }
}

impl Core {
    /// What keeps the keyspace from coming to rest: a plan that failed, or a policy that panicked.
    pub(crate) fn trouble(&self) -> Option<Error> {
        self.failures.first().map(Failure::to_error).or_else(|| self.policy_trouble())
    }

    fn policy_trouble(&self) -> Option<Error> {
        let said = self.policy.panic()?;
        let told = format!("the merge policy panicked, and is not asked since: {said}");
        Some(Error::new(ErrorKind::Panicked, told))
    }
}

impl Space {
    /// Whoever waits for rest waits until what is given here is dropped.
    pub(crate) fn leaving(&self) -> Leaving<'_> {
        self.core.lock().leaving += 1;
        Leaving(self)
    }

    /// The same for one who has raised [`Core::leaving`] himself.
    pub(crate) fn counted_leaving(&self) -> Leaving<'_> {
        Leaving(self)
    }

    /// What is to be told of the observer.
    pub(crate) fn observer_trouble(&self) -> Option<Error> {
        let said = self.observer_panic.lock().clone()?;
        Some(Error::new(ErrorKind::Panicked, format!("the observer panicked: {said}")))
    }

    /// Why the keyspace, whose state is `core`, does not come to rest: all that there is.
    pub(crate) fn troubles(&self, core: &Core) -> Vec<String> {
        let failures = core.failures.iter().map(|failure| failure.error.to_string());
        let of_policy = core.policy_trouble().map(|error| error.to_string());
        let of_observer = self.observer_trouble().map(|error| error.to_string());
        failures.chain(of_policy).chain(of_observer).collect()
    }

    /// Shows readers what `core`, the state of this keyspace, holds now. No run on storage has
    /// changed since that was last done.
    pub(crate) fn publish(&self, core: &Core) {
        let before = self.version.load();
        self.version.store(Arc::new(core.version(Some(&before), None)));
    }

    /// The same after `change`.
    pub(crate) fn publish_change(&self, core: &Core, change: Change<'_>) {
        let before = self.version.load();
        self.version.store(Arc::new(core.version(Some(&before), Some(change))));
    }
}
