//! Turns the merge events of a store into figures.

use crate::debt::{Debt, DebtMeter};
use lsmith::{Event, Observer};
use lsmith_sim::{FigureCounter, Figures};
use lsmith_tree::Tree;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// When the store runs its merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Each write waits until the tree is at rest. The plans are those of a simulation.
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
/// In lockstep the meter samples the tree whenever it is at rest, as in a simulation. In free mode
/// the tree rarely rests, so the meter samples it when the next memtable is sealed. In lockstep
/// that would be the same tree. The last sample is taken when all merges have come to rest.
#[derive(Debug)]
pub(crate) struct Meter {
    mode: Mode,
    /// Logical bytes of all live entries, including the write in progress.
    live_bytes: AtomicU64,
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
    debt: DebtMeter,
    /// Bytes of all tables.
    table_bytes: u64,
}

impl MeterState {
    fn look(&mut self, tree: &Tree, live_bytes: u64) {
        self.figures.rest(tree);
        self.space.look(self.table_bytes, live_bytes);
    }
}

/// Bytes of tables on the device per live byte.
#[derive(Clone, Copy, Debug, Default)]
struct SpaceMeter {
    /// The maximum since the last sample.
    cost: f64,
    peak: f64,
    sum: f64,
    looks: u64,
}

/// The results of a [`Meter`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// The figures, in logical bytes.
    pub(crate) figures: Figures,
    /// Physical bytes of tables over logical bytes of live entries, at the worst moment.
    pub(crate) space_cost_peak: f64,
    /// The same at the worst moment of each flush, averaged over flushes.
    pub(crate) space_cost_mean: f64,
    /// What merges owed. `None` in lockstep.
    pub(crate) debt: Option<Debt>,
}

impl Meter {
    pub(crate) fn new(mode: Mode) -> Meter {
        let zero = || AtomicU64::new(0);
        let (live_bytes, requested_bytes, sealed) = (zero(), zero(), zero());
        let state = Mutex::new(MeterState {
            figures: FigureCounter::default(),
            space: SpaceMeter::default(),
            debt: DebtMeter::new(),
            table_bytes: 0,
        });
        Meter { mode, live_bytes, requested_bytes, sealed, state }
    }

    /// Sets the logical bytes that are live after the next write.
    pub(crate) fn set_live_bytes(&self, bytes: u64) {
        self.live_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Adds a write request for an entry of `bytes` logical bytes.
    pub(crate) fn request(&self, bytes: u64) {
        self.requested_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the number of sealed memtables.
    pub(crate) fn sealed(&self) -> u64 {
        self.sealed.load(Ordering::Relaxed)
    }

    /// Returns what was measured, once `tree` is at rest for good.
    pub(crate) fn measured(&self, tree: &Tree) -> Measured {
        let mut state = self.state.lock().expect("no observer panics");
        if self.mode == Mode::Free && self.sealed() > 0 {
            state.look(tree, self.live_bytes.load(Ordering::Relaxed));
        }
        let SpaceMeter { peak, sum, looks, .. } = state.space;
        Measured {
            figures: state.figures.figures(),
            space_cost_peak: peak,
            space_cost_mean: if looks == 0 { 0.0 } else { sum / looks as f64 },
            debt: (self.mode == Mode::Free).then(|| state.debt.debt()),
        }
    }
}

impl Observer for Meter {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        let live_bytes = self.live_bytes.load(Ordering::Relaxed);
        let mut state = self.state.lock().expect("no observer panics");
        match event {
            Event::Sealed { tree } => {
                if self.sealed.fetch_add(1, Ordering::Relaxed) > 0 && self.mode == Mode::Free {
                    state.look(tree, live_bytes);
                }
                state.debt.sealed(tree);
                state.figures.requested(self.requested_bytes.load(Ordering::Relaxed));
                state.figures.sealed(live_bytes);
            }
            Event::Planned { .. } => state.debt.planned(),
            Event::Committed { before, edit, bytes_at_peak, table_bytes, .. } => {
                state.figures.merge(before, edit);
                state.space.note(*bytes_at_peak, live_bytes);
                state.table_bytes = *table_bytes;
            }
            Event::Rest { tree, table_bytes } => {
                state.debt.rest();
                state.table_bytes = *table_bytes;
                if self.mode == Mode::Lockstep {
                    state.look(tree, live_bytes);
                }
            }
            _ => {}
        }
    }
}

impl SpaceMeter {
    fn note(&mut self, bytes: u64, live_bytes: u64) {
        if live_bytes > 0 {
            self.cost = self.cost.max(bytes as f64 / live_bytes as f64);
        }
    }

    fn look(&mut self, bytes: u64, live_bytes: u64) {
        self.note(bytes, live_bytes);
        self.peak = self.peak.max(self.cost);
        self.sum += self.cost;
        self.looks += 1;
        self.cost = 0.0;
    }
}
