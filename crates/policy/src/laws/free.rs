//! The law of free runs: a store in virtual time, whose memtables arrive faster than its merges
//! end. No clock of the machine has a say, so that a policy that passes once passes always.
//!
//! A writer that nothing holds back writes five times as fast as a merging thread reads. It is held
//! back as the store holds it back, by [`BackPressure`]. Every key is overwritten several times, so
//! that merges that are not made leave bytes behind. The same bytes are written in lockstep, where
//! merges take no time. Runs and bytes of the tree may then exceed lockstep by a factor and by a
//! constant: see [`RUNS_MEAN`] and the bounds below it. Outputs that are not committed do not
//! count. They come on top, in lockstep too: each plan under way writes at most what it reads.

use super::law::{Law, LawError};
use super::outcome::joined_outcome;
use super::random::{self, Random};
use crate::back_pressure::{BackPressure, WAITING_MEMTABLES_MAX, delay_nanos_per_byte};
use crate::{Duty, Load, MergePolicy, Turn};
use lsmith_tree::{
    AddPlace, Addition, KeyRange, MergePlan, Mode, Place, ProfilePoint, Reason, Reservation,
    ReservationState, Size, Slice, Table, Tree, TreeEdit, TreeView, apply, check_plan,
};

/// Bytes of a memtable.
const MEMTABLE_BYTES: u64 = 1 << 20;

/// Bytes of all keys, once each has been written.
const LIVE_BYTES: u64 = 24 * MEMTABLE_BYTES;

/// Keys are the numbers below this. Each memtable has some of everywhere.
const KEYS: u64 = 32_000;

/// Profile points of a memtable.
const POINTS: u64 = 32;

/// The same under a policy of append tables. All keys between two points have 24 KiB. The law
/// cannot judge a policy whose tables have fewer: sizes say nothing of what lies between two
/// points, and most of what is written to such a table would be lost.
const POINTS_BY_TREE: u64 = 1024;

/// Bytes that a run writes: every key several times over.
const WRITTEN_BYTES: u64 = 4 * LIVE_BYTES;

/// The same under a policy that counts in blocks, which makes many more plans per byte.
const WRITTEN_BYTES_BY_BLOCK: u64 = 3 * LIVE_BYTES / 2;

/// Bytes per microsecond of a writer that nothing holds back.
const WRITER_SPEED: f64 = 200.0;

/// Bytes per microsecond that a merging thread reads.
const MERGE_SPEED: f64 = 40.0;

/// A writer looks at the pressure this many times per memtable.
const LOOKS: f64 = 16.0;

/// A bound: so many times what a tree in lockstep has, and so many more.
type Bound = (f64, f64);

/// Runs on storage in the mean. The run that is being flushed, or merged into others, comes on top.
const RUNS_MEAN: Bound = (1.3, 1.5);

/// Runs on storage at the worst moment. Memtables that are flushed during a merge come on top.
const RUNS_MAX: Bound = (1.3, 3.0);

/// Memtables' bytes in the mean. What waits in memory, and for its merge, comes on top.
const BYTES_MEAN: Bound = (1.2, 1.0);

/// Memtables' bytes at the worst moment.
const BYTES_MAX: Bound = (1.2, WAITING_MEMTABLES_MAX as f64);

/// How long merges take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    /// No time: the tree is in lockstep.
    None,
    /// As long as their bytes take.
    ByBytes,
    /// All of them at least as long as a writer takes for 128 memtables.
    Long,
    /// One in four takes ten times as long as its bytes do.
    Mixed,
}

const LONG_MICROS: f64 = 128.0 * MEMTABLE_BYTES as f64 / WRITER_SPEED;

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    /// Runs on storage, averaged over the moments at which a memtable was sealed.
    runs_mean: f64,
    /// The most of them at any moment.
    runs_max: usize,
    /// Bytes of the tree, sealed memtables and dead bytes included, averaged over the same moments.
    bytes_mean: f64,
    /// The most of them at any moment.
    bytes_max: u64,
}

/// A plan that is carried out.
struct UnderWay {
    plan: MergePlan,
    end: f64,
}

struct Store<'a> {
    policy: &'a dyn MergePolicy,
    view: TreeView,
    lengths: Lengths,
    random: Random,
    threads: Vec<Option<UnderWay>>,
    now: f64,
    active_bytes: f64,
    /// Bytes sealed since the tree was last at rest.
    owed_bytes: u64,
    sealed_bytes: u64,
    measured: Measured,
}

impl<'a> Store<'a> {
    fn new(policy: &'a dyn MergePolicy, lengths: Lengths, threads: usize) -> Store<'a> {
        Store {
            policy,
            view: TreeView::new(Tree::new(), MEMTABLE_BYTES),
            lengths,
            random: Random::new(threads as u64),
            threads: (0..threads).map(|_| None).collect(),
            now: 0.0,
            active_bytes: 0.0,
            owed_bytes: 0,
            sealed_bytes: 0,
            measured: Measured::default(),
        }
    }

    fn broken(&self, what: String) -> LawError {
        let policy = self.policy.spec().to_string();
        LawError { law: Law::Free, policy, what, view: self.view.to_string() }
    }

    /// Returns the bytes that the run writes.
    fn to_write(&self) -> u64 {
        if self.policy.needs().blocks { WRITTEN_BYTES_BY_BLOCK } else { WRITTEN_BYTES }
    }

    /// Returns the profile points of a memtable.
    fn points(&self) -> u64 {
        if self.policy.needs().appends { POINTS_BY_TREE } else { POINTS }
    }

    /// Returns the count and the bytes of the sealed memtables that no plan under way takes.
    fn waiting(&self) -> (usize, u64) {
        if self.policy.needs().blocks {
            return (0, 0);
        }
        let memory = self.view.tree.memory().runs();
        let waiting = memory.iter().filter(|run| !self.view.is_reserved(run.id()));
        waiting.fold((0, 0), |(count, bytes), run| (count + 1, bytes + run.bytes()))
    }

    /// Returns the next plan for `thread`, as the store chooses it.
    fn next_plan(&self, thread: usize) -> Option<MergePlan> {
        let keeps_memory = self.policy.needs().blocks;
        let flush = || {
            let flush = MergePlan::flush(&self.view.tree).filter(|_| !keeps_memory)?;
            check_plan(&self.view, &flush).is_ok().then_some(flush)
        };
        let turn = Turn {
            view: &self.view,
            duty: Duty::of(thread, self.threads.len()),
            waiting_memtables: self.waiting().0,
            has_turns: false,
        };
        turn.plan(self.policy.next_merge(&self.view), |plan| plan, flush)
    }

    /// Gives every idle thread a plan. Notes when the tree is at rest.
    fn start(&mut self) -> Result<(), LawError> {
        for thread in 0..self.threads.len() {
            if self.threads[thread].is_some() {
                continue;
            }
            let Some(plan) = self.next_plan(thread) else { continue };
            if let Err(error) = check_plan(&self.view, &plan) {
                return Err(self.broken(format!("{plan}: {error}")));
            }
            let end = self.now + self.micros(&plan);
            let state = ReservationState::UnderWay;
            self.view.reservations.push(Reservation { plan: plan.clone(), state });
            self.threads[thread] = Some(UnderWay { plan, end });
        }
        if self.threads.iter().all(Option::is_none) {
            self.owed_bytes = 0;
        }
        Ok(())
    }

    /// Returns how long `plan` takes.
    fn micros(&mut self, plan: &MergePlan) -> f64 {
        if self.lengths == Lengths::None || plan.mode != Mode::Merge {
            return 0.0;
        }
        let micros = plan.size_taken(&self.view.tree).bytes as f64 / MERGE_SPEED;
        match self.lengths {
            Lengths::Long if plan.inputs.len() > 1 => micros.max(LONG_MICROS),
            Lengths::Mixed if self.random.chance(25) => 10.0 * micros,
            _ => micros,
        }
    }

    /// Commits the plans that have ended.
    fn commit(&mut self) -> Result<(), LawError> {
        for thread in 0..self.threads.len() {
            let ended = self.threads[thread].take_if(|under_way| under_way.end <= self.now);
            let Some(UnderWay { plan, .. }) = ended else { continue };
            self.view.reservations.retain(|reservation| reservation.plan != plan);
            let outcome = joined_outcome(&self.view.tree, &plan, &join);
            let edit = TreeEdit::of_plan(&self.view.tree, &plan, outcome);
            let done = edit.map(|edit| apply(&mut self.view.tree, &edit));
            if !matches!(done, Ok(Ok(()))) {
                return Err(self.broken(format!("{plan} cannot be committed")));
            }
            self.note_most();
        }
        self.fold();
        Ok(())
    }

    /// Makes one run of memory, if the policy counts in blocks and no plan takes from memory.
    fn fold(&mut self) {
        let runs = self.view.tree.memory().runs();
        let is_free = runs.iter().all(|run| !self.view.is_reserved(run.id()));
        if !self.policy.needs().blocks || runs.len() < 2 || !is_free {
            return;
        }
        let plan = MergePlan::merge(
            runs.iter().map(|run| run.id()),
            Place::NewRun(0),
            Reason::new("fold", [0; 3]),
        );
        let slices = joined_outcome(&self.view.tree, &plan, &join).slices;
        let (run, place) = (self.view.tree.next_run(), AddPlace::Memory);
        let mut edit = TreeEdit::default();
        edit.remove.extend(plan.inputs);
        edit.add.push(Addition { run, place, knot: None, slices });
        apply(&mut self.view.tree, &edit).expect("memory is folded");
    }

    fn note_most(&mut self) {
        let (runs, bytes) = (self.view.tree.disk_run_count(), bytes_of(&self.view.tree));
        self.measured.runs_max = self.measured.runs_max.max(runs);
        self.measured.bytes_max = self.measured.bytes_max.max(bytes);
    }

    fn seal(&mut self, bytes: u64) {
        let part = bytes as f64 / self.to_write() as f64;
        self.measured.runs_mean += self.view.tree.disk_run_count() as f64 * part;
        self.measured.bytes_mean += bytes_of(&self.view.tree) as f64 * part;
        self.sealed_bytes += bytes;
        self.active_bytes = 0.0;
        self.owed_bytes += bytes;
        let count = self.points();
        let points = (1..count).map(|point| ProfilePoint {
            key: random::key(point * KEYS / count),
            below: Size::of_bytes(bytes * point / count),
            after: None,
        });
        let table = Table {
            id: self.view.tree.next_table(),
            range: KeyRange::new(random::key(0), random::key(KEYS)),
            size: Size::of_bytes(bytes),
            profile: points.collect(),
            ..Table::default()
        };
        let edit = TreeEdit::seal(self.view.tree.next_run(), Slice::whole(table));
        apply(&mut self.view.tree, &edit).expect("the names are new");
        self.fold();
        self.note_most();
    }

    /// Returns the microseconds that a writer takes per byte, or `None` if it stops.
    fn micros_per_byte(&self) -> Result<Option<f64>, LawError> {
        let (waiting_memtables, waiting_bytes) = self.waiting();
        let load = Load { waiting_memtables, owed_bytes: self.owed_bytes };
        let of_policy = |load: &Load| self.policy.pressure(&self.view, load);
        let pressure = BackPressure::of(&load, waiting_bytes, MEMTABLE_BYTES, of_policy);
        let of_merges = pressure.of_merges(self.active_bytes as u64, MEMTABLE_BYTES);
        if of_merges >= 1.0 || waiting_memtables >= WAITING_MEMTABLES_MAX {
            if self.threads.iter().all(Option::is_none) {
                return Err(self.broken("writers stop, and nothing is under way".to_owned()));
            }
            return Ok(None);
        }
        let of_memory = pressure.of_memory(self.active_bytes as u64, MEMTABLE_BYTES);
        let delay = 1e-3 * delay_nanos_per_byte(of_merges.max(of_memory));
        Ok(Some(1.0 / WRITER_SPEED + delay))
    }

    fn run(mut self) -> Result<Measured, LawError> {
        while self.sealed_bytes < self.to_write() {
            self.commit()?;
            self.start()?;
            let ends = self.threads.iter().flatten().map(|under_way| under_way.end);
            let next = ends.fold(f64::MAX, f64::min);
            if next <= self.now {
                continue;
            }
            let Some(micros) = self.micros_per_byte()? else {
                self.now = next;
                continue;
            };
            let seal_bytes = self.policy.seal_bytes(&self.view) as f64;
            let step = (MEMTABLE_BYTES as f64 / LOOKS).min(seal_bytes - self.active_bytes);
            let at = self.now + step.max(0.0) * micros;
            self.active_bytes += step.max(0.0).min((next - self.now) / micros);
            self.now = at.min(next);
            if self.active_bytes + 0.5 >= seal_bytes {
                self.seal(seal_bytes as u64);
            }
        }
        Ok(self.measured)
    }
}

/// Returns the bytes of `tree` in memory and on storage, with the dead bytes of append tables.
fn bytes_of(tree: &Tree) -> u64 {
    let bytes = |slice: &Slice| slice.size().bytes + slice.table().dead_bytes;
    tree.runs().flat_map(|(_, run)| run.slices()).map(bytes).sum()
}

/// Returns the bytes of what becomes of `sizes`, pieces of several runs over `range`, if each has
/// any of the keys.
fn join(range: &KeyRange, sizes: &[u64]) -> u64 {
    let rank = |key: &[u8]| {
        let bytes = std::array::from_fn(|place| key.get(place).copied().unwrap_or(0));
        u64::from_be_bytes(bytes).min(KEYS)
    };
    let end = range.end.as_ref().map_or(KEYS, |end| rank(end));
    let keys = end.saturating_sub(rank(&range.start)).max(1);
    let all = (keys * LIVE_BYTES / KEYS) as f64;
    let without = sizes.iter().fold(1.0, |rest, bytes| rest * (1.0 - *bytes as f64 / all).max(0.0));
    let most = sizes.iter().copied().max().unwrap_or(0);
    ((all * (1.0 - without)) as u64).max(most)
}

/// Checks free runs of all lengths of merges with one, two and four merging threads.
pub(super) fn free(policy: &dyn MergePolicy) -> Result<(), LawError> {
    let lockstep = Store::new(policy, Lengths::None, 1).run()?;
    let memtables = |bytes: f64| bytes / MEMTABLE_BYTES as f64;
    for lengths in [Lengths::ByBytes, Lengths::Long, Lengths::Mixed] {
        for threads in [1, 2, 4] {
            let free = Store::new(policy, lengths, threads).run()?;
            let bounds = [
                ("runs in the mean", free.runs_mean, lockstep.runs_mean, RUNS_MEAN),
                ("runs at most", free.runs_max as f64, lockstep.runs_max as f64, RUNS_MAX),
                (
                    "memtables' bytes in the mean",
                    memtables(free.bytes_mean),
                    memtables(lockstep.bytes_mean),
                    BYTES_MEAN,
                ),
                (
                    "memtables' bytes at most",
                    memtables(free.bytes_max as f64),
                    memtables(lockstep.bytes_max as f64),
                    BYTES_MAX,
                ),
            ];
            for (what, free, lockstep, (factor, more)) in bounds {
                let allowed = factor * lockstep + more;
                if free > allowed {
                    let what = format!(
                        "with {threads} merging threads and merges of lengths {lengths:?} there \
                         are {free:.2} {what}, where {allowed:.2} are allowed: {lockstep:.2} in \
                         lockstep, times {factor}, and {more}"
                    );
                    return Err(Store::new(policy, lengths, threads).broken(what));
                }
            }
        }
    }
    Ok(())
}
