//! The result of a simulation, and how it comes from events.

use crate::drive::Observer;
use crate::{Event, FigureCounter, Figures};
use lsmith_tree::Tree;

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The costs.
    pub figures: Figures,
    /// The bytes of each keyspace, if the workload describes a group; else empty.
    pub keyspaces: Vec<KeyspaceBytes>,
    /// The tree at the end, at rest.
    pub tree: Tree,
}

impl Simulation {
    /// Returns the logical bytes of each run on storage, oldest first.
    pub fn run_bytes_oldest_first(&self) -> Vec<u64> {
        self.tree.disk_runs().rev().map(|run| run.bytes()).collect()
    }

    /// Returns the logical bytes of each level on storage, level 0 (the newest) first.
    pub fn level_bytes(&self) -> Vec<u64> {
        self.tree.levels().iter().map(|level| level.bytes()).collect()
    }
}

/// The logical bytes of one keyspace of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceBytes {
    /// Bytes in sealed memtables.
    pub flushed: u64,
    /// Bytes of all flushes and merge outputs. A memtable that goes straight into a merge counts as
    /// flushed first, as in [`write_cost_system`](crate::Figures::write_cost_system).
    pub written: u64,
}

impl KeyspaceBytes {
    /// Returns the bytes written per byte flushed: the part of the keyspace in
    /// [`write_cost_system`](crate::Figures::write_cost_system). 0 if nothing was flushed.
    #[must_use]
    pub fn write_cost(&self) -> f64 {
        if self.flushed == 0 { 0.0 } else { self.written as f64 / self.flushed as f64 }
    }
}

/// Counts an event and forwards it. `live_bytes` are the live bytes at that moment.
pub(crate) fn counted(
    event: Event<'_>,
    live_bytes: u64,
    counter: &mut FigureCounter,
    observe: &mut Observer<'_>,
) {
    match event {
        Event::Sealed { .. } => counter.sealed(live_bytes),
        Event::Merge { tree, edit, .. } => counter.merge(tree, edit),
        Event::Rest { tree } => counter.rest(tree),
        Event::Flushed { .. } => {}
    }
    observe(event);
}
