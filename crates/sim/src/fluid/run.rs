//! A fluid simulation, from its first write to its last.

use super::{FluidContent, FluidWorkload, draw};
use crate::drive::Observer;
use crate::simulate::counted;
use crate::{Drive, Event, FigureCounter, SimError, Simulation};
use lsmith_policy::MergePolicy;
use lsmith_workload::Rng;
use std::sync::Arc;

/// The seed of all random draws, so that a simulation always gives the same result.
pub(super) const SEED: u64 = 1;

/// Simulates the writes of a workload with fluid content and memtables of `memtable_bytes`, up to
/// the end of the workload or of its limit on flushes. Writes left in the active memtable are in no
/// figure.
///
/// # Errors
/// Fails if the policy proposes an illegal plan or one that fluid content cannot carry out, or if
/// it never rests. Fails for policies that keep blocks if the blocks of the workload are not known.
pub fn simulate_fluid(
    policy: &Arc<dyn MergePolicy>,
    workload: &FluidWorkload,
    memtable_bytes: u64,
    observe: &mut Observer<'_>,
) -> Result<Simulation, SimError> {
    if policy.needs().blocks {
        workload.check_blocks()?;
    }
    let content = FluidContent::new(workload.clone(), policy.needs().blocks);
    let mut drive = Drive::new(Arc::clone(policy), content, memtable_bytes);
    let mut counter = FigureCounter::new();
    let mut draws = Rng::new(SEED, 1);
    let mut writes = 0.0;
    let mut sealed = 0;
    while sealed < workload.flushes_max() {
        let seal_bytes = policy.seal_bytes(drive.view());
        let from = writes;
        let Some(until) = workload.memtable_end(from, seal_bytes, draw::normal(&mut draws)) else {
            break;
        };
        writes = until;
        sealed += 1;
        counter.requested(workload.requested_bytes(writes) as u64);
        let live_bytes = workload.live_bytes(writes) as u64;
        let id = drive.tree().next_table();
        let observe = &mut |event: Event<'_>| counted(event, live_bytes, &mut counter, observe);
        if policy.needs().blocks {
            let memory = drive.tree().memory().runs().to_vec();
            let folded = drive.content_mut().fold(id, from, until, &memory);
            drive.replace_memory(Some(folded), observe)?;
        } else {
            let memtable = drive.content_mut().memtable(id, from, until);
            drive.flush(memtable, observe)?;
        }
    }
    Ok(Simulation { figures: counter.figures(), tree: drive.into_tree() })
}
