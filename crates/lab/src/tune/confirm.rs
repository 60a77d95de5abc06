//! Confirms finalists by fluid simulation.

use super::Choice;
use super::candidates::costs_of;
use super::stacks::Stack;
use crate::profile::Profile;
use crate::simulate::{Content, simulate};
use anyhow::Result;
use lsmith_policy::Registry;
use lsmith_sim::{FluidWorkload, SimError};
use serde::Serialize;

/// The number of choices that are simulated.
pub(super) const FINALISTS: usize = 3;

/// The scale of a simulation. Only ratios matter, so entries may be made smaller to save time.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// The number of memtables of all writes.
    flushes_max: f64,
    /// The approximate bytes of all writes. The number of profile points grows with them.
    bytes_max: f64,
    /// The most writes that are simulated; further ones are cut off.
    writes_max: f64,
}

/// Fills every level of most trees, and takes a part of a second.
const SCALE: Scale = Scale { flushes_max: 800.0, bytes_max: 256e6, writes_max: f64::INFINITY };

/// The same for policies that count in blocks, which take longer.
const SCALE_BLOCKS: Scale = Scale { flushes_max: 60.0, bytes_max: 16e6, writes_max: 16e6 };

/// The costs of a choice by fluid simulation and by formula, both with the same memtable. The
/// memtable is larger than the chosen one if there would be too many flushes. Choices are ranked by
/// the write cost of the formula times the ratio of the two; reads and space use the formula.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Confirmed {
    /// Logical bytes at which a memtable was sealed.
    pub memtable_bytes: u64,
    /// The write cost by formula.
    pub model_write_cost_system: f64,
    /// The write cost by simulation.
    pub fluid_write_cost_system: f64,
    /// The runs by simulation, averaged over flushes.
    pub fluid_read_cost_mean: f64,
    /// Bytes held per live byte by simulation, averaged over flushes.
    pub fluid_space_cost_mean: Option<f64>,
}

impl Confirmed {
    /// Returns the factor that corrects the formula's write cost.
    pub(super) fn correction(&self) -> f64 {
        self.fluid_write_cost_system / self.model_write_cost_system
    }
}

/// Returns the same choices with their simulations.
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
        let simulated = match simulate(&policy, &content, simulated_bytes as u64, &mut |_| {}) {
            // Entries too large for expected sizes.
            Err(SimError::FewEntries { .. }) => continue,
            simulated => simulated?,
        };
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
