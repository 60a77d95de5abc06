//! Finalists in fluid simulation.

use super::Choice;
use super::candidates::on_store;
use crate::profile::Profile;
use crate::simulate::{Content, simulate};
use anyhow::Result;
use lsmith_policy::Registry;
use lsmith_sim::FluidWorkload;
use serde::Serialize;

/// How many choices are simulated.
pub(super) const FINALISTS: usize = 3;

/// Flushes of a simulation: enough for every level of most trees, and a part of a second.
const FLUSHES_MAX: f64 = 800.0;

/// Bytes of all writes in a simulation, about. Only their ratio to a memtable matters, and what
/// lies below a key is noted every so many bytes.
const BYTES_MAX: f64 = 256e6;

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
pub(super) fn confirm(mut finalists: Vec<Choice>, profile: &Profile) -> Result<Vec<Choice>> {
    let Some(memtable_bytes) = finalists.first().map(|choice| choice.memtable_bytes) else {
        return Ok(finalists);
    };
    let flushes = profile.writes * profile.entry_bytes / memtable_bytes as f64;
    let memtable_bytes = (memtable_bytes as f64 * (flushes / FLUSHES_MAX).max(1.0)) as u64;
    let models = on_store(profile, memtable_bytes);
    let all_bytes = profile.writes * profile.entry_bytes;
    let entry_bytes = (profile.entry_bytes * (BYTES_MAX / all_bytes).min(1.0)).round().max(1.0);
    let simulated_bytes = memtable_bytes as f64 * entry_bytes / profile.entry_bytes;
    let (writes, entry_bytes) = (profile.writes as u64, entry_bytes as u64);
    for choice in &mut finalists {
        let Some(model) = models.iter().find(|model| model.policy == choice.policy) else {
            continue;
        };
        let policy = Registry::builtin().build(&choice.policy)?;
        let workload = FluidWorkload::drawn(profile.popularity.clone(), writes, entry_bytes);
        let content = Content::Fluid(&workload);
        let simulated = simulate(&policy, &content, simulated_bytes as u64, &mut |_| {})?;
        let costs = simulated.report.costs;
        choice.confirmed = Some(Confirmed {
            memtable_bytes,
            model_write_cost_system: model.costs.write_cost_system,
            fluid_write_cost_system: costs.write_cost_system,
            fluid_read_cost_mean: costs.read_cost_mean,
            fluid_space_cost_mean: costs.space_cost_mean,
        });
    }
    Ok(finalists)
}
