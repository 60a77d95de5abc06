//! What a store tells of its merges, as figures.

use lsmith::{Event, Observer};
use lsmith_sim::{FigureCounter, Figures};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the store takes its merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Each write waits until the tree has come to rest: the same plans as in a simulation.
    #[default]
    Lockstep,
    /// Merges run beside the writes: for speed.
    Free,
}

impl Mode {
    /// The name of the mode in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Lockstep => "lockstep",
            Mode::Free => "free",
        }
    }
}

/// Listens to one store and counts.
///
/// In lockstep a tree is looked at whenever it has come to rest, as in a simulation. In free mode
/// it rarely rests, so it is looked at whenever a memtable has left memory.
#[derive(Debug)]
pub(crate) struct Meter {
    mode: Mode,
    /// Logical bytes of all newest versions that are not deleted, the write under way included.
    live_bytes: AtomicU64,
    /// Logical bytes of all requests that write, the one under way included.
    requested_bytes: AtomicU64,
    /// Memtables sealed.
    sealed: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    figures: FigureCounter,
    space: SpaceMeter,
}

/// Bytes of tables on the device over live bytes.
#[derive(Clone, Copy, Debug, Default)]
struct SpaceMeter {
    /// The most since the tree was last looked at.
    cost: f64,
    peak: f64,
    sum: f64,
    looks: u64,
}

/// What a [`Meter`] has counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// In logical bytes.
    pub(crate) figures: Figures,
    /// Physical bytes of tables over logical bytes of live entries, at the worst moment.
    pub(crate) space_cost_peak: f64,
    /// The worst moment of each flush, averaged.
    pub(crate) space_cost_mean: f64,
}

impl Meter {
    pub(crate) fn new(mode: Mode) -> Meter {
        let zero = || AtomicU64::new(0);
        let (live_bytes, requested_bytes, sealed) = (zero(), zero(), zero());
        Meter { mode, live_bytes, requested_bytes, sealed, state: Mutex::default() }
    }

    /// Notes how much will be live once the write that comes next is done.
    pub(crate) fn set_live_bytes(&self, bytes: u64) {
        self.live_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Notes that a request is to write an entry of so many logical bytes.
    pub(crate) fn request(&self, bytes: u64) {
        self.requested_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How many memtables have been sealed.
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
