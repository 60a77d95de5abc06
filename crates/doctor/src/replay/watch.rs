//! Watching a replay.

use lsmith_sim::Event;

/// Follows a replay. Each policy is played from the first flush to the last.
pub trait Watch {
    /// A column family is replayed next.
    fn begin_family(&mut self, _name: &str) {}

    /// A policy of `store` is played next, over `flushes` flushes. Keys are the numbers below
    /// `keys`.
    fn begin(&mut self, _store: &str, _policy: &str, _flushes: u64, _keys: u64) {}

    /// So many flushes have been played.
    fn advance(&mut self, _done: u64) {}

    /// The tree has changed.
    fn observe(&mut self, _event: Event<'_>) {}
}

/// Nobody watches.
impl Watch for () {}
