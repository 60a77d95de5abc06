//! Evaluates formulas, with the units and names of reports.

use crate::clock::Clock;
use crate::scans::ScanCosts;
use lsmith_model::formulas::{bound, evaluate, ignored};
use lsmith_model::{Bound, Ignored, KeyOrder, Level, Model, Popularity, Setting};
use lsmith_spec::{Spec, SpecError};
use serde::Serialize;

pub use lsmith_model::formulas::{FormulaInfo, formulas};

/// The input of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelSettings {
    /// Keys there are.
    pub keys: u64,
    /// The Zipf skew of requests over keys, 0 to 1.6; with 0 all keys are equally likely.
    pub zipf: f64,
    /// Logical bytes of an entry.
    pub item_bytes: u64,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// The total number of requests, for costs that grow with it.
    pub requests: u64,
    /// Filter bits per key; 0 means no filter.
    pub filter_bits: f64,
    /// The number of entries of a range read.
    pub scan_items: u64,
    /// True if each key is written once, in ascending order; `zipf` must be 0.
    pub is_sequential: bool,
}

/// A part of the write cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelStage {
    /// The name of the stage.
    pub name: String,
    /// Bytes written per byte of requests.
    pub cost: f64,
    /// Bytes read for the stage per byte of requests.
    pub reads: f64,
}

/// The runs that a lookup reads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PointRead {
    /// For present keys, each looked up as often as it is written.
    pub hit: f64,
    /// For absent keys.
    pub miss: f64,
}

/// The costs of a policy by formula.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Modelled {
    /// The spec of the formula, as given.
    pub policy: String,
    /// Keys there are.
    pub keys: u64,
    /// The skew of the Zipf distribution.
    pub zipf: f64,
    /// Logical bytes of an entry.
    pub item_bytes: u64,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// `upper` or `lower`, if the write costs are a bound.
    pub bound: Option<&'static str>,
    /// What the formula does not know of the requests: `popularity` or `key order`.
    pub ignores: Vec<&'static str>,
    /// Bytes written, the log included, per byte of requests.
    pub write_cost_user: f64,
    /// Flushes and outputs of merges per byte flushed.
    pub write_cost_system: f64,
    /// The parts of `write_cost_user`.
    pub stages: Vec<ModelStage>,
    /// The runs that a lookup must consider, averaged over time.
    pub read_cost_mean: f64,
    /// The runs that a lookup reads, with filters.
    pub point_read: PointRead,
    /// The runs that a range read reads.
    pub range_read: f64,
    /// The runs, and the data blocks in them, that a range read must look at.
    pub scan_cost_mean: ScanCosts,
    /// The number of entries of this range read.
    pub scan_items: u64,
    /// Bytes of all runs per byte of live entries, averaged over time, at rest: without outputs of
    /// merges under way.
    pub space_cost_mean: f64,
    /// Bytes of the levels, newest first, without memory.
    pub level_sizes: Vec<f64>,
    /// Runs of the levels, newest first, averaged over time.
    pub level_runs: Vec<f64>,
    /// The seconds that the evaluation took.
    pub seconds: f64,
}

/// Numbers of keys and of the requests that lead to them, as expected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyCounts {
    /// Keys there are.
    pub keys: u64,
    /// The skew of the Zipf distribution.
    pub zipf: f64,
    /// Different keys among so many requests.
    pub unique: Vec<KeyCount>,
    /// A merge of runs.
    pub merge: Option<MergedKeys>,
    /// Levels, and the requests between two sweeps over each.
    pub interval: Vec<KeyCount>,
}

/// Keys, and the requests that belong to them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KeyCount {
    /// Requests. Infinite (`null` in JSON) if no number of requests leads to so many keys.
    pub requests: f64,
    /// Different keys.
    pub keys: f64,
}

/// The keys of a merge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MergedKeys {
    /// The merged runs, each with the requests after which a run has so many keys.
    pub inputs: Vec<KeyCount>,
    /// Different keys of all of them.
    pub keys: f64,
}

/// Computes what [`KeyCounts`] says, for `keys` keys that are requested by a Zipf distribution:
/// `unique`, its inverse, `merge` and the interval of Lim et al., FAST 2016. The numbers are
/// requests, then keys of runs, then keys of levels.
///
/// # Errors
/// Fails if the skew is out of range, or a run or level has more keys than there are.
pub fn key_counts(
    keys: u64,
    zipf: f64,
    [requests, runs, levels]: [&[u64]; 3],
) -> Result<KeyCounts, SpecError> {
    let popularity =
        Popularity::zipf(keys, zipf).map_err(|error| SpecError::conflict(error.to_string()))?;
    if let Some(many) = runs.iter().chain(levels).find(|count| **count > keys) {
        let message = format!("a run of {many} keys: expected at most {keys}, all keys there are");
        return Err(SpecError::conflict(message));
    }
    let unique = |requests: &u64| {
        let requests = *requests as f64;
        KeyCount { requests, keys: popularity.unique(requests) }
    };
    let input = |run: &u64| {
        let keys = *run as f64;
        KeyCount { requests: popularity.inverse(keys), keys }
    };
    let level = |level: &u64| {
        let keys = *level as f64;
        KeyCount { requests: popularity.interval(keys), keys }
    };
    let sizes: Vec<f64> = runs.iter().map(|run| *run as f64).collect();
    Ok(KeyCounts {
        keys,
        zipf,
        unique: requests.iter().map(unique).collect(),
        merge: (!runs.is_empty()).then(|| MergedKeys {
            inputs: runs.iter().map(input).collect(),
            keys: popularity.merge(&sizes),
        }),
        interval: levels.iter().map(level).collect(),
    })
}

/// Evaluates the formula that `policy` names.
///
/// # Errors
/// Fails if the spec is malformed, no formula has that name, or a value is out of range.
pub fn model(policy: &str, settings: &ModelSettings) -> Result<Modelled, SpecError> {
    let clock = Clock::start();
    let spec: Spec = policy.parse()?;
    let drawn = match (settings.is_sequential, settings.zipf == 0.0) {
        (true, true) => Popularity::unshared(settings.keys),
        (true, false) => {
            let message = "zipf: keys in sequential order are written once; expected skew 0";
            return Err(SpecError::conflict(message));
        }
        (false, _) => Popularity::zipf(settings.keys, settings.zipf),
    };
    let popularity = drawn.map_err(|error| SpecError::conflict(error.to_string()))?;
    let item_bytes = settings.item_bytes as f64;
    let setting = Setting {
        popularity: &popularity,
        memtable: settings.memtable_bytes as f64 / item_bytes,
        item_bytes,
        requests: match settings.is_sequential {
            true => settings.requests.min(settings.keys) as f64,
            false => settings.requests as f64,
        },
        false_positives: false_positives(settings.filter_bits),
        loaded: 0.0,
        order: if settings.is_sequential { KeyOrder::Ascending } else { KeyOrder::Random },
    };
    let model = evaluate(&spec, &setting)?;
    let answer = Modelled {
        bound: bound(&spec, &setting)?.map(Bound::name),
        ignores: ignored(&spec, &setting)?.into_iter().map(Ignored::name).collect(),
        ..modelled(&spec, settings, &setting, &model, &clock)
    };
    Ok(answer)
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
        bound: None,
        ignores: Vec::new(),
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
        scan_cost_mean: ScanCosts::of_formula(model, setting, settings.scan_items as f64),
        scan_items: settings.scan_items,
        space_cost_mean: model.space_cost,
        level_sizes: model.levels.iter().map(bytes).collect(),
        level_runs: model.levels.iter().map(|level| level.runs).collect(),
        seconds: clock.seconds(),
    }
}

/// Returns the false positive rate of a Bloom filter with the best number of probes.
pub(crate) fn false_positives(bits_per_key: f64) -> f64 {
    (-bits_per_key * std::f64::consts::LN_2 * std::f64::consts::LN_2).exp()
}
