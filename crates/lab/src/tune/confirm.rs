//! Finalists in fluid simulation.

use super::Choice;
use super::candidates::costs_of;
use super::stacks::Stack;
use crate::profile::Profile;
use crate::simulate::{Content, simulate};
use anyhow::Result;
use lsmith_policy::Registry;
use lsmith_sim::FluidWorkload;
use serde::Serialize;

/// How many choices are simulated.
pub(super) const FINALISTS: usize = 3;

/// How large a simulation is. Only ratios matter: an entry is made smaller where that takes less.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Memtables of all writes.
    flushes_max: f64,
    /// Bytes of all writes, about: what lies below a key is noted every so many bytes.
    bytes_max: f64,
    /// The first writes that are made, if there are more.
    writes_max: f64,
}

/// Enough for every level of most trees, and a part of a second.
const SCALE: Scale = Scale { flushes_max: 800.0, bytes_max: 256e6, writes_max: f64::INFINITY };

/// The same of policies that count in blocks, which take longer.
const SCALE_BLOCKS: Scale = Scale { flushes_max: 60.0, bytes_max: 16e6, writes_max: 16e6 };

/// What a fluid simulation says beside the formula, both with the same memtable. That is larger
/// than the one that was chosen where there would be too many flushes. Reads and space go by the
/// formula; the write cost that choices are ranked by is corrected by what the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Confirmed {
    /// Logical bytes at which a memtable was sealed.
    pub memtable_bytes: u64,
    /// By formula.
    pub model_write_cost_system: f64,
    /// By simulation.
    pub fluid_write_cost_system: f64,
    /// Runs by simulation, mean over flushes.
    pub fluid_read_cost_mean: f64,
    /// Bytes held per live byte by simulation, mean over flushes.
    pub fluid_space_cost_mean: Option<f64>,
}

impl Confirmed {
    /// What the write cost is to be multiplied with.
    pub(super) fn correction(&self) -> f64 {
        self.fluid_write_cost_system / self.model_write_cost_system
    }
}

/// The same choices with what simulations say.
pub(super) fn confirm(
    mut finalists: Vec<Choice>,
    profile: &Profile,
    stacks: &[Stack],
) -> Result<Vec<Choice>> {
    let Some(memtable_bytes) = finalists.first().map(|choice| choice.memtable_bytes) else {
        return Ok(finalists);
    };
    for choice in &mut finalists {
        let policy = Registry::builtin().build(&choice.policy)?;
        let scale = if policy.needs().blocks { SCALE_BLOCKS } else { SCALE };
        let profile = &profile.at((scale.writes_max / profile.writes).min(1.0));
        let all_bytes = profile.writes * profile.entry_bytes;
        let larger = (all_bytes / memtable_bytes as f64 / scale.flushes_max).max(1.0);
        let memtable_bytes = (memtable_bytes as f64 * larger) as u64;
        let smaller = (scale.bytes_max / all_bytes).min(1.0);
        let entry_bytes = (profile.entry_bytes * smaller).round().max(1.0);
        let simulated_bytes = memtable_bytes as f64 * entry_bytes / profile.entry_bytes;
        let spec = choice.policy.parse()?;
        let Some(model) = costs_of(&spec, profile, memtable_bytes, stacks) else { continue };
        let (writes, entry_bytes) = (profile.writes as u64, entry_bytes as u64);
        let workload = FluidWorkload::drawn(profile.popularity.clone(), writes, entry_bytes);
        let content = Content::Fluid(&workload);
        let simulated = simulate(&policy, &content, simulated_bytes as u64, &mut |_| {})?;
        let costs = simulated.report.costs;
        choice.confirmed = Some(Confirmed {
            memtable_bytes,
            model_write_cost_system: model.write_cost_system,
            fluid_write_cost_system: costs.write_cost_system,
            fluid_read_cost_mean: costs.read_cost_mean,
            fluid_space_cost_mean: costs.space_cost_mean,
        });
    }
    Ok(finalists)
}
