//! The work that a free run leaves for later.

use crate::clock::Clock;
use lsmith_tree::Tree;
use serde::Serialize;

/// What merges owed during a free run. In lockstep they never owe anything when the next memtable
/// is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Debt {
    /// Seconds during which merges were owed: from the moment at which a tree at rest got a plan
    /// until it was at rest again, summed up.
    pub seconds: f64,
    /// The longest of these times.
    pub seconds_longest: f64,
    /// The number of these times.
    pub times: u64,
    /// Sealed memtables in memory when another one was sealed, averaged over these moments.
    pub memtables_waiting_mean: f64,
    /// The most of them.
    pub memtables_waiting_max: u64,
}

/// Measures [`Debt`].
#[derive(Debug)]
pub(crate) struct DebtMeter {
    clock: Clock,
    /// When the tree at rest got a plan, if it is not at rest.
    since: Option<f64>,
    seconds: f64,
    seconds_longest: f64,
    times: u64,
    waiting: u64,
    waiting_max: u64,
    sealed: u64,
}

impl DebtMeter {
    pub(crate) fn new() -> DebtMeter {
        DebtMeter {
            clock: Clock::start(),
            since: None,
            seconds: 0.0,
            seconds_longest: 0.0,
            times: 0,
            waiting: 0,
            waiting_max: 0,
            sealed: 0,
        }
    }

    /// Reports that a memtable was sealed, which `tree` has.
    pub(crate) fn sealed(&mut self, tree: &Tree) {
        let waiting = tree.memory().runs().len().saturating_sub(1) as u64;
        self.waiting += waiting;
        self.waiting_max = self.waiting_max.max(waiting);
        self.sealed += 1;
    }

    /// Reports that a plan was made.
    pub(crate) fn planned(&mut self) {
        self.since.get_or_insert(self.clock.seconds());
    }

    /// Reports that the tree is at rest.
    pub(crate) fn rest(&mut self) {
        let Some(since) = self.since.take() else { return };
        let seconds = self.clock.seconds() - since;
        self.seconds += seconds;
        self.seconds_longest = self.seconds_longest.max(seconds);
        self.times += 1;
    }

    pub(crate) fn debt(&self) -> Debt {
        let mean = if self.sealed == 0 { 0.0 } else { self.waiting as f64 / self.sealed as f64 };
        Debt {
            seconds: self.seconds,
            seconds_longest: self.seconds_longest,
            times: self.times,
            memtables_waiting_mean: mean,
            memtables_waiting_max: self.waiting_max,
        }
    }
}
