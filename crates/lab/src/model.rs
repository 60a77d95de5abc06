//! Formulas, with the units and names of reports.

use crate::clock::Clock;
use lsmith_model::formulas::evaluate;
use lsmith_model::{Level, Model, Popularity, Setting};
use lsmith_spec::{Spec, SpecError};
use serde::Serialize;

pub use lsmith_model::formulas::{FormulaInfo, formulas};

/// What a formula is evaluated for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelSettings {
    /// Keys there are.
    pub keys: u64,
    /// Skew of a Zipf distribution of requests over keys, 0 to 1.6; 0 for all equally often.
    pub zipf: f64,
    /// Logical bytes of an entry.
    pub item_bytes: u64,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// Requests in all, for costs that grow with them.
    pub requests: u64,
    /// Bits of filter per key; 0 for none.
    pub filter_bits: f64,
}

/// A part of the write cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelStage {
    /// What is written.
    pub name: String,
    /// Bytes written per byte of requests.
    pub cost: f64,
    /// Bytes read for it per byte of requests.
    pub reads: f64,
}

/// Runs that a lookup looks into.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PointRead {
    /// For a key that is there, keys being looked up as often as they are written.
    pub hit: f64,
    /// For a key that is not.
    pub miss: f64,
}

/// What a formula says of a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Modelled {
    /// The formula, as it was spelled.
    pub policy: String,
    /// Keys there are.
    pub keys: u64,
    /// Skew of the Zipf distribution.
    pub zipf: f64,
    /// Logical bytes of an entry.
    pub item_bytes: u64,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// Bytes written, the log included, per byte of requests.
    pub write_cost_user: f64,
    /// Flushes and outputs of merges per byte flushed.
    pub write_cost_system: f64,
    /// The parts of `write_cost_user`.
    pub stages: Vec<ModelStage>,
    /// Runs that a lookup must consider, mean over time.
    pub read_cost_mean: f64,
    /// Runs that a lookup looks into, with filters.
    pub point_read: PointRead,
    /// Runs that a range read looks into.
    pub range_read: f64,
    /// Bytes of all runs over those of live entries, mean over time.
    pub space_cost_mean: f64,
    /// Bytes of the levels, newest first, memory not counted.
    pub level_sizes: Vec<f64>,
    /// Runs of the levels, newest first, mean over time.
    pub level_runs: Vec<f64>,
    /// Seconds that it took.
    pub seconds: f64,
}

/// What the formula that `policy` names says.
///
/// # Errors
/// The spec cannot be read, no formula has that name, or a value is out of range.
pub fn model(policy: &str, settings: &ModelSettings) -> Result<Modelled, SpecError> {
    let clock = Clock::start();
    let spec: Spec = policy.parse()?;
    let popularity = Popularity::zipf(settings.keys, settings.zipf)
        .map_err(|error| SpecError::conflict(error.to_string()))?;
    let item_bytes = settings.item_bytes as f64;
    let setting = Setting {
        popularity: &popularity,
        memtable: settings.memtable_bytes as f64 / item_bytes,
        item_bytes,
        requests: settings.requests as f64,
        false_positives: false_positives(settings.filter_bits),
    };
    let model = evaluate(&spec, &setting)?;
    Ok(modelled(&spec, settings, &setting, &model, &clock))
}

fn modelled(
    spec: &Spec,
    settings: &ModelSettings,
    setting: &Setting<'_>,
    model: &Model,
    clock: &Clock,
) -> Modelled {
    let reads = model.reads(setting);
    let bytes = |level: &Level| level.size * setting.item_bytes;
    Modelled {
        policy: spec.to_string(),
        keys: settings.keys,
        zipf: settings.zipf,
        item_bytes: settings.item_bytes,
        memtable_bytes: settings.memtable_bytes,
        write_cost_user: model.write_cost_user(),
        write_cost_system: model.write_cost_system(),
        stages: model
            .stages
            .iter()
            .map(|stage| ModelStage {
                name: stage.name.clone(),
                cost: stage.writes,
                reads: stage.reads,
            })
            .collect(),
        read_cost_mean: reads.runs,
        point_read: PointRead { hit: reads.point_hit, miss: reads.point_miss },
        range_read: reads.range,
        space_cost_mean: model.space_cost,
        level_sizes: model.levels.iter().map(bytes).collect(),
        level_runs: model.levels.iter().map(|level| level.runs).collect(),
        seconds: clock.seconds(),
    }
}

/// The share of absent keys that a Bloom filter with the best number of probes lets through.
pub(crate) fn false_positives(bits_per_key: f64) -> f64 {
    (-bits_per_key * std::f64::consts::LN_2 * std::f64::consts::LN_2).exp()
}
