//! Turns the merge events of a store into figures.

use lsmith::{Event, Observer};
use lsmith_sim::{FigureCounter, Figures};
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
/// the tree rarely rests, so the meter samples it whenever a memtable has left memory.
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

#[derive(Debug, Default)]
struct MeterState {
    figures: FigureCounter,
    space: SpaceMeter,
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
}

impl Meter {
    pub(crate) fn new(mode: Mode) -> Meter {
        let zero = || AtomicU64::new(0);
        let (live_bytes, requested_bytes, sealed) = (zero(), zero(), zero());
        Meter { mode, live_bytes, requested_bytes, sealed, state: Mutex::default() }
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

    pub(crate) fn measured(&self) -> Measured {
        let state = self.state.lock().expect("no observer panics");
        let SpaceMeter { peak, sum, looks, .. } = state.space;
        Measured {
            figures: state.figures.figures(),
            space_cost_peak: peak,
            space_cost_mean: if looks == 0 { 0.0 } else { sum / looks as f64 },
        }
    }
}

impl Observer for Meter {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        let live_bytes = self.live_bytes.load(Ordering::Relaxed);
        let mut state = self.state.lock().expect("no observer panics");
        match event {
            Event::Sealed { .. } => {
                self.sealed.fetch_add(1, Ordering::Relaxed);
                state.figures.requested(self.requested_bytes.load(Ordering::Relaxed));
                state.figures.sealed(live_bytes);
            }
            Event::Committed { before, edit, tree, bytes_at_peak, table_bytes, .. } => {
                state.figures.merge(before, edit);
                state.space.note(*bytes_at_peak, live_bytes);
                if self.mode == Mode::Free && edit.flushes > 0 {
                    state.figures.rest(tree);
                    state.space.look(*table_bytes, live_bytes);
                }
            }
            Event::Rest { tree, table_bytes } if self.mode == Mode::Lockstep => {
                state.figures.rest(tree);
                state.space.look(*table_bytes, live_bytes);
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
