//! Turns the merge events of a store into figures.

use crate::debt::{Debt, DebtMeter};
use lsmith::{Event, Observer};
use lsmith_policy::MergePolicy;
use lsmith_sim::{FigureCounter, Figures};
use lsmith_tree::Tree;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// When the store runs its merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Each write waits until the tree is at rest. Merges follow the same plans as in a simulation.
    #[default]
    Lockstep,
    /// Merges run in parallel with writes, which is faster.
    Free,
}

impl Mode {
    /// Returns the name of the mode in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Lockstep => "lockstep",
            Mode::Free => "free",
        }
    }
}

/// Counts the events of one store.
///
/// In lockstep the meter samples the tree at rest once for each sealed memtable, as a simulation
/// does. In free mode the tree rarely rests, so the meter samples it when the next memtable is
/// sealed. The last sample is taken when all merges have come to rest.
#[derive(Debug)]
pub(crate) struct Meter {
    mode: Mode,
    /// Logical bytes of all live entries, including the write in progress.
    live_bytes: AtomicU64,
    /// The number of live entries, including the write in progress.
    live_entries: AtomicU64,
    /// Logical bytes of all write requests, including the one in progress.
    requested_bytes: AtomicU64,
    /// The number of sealed memtables.
    sealed: AtomicU64,
    state: Mutex<MeterState>,
}

#[derive(Debug)]
struct MeterState {
    figures: FigureCounter,
    space: SpaceMeter,
    /// In lockstep the tree after the last seal, until it is sampled at rest. The store reports no
    /// rest if the policy had no plan; this tree was then at rest.
    unsampled: Option<Tree>,
    /// Bytes of all tables after the last event that says.
    table_bytes: u64,
    debt: DebtMeter,
}

/// Physical bytes of tables, and bytes in memory, per live byte.
#[derive(Clone, Copy, Debug, Default)]
struct SpaceMeter {
    /// Logical bytes of all live entries up to the last sealed memtable.
    live_bytes: u64,
    peak: f64,
    sum: f64,
    samples: u64,
}

/// The results of a [`Meter`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// The figures, in logical bytes.
    pub(crate) figures: Figures,
    /// The physical bytes of tables and the bytes in sealed memtables over the logical bytes of
    /// live entries, at the worst moment.
    pub(crate) space_cost_physical_peak: f64,
    /// The same at rest after a flush, averaged over flushes.
    pub(crate) space_cost_physical_mean: f64,
    /// What merges owed. `None` in lockstep.
    pub(crate) debt: Option<Debt>,
}

impl Meter {
    /// Returns a meter of a store under `policy`, for range reads of `scan_items` entries.
    pub(crate) fn new(mode: Mode, policy: &dyn MergePolicy, scan_items: f64) -> Meter {
        let zero = || AtomicU64::new(0);
        let live_bytes = zero();
        let live_entries = zero();
        let requested_bytes = zero();
        let sealed = zero();
        let state = Mutex::new(MeterState {
            unsampled: None,
            figures: FigureCounter::under(policy, scan_items),
            space: SpaceMeter::default(),
            debt: DebtMeter::new(),
            table_bytes: 0,
        });
        Meter { mode, live_bytes, live_entries, requested_bytes, sealed, state }
    }

    /// Sets the logical bytes and the number of entries that are live after the next write.
    pub(crate) fn set_live(&self, bytes: u64, entries: u64) {
        self.live_bytes.store(bytes, Ordering::Relaxed);
        self.live_entries.store(entries, Ordering::Relaxed);
    }

    /// Adds a write request for an entry of `bytes` logical bytes.
    pub(crate) fn request(&self, bytes: u64) {
        self.requested_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the number of sealed memtables.
    pub(crate) fn sealed(&self) -> u64 {
        self.sealed.load(Ordering::Relaxed)
    }

    /// Reports the flushes under a policy that counts in blocks.
    pub(crate) fn set_filled(&self, memtables: u64) {
        self.state.lock().expect("no observer panics").figures.filled(memtables);
    }

    /// Returns what was measured, once `tree` is at rest for good.
    pub(crate) fn measured(&self, tree: &Tree) -> Measured {
        let mut state = self.state.lock().expect("no observer panics");
        if self.mode == Mode::Free && self.sealed() > 0 {
            state.sample(tree);
        }
        state.sample_unsampled();
        let SpaceMeter { peak, sum, samples, .. } = state.space;
        Measured {
            figures: state.figures.figures(),
            space_cost_physical_peak: peak,
            space_cost_physical_mean: if samples == 0 { 0.0 } else { sum / samples as f64 },
            debt: (self.mode == Mode::Free).then(|| state.debt.debt()),
        }
    }
}

impl Observer for Meter {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        let mut state = self.state.lock().expect("no observer panics");
        match event {
            Event::Sealed { tree } => {
                if self.mode == Mode::Lockstep {
                    state.sample_unsampled();
                    state.unsampled = Some((*tree).clone());
                }
                let is_first = self.sealed.fetch_add(1, Ordering::Relaxed) == 0;
                state.debt.sealed(tree);
                state.figures.requested(self.requested_bytes.load(Ordering::Relaxed));
                let live_bytes = self.live_bytes.load(Ordering::Relaxed);
                state.figures.sealed(live_bytes);
                state.figures.live_entries(self.live_entries.load(Ordering::Relaxed));
                state.space.live_bytes = live_bytes;
                if self.mode == Mode::Free && !is_first {
                    state.sample(tree);
                }
            }
            Event::Planned { .. } => state.debt.planned(),
            Event::Committed { before, edit, bytes_at_peak, table_bytes, .. } => {
                state.figures.merge(before, edit);
                let memory_bytes = before.memory().bytes().saturating_sub(edit.flushed.bytes);
                state.space.cost(*bytes_at_peak + memory_bytes);
                state.table_bytes = *table_bytes;
            }
            Event::Rest { tree, table_bytes } => {
                state.debt.rest();
                state.table_bytes = *table_bytes;
                if state.unsampled.take().is_some() {
                    state.sample(tree);
                }
            }
            _ => {}
        }
    }
}

impl MeterState {
    fn sample(&mut self, tree: &Tree) {
        self.figures.rest(tree);
        self.space.sample(self.table_bytes + tree.memory().bytes());
    }

    fn sample_unsampled(&mut self) {
        if let Some(tree) = self.unsampled.take() {
            self.sample(&tree);
        }
    }
}

impl SpaceMeter {
    /// Returns the space cost of `bytes`, which may be a new peak. `None` if nothing is live.
    fn cost(&mut self, bytes: u64) -> Option<f64> {
        let cost = (self.live_bytes > 0).then(|| bytes as f64 / self.live_bytes as f64)?;
        self.peak = self.peak.max(cost);
        Some(cost)
    }

    fn sample(&mut self, bytes: u64) {
        if let Some(cost) = self.cost(bytes) {
            self.sum += cost;
            self.samples += 1;
        }
    }
}
