//! Free runs in virtual time: writers and two merging threads, each at a speed of its own.
//!
//! Promised: however slow merges are, the runs that a lookup must consider stay near the policy's
//! own bound, because [`MergePolicy::pressure`] slows writers in time.

use lsmith_policy::laws::outcome;
use lsmith_policy::{Load, MergePolicy, Registry, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{
    Key, KeyRange, MergePlan, Mode, ProfilePoint, Reservation, ReservationState, RunId, Size,
    Slice, Table, Tree, TreeEdit, TreeView, apply, check_plan,
};
use std::sync::Arc;

const MEMTABLE_BYTES: u64 = 4 << 20;

/// Bytes per microsecond that a writer writes if nothing holds it back.
const WRITER_SPEED: f64 = 400.0;

/// Sealed memtables that stop writers.
const SEALED_MAX: usize = 4;

/// Memtables that a run writes.
const FLUSHES: u64 = 200;

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    /// Runs on storage, averaged over the moments at which a memtable was sealed.
    runs_mean: f64,
    runs_max: usize,
    /// Microseconds until the last memtable was sealed.
    micros: f64,
    /// Bytes that flushes and merges read, over bytes sealed.
    cost: f64,
}

struct Store {
    policy: Arc<dyn MergePolicy>,
    view: TreeView,
    /// Bytes per microsecond that a thread merges.
    speed: f64,
    now: f64,
    active_bytes: f64,
    /// The plan that each thread carries out, and when it ends. The second thread carries out only
    /// plans that take a memtable.
    threads: [Option<(f64, MergePlan)>; 2],
    sealed: u64,
    sealed_bytes: u64,
    merged_bytes: u64,
    runs: usize,
    runs_max: usize,
}

impl Store {
    fn new(policy: Arc<dyn MergePolicy>, speed: f64) -> Store {
        Store {
            policy,
            view: TreeView::new(Tree::new(), MEMTABLE_BYTES),
            speed,
            now: 0.0,
            active_bytes: 0.0,
            threads: [None, None],
            sealed: 0,
            sealed_bytes: 0,
            merged_bytes: 0,
            runs: 0,
            runs_max: 0,
        }
    }

    /// Returns the sealed memtables that no plan under way takes.
    fn waiting(&self) -> usize {
        if self.policy.needs().blocks {
            return 0;
        }
        let memory = self.view.tree.memory().runs();
        memory.iter().filter(|run| !self.view.is_reserved(run.id())).count()
    }

    fn takes_memory(&self, plan: &MergePlan) -> bool {
        self.view.tree.memory().runs().iter().any(|run| plan.takes(run.id()))
    }

    /// Returns the next plan for `thread`.
    fn next_plan(&self, thread: usize) -> Option<MergePlan> {
        let plan = self.policy.next_merge(&self.view);
        let plan = plan.filter(|plan| thread == 0 || self.takes_memory(plan));
        let flush = || {
            let flush = MergePlan::flush(&self.view.tree)?;
            let kept = self.policy.needs().blocks;
            (!kept && check_plan(&self.view, &flush).is_ok()).then_some(flush)
        };
        if self.policy.needs().appends {
            // A run of its own would cost a merge with its whole level.
            let is_busy = self.threads.iter().any(Option::is_some);
            return plan.or_else(|| if is_busy { None } else { flush() });
        }
        if thread == 0 && self.waiting() >= SEALED_MAX {
            return flush().or(plan);
        }
        plan.or_else(flush)
    }

    fn start(&mut self) {
        for thread in 0..2 {
            if self.threads[thread].is_some() {
                continue;
            }
            let Some(plan) = self.next_plan(thread) else { continue };
            check_plan(&self.view, &plan).expect("policies make legal plans");
            let inputs = plan.inputs.iter();
            let bytes = |run: RunId, range: &KeyRange| {
                let (_, run) = self.view.tree.run(run).expect("the plan was checked");
                run.size_within(range).bytes
            };
            let bytes: u64 = match plan.mode {
                Mode::Move | Mode::Drop => 0,
                Mode::Merge => inputs.map(|input| bytes(input.run, &input.range)).sum(),
            };
            self.merged_bytes += bytes;
            let end = self.now + bytes as f64 / self.speed;
            let state = ReservationState::UnderWay;
            self.view.reservations.push(Reservation { plan: plan.clone(), state });
            self.threads[thread] = Some((end, plan));
        }
    }

    /// Commits the plans that have ended.
    fn commit(&mut self) {
        for thread in 0..2 {
            let Some((_, plan)) = self.threads[thread].take_if(|(end, _)| *end <= self.now) else {
                continue;
            };
            self.view.reservations.retain(|reservation| reservation.plan != plan);
            let outcome = outcome(&self.view.tree, &plan);
            let edit = TreeEdit::of_plan(&self.view.tree, &plan, outcome).expect("a legal plan");
            apply(&mut self.view.tree, &edit).expect("a legal edit");
        }
    }

    fn seal(&mut self, bytes: u64) {
        let runs = self.view.tree.disk_run_count();
        self.runs += runs;
        self.runs_max = self.runs_max.max(runs);
        self.sealed += 1;
        self.sealed_bytes += bytes;
        self.active_bytes = 0.0;
        let points = (1..64).map(|point| ProfilePoint {
            key: Key::of_number(point * 1000),
            below: Size::of_bytes(bytes * point / 64),
            after: None,
        });
        let table = Table {
            id: self.view.tree.next_table(),
            range: KeyRange { start: Key::of_number(1), end: Some(Key::of_number(64_000)) },
            size: Size::of_bytes(bytes),
            profile: points.collect(),
            ..Table::default()
        };
        let edit = TreeEdit::seal(self.view.tree.next_run(), Slice::whole(table));
        apply(&mut self.view.tree, &edit).expect("the names are new");
    }

    /// Returns the microseconds that a writer takes per byte, or `None` if it stops: what the store
    /// makes of the pressure and of full memory.
    fn micros_per_byte(&self) -> Option<f64> {
        let waiting = self.waiting();
        let load = Load { waiting_memtables: waiting, ..Load::default() };
        let pressure = self.policy.pressure(&self.view, &load);
        assert!((0.0..=1.0).contains(&pressure), "a pressure of {pressure}");
        if pressure >= 1.0 || waiting >= SEALED_MAX {
            let busy = self.threads.iter().any(Option::is_some);
            assert!(busy, "a pressure of 1, and nothing to do:\n{}", self.view);
            return None;
        }
        let pressure = pressure.min(0.999);
        Some(1.0 / WRITER_SPEED + 0.01 * pressure * pressure / (1.0 - pressure))
    }

    fn run(mut self) -> Measured {
        while self.sealed < FLUSHES {
            self.commit();
            self.start();
            let seal_bytes = self.policy.seal_bytes(&self.view) as f64;
            let full = self.micros_per_byte().map(|micros| {
                (micros, self.now + (seal_bytes - self.active_bytes).max(0.0) * micros)
            });
            let ends = self.threads.iter().flatten().map(|(end, _)| *end);
            let next = ends.chain(full.map(|(_, at)| at)).fold(f64::MAX, f64::min);
            match full {
                Some((_, at)) if at <= next => {
                    self.now = next;
                    self.seal(seal_bytes as u64);
                }
                Some((micros, _)) => {
                    self.active_bytes += (next - self.now) / micros;
                    self.now = next;
                }
                None => self.now = next,
            }
        }
        Measured {
            runs_mean: self.runs as f64 / self.sealed as f64,
            runs_max: self.runs_max,
            micros: self.now,
            cost: self.merged_bytes as f64 / self.sealed_bytes as f64,
        }
    }
}

fn run(spec: &str, speed: f64) -> Measured {
    let policy = Registry::builtin().build(spec).expect(spec);
    Store::new(policy, speed).run()
}

/// Returns how many times as many runs there are at the worst moment as in lockstep, which is a run
/// whose merges take no time.
fn excess(policy: &Arc<dyn MergePolicy>, speed: f64) -> f64 {
    let lockstep = Store::new(Arc::clone(policy), f64::MAX).run();
    let free = Store::new(Arc::clone(policy), speed).run();
    free.runs_max as f64 / lockstep.runs_max as f64
}

/// The policies that merge, and how many times as many runs each may have as in lockstep. A stack
/// is merged in large steps. So it may have twice the runs of its bound, and four. A bound that
/// holds for any data says nothing of these: then as many count as there are in lockstep. Levels
/// are merged in small steps.
fn merging() -> impl Iterator<Item = (Arc<dyn MergePolicy>, f64)> {
    let registry = Registry::builtin();
    let specs: Vec<&str> = registry.infos().iter().map(|info| info.name).collect();
    let more = ["leveled(ratio=4, pick=whole_level)", "leveled(ratio=8, l0=4)", "tiered(ratio=8)"];
    let policies = specs.into_iter().chain(more).map(move |spec| registry.build(spec).expect(spec));
    policies.filter_map(|policy| match policy.shape() {
        Shape::Unmerged => None,
        Shape::Stack { runs_max } => {
            let in_lockstep = Store::new(Arc::clone(&policy), f64::MAX).run().runs_max as u64;
            let bound = if runs_max > 64 { in_lockstep } else { runs_max };
            Some((policy, (2 * bound + 5) as f64 / in_lockstep as f64))
        }
        // It holds writers back by all of its runs, as stacks do.
        Shape::Tiered { .. } if policy.spec().name == "moose" => {
            let in_lockstep = Store::new(Arc::clone(&policy), f64::MAX).run().runs_max;
            Some((policy, (2 * in_lockstep + 5) as f64 / in_lockstep as f64))
        }
        Shape::Tiered { .. } => Some((policy, 2.5)),
        Shape::Leveled { .. } => Some((policy, 2.0)),
    })
}

#[test]
fn slow_merges_leave_few_runs() {
    for (policy, allowed) in merging() {
        for speed in [2.0, 10.0, 50.0, 200.0] {
            let excess = excess(&policy, speed);
            assert!(excess <= allowed, "{}, {speed}: {excess} of {allowed}", policy.spec());
        }
    }
}

/// A policy that never holds writers back.
#[derive(Debug)]
struct Careless(Arc<dyn MergePolicy>);

impl MergePolicy for Careless {
    fn spec(&self) -> Spec {
        self.0.spec()
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.0.choose_merge(view)
    }

    fn pressure(&self, _: &TreeView, _: &Load) -> f64 {
        0.0
    }

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}

#[test]
fn without_pressure_runs_pile_up() {
    // Policies that count in blocks keep memory, and so slow their own flushes.
    for (policy, allowed) in merging().filter(|(policy, _)| !policy.needs().blocks) {
        let spec = policy.spec();
        let careless: Arc<dyn MergePolicy> = Arc::new(Careless(policy));
        let excess = excess(&careless, 10.0);
        assert!(excess > allowed, "{spec}: {excess} of {allowed}");
    }
}

/// What broke: level 0 took ten runs more than `l0` before writers stopped, and so had them all the
/// time. Writers were no faster for it: merges set the pace.
#[test]
fn lookups_in_levels_cost_nearly_what_they_cost_in_lockstep() {
    for spec in ["leveled", "leveled(ratio=8)", "leveled(ratio=4, l0=4)"] {
        let lockstep = run(spec, f64::MAX);
        for (speed, allowed) in [(40.0, 1.6), (200.0, 1.35), (1000.0, 1.15)] {
            let free = run(spec, speed);
            let excess = free.runs_mean / lockstep.runs_mean;
            assert!(excess <= allowed, "{spec}, {speed}: {excess} of {allowed}");
            // The first thread has work nearly all the time. The second flushes.
            let busy = (free.cost - 1.0) * (FLUSHES * MEMTABLE_BYTES) as f64 / speed;
            assert!(free.micros < 1.1 * busy, "{spec}, {speed}: {} of {busy}", free.micros);
        }
    }
}
