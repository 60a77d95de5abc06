//! Whole simulations: a policy, its input, and what came of it.

use crate::drive::Observer;
use crate::{Content, Drive, Event, FigureCounter, Figures, SimError, UnitContent};
use lsmith_policy::MergePolicy;
use lsmith_tree::{Slice, Tree};
use std::sync::Arc;

/// What came of a simulation.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// What it has cost.
    pub figures: Figures,
    /// The tree at the end, at rest.
    pub tree: Tree,
}

impl Simulation {
    /// Logical bytes of each run on storage, oldest first.
    pub fn run_bytes_oldest_first(&self) -> Vec<u64> {
        self.tree.disk_runs().rev().map(|run| run.bytes()).collect()
    }

    /// Logical bytes of each level on storage, level 0 (the newest) first.
    pub fn level_bytes(&self) -> Vec<u64> {
        self.tree.levels().iter().map(|level| level.bytes()).collect()
    }
}

/// Seals `memtable` while `live_bytes` are live, settles, and counts what it costs.
pub(crate) fn flush<C: Content>(
    drive: &mut Drive<C>,
    memtable: Slice,
    live_bytes: u64,
    counter: &mut FigureCounter,
    observe: &mut Observer<'_>,
) -> Result<(), SimError> {
    drive.flush(memtable, &mut |event| {
        match event {
            Event::Sealed { .. } => counter.sealed(live_bytes),
            Event::Merge { tree, edit, .. } => counter.merge(tree, edit),
            Event::Rest { tree } => counter.rest(tree),
        }
        observe(event);
    })
}

/// Flushes memtables of the given sizes in bytes, in unit content: `repeat_n(UNIT_BYTES, 1000)`
/// for a thousand flushes of size one. `memtable_bytes` is the capacity that the policy is told.
///
/// # Errors
/// The policy proposes an illegal plan or never comes to rest.
pub fn simulate_unit(
    policy: &Arc<dyn MergePolicy>,
    flush_bytes: impl IntoIterator<Item = u64>,
    memtable_bytes: u64,
    observe: &mut Observer<'_>,
) -> Result<Simulation, SimError> {
    let content = UnitContent::of(&**policy);
    let mut drive = Drive::new(Arc::clone(policy), content, memtable_bytes);
    let mut counter = FigureCounter::new();
    let mut live_bytes = 0;
    for bytes in flush_bytes {
        live_bytes += bytes;
        let memtable = UnitContent::memtable(drive.tree(), bytes);
        flush(&mut drive, memtable, live_bytes, &mut counter, observe)?;
    }
    Ok(Simulation { figures: counter.figures(), tree: drive.into_tree() })
}
