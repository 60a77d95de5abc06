//! A fluid simulation, from its first write to its last.

use super::draw::{self, SEED};
use super::{FluidContent, FluidWorkload};
use crate::drive::Observer;
use crate::simulation::counted;
use crate::{Drive, Event, FigureCounter, SimError, Simulation};
use lsmith_policy::MergePolicy;
use lsmith_workload::Rng;
use std::sync::Arc;

/// Simulates the writes of a workload with fluid content and memtables of `memtable_bytes`, up to
/// the end of the workload or of its limit on flushes. Writes left in the active memtable are in no
/// figure.
///
/// # Errors
/// Fails if the policy proposes an illegal plan, or if it never rests. Fails for policies that keep
/// blocks if the blocks of the workload are not known.
pub fn simulate_fluid(
    policy: &Arc<dyn MergePolicy>,
    workload: &FluidWorkload,
    memtable_bytes: u64,
    observe: &mut Observer<'_>,
) -> Result<Simulation, SimError> {
    simulate_varied(policy, workload, memtable_bytes, &Variation::NONE, observe)
}

/// A change of the kind that chance makes. The difference that it makes to an answer shows how much
/// the answer depends on chance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variation {
    /// The seed of all random draws.
    pub(super) seed: u64,
    /// The bytes at which memtables are sealed, over the policy's. The policy does not know.
    pub(super) factor: f64,
    /// The standard deviation of these bytes, as a share of them.
    pub(super) spread: f64,
    /// The flushes after which the simulation ends, if the workload has as many.
    pub(super) flushes_max: u64,
}

impl Variation {
    const NONE: Variation =
        Variation { seed: SEED, factor: 1.0, spread: 0.0, flushes_max: u64::MAX };

    /// Returns the bytes at which to seal a memtable that should be sealed at `seal_bytes`.
    fn seal_bytes(&self, seal_bytes: u64, draws: &mut Rng) -> u64 {
        if self.spread == 0.0 {
            return (seal_bytes as f64 * self.factor) as u64;
        }
        let factor = self.factor * (1.0 + self.spread * draw::normal(draws));
        (seal_bytes as f64 * factor.max(0.0)) as u64
    }
}

/// Simulates as [`simulate_fluid`] does, with a change.
pub(super) fn simulate_varied(
    policy: &Arc<dyn MergePolicy>,
    workload: &FluidWorkload,
    memtable_bytes: u64,
    variation: &Variation,
    observe: &mut Observer<'_>,
) -> Result<Simulation, SimError> {
    if policy.needs().blocks {
        workload.check_blocks(memtable_bytes)?;
    }
    if policy.needs().reads {
        workload.check_reads()?;
    }
    let by_block = policy.needs().blocks;
    let content = FluidContent::drawn(workload.clone(), by_block, variation.seed).under(policy);
    let mut drive = Drive::new(Arc::clone(policy), content, memtable_bytes);
    let mut counter = FigureCounter::under(&**policy, workload.scan_items());
    let mut draws = Rng::new(variation.seed, 1);
    let mut seal_draws = Rng::new(variation.seed, 2);
    let mut writes = 0.0;
    let mut count = FullMemtableShare::default();
    let mut flushes = 0;
    let flushes_max = workload.flushes_max().min(variation.flushes_max);
    while flushes < flushes_max {
        let seal_bytes = policy.seal_bytes(drive.view());
        let seal_bytes = variation.seal_bytes(seal_bytes, &mut seal_draws);
        let from = writes;
        let draw = draw::normal(&mut draws);
        let end = workload.memtable_end(from, seal_bytes, draw);
        if by_block {
            let full = workload.memtable_end(from, memtable_bytes, draw).map(|end| end - from);
            count.add(end.unwrap_or(workload.writes()) - from, full);
        } else if end.is_some() {
            count.filled += 1.0;
        }
        // The limit on flushes may end in the middle of a small memtable.
        let is_beyond = count.filled > flushes_max as f64 + SHARE_ERROR;
        let until = end.filter(|_| !is_beyond);
        if let Some(until) = until {
            writes = until;
            let requested_bytes = workload.requested_bytes(writes) as u64;
            counter.requested(requested_bytes);
            drive.set_requested_bytes(requested_bytes);
            let live_bytes = workload.live_bytes(writes) as u64;
            counter.live_entries(workload.live_entries(writes) as u64);
            let id = drive.tree().next_table();
            let observe = &mut |event: Event<'_>| counted(event, live_bytes, &mut counter, observe);
            if by_block {
                let memory = drive.tree().memory().runs().to_vec();
                let folded = drive.content_mut().fold(id, from, until, &memory);
                drive.replace_memory(Some(folded), observe)?;
            } else {
                let memtable = drive.content_mut().memtable(id, from, until);
                drive.flush(memtable, observe)?;
            }
        }
        while flushes < count.whole().min(flushes_max) {
            flushes += 1;
            observe(Event::Flushed { tree: drive.tree() });
        }
        if until.is_none() {
            break;
        }
    }
    if by_block {
        counter.filled(flushes);
    }
    let keyspaces = Vec::new();
    Ok(Simulation { figures: counter.figures(), keyspaces, tree: drive.into_tree() })
}

/// The rounding error of a sum of shares of memtables.
const SHARE_ERROR: f64 = 1e-6;

/// The memtables that the writes so far would fill if each were sealed when full.
#[derive(Clone, Copy, Debug)]
struct FullMemtableShare {
    filled: f64,
    /// The writes that filled the last one.
    full_writes: f64,
}

impl Default for FullMemtableShare {
    fn default() -> FullMemtableShare {
        FullMemtableShare { filled: 0.0, full_writes: f64::INFINITY }
    }
}

impl FullMemtableShare {
    /// Adds `writes`. `full_writes` would fill a memtable; `None` if that is unknown, because the
    /// workload ends before.
    fn add(&mut self, writes: f64, full_writes: Option<f64>) {
        self.full_writes = full_writes.unwrap_or(self.full_writes);
        self.filled += writes / self.full_writes;
    }

    /// Returns the number of full memtables.
    fn whole(&self) -> u64 {
        (self.filled + SHARE_ERROR) as u64
    }
}
